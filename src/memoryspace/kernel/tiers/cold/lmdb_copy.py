"""Copies an LMDB file without any byte of deleted values.

Each value is written again, into new pages. LMDB's own compacting copy would copy whole pages, with
stale bytes in them.
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
    """Write every value of ``source``, whose file is ``path``, into a new file, and sync it."""
    with source.begin() as reading:
        write_pairs(reading.cursor(), path, copy, disk, map_size=2 * source.info()["map_size"])


def write_pairs(
    pairs: Iterable[Pair], path: Path, copy: Path, disk: Disk, *, map_size: int
) -> None:
    """Write pairs, in ascending order, into a new file that is to replace ``path``, and sync it."""
    disk.unlink(copy)
    mode = S_IMODE(os.stat(path).st_mode)  # keep the permissions
    # No other process uses the file: it needs no lock, and no sync before it is complete.
    target = lmdb.open(
        str(copy), map_size=map_size, subdir=False, lock=False, sync=False, mode=mode
    )
    try:
        for batch in _batches(pairs):
            with target.begin(write=True) as writing:
                writing.cursor().putmulti(batch, append=True)
        target.sync(True)
    finally:
        target.close()
    _sync_file(copy, disk)


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield pairs in order, in batches of about ``_AT_ONCE`` bytes."""
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
