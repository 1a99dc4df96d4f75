"""Plain text and Markdown: a file, or a folder of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import ImportRefused
from .contract import Batches, Foreign, Importer, in_batches, own_id, said, session_named
from .documents import text_of_file

MAX_PART = 2000  # characters; longer paragraphs stay whole up to MAX_PARAGRAPH
MAX_PARAGRAPH = 20_000
_ENDINGS = frozenset({".txt", ".md", ".markdown", ".text"})
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*")
_FENCE = ("```", "~~~")


def _read(source: str) -> Batches:
    return in_batches(_parts_under(Path(source).expanduser()))


def _parts_under(path: Path) -> Iterator[Foreign]:
    if path.is_file():
        yield from _parts_of(path, path.name)
        return
    if not path.is_dir():
        raise ImportRefused(f"{path}: there is no such file or folder")
    for folder, folders, names in os.walk(path):  # does not follow links to folders
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            is_wanted = file.suffix.lower() in _ENDINGS and not name.startswith(".")
            if is_wanted and file.is_file() and not file.is_symlink():
                yield from _parts_of(file, file.relative_to(path).as_posix())


def _parts_of(file: Path, name: str) -> Iterator[Foreign]:
    """Yield the parts of a file. The id of a part is its text's, so that an edit adds one part."""
    at = file.stat().st_mtime
    seen: dict[str, int] = {}
    for title, text in parts_in(text_of_file(file)):
        key = f"text:{name}:{title}:{text}"
        seen[key] = seen.get(key, 0) + 1
        metadata = {"title": title, "file": name, "source": "text"}
        message = said("user", text, key=own_id(f"{key}:{seen[key]}"), at=at, metadata=metadata)
        yield Foreign(message, session=session_named(name))


def parts_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text as paragraphs, short ones joined, each with the headings above it."""
    held: list[str] = []
    headings: list[str] = []
    for paragraph in _paragraphs(text):
        heading = _HEADING.fullmatch(paragraph)
        size = sum(map(len, held)) + len(paragraph)
        if held and (heading or size > MAX_PART):
            yield " > ".join(filter(None, headings)), "\n\n".join(held)
            held = []
        if heading:
            level = len(heading[1])
            headings = [*headings[: level - 1], *[""] * (level - 1 - len(headings)), heading[2]]
        else:
            held.append(paragraph)
    if held:
        yield " > ".join(filter(None, headings)), "\n\n".join(held)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and headings; a fenced block is one paragraph."""
    held: list[str] = []
    is_fenced = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(_FENCE):
            is_fenced = not is_fenced
        ends = not is_fenced and (not stripped or _HEADING.fullmatch(stripped) is not None)
        if ends:
            yield from _cut(held)
            held = []
            if stripped:
                yield stripped
        else:
            held.append(line.rstrip())
    yield from _cut(held)


def _cut(lines: list[str]) -> Iterator[str]:
    text = "\n".join(lines).strip("\n")
    for start in range(0, len(text), MAX_PARAGRAPH):
        yield text[start : start + MAX_PARAGRAPH]


TEXT = Importer("text", "plain text or Markdown: a file or a folder", names_users=False, read=_read)
