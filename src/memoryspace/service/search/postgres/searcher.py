"""``PostgresSearcher``: search inside PostgreSQL, so that processes share one index.

No process holds a user's index, and what one has indexed the others find. The index is brought up
to date before every search, and what is removed from the store leaves it in the same transaction.
A search costs what the asking user's rows cost, however many there are of others.

The database names candidates; these are ranked as a ``Recall`` ranks them (see ``postgres_pool``).
A name that leads from one entry to another ("bridge") is followed among the candidates alone.
"""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, tzinfo
from typing import Literal, TypeVar

from msgspec.structs import replace as change
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ....embedding import Embedder, best_embedder
from ....errors import InvalidInput, StoreError
from ....record import Record
from ....retrieval import Entry, Hit, Ranking, Recall, Reranker, default_ranking
from ....retrieval.conditions import refusal
from ....retrieval.entries import Only
from ....retrieval.hits import WhyNot
from ....retrieval.matching import LIKENESS_FLOOR
from ....retrieval.ranking.asking import ask
from ....retrieval.vector_arm import EmbedderStatus
from ....store.contract import Clock
from ....store.sql.transactions import Transactions
from ....store.sql.errors import is_missing_table
from ..contract import Found, Query, Searcher
from .candidates import Choosing, speakers
from .conditions import clause_of
from .filling import Arm, EntryOf, Filling, WordsArm, is_behind
from .gathering import Asked, Gathering
from .pool import Candidates, recall_of
from .tables import create_tables, tables_there
from .vectors import VectorsArm
from .words import terms_of

T = TypeVar("T")


class PostgresSearcher(Searcher):
    """Searches what an ``SQLStore`` on this engine, or on another of the same database, holds.

    ``entry_of`` says what a search knows of a record, ``None`` if it is not to be found; the
    entry's id is the record's ``seq``. ``embedder`` makes the vectors: by default the best one
    installed, with ``None`` words alone are searched, as they are where the extension ``vector``
    cannot be had. ``clock`` tells what has expired, and when a question is asked unless it says so
    itself; ``ranking``, ``reranker``, ``zone``, ``floor`` and ``personal`` are a ``Recall``'s.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        entry_of: EntryOf,
        *,
        embedder: Embedder | Literal["best"] | None = "best",
        ranking: Ranking | None = None,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
        floor: float = LIKENESS_FLOOR,
        clock: Clock = time.time,
        personal: bool = False,
    ) -> None:
        self._is_personal = personal
        self._transactions = Transactions(engine)
        if engine.dialect.name != "postgresql":
            raise InvalidInput(f"{engine.dialect.name} cannot search by itself; PostgreSQL can")
        self._entry_of, self._clock, self._zone = entry_of, clock, zone
        self._ranking = default_ranking() if ranking is None else ranking
        self._reranker, self._floor = reranker, floor
        self._filling = Filling(self._transactions, self._entry)
        self._words = WordsArm()
        chosen = best_embedder() if embedder == "best" else embedder
        self._wanted = None if chosen is None else VectorsArm(chosen, clock)
        self._vectors: VectorsArm | None = None
        self._is_ready = False

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return the best for a user, the best first, equals the newest first."""
        candidates = await self._candidates(user, query)
        if not candidates.found:
            return []
        hits = await asyncio.to_thread(self._hits, candidates, query)
        return [_found(candidates, hit) for hit in hits]

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Say where a memory falls out of a search."""
        anyone = await self._candidates(
            user, change(query, only=Only(ids=frozenset({str(seq)}))), {seq}
        )
        if seq not in anyone.found:
            return WhyNot("unknown", f"nothing that can be found has the seq {seq}")
        reason = refusal(query.only, anyone.found[seq][1])
        if reason is not None:
            return WhyNot("filtered", reason)
        candidates = await self._candidates(user, query, {seq})
        told = await asyncio.to_thread(self._told, candidates, query, seq)
        if told.rank is None or seq in candidates.named:
            return told
        detail = f"no arm has it among its best; looked at, it would be number {told.rank}"
        return change(told, reason="not a candidate", detail=detail)

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Tell who embeds, and whether that fails in this process; what waits is not counted."""
        return EmbedderStatus(None) if self._wanted is None else self._wanted.status()

    async def forget(self, user: str) -> None:
        """Drop the user's rows of the index; what the store still holds is indexed anew if asked.

        Nobody has to call this after a deletion: rows go with the records they are of.
        """

        async def work(on: AsyncConnection) -> None:
            for table in await tables_there(on):
                await on.execute(delete(table).where(table.c.user_id == user))

        await self._transactions.write(work)

    async def traces(self, user: str) -> int:
        """Return how many rows of the index are the user's, whichever searcher made them."""

        async def work(on: AsyncConnection) -> int:
            found = 0
            for table in await tables_there(on):
                counting = select(func.count()).where(table.c.user_id == user)
                found += (await on.execute(counting)).scalar_one()
            return found

        return await self._transactions.read(work)

    def _told(self, candidates: Candidates, query: Query, seq: int) -> WhyNot:
        return self._recall(candidates).why_not(
            query.text,
            str(seq),
            query.top_k,
            only=self._only(candidates, query),
            now=self._now(query),
            matching=not query.neighbours,
        )

    def _hits(self, candidates: Candidates, query: Query) -> list[Hit]:
        return self._recall(candidates).search(
            query.text,
            query.top_k,
            only=self._only(candidates, query),
            now=self._now(query),
            explain=query.explain,
            matching=not query.neighbours,
        )

    def _only(self, candidates: Candidates, query: Query) -> Only:
        if query.neighbours:
            return Only(ids=frozenset(map(str, candidates.found)))
        return candidates.ranked(query.text, self._floor)

    def _recall(self, candidates: Candidates) -> Recall:
        return recall_of(
            candidates,
            ranking=self._ranking,
            reranker=self._reranker,
            zone=self._zone,
            floor=self._floor,
            personal=self._is_personal,
        )

    def _now(self, query: Query) -> float:
        return self._clock() if query.now is None else query.now

    def _entry(self, record: Record) -> Entry | None:
        """Return what is known of a record, under its seq: an id may stand in two sessions."""
        entry = self._entry_of(record)
        return None if entry is None else change(entry, id=str(record.seq), session=record.session)

    async def _candidates(self, user: str, query: Query, also: Collection[int] = ()) -> Candidates:
        _check(query)
        who_spoke = await self._prepared(lambda: self._up_to_date(user))
        question = ask(query.text, _moment(self._now(query), self._zone), who_spoke)
        arm = self._vectors
        asked = Asked(
            user,
            query,
            question,
            who_spoke,
            None if arm is None else await arm.vector_of(question.focus),
            "" if arm is None else arm.embedder.name,
            terms_of(user, question.keywords),
            terms_of(user, question.text),
            also,
        )
        condition, now = clause_of(query.only).sql, self._clock()

        async def work(on: AsyncConnection) -> Candidates:
            choosing = Choosing(on, user, now, condition)
            await choosing.settle()
            gathering = Gathering(
                choosing, asked, self._entry, self._floor, personal=self._is_personal
            )
            return await gathering.candidates(max(self._ranking.candidates, query.top_k))

        return await self._transactions.read(work)

    async def _up_to_date(self, user: str) -> list[str]:
        """Index what is new; return who ever spoke."""

        async def look(on: AsyncConnection) -> tuple[list[Arm], list[str]]:
            behind = [arm for arm in self._arms() if await is_behind(on, user, arm)]
            return behind, await speakers(on, user)

        behind, who_spoke = await self._transactions.read(look)
        if not behind:
            return who_spoke
        for arm in behind:
            await self._filling.catch_up(user, arm)
        return await self._transactions.read(lambda on: speakers(on, user))

    def _arms(self) -> list[Arm]:
        if self._vectors is None or self._vectors.rests:
            return [self._words]
        return [self._words, self._vectors]

    async def _prepared(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something for which the tables must be there; somebody may have dropped them."""
        await self._prepare()
        try:
            return await work()
        except StoreError as error:
            if not (isinstance(error.__cause__, Exception) and is_missing_table(error.__cause__)):
                raise
            self._is_ready = False
            await self._prepare()
            return await work()

    async def _prepare(self) -> None:
        if self._is_ready:
            return
        wanted = self._wanted is not None
        has_vectors = await self._transactions.write(
            lambda on: create_tables(on, with_vectors=wanted)
        )
        self._vectors = self._wanted if has_vectors else None
        self._is_ready = True


def _found(candidates: Candidates, hit: Hit) -> Found:
    record, _ = candidates.found[int(hit.id)]
    assert record.session is not None  # every stored record has one
    heir = None if hit.superseded_by is None else candidates.found.get(int(hit.superseded_by))
    return Found(
        *(record.seq, record.id, record.session, hit.relevance, hit.why),
        superseded_by=None if heir is None else heir[0].id,
        by_meaning=hit.by_meaning,
    )


def _check(query: Query) -> None:
    if not isinstance(query.text, str):
        raise TypeError(f"the question must be a str, got {type(query.text).__name__}")
    if isinstance(query.top_k, bool) or operator.index(query.top_k) < 1:
        raise InvalidInput(f"top_k must be 1 or more, got {query.top_k}")


def _moment(now: float, zone: tzinfo) -> datetime:
    try:
        return datetime.fromtimestamp(now, zone)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidInput(f"now is {now} seconds since 1970, which no calendar has") from error
