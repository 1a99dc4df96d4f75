"""A superseded memory: how it is marked, and how it holds again."""

from __future__ import annotations

from msgspec.structs import replace as change

from ..values.kinds import SUPERSEDED, SUPERSEDED_BY
from ..values.memory import MemoryItem

HELD_UNTIL = "held_until"  # in the details of a superseded fact: its ``valid_to`` before that


def superseded(memory: MemoryItem, by: str, valid_to: float) -> MemoryItem:
    """Return a memory that no longer holds, because of another."""
    details = {**memory.details, SUPERSEDED_BY: by}
    if SUPERSEDED not in memory.marks and memory.valid_to is not None:
        details[HELD_UNTIL] = memory.valid_to
    marks = memory.marks | {SUPERSEDED}
    return change(memory, valid_to=valid_to, marks=marks, details=details)


def holding(memory: MemoryItem) -> MemoryItem:
    """Return a superseded memory as it was before."""
    details = {key: value for key, value in memory.details.items() if key != SUPERSEDED_BY}
    until = details.pop(HELD_UNTIL, None)
    return change(memory, marks=memory.marks - {SUPERSEDED}, valid_to=until, details=details)
