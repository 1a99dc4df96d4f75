"""The API reference: one page for each package, read from the sources without importing them.

A name is documented once, in the package that defines it. Other packages that export it link there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import griffe

ROOT = "memoryspace"
INDEX = "reference/index.md"


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


def _definition(module: griffe.Module, name: str) -> str:
    return str(module[name].canonical_path)


def _page_text(page: Page, pages: list[Page]) -> str:
    path = page.module.path
    parts = [f"# {path}\n", _block(path, page.own)]
    elsewhere = [name for name in page.names if name not in page.own]
    if elsewhere:
        parts.append("## Also exported here\n")
        parts += [_line(page.module, name, pages) for name in elsewhere]
    return "\n".join(parts)


def _block(path: str, names: tuple[str, ...]) -> str:
    listed = "".join(f"        - {name}\n" for name in names)
    return f"::: {path}\n    options:\n      members:\n{listed}" if names else f"::: {path}\n"


def _index_text(package: griffe.Module, pages: list[Page]) -> str:
    rows = [f"- [`{page.module.path}`]({_beside(page)}): {_summary(page.module)}" for page in pages]
    main = [_line(package, name, pages) for name in _names(package)]
    return "\n".join(
        [
            "# API reference\n",
            "Names listed here are public. All others may change in any release.\n",
            *rows,
            "\n## The main names\n",
            f"These can be imported from `{ROOT}` itself.\n",
            *main,
            "",
        ]
    )


def _line(module: griffe.Module, name: str, pages: list[Page]) -> str:
    return f"- {_link(_definition(module, name), name, pages)}: {_summary(module[name])}"


def _link(definition: str, name: str, pages: list[Page]) -> str:
    for page in pages:
        for own in page.own:
            if _definition(page.module, own) == definition:
                return f"[`{name}`]({_beside(page)}#{page.module.path}.{own})"
    return f"`{name}`"


def _beside(page: Page) -> str:
    return page.uri.removeprefix("reference/")


def _summary(thing: griffe.Object | griffe.Alias) -> str:
    """Return the first paragraph of a docstring on one line."""
    if thing.docstring is None:
        return f"a name for `{thing.canonical_path}`"
    return " ".join(thing.docstring.value.split("\n\n")[0].split())
