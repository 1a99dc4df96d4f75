"""What a memory really takes, beside the budget that is enforced.

``resident_bytes`` adds up every object that can be reached from the memory: texts, indexes, tables,
whatever belongs to Python and numpy, and of a heap what is used. Code, classes, modules and what
all indexes of a process share (4 MB of tables that cut texts into words) are left out, and so is
what lives outside Python, such as an engine's own cache.
``index_bytes`` is the part of it that the index holds, where there is one that can be told apart;
``disk_bytes`` is what files occupy. They depend on the interpreter, so they count as measurements.
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
_BLOCK = 512  # bytes, what st_blocks counts in


@dataclass(frozen=True)
class Footprint:
    """Bytes in memory, those of them that are an index (if known), and bytes on a disk."""

    resident: int
    index: int | None = None
    disk: int = 0

    def timings(self) -> dict[str, float]:
        """Return them by the names that tables use."""
        found = {"resident_bytes": self.resident, "disk_bytes": self.disk}
        if self.index is not None:
            found["index_bytes"] = self.index
        return {name: float(value) for name, value in found.items()}


def reachable_bytes(thing: Any, without: Iterable[Any] = ()) -> int:
    """Return the bytes of all objects that can be reached from a thing, each counted once.

    A memory map counts for nothing: how much of it is used only its owner knows.
    """
    seen = {id(each) for each in (*without, *_shared())}
    return sum(map(_size, _reached(thing, seen)))


def folder_bytes(folder: str | Path) -> int:
    """Return what the files of a folder occupy on their disk."""
    found = [path.stat() for path in Path(folder).rglob("*") if path.is_file()]
    return sum(getattr(each, "st_blocks", -(-each.st_size // _BLOCK)) * _BLOCK for each in found)


@cache
def _shared() -> tuple[Any, ...]:
    """Return what two indexes have in common: it is there once, however many there are."""
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
        if base is not None:  # a view of an array that numpy does not tell the collector of
            waiting.append(base)


def _size(each: Any) -> int:
    return 0 if isinstance(each, mmap.mmap) else sys.getsizeof(each, 0)
