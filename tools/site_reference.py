"""The API reference: one page for each package, read from the sources without importing them.

A name is documented once, in the package that defines it. Other packages that export it link there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import griffe

ROOT = "memoryspace"
INDEX = "reference/index.md"
_WITH_HEADING = "    options:\n      show_root_heading: true\n      show_root_toc_entry: true\n"


@dataclass(frozen=True)
class Page:
    """The public names of one module, and those of them that its page documents."""

    module: griffe.Module
    names: tuple[str, ...]
    own: tuple[str, ...]

    @property
    def uri(self) -> str:
        """Where the page stands on the site."""
        return f"reference/{self.module.path.removeprefix(f'{ROOT}.')}.md"


def reference_pages(sources: Path) -> dict[str, str]:
    """Return the pages as Markdown, by their place on the site; the index comes first."""
    package = griffe.load(ROOT, search_paths=[sources])
    assert isinstance(package, griffe.Module)
    pages = [_page(module) for module in _public_modules(package)]
    texts = {page.uri: _page_text(page, pages) for page in pages}
    return {INDEX: _index_text(package, pages), **texts}


def _public_modules(package: griffe.Module) -> list[griffe.Module]:
    """Return the packages that have ``__all__``, and the modules that the root exports from."""
    from_root = {_definition(package, name).split(".")[1] for name in _names(package)}
    return [
        member
        for name, member in sorted(package.members.items())
        if isinstance(member, griffe.Module) and (member.exports or name in from_root)
    ]


def _page(module: griffe.Module) -> Page:
    names = _names(module)
    own = tuple(name for name in names if _definition(module, name).startswith(f"{module.path}."))
    return Page(module, names, own)


def _names(module: griffe.Module) -> tuple[str, ...]:
    if module.exports is not None:
        return tuple(str(name) for name in module.exports if name != "__version__")
    return tuple(
        name
        for name, member in module.members.items()
        if not (name.startswith("_") or member.is_alias or member.is_module)
        and (member.is_class or member.is_function or member.has_docstring)
    )


def _thing(module: griffe.Module, name: str) -> griffe.Object | griffe.Alias:
    """Return what a module exports under a name; a submodule of the same name gives way."""
    member = module[name]
    return member[name] if member.is_module else member


def _definition(module: griffe.Module, name: str) -> str:
    return str(_thing(module, name).canonical_path)


def _anchor(module: griffe.Module, name: str) -> str:
    is_hidden = module[name].is_module  # behind a submodule, where only its full path leads
    return _definition(module, name) if is_hidden else f"{module.path}.{name}"


def _page_text(page: Page, pages: list[Page]) -> str:
    module = page.module
    hidden = [name for name in page.own if module[name].is_module]
    parts = [f"# {module.path}\n", _block(module.path, [n for n in page.own if n not in hidden])]
    parts += [f"::: {_definition(module, name)}\n{_WITH_HEADING}" for name in hidden]
    elsewhere = [name for name in page.names if name not in page.own]
    if elsewhere:
        parts += ["## Also exported here\n", *(_line(module, name, pages) for name in elsewhere)]
    return "\n".join(parts)


def _block(path: str, names: list[str]) -> str:
    return f"::: {path}\n    options:\n      members: [{', '.join(names)}]\n"


def _index_text(package: griffe.Module, pages: list[Page]) -> str:
    rows = [f"- [`{page.module.path}`]({_beside(page)}): {_summary(page.module)}" for page in pages]
    main = [_line(package, name, pages) for name in _names(package)]
    return "\n".join(
        [
            "# API reference\n",
            "The public names of every package.\n",
            *rows,
            "\n## The main names\n",
            f"These can be imported from `{ROOT}` itself.\n",
            *main,
            "",
        ]
    )


def _line(module: griffe.Module, name: str, pages: list[Page]) -> str:
    return f"- {_link(_definition(module, name), name, pages)}: {_summary(_thing(module, name))}"


def _link(definition: str, name: str, pages: list[Page]) -> str:
    for page in pages:
        for own in page.own:
            if _definition(page.module, own) == definition:
                return f"[`{name}`]({_beside(page)}#{_anchor(page.module, own)})"
    return f"`{name}`"


def _beside(page: Page) -> str:
    return page.uri.removeprefix("reference/")


def _summary(thing: griffe.Object | griffe.Alias) -> str:
    """Return the first paragraph of a docstring on one line."""
    if thing.docstring is None:
        return f"a name for `{thing.canonical_path}`"
    return " ".join(thing.docstring.value.split("\n\n")[0].split())
