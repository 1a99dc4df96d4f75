"""Recovery: load the newest checkpoint, then apply the journal after it.

Why this is correct: a checkpoint is the heap at one lsn. The journal holds every later change in
order, each frame whole or absent. ``Heap.apply`` depends on the heap and the ops alone, so applying
the frames after the checkpoint gives the heap as it was when the last of them was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...errors import CorruptData, OutOfSpace, UnknownObject
from ..heap.heap import Heap, bodies_of
from ..heap.ops import FreeOp, LinkOp, Op, StoreOp, decode_ops
from ..heap.table import SLOT_MASK
from .checkpoints import CheckpointManager
from .image import Spill
from .journal import WriteAheadLog

Reserve = Callable[[Sequence[tuple[int, bytes]]], list[int]]  # of (stamp, body)


@dataclass
class Recovered:
    """What recovery found: the checkpoint's lsn, the last lsn, cold copies to delete later."""

    checkpoint_lsn: int = 0
    lsn: int = 0
    tombstones: list[tuple[int, int]] = field(default_factory=list)


def rebuild(
    heap: Heap,
    checkpoints: CheckpointManager | None,
    wal: WriteAheadLog | None,
    *,
    reserve: Reserve,
    spill: Spill,
    until: int | None = None,
) -> Recovered:
    """Fill an empty heap from the files, up to the lsn ``until`` or to the end."""
    newest = 0 if checkpoints is None else checkpoints.newest(until)
    image = None if checkpoints is None else checkpoints.load(heap, spill, until)
    found = Recovered()
    if image is not None:
        heap.recovered()
        found = Recovered(image.closing.lsn, image.closing.lsn, image.closing.tombstones)
    if wal is not None and (until is None or until > found.lsn):
        _check_joined(wal, found.lsn)
        found.lsn = _replay(heap, wal, found.lsn, until, reserve)
    if found.lsn < newest and not (wal is not None and wal.damage):
        raise CorruptData(
            f"changes {found.lsn + 1} to {newest} are in a checkpoint that cannot be read; "
            "restore a backup"
        )
    return found


def _replay(heap: Heap, wal: WriteAheadLog, after: int, until: int | None, reserve: Reserve) -> int:
    lsn = after
    for frame in wal.replay(after, until):
        if frame.lsn != lsn + 1 and not wal.damage:
            raise CorruptData(
                f"changes {lsn + 1} to {frame.lsn - 1} are in a checkpoint that cannot be read; "
                "restore a backup"
            )
        lsn = frame.lsn
        ops = decode_ops(frame.payload, lsn)
        if wal.damage:
            ops = _still_possible(heap, ops)
        elif len(ops) == 1 and type(ops[0]) is StoreOp:  # the usual case, in fewer steps
            try:
                heap.apply(ops, lsn, (heap.space.allocate(len(ops[0].body)),))
                continue
            except OutOfSpace:
                pass
        _replay_frame(heap, ops, lsn, reserve)
    return lsn


def _replay_frame(heap: Heap, ops: list[Op], lsn: int, reserve: Reserve) -> None:
    try:
        heap.require(ops)
    except UnknownObject as error:
        raise CorruptData(f"journal frame {lsn} changes a missing object: {error}") from error
    bodies = bodies_of(ops, lsn)
    heap.apply(ops, lsn, reserve(bodies) if bodies else ())


def _check_joined(wal: WriteAheadLog, checkpoint_lsn: int) -> None:
    if wal.damage:
        return  # salvaged: gaps are expected
    if wal.last_lsn > checkpoint_lsn and wal.first_lsn > checkpoint_lsn + 1:
        raise CorruptData(
            f"changes {checkpoint_lsn + 1} to {wal.first_lsn - 1} are missing: the journal in "
            f"{wal.path} begins after the newest readable checkpoint; restore a backup"
        )


def _still_possible(heap: Heap, ops: Sequence[Op]) -> list[Op]:
    """Return those ops, of a journal that lost frames, whose objects exist."""
    kept: list[Op] = []
    stored: set[int] = set()

    def known(handle: int) -> bool:
        return handle in stored or heap.table.slot_of(handle) >= 0

    for op in ops:
        if isinstance(op, StoreOp):
            slot = op.handle & SLOT_MASK
            if slot < heap.table.rows and heap.table.handle[slot]:  # the op that freed it was lost
                kept.append(FreeOp([heap.table.handle[slot]], "lost"))
            stored.add(op.handle)
            kept.append(op)
        elif isinstance(op, FreeOp):
            handles = [handle for handle in op.handles if known(handle)]
            if handles:
                kept.append(FreeOp(handles, op.reason))
        elif isinstance(op, LinkOp):
            if known(op.source) and known(op.target):
                kept.append(op)
        elif known(op.handle):
            kept.append(op)
    return kept
