"""``Lineage``: which derived memories supersede which, as far as they are approved.

A memory that waits supersedes nothing. It only records what it would supersede (``retires``) or be
superseded by (``retired_by``). These records also reach past direct predecessors: after Rome, Oslo
and Bergen, Bergen retires Rome as well as Oslo, so whichever are approved, in whatever order, the
last one said holds.

Whether an approved memory is superseded follows from the records and from what is approved now.
``settle`` writes this down. It reads again after every write until nothing is left to change, so of
two processes that decide at the same time, the later one completes what both decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from ...errors import UnknownMemory
from ...record import Scope, Where, is_number
from ..values.envelope import LINEAGE
from ..values.kinds import RETIRED_BY, RETIRES, SUPERSEDED, SUPERSEDED_BY
from ..values.memory import RAW, MemoryItem
from ..writing.repository import MemoryRepository
from ..writing.superseding import holding, superseded

MOST_FORMER = 500  # predecessors of predecessors that a memory records

Links: TypeAlias = dict[str, float]  # ids of memories, and when the older one ceases to hold


class Lineage:
    """The links between some memories of a user. ``live`` holds those that may retire others."""

    def __init__(self, live: Iterable[MemoryItem], superseded: Iterable[MemoryItem] = ()) -> None:
        self.superseded = tuple(superseded)
        self.live = {each.id: each for each in live}
        self._retirers: dict[str, Links] = {}
        for memory in self.live.values():
            for former, until in links_in(memory.details, RETIRES).items():
                self._retirers.setdefault(former, {})[memory.id] = until

    @classmethod
    async def read(
        cls, repository: MemoryRepository, user: str, *, with_superseded: bool = False
    ) -> Lineage:
        """Read all links of a user; ``with_superseded`` also every superseded memory."""
        scope = Scope(user)
        linked = await repository.select(scope, Where(marks=frozenset({LINEAGE})))
        named = {each for memory in linked for each in _retired_by(memory)}
        missing = frozenset(named.difference(each.id for each in linked))
        found = await repository.select(scope, Where(ids=missing)) if missing else []
        over = Where(marks=frozenset({SUPERSEDED}))
        return cls(
            (*linked, *found), await repository.select(scope, over) if with_superseded else ()
        )

    def retirers(self, memory: MemoryItem) -> Links:
        """Return what supersedes a memory once approved, of what still exists."""
        known = {**_retired_by(memory), **self._retirers.get(memory.id, {})}
        return {each: until for each, until in known.items() if each in self.live}

    def retired(self, memory_id: str) -> set[str]:
        """Return the ids of memories that this one supersedes once approved."""
        memory = self.live.get(memory_id)
        found = set() if memory is None else set(links_in(memory.details, RETIRES))
        return found | {each.id for each in self.live.values() if memory_id in _retired_by(each)}

    def successor(self, memory: MemoryItem) -> tuple[str, float] | None:
        """Return the approved memory that supersedes this one first, and when."""
        approved = [
            (until, self.live[each].created_at, each)
            for each, until in self.retirers(memory).items()
            if not self.live[each].is_waiting
        ]
        if not approved:
            return None
        until, _, first = min(approved)
        return first, until

    def is_outdated(self, memory: MemoryItem) -> bool:
        """Return whether a memory would be superseded if everything were approved."""
        return bool(self.retirers(memory))

    def placed(self, memory: MemoryItem, decided: Collection[str] = ()) -> MemoryItem | None:
        """Return an approved memory as it must be, superseded or not; ``None`` if it is so.

        What was superseded outside of a review stays so. ``decided`` are ids of memories that may
        have superseded it in a review and be gone since.
        """
        if memory.is_waiting:
            return None
        by = memory.details.get(SUPERSEDED_BY) if SUPERSEDED in memory.marks else None
        if by is not None and by not in decided and by not in self.retirers(memory):
            return None
        found = self.successor(memory)
        if found is None:
            return None if by is None else holding(memory)
        if found == (by, memory.valid_to):
            return None
        return superseded(memory, *found)


async def settle(
    repository: MemoryRepository, user: str, decided: Iterable[str], also: Iterable[str] = ()
) -> list[MemoryItem]:
    """Let what was decided, what it retires and ``also`` these hold or be superseded.

    Idempotent; ends when a pass over fresh data finds nothing to change. Returns all of them.
    """
    seeds = set(decided)
    subjects, successors = seeds.union(also), set(seeds)
    while True:
        lineage = await Lineage.read(repository, user)
        subjects |= {each for seed in seeds for each in lineage.retired(seed)}
        found = await repository.select(Scope(user), Where(ids=frozenset(subjects)))
        memories = [each for each in found if each.kind != RAW]
        wrong = [each for each in memories if lineage.placed(each, successors) is not None]
        if not wrong:
            return memories
        place = partial(lineage.placed, decided=frozenset(successors))
        for memory in wrong:
            try:
                await repository.edit(Scope(user, memory.session_id), memory.id, place)
            except UnknownMemory:
                continue  # deleted meanwhile
            successor = lineage.successor(memory)
            successors |= set() if successor is None else {successor[0]}


def closure(links: Mapping[str, Links], memory_id: str) -> Links:
    """Return what a memory retires: its own links, then those of what it retires, nearest first."""
    own = links.get(memory_id, {})
    found, level = dict(own), dict(own)
    while level and len(found) < len(own) + MOST_FORMER:
        further: Links = {}
        for former, until in level.items():
            for older in links.get(former, {}):
                if older not in found and older != memory_id:
                    further[older] = until
        found.update(further)
        level = further
    return found


def links_in(details: Mapping[str, Any], name: str) -> Links:
    """Return the links under a name in the details of a memory."""
    links = details.get(name)
    if not isinstance(links, Mapping):
        return {}
    return {str(each): float(until) for each, until in links.items() if is_number(until)}


def _retired_by(memory: MemoryItem) -> Links:
    return links_in(memory.details, RETIRED_BY)
