"""The real footprint of a memory, next to the enforced budget.

``resident_bytes`` adds up every object reachable from the memory: texts, indexes, tables,
everything owned by Python and numpy, and the used part of a heap. Code, classes, modules and data
that all indexes of a process share (4 MB of tokeniser tables) are left out, and so is memory
outside Python, such as an engine's own cache. ``index_bytes`` is the index's part, where it can be
separated; ``disk_bytes`` is what files occupy. All depend on the interpreter, so they count as
timings, not figures.
"""

from __future__ import annotations

import gc
import logging
import mmap
import sys
import threading
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...retrieval import SparseIndex

_NOT_OURS = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.FrameType,
    types.CodeType,
    type(cache(len)),
    threading.Thread,
    logging.Logger,
)
_BLOCK = 512  # bytes; the unit of st_blocks


@dataclass(frozen=True)
class Footprint:
    """Bytes in memory, the index's part of them (if known), and bytes on disk."""

    resident: int
    index: int | None = None
    disk: int = 0

    def timings(self) -> dict[str, float]:
        """Return them under the names that tables use."""
        found = {"resident_bytes": self.resident, "disk_bytes": self.disk}
        if self.index is not None:
            found["index_bytes"] = self.index
        return {name: float(value) for name, value in found.items()}


def reachable_bytes(thing: Any, without: Iterable[Any] = ()) -> int:
    """Return the bytes of all objects reachable from an object, each counted once.

    A memory map counts as zero: only its owner knows how much of it is used.
    """
    seen = {id(each) for each in (*without, *_shared())}
    return sum(map(_size, _reached(thing, seen)))


def folder_bytes(folder: str | Path) -> int:
    """Return the disk space that the files of a folder occupy."""
    found = [path.stat() for path in Path(folder).rglob("*") if path.is_file()]
    return sum(getattr(each, "st_blocks", -(-each.st_size // _BLOCK)) * _BLOCK for each in found)


@cache
def _shared() -> tuple[Any, ...]:
    """Return the objects that two indexes share: they exist once per process."""
    one, other = SparseIndex(), SparseIndex()
    for index in (one, other):
        index.add(0, "text")
        index.search("text")
    common = {id(each) for each in _reached(other, set())}
    return tuple(each for each in _reached(one, set()) if id(each) in common)


def _reached(thing: Any, seen: set[int]) -> Iterator[Any]:
    waiting = [thing]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, _NOT_OURS):
            continue
        seen.add(id(each))
        yield each
        waiting += gc.get_referents(each)
        base = getattr(each, "base", None) if type(each).__module__ == "numpy" else None
        if base is not None:  # a view of an array that numpy does not report to the collector
            waiting.append(base)


def _size(each: Any) -> int:
    return 0 if isinstance(each, mmap.mmap) else sys.getsizeof(each, 0)
