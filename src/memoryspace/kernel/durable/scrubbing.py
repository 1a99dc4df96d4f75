"""Scrubbing: afterwards no file of a space holds a byte of what was freed before.

Freed bodies linger in four places: in journal segments, in older checkpoints, in the cold tier (as
copies that the past may ask for, and in pages that its engine has yet to use again), and in the
index that was kept when the space was last closed. What lives is written anew first and made
durable; only then does the old go. So a crash at any moment leaves a space with all that lives, and
perhaps some of the dead: scrub again.

    a new segment │ a checkpoint, read back │ older checkpoints and segments go │ the cold tier is
    swept and rewritten │ the index goes, and is built again if it knew any of the dead
"""

from __future__ import annotations

import time

from ...errors import InvalidInput
from ..engine import Engine
from ..heap.heap import STAMP_BITS


def scrub(space: Engine) -> int:
    """Scrub a space; return from which lsn on there is a past to go back to."""
    with space.scrubbing:
        if space.wal is not None and space.checkpoint_manager is None:
            raise InvalidInput(
                "this space has a journal but no checkpoint manager: nothing could go from the "
                "journal; open it in a folder, or give it both"
            )
        _free_the_expired(space)
        oldest, before = _renew(space)
        _scrub_below(space, oldest, before)
        _scrub_index(space)
    space.events.emit("scrubbed", lsn=oldest)
    return oldest


def _free_the_expired(space: Engine) -> None:
    """What has expired is gone for everybody; let it be gone from the heap as well."""
    while _frees_some(space):
        pass


def _frees_some(space: Engine) -> bool:
    with space.writing:
        space.require_open()
        before, deadline = space.last_lsn, time.perf_counter() + space.options.pause
        space.collecting.expire(lambda: time.perf_counter() >= deadline)
        return space.last_lsn != before


def _renew(space: Engine) -> tuple[int, int]:
    """Write a checkpoint, and drop everything before it; return its lsn, and that of the scrub.

    The segment begins before the checkpoint does: all that was freed until now stands in older
    ones, and the journal after the checkpoint in this one.
    """
    checkpoints = space.checkpoint_manager
    first = space.last_lsn + 1 if space.wal is None else space.wal.renew()
    if checkpoints is None:
        return first - 1, first
    oldest = space.imaging.renew()
    checkpoints.verify(oldest)
    with space.writing:  # the folder may belong to another as soon as the space is closed
        space.require_open()
        checkpoints.forget_before(oldest)
        if space.wal is not None:
            space.wal.forget_before(first)
    return oldest, first


def _scrub_below(space: Engine, oldest: int, before: int) -> None:
    """Whoever is freed after this looked at the heap may keep his cold copy: he was not before."""
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
