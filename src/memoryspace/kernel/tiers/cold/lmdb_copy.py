"""A copy of an LMDB file with every value in it, and no byte of those that were deleted.

Each value is written once more, into pages that never held another. LMDB's own compacting copy
takes pages over, and rounds what is in use of them up to whole words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_IMODE

import lmdb

from ...durable.disk import Disk

_AT_ONCE = 2**22  # bytes copied in one transaction

Pair = tuple[bytes, bytes]


def write_copy(source: lmdb.Environment, path: Path, copy: Path, disk: Disk) -> None:
    """Write all that ``source``, whose file is ``path``, holds now into a new file, durably."""
    with source.begin() as reading:
        write_pairs(reading.cursor(), path, copy, disk, room=2 * source.info()["map_size"])


def write_pairs(pairs: Iterable[Pair], path: Path, copy: Path, disk: Disk, *, room: int) -> None:
    """Write pairs, in growing order, into a new file that ``path`` is to become, durably."""
    disk.unlink(copy)
    mode = S_IMODE(os.stat(path).st_mode)  # it is for the same eyes
    # Nobody else knows of the file: it needs no lock, and no sync before it is whole.
    target = lmdb.open(str(copy), map_size=room, subdir=False, lock=False, sync=False, mode=mode)
    try:
        for batch in _batches(pairs):
            with target.begin(write=True) as writing:
                writing.cursor().putmulti(batch, append=True)
        target.sync(True)
    finally:
        target.close()
    _sync_file(copy, disk)


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield pairs in order, about so many bytes at once."""
    batch: list[Pair] = []
    size = 0
    for pair in pairs:
        batch.append(pair)
        size += len(pair[0]) + len(pair[1])
        if size >= _AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _sync_file(path: Path, disk: Disk) -> None:
    fd = disk.open(path)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)
