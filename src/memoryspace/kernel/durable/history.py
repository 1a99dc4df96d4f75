"""Point in time recovery: a space as it was, what has changed since, and going back.

The past goes back as far as the oldest checkpoint that is kept and the journal after it. It can be
read while the space is in use. A moment is named by the number of the last change it includes
(``lsn``) or by a time.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from ...errors import InvalidInput, OutOfSpace, StoreError
from ..engine import Engine
from ..heap.heap import Heap
from ..heap.space import GRANULE, MAX_CAPACITY
from ..heap.table import COLD, NOT_HOT, PINNED, RECOVERED, ROOT, ObjectTable
from ..options import EngineOptions, Runtime
from ..tiers.engine import TieredEngine
from .checkpoints import CheckpointManager
from .folder import SpaceFiles
from .recovery import rebuild

_MARGIN = 1.5  # how much bigger a heap for the past is than the files that describe it


@dataclass(frozen=True)
class Difference:
    """The ids of the objects that were added, removed or changed between two moments."""

    added: frozenset[str]
    removed: frozenset[str]
    changed: frozenset[str]


class PastEngine(Engine):
    """The engine of a space as it was after a change. It refuses every change."""

    def __init__(self, present: Engine, lsn: int, time: float | None) -> None:
        self.past_lsn = lsn
        self.time = _time_of(present, lsn) if time is None else time
        self._present = present
        options = EngineOptions(
            capacity=_capacity_for(present, lsn),
            retriever="sparse",
            runtime=Runtime(clock=lambda: self.time),  # what lived then has not expired then
        )
        super().__init__(options, SpaceFiles(present.wal, present.checkpoint_manager))
        self.wal = self.checkpoint_manager = None
        self._closed = True  # to changes

    def close(self) -> None:
        """Free the memory of the view."""
        self.heap.space.close()

    def _recover(self) -> None:
        self.heap.body_of = self._body_then
        rebuild(
            self.heap,
            self.checkpoint_manager,
            self.wal,
            reserve=self.reservations.reserve_in_recovery,
            spill=self.lower_tier.spill,
            until=self.past_lsn,
        )
        self.heap.lsn = self.past_lsn

    def _body_then(self, slot: int) -> bytes:
        """Return an object's bytes; those of cold objects from the present space's cold tier."""
        if self.heap.table.address[slot] != NOT_HOT:
            return self.heap.read(slot)
        assert isinstance(self._present, TieredEngine)  # only such a space has cold objects
        try:
            return self._present.cold.load(self.heap.table.stamp[slot])
        except KeyError:
            raise InvalidInput(
                f"the body of object {self.heap.id_of(slot)!r} is no longer kept: a later "
                "checkpoint or scrub() dropped this moment while it was being read"
            ) from None

    def _refuse(self) -> NoReturn:
        raise InvalidInput("the past cannot be changed; restore it, or fork it and change the fork")


def past_of(space: Engine, lsn: int | None, time: float | None) -> PastEngine:
    """Return the engine of a space as it was at a moment."""
    return PastEngine(space, _moment(space, lsn, time), time)


def difference(space: Engine, before: int, after: int | None) -> Difference:
    """Return what changed between two lsns; ``None`` for now."""
    with space.writing:
        after = space.last_lsn if after is None else after
    with past_of(space, before, None) as old, past_of(space, after, None) as new:
        was, is_now = _contents(old.heap), _contents(new.heap)
    common = was.keys() & is_now.keys()
    return Difference(
        frozenset(is_now.keys() - was.keys()),
        frozenset(was.keys() - is_now.keys()),
        frozenset(object_id for object_id in common if was[object_id] != is_now[object_id]),
    )


def go_back(space: Engine, lsn: int | None, time: float | None) -> int:
    """Make a space what it was at a moment; return the lsn of this change."""
    checkpoints = _checkpoints_of(space)
    with space.writing, past_of(space, lsn, time) as past:
        space.abandon_work()
        _check_fits(space, past.heap)
        _retire_handles(past.heap.table, space.heap.table)
        target = space.last_lsn + 1
        _put_in_place(space, checkpoints, past.heap, target)
        try:
            space.reload()
        except BaseException:
            _give_up(space)
            raise
        space.events.emit("restored", lsn=target, to=past.past_lsn)
    return target


def copy_into(space: Engine, folder: Path, lsn: int | None, time: float | None) -> None:
    """Write a space, as it is or as it was, into an empty folder."""
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty; fork into a new folder")
    checkpoints = CheckpointManager(folder / "checkpoints")
    if lsn is None and time is None:
        copy_all(space, checkpoints)
    else:
        with past_of(space, lsn, time) as past:
            copy_all(past, checkpoints)


def _put_in_place(space: Engine, checkpoints: CheckpointManager, past: Heap, target: int) -> None:
    """Write the past as the newest checkpoint and continue the journal after it: both, or neither.

    A crash in between leaves the checkpoint, and recovery continues the journal after it.
    """
    assert space.wal is not None  # the past was found there
    try:
        checkpoints.write(past, target, space.clock(), _tombstones(space, past, target))
        space.wal.skip_to(target)
    except BaseException as error:
        if space.wal.last_lsn < target:
            try:
                checkpoints.remove(target)  # the next change will have this lsn
            except StoreError:
                _give_up(space)
            raise
        if not isinstance(error, StoreError):
            _give_up(space)
            raise


def _give_up(space: Engine) -> None:
    """Close a space whose memory no longer matches the disk; it can be opened again from there."""
    with suppress(StoreError):
        space.close()


def _tombstones(space: Engine, past: Heap, target: int) -> list[tuple[int, int]]:
    """Return the cold copies that are needed after a restore only to look further back."""
    table = space.heap.table
    again = {past.table.stamp[slot] for slot in past.table.living()}
    ended = [
        (target, table.stamp[slot])
        for slot in table.living()
        if table.flags[slot] & (COLD | RECOVERED)
    ]
    return [
        tombstone
        for tombstone in [*space.lower_tier.tombstones, *ended]
        if tombstone[1] not in again
    ]


class _Content(NamedTuple):
    stamp: int
    importance: float
    expires: float
    kept: int
    tags: tuple[str, ...]
    references: tuple[int, ...]


def _contents(heap: Heap) -> dict[str, _Content]:
    table = heap.table
    return {
        heap.id_of(slot): _Content(
            table.stamp[slot],
            table.importance[slot],
            table.expires[slot],
            table.flags[slot] & (ROOT | PINNED),
            heap.tags.values[table.tags[slot]],
            tuple(sorted(heap.references.targets(slot))),
        )
        for slot in table.living()
    }


def copy_all(space: Engine, checkpoints: CheckpointManager) -> None:
    """Write a checkpoint that needs no cold tier, in slices."""
    with space.writing:
        writer = checkpoints.begin(space.heap, cold_body=space.body)
    try:
        while not writer.captured:
            with space.writing:
                writer.capture(space.options.pause, space.last_lsn, space.clock(), [])
        writer.finish()
    except BaseException:
        writer.abandon()
        raise


def _moment(space: Engine, lsn: int | None, time: float | None) -> int:
    checkpoints = _checkpoints_of(space)
    if (lsn is None) == (time is None):
        raise InvalidInput("name one moment: either an lsn or a time")
    assert space.wal is not None
    kept = checkpoints.lsns()
    oldest = kept[0] if kept and space.wal.first_lsn > 1 else 0
    if lsn is None:
        assert time is not None
        lsn = max(space.wal.lsn_at(time), checkpoints.lsn_at(time))  # a restore has no record
    scrubbed = checkpoints.scrubbed_lsn
    if 0 <= lsn < min(oldest, scrubbed):
        raise InvalidInput(
            f"the past before change {scrubbed} was erased by scrub() and cannot come back; "
            f"what is kept goes from {oldest} to {space.last_lsn}"
        )
    if not oldest <= lsn <= space.last_lsn:
        raise InvalidInput(
            f"there is no change {lsn}: the past that is kept goes from {oldest} to "
            f"{space.last_lsn}; keep more checkpoints to go further back"
        )
    return lsn


def _time_of(space: Engine, lsn: int) -> float:
    """Return when a change was made."""
    checkpoints = _checkpoints_of(space)
    assert space.wal is not None
    for frame in space.wal.replay(lsn - 1, lsn) if lsn else ():
        return frame.time
    return checkpoints.time_of(lsn) if lsn in checkpoints.lsns() else space.clock()


def _checkpoints_of(space: Engine) -> CheckpointManager:
    if space.checkpoint_manager is None or space.wal is None:
        raise InvalidInput("this space keeps no past; open it in a folder")
    return space.checkpoint_manager


def _capacity_for(space: Engine, lsn: int) -> int:
    """Return a capacity that is sure to hold what the files describe, hot and cold bodies."""
    checkpoints = _checkpoints_of(space)
    assert space.wal is not None
    before = [each for each in checkpoints.lsns() if each <= lsn]
    files = sum(checkpoints.path_of(each).stat().st_size for each in before[-1:])
    files += space.wal.bytes_since(0)  # of a part of it, bytes can only be estimated
    return min(MAX_CAPACITY, max(space.capacity, math.ceil(_MARGIN * files)) + GRANULE)


def _check_fits(space: Engine, past: Heap) -> None:
    needed = past.space.allocated()
    if needed > space.capacity and not isinstance(space, TieredEngine):
        raise OutOfSpace(
            f"the past takes {needed} bytes, the space has {space.capacity}; open it with a bigger "
            "capacity and restore again"
        )


def _retire_handles(past: ObjectTable, present: ObjectTable) -> None:
    """Keep handles that were given since then from being given again."""
    if past.rows < present.rows:
        past.grow(present.rows)
        past.free_slots.extend(range(past.rows, present.rows))
        past.rows = present.rows
    for slot in range(present.rows):
        past.generations[slot] = max(past.generations[slot], present.generations[slot])
