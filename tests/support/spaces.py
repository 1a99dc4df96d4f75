"""What is in a space, as values to compare: shared by the tests of crashes, images and history."""

from __future__ import annotations

from typing import Any, NamedTuple

from memoryspace.kernel import MemoryManager


class Seen(NamedTuple):
    payload: dict[str, Any]
    tags: frozenset[str]
    importance: float
    expires_at: float
    tenant: str
    pinned: bool
    root: bool
    references: frozenset[str]


Contents = dict[str, Seen]


def contents(space: MemoryManager) -> Contents:
    """All there is in a space, and that its invariants hold."""
    space.check()
    return {
        each.id: Seen(
            each.payload,
            each.tags,
            each.importance,
            each.expires_at,
            each.tenant,
            space.is_pinned(each.id),
            space.is_root(each.id),
            frozenset(space.references(each.id)),
        )
        for each in space.objects()
    }
