"""The site's pages from outside docs/: a hook of mkdocs.

Documents link to each other, to examples and to results as they lie in the repository, so that the
links work on a code host. On the site the README is the start page, an example is a page with its
code, a folder is a page with a list, and every link leads there. Only what is linked is published.
A link that leads nowhere is left as it is, and fails the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from site_reference import reference_pages

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "README.zh.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
)
LISTED = (".md", ".py")  # of a folder that is linked to
REFERENCE = "API reference"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference into the navigation."""
    _published.cache_clear()
    _reference.cache_clear()
    section = next(each for each in config.nav if REFERENCE in each)
    section[REFERENCE] = list(_reference())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents outside docs/, all that is linked to, and the reference."""
    for uri, path in _published().items():
        if files.get_file_from_path(uri) is None:
            files.append(_file(path, uri, config))
    for uri, text in _reference().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    origin = _published().get(page.file.src_uri)
    if origin is None:
        return markdown
    here = posixpath.dirname(page.file.src_uri)
    return LINK.sub(lambda match: _link(match[0], origin, here), markdown)


def site_uri(path: Path) -> str:
    """Return where on the site a file or folder of the repository stands."""
    inside = path.relative_to(REPOSITORY)
    if path.is_dir():
        return (inside / "index.md").as_posix()
    if inside.parts[0] == "docs":
        return inside.relative_to("docs").as_posix()
    if path.name in DOCUMENTS:
        name = path.name.lower().replace("_", "-")
        return "index.md" if name == "readme.md" else name
    return (inside.with_suffix(".md") if path.suffix == ".py" else inside).as_posix()


@cache
def _reference() -> dict[str, str]:
    return reference_pages(REPOSITORY / "src")


@cache
def _published() -> dict[str, Path]:
    """Return the documents and what can be reached from them by links, by place on the site."""
    waiting = [*(REPOSITORY / name for name in DOCUMENTS), *(REPOSITORY / "docs").rglob("*.md")]
    known: dict[str, Path] = {}
    while waiting:
        path = waiting.pop()
        if site_uri(path) not in known:
            known[site_uri(path)] = path
            waiting += _linked(path)
    return known


def _linked(path: Path) -> Iterator[Path]:
    if path.is_dir() or path.suffix == ".md":
        for link in LINK.findall(_text(path)):
            target = _target(link, path)
            if target is not None:
                yield target


def _target(link: str, origin: Path) -> Path | None:
    """Return the file or folder of the repository that a link means, if there is one."""
    folder = origin if origin.is_dir() else origin.parent
    target = (folder / link).resolve() if "://" not in link else None
    if target is None or not target.exists() or not target.is_relative_to(REPOSITORY):
        return None
    return target


def _link(link: str, origin: Path, here: str) -> str:
    target = _target(link, origin)
    return link if target is None else posixpath.relpath(site_uri(target), here or ".")


def _file(path: Path, uri: str, config: MkDocsConfig) -> File:
    if path.is_dir() or path.suffix in LISTED:
        return File.generated(config, uri, content=_text(path))
    return File.generated(config, uri, abs_src_path=str(path))


def _text(path: Path) -> str:
    """Return the Markdown that shows a document, a program or a folder."""
    if path.is_dir():
        return f"# {path.name}\n\n" + "".join(_row(each, path) for each in _listed(path))
    text = path.read_text("utf-8")
    return f"# {path.name}\n\n```python\n{text}```\n" if path.suffix == ".py" else text


def _listed(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in LISTED)


def _row(path: Path, folder: Path) -> str:
    name = path.relative_to(folder).as_posix()
    return f"- [{name}]({name})\n"
