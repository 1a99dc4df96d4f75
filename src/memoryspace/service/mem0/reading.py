"""Reading memories out of mem0: found, listed, one by id, and what one was before.

mem0 is told whose memories are meant and in which session; every other condition is looked at
here, in the same words as for every service. It has no pages to speak of, so a list reads all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ...record import could_be_id
from ...retrieval.conditions import refusal
from ..reading.filters import MOST_HITS, CheckedFilters
from ..values.memory import QUARANTINED, RAW, MemoryItem
from ..values.results import MemoryHit
from .calls import Found, Ids, Mem0Calls
from .shapes import FACT, entry_from, held, memory_from, message_about

KINDS = (RAW, FACT)

Place = tuple[int, str]


class Reading:
    """A client's memories, by user."""

    def __init__(self, calls: Mem0Calls, *, quarantine: bool) -> None:
        self._calls = calls
        self._quarantine = quarantine

    async def select(self, user: str, asked: CheckedFilters) -> list[MemoryItem]:
        """Return the memories asked for, in the order they were written."""
        asked.check_kinds()
        found: list[Found] = []
        for ids in _scopes(user, asked):
            found += await self._calls.everything(ids)
        return sorted(self._fitting(user, asked, found), key=place)

    async def hits(
        self, user: str, text: str, top_k: int, asked: CheckedFilters
    ) -> list[MemoryHit]:
        """Return what answers a question: the best first, of equals the newest."""
        asked.check_kinds()
        hits: list[MemoryHit] = []
        for ids in _scopes(user, asked):
            hits += await self._hits_in(ids, user, text, top_k, asked)
        return sorted(hits, key=_best_first)[:top_k]

    async def _hits_in(
        self, ids: Ids, user: str, text: str, top_k: int, asked: CheckedFilters
    ) -> list[MemoryHit]:
        limit = top_k
        while True:
            answer = await self._calls.search(ids, text, limit, threshold=asked.min_score)
            found: list[Found] = answer["results"]
            scores = {str(each["id"]): _score(each) for each in found}
            memories = self._fitting(user, asked, found)
            hits = [MemoryHit(each, scores[each.id]) for each in memories]
            if asked.min_score is not None:
                hits = [each for each in hits if each.score >= asked.min_score]
            if len(hits) >= top_k or len(found) < limit or limit > MOST_HITS:
                return hits
            limit *= 4  # some were not what is asked for: look further down

    async def find(self, user: str, memory_id: str, session: str | None) -> MemoryItem | None:
        """Return a memory if it is this user's, and of this session if one is named."""
        if not could_be_id(memory_id):
            return None
        found = await self._calls.get(memory_id)
        if found is None or found.get("user_id") not in (user, held(user)):
            return None  # also if mem0 does not say whose it is
        if session is not None and found.get("run_id") != session:
            return None
        return self.as_memory(user, found)

    async def is_held_apart(self, memory: MemoryItem) -> bool:
        """Tell whether a memory stands where mem0's model never sees it."""
        found = await self._calls.get(memory.id)
        return found is not None and found.get("user_id") == held(memory.user_id)

    async def versions(self, memory: MemoryItem) -> list[MemoryItem]:
        """Return what a memory was, the oldest first, and last what it is."""
        events = await self._calls.history(memory.id)
        texts = [each["new_memory"] for each in events if isinstance(each.get("new_memory"), str)]
        old = [_as_it_was(memory, text, number) for number, text in enumerate(texts[:-1], 1)]
        return [*old, change(memory, version=len(old) + 1)]

    def as_memory(self, user: str, found: Found) -> MemoryItem:
        """Return what mem0 handed out as a memory."""
        return memory_from(found, user, quarantine=self._quarantine)

    def _fitting(
        self, user: str, asked: CheckedFilters, found: Sequence[Found]
    ) -> list[MemoryItem]:
        condition = asked.condition(KINDS)
        memories = (self.as_memory(user, each) for each in found)
        return [each for each in memories if refusal(condition, entry_from(each)) is None]


def place(memory: MemoryItem) -> Place:
    """Return where a memory stands: in the order of being written, as in every service."""
    return memory.seq, memory.id


def _scopes(user: str, asked: CheckedFilters) -> list[Ids]:
    """Return whose memories to look at: what is held back only if it is asked for."""
    owners = [user] if QUARANTINED in asked.without else [user, held(user)]
    one = asked.sessions[0] if asked.sessions is not None and len(asked.sessions) == 1 else None
    session = {} if one is None else {"run_id": one}
    return [{"user_id": owner, **session} for owner in owners]


def _score(found: Found) -> float:
    score: Any = found.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def _best_first(hit: MemoryHit) -> tuple[float, int]:
    return -hit.score, -hit.memory.seq


def _as_it_was(memory: MemoryItem, text: str, version: int) -> MemoryItem:
    value = message_about(memory.id, memory.role, text)
    return change(memory, value=value, text=text, version=version)
