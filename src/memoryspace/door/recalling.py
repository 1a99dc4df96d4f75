"""The verbs that find memories, explain what was found, and learn whether it helped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..errors import InvalidInput
from ..retrieval.hits import WhyNot
from ..service.reading.arguments import as_ids
from ..service.reading.filters import count_in, moment
from ..service.values.memory import RAW, SECRET, MemoryItem
from ..service.values.results import MemoryHit
from .base import Opening
from .context import Material, TokenCount, best_count, block
from .messages import Time
from .recalls import Recall, Recalls
from .remembering import narrowed
from .results import Context, Memories, SearchResult

MAX_QUESTION = 20_000  # characters

_CANDIDATES = 30  # hits that a context chooses from
_MOST_INSTRUCTIONS = 5
_PAGE = 500
_MOST = 1000  # of what a call returns

Filters = Mapping[str, Any]


class Recalling(Opening):
    """The part of the door that finds what is remembered."""

    async def search(
        self,
        question: str,
        *,
        user: str | None = None,
        limit: int = 10,
        session: str | None = None,
        kind: str | Sequence[str] | None = None,
        filters: Filters | None = None,
        min_relevance: float | None = None,
        when: Time | None = None,
        explain: bool = True,
    ) -> SearchResult:
        """Return the memories that answer a question, best first, each with a score and reasons.

        Args:
            question: What to look for, in words.
            user: Whose memory to search.
            limit: The most hits to return.
            session: Search this conversation only.
            kind: Search only ``"memory"`` (what was said), ``"fact"`` or another kind.
            filters: Conditions by name: ``role``, ``name``, ``marks``, ``without``, ``since``,
                ``until``, ``as_of``, ``metadata``, and ``AND``, ``OR``, ``NOT`` with conditions.
            min_relevance: Leave out hits that score less, from 0 to 1.
            when: The time of the question: "last week" counts from it.
            explain: Whether each hit says why it is there.

        Returns:
            A list of hits, which prints as a table. ``hit.score`` is the chance that it answers.

        Example::

            for hit in memory.search("Where do I live?", user="alice"):
                print(hit.score, hit.memory.text)
        """
        user = self._whose(user)
        hits = await self._found(
            question,
            user,
            limit=limit,
            filters=narrowed(filters, session, kind),
            least=min_relevance,
            when=when,
            explain=explain,
        )
        recall = self._recalls.note(user, question, [hit.memory.id for hit in hits])
        return SearchResult(hits, question=question, recall_id=recall)

    async def context(
        self,
        question: str,
        *,
        user: str | None = None,
        max_tokens: int | None = None,
        session: str | None = None,
        filters: Filters | None = None,
        min_relevance: float | None = None,
        when: Time | None = None,
    ) -> Context:
        """Return the text to put into a prompt: what is remembered that bears on a question.

        Memories are quoted as data, with who said them and when; what is true now comes first.
        The text is empty if nothing is relevant. Secrets and quarantined texts are never in it.

        Args:
            question: What the prompt is about.
            user: Whose memory to use.
            max_tokens: The most tokens of the text.
            session: Use this conversation only.
            filters: Conditions, as in ``search``.
            min_relevance: Leave out what is less relevant, from 0 to 1.
            when: The time of the question; now by default.

        Example::

            prompt = f"{memory.context(question, user='alice')}\n\n{question}"
        """
        user = self._whose(user)
        hits = await self._found(
            question,
            user,
            limit=_CANDIDATES,
            filters=_without_secrets(narrowed(filters, session, None)),
            least=self.config.min_relevance if min_relevance is None else min_relevance,
            when=when,
            explain=False,
        )
        standing = (await self._service.instructions(user))[:_MOST_INSTRUCTIONS]
        budget = self.config.max_tokens if max_tokens is None else max_tokens
        material = Material(hits, standing)
        now = self._store.clock() if when is None else moment("when", when)
        count = _counter()
        made = block(material, budget, now, count)
        ids = tuple(each.id for each in made.memories)
        return Context(
            text=made.text,
            ids=ids,
            tokens=count(made.text) if made.text else 0,
            recall_id=self._recalls.note(user, question, ids),
            left_out=len(material.memories()) - len(ids),
        )

    async def why_not(
        self,
        question: str,
        memory_id: str,
        *,
        user: str | None = None,
        limit: int = 10,
        session: str | None = None,
        filters: Filters | None = None,
        when: Time | None = None,
    ) -> WhyNot:
        """Explain why ``search`` does not return a memory, and what ranks above it."""
        _check_question(question)
        service, most = await self._opened(), count_in("limit", limit, _MOST)
        return await service.why_not(
            self._whose(user),
            question,
            memory_id,
            top_k=most,
            filters=narrowed(filters, session, None),
            now=None if when is None else moment("when", when),
        )

    async def feedback(
        self, recall_id: str, used: str | Sequence[str], *, user: str | None = None
    ) -> Recall:
        """Say which memories of a search or context helped; an empty list says that none did.

        Args:
            recall_id: The ``recall_id`` of the result.
            used: The ids of the memories that helped.
            user: Whose recall it was.

        Raises:
            UnknownMemory: The log has no such recall, or no longer.
            InvalidInput: An id was not among those returned.
        """
        await self._opened()
        return await self._recalls.tell(self._whose(user), recall_id, as_ids(used))

    async def recalls(self, *, user: str | None = None, limit: int = 20) -> Recalls:
        """Return a user's recall log: what was asked and found, how often nothing, what helped."""
        await self._opened()
        return await self._recalls.read(self._whose(user), count_in("limit", limit, _MOST))

    async def never_recalled(self, *, user: str | None = None, limit: int = 50) -> Memories:
        """Return memories that no logged recall has returned, oldest first."""
        service, user = await self._opened(), self._whose(user)
        most = count_in("limit", limit, _MOST)
        entries = await self._recalls.entries(user)
        recalled = {memory_id for each in entries for memory_id in each.ids}
        never: list[MemoryItem] = []
        cursor: str | None = None
        while len(never) < most:
            page = await service.page(user, cursor=cursor, limit=_PAGE, filters={"kind": RAW})
            never += [each for each in page.memories if each.id not in recalled]
            cursor = page.cursor
            if cursor is None:
                break
        return Memories(never[:most])

    async def _found(
        self,
        question: str,
        user: str,
        *,
        limit: int,
        filters: Filters,
        least: float | None,
        when: Time | None,
        explain: bool,
    ) -> list[MemoryHit]:
        _check_question(question)
        most = count_in("limit", limit, _MOST)
        service = await self._opened()
        return await service.search(
            user,
            question,
            top_k=most,
            filters=filters,
            explain=explain,
            now=None if when is None else moment("when", when),
            min_relevance=least,
        )


def _check_question(question: object) -> None:
    if not isinstance(question, str):
        raise TypeError(f"a question must be a str, got {type(question).__name__}")
    if len(question) > MAX_QUESTION:
        raise InvalidInput(
            f"the question has {len(question)} characters, more than {MAX_QUESTION}; ask for what "
            "matters"
        )
    if not question.strip():
        raise InvalidInput("the question is empty; say what to look for, or use list()")


def _without_secrets(filters: Filters) -> dict[str, Any]:
    given = filters.get("without", ())
    without = [given] if isinstance(given, str) else [*given]
    return {**filters, "without": [*without, SECRET]}


@cache
def _counter() -> TokenCount:
    return best_count()
