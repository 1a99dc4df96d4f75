"""Scrubbing: erases freed objects from every file of a space.

Freed bodies linger in four places: in journal segments, in older checkpoints, in the cold tier (as
copies that the past may need, and in pages that its engine has not reused yet), and in the saved
index. Living objects are rewritten and made durable first; only then is the old data removed. So
a crash at any moment leaves every living object, and perhaps some freed ones: scrub again.

    start a segment │ write a checkpoint, read it back │ remove older checkpoints and segments │
    sweep and rewrite the cold tier │ remove the saved index, rebuild one that covered freed objects
"""

from __future__ import annotations

import time

from ...errors import InvalidInput
from ..engine import Engine
from ..heap.heap import STAMP_BITS


def scrub(space: Engine) -> int:
    """Scrub a space; return the oldest lsn that can still be restored."""
    with space.scrubbing:
        if space.wal is not None and space.checkpoint_manager is None:
            raise InvalidInput(
                "this space has a journal but no checkpoint manager, so its journal cannot be "
                "scrubbed; open the space in a folder, or pass both"
            )
        _free_expired(space)
        oldest, before = _renew(space)
        _scrub_lower_tier(space, oldest, before)
        _scrub_index(space)
    space.events.emit("scrubbed", lsn=oldest)
    return oldest


def _free_expired(space: Engine) -> None:
    """Free expired objects, which no caller can read any more."""
    while _free_some_expired(space):
        pass


def _free_some_expired(space: Engine) -> bool:
    with space.writing:
        space.require_open()
        before, deadline = space.last_lsn, time.perf_counter() + space.options.pause
        space.collecting.expire(lambda: time.perf_counter() >= deadline)
        return space.last_lsn != before


def _renew(space: Engine) -> tuple[int, int]:
    """Write a checkpoint and drop everything before it; return its lsn, and that of the scrub.

    The new segment begins before the checkpoint does. So everything freed until now is in older
    segments, and the journal after the checkpoint is in this one.
    """
    checkpoints = space.checkpoint_manager
    first = space.last_lsn + 1 if space.wal is None else space.wal.renew()
    if checkpoints is None:
        return first - 1, first
    oldest = space.checkpointing.renew()
    checkpoints.verify(oldest)
    with space.writing:  # a closed space may have lost the folder to another process
        space.require_open()
        checkpoints.forget_before(oldest)
        if space.wal is not None:
            space.wal.forget_before(first)
    return oldest, first


def _scrub_lower_tier(space: Engine, oldest: int, before: int) -> None:
    """Erase cold copies. Objects freed after the heap was examined may keep theirs."""
    space.drain()
    with space.writing:
        space.require_open()
        needed = space.lower_tier.needed(oldest)
    space.lower_tier.scrub(needed, before << STAMP_BITS)
    with space.writing:
        tombstones = space.lower_tier.tombstones
        space.lower_tier.tombstones = [
            tombstone for tombstone in tombstones if tombstone[0] > oldest
        ]


def _scrub_index(space: Engine) -> None:
    with space.writing:
        space.require_open()
        if space.search is not None:
            space.search.scrub()
    has_more = True
    while has_more:
        with space.writing:
            space.require_open()
            if space.search is not None:
                space.search.catch_up(space.options.pause)
            has_more = space.search is not None and space.search.has_backlog
