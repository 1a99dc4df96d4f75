"""``Mem0Reader``: searches, lists and reads memories in mem0, and their earlier versions.

mem0 filters by user and session. Every other condition is checked here, with the same filters as
for every service. Its pages are not usable, so a list reads everything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...record import could_be_id
from ...retrieval.conditions import refusal
from ..reading.filters import MOST_HITS, CheckedFilters
from ..values.memory import QUARANTINED, RAW, MemoryItem
from ..values.results import MemoryHit, Page
from .calls import Ids, Mem0Calls, Mem0Item
from .shapes import FACT, entry_from, memory_from, message_about, quarantine_owner

KINDS = (RAW, FACT)

Place = tuple[int, str]


class Mem0Reader:
    """Reads the memories of users through a client."""

    def __init__(self, calls: Mem0Calls, *, quarantine: bool) -> None:
        self._calls = calls
        self._quarantine = quarantine

    async def select(self, user: str, asked: CheckedFilters) -> list[MemoryItem]:
        """Return the matching memories, in the order they were written."""
        asked.check_kinds()
        found: list[Mem0Item] = []
        for ids in _scopes(user, asked):
            found += await self._calls.everything(ids)
        return sorted(self._fitting(user, asked, found), key=place)

    async def hits(
        self, user: str, text: str, top_k: int, asked: CheckedFilters
    ) -> list[MemoryHit]:
        """Return the best matches for a question, best first, ties newest first."""
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
            found: list[Mem0Item] = answer["results"]
            scores = {str(each["id"]): _score(each) for each in found}
            memories = self._fitting(user, asked, found)
            hits = [MemoryHit(each, scores[each.id]) for each in memories]
            if asked.min_score is not None:
                hits = [each for each in hits if each.score >= asked.min_score]
            if len(hits) >= top_k or len(found) < limit or limit > MOST_HITS:
                return hits
            limit *= 4  # the conditions rejected some: read more

    async def find(self, user: str, memory_id: str, session: str | None) -> MemoryItem | None:
        """Return a memory if it belongs to this user, and to the session if one is given."""
        if not could_be_id(memory_id):
            return None
        found = await self._calls.get(memory_id)
        if found is None or found.get("user_id") not in (user, quarantine_owner(user)):
            return None  # also if mem0 does not state the user
        if session is not None and found.get("run_id") != session:
            return None
        return self.as_memory(user, found)

    async def is_kept_apart(self, memory: MemoryItem) -> bool:
        """Return whether a memory is stored under the quarantine owner, unseen by mem0's model."""
        found = await self._calls.get(memory.id)
        return found is not None and found.get("user_id") == quarantine_owner(memory.user_id)

    async def versions(self, memory: MemoryItem) -> list[MemoryItem]:
        """Return the versions of a memory, oldest first; the last one is current."""
        events = await self._calls.history(memory.id)
        texts = [each["new_memory"] for each in events if isinstance(each.get("new_memory"), str)]
        old = [_as_it_was(memory, text, number) for number, text in enumerate(texts[:-1], 1)]
        return [*old, change(memory, version=len(old) + 1)]

    def as_memory(self, user: str, found: Mem0Item) -> MemoryItem:
        """Return a memory from mem0's form."""
        return memory_from(found, user, quarantine=self._quarantine)

    def _fitting(
        self, user: str, asked: CheckedFilters, found: Sequence[Mem0Item]
    ) -> list[MemoryItem]:
        condition = asked.condition(KINDS)
        memories = (self.as_memory(user, each) for each in found)
        return [each for each in memories if refusal(condition, entry_from(each)) is None]


def place(memory: MemoryItem) -> Place:
    """Return the sort key of a memory: the order of writing, as in every service."""
    return memory.seq, memory.id


def page_of(
    memories: Sequence[MemoryItem], cursor: str | None, limit: int, *, newest: bool
) -> Page:
    """Return the page after a cursor, of memories in order; with ``newest``, from the end.

    Cursors are positions and not numbers of pages, so that new memories shift nothing.
    """
    after = None if cursor is None else _place(cursor)
    ordered = list(reversed(memories)) if newest else list(memories)
    if after is not None:
        ordered = [
            each for each in ordered if (place(each) < after if newest else place(each) > after)
        ]
    page = tuple(ordered[:limit])
    return Page(page, json.dumps(place(page[-1])) if len(ordered) > limit else None)


def _scopes(user: str, asked: CheckedFilters) -> list[Ids]:
    """Return the ids to query: those of quarantined memories only if they are requested."""
    owners = [user] if QUARANTINED in asked.without else [user, quarantine_owner(user)]
    one = asked.sessions[0] if asked.sessions is not None and len(asked.sessions) == 1 else None
    session = {} if one is None else {"run_id": one}
    return [{"user_id": owner, **session} for owner in owners]


def _score(found: Mem0Item) -> float:
    score: Any = found.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def _best_first(hit: MemoryHit) -> tuple[float, int]:
    return -hit.score, -hit.memory.seq


def _as_it_was(memory: MemoryItem, text: str, version: int) -> MemoryItem:
    value = message_about(memory.id, memory.role, text)
    return change(memory, value=value, text=text, version=version)


def _place(cursor: str) -> Place:
    try:
        seq, memory_id = json.loads(cursor)
        return int(seq), str(memory_id)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"cursor {cursor!r} did not come from a page: pass page.cursor"
        ) from error
