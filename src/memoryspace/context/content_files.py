"""The files of an archive: one a content, named by its handle and kind, whole or not there."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from ..files import write_atomic
from .archive import Kept, Kind

_SUFFIXES: dict[Kind, str] = {
    "text": ".txt",
    "blocks": ".blocks.json",
    "messages": ".messages.json",
}
_HALF_DONE = ".tmp"


class ContentFiles:
    """A folder of contents. Knows nothing of who holds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, handle: str, kind: Kind) -> Path:
        """Return where a content is, or would be."""
        return self.folder / f"{handle}{_SUFFIXES[kind]}"

    def write(self, handle: str, kind: Kind, data: str) -> None:
        """Put a content on the disk, to last."""
        write_atomic(self.path(handle, kind), data.encode("utf-8", "surrogatepass"))

    def read(self, handle: str, kind: Kind) -> str | None:
        """Return a content; None if there is none, or none that can be read."""
        try:
            return self.path(handle, kind).read_bytes().decode("utf-8", "surrogatepass")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def remove(self, handle: str, kind: Kind) -> None:
        """Remove a content, if it is there."""
        self.path(handle, kind).unlink(missing_ok=True)

    def touch(self, handle: str, kind: Kind, now: float) -> None:
        """Note that a content left the context now."""
        os.utime(self.path(handle, kind), times=(now, now))

    def left_at(self, kept: Kept) -> float:
        """Return when a content last left the context; for ever ago if it is not there."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def size(self, kept: Kept) -> int:
        """Return the bytes that a content takes."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_size
        except FileNotFoundError:
            return 0

    def found(self) -> Iterator[tuple[str, Kind, str]]:
        """Yield handle, kind and data of every content that can be read."""
        for path in sorted(self.folder.iterdir()):
            handle, _, suffix = path.name.partition(".")
            for kind, each in _SUFFIXES.items():
                data = self.read(handle, kind) if each == f".{suffix}" else None
                if data is not None:
                    yield handle, kind, data

    def remove_others(self, kept: Collection[Kept]) -> None:
        """Remove every content but these, and what was never finished; leave other files alone."""
        names = {self.path(each.handle, each.kind).name for each in kept}
        for path in self.folder.iterdir():
            is_ours = path.name.endswith((_HALF_DONE, *_SUFFIXES.values()))
            if is_ours and path.name not in names:
                path.unlink(missing_ok=True)
