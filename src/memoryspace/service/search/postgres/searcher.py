"""``PostgresSearcher``: search inside PostgreSQL, with one index for all processes.

No process holds an index in memory, and every process finds what another has indexed. The index is
brought up to date before each search. Records that are removed from the store leave the index in
the same transaction. The cost of a search depends on the user's own rows, not on those of others.

The rows of a user who has few are read whole, in one statement, and ranked by a ``Recall`` over
them (see ``whole`` and ``reading``). Of a user who has more, the database selects candidates, and
a ``Recall`` ranks these (see ``pool``); names that lead from one entry to another ("bridges") are
then followed only among the candidates.
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
from ....retrieval.conditions import AllOf, Condition, Not, refusal
from ....retrieval.entries import Only
from ....retrieval.hits import WhyNot
from ....retrieval.matching import LIKENESS_FLOOR
from ....retrieval.ranking.asking import ask
from ....retrieval.vector_arm import EmbedderStatus
from ....store.contract import Clock
from ....store.sql.errors import is_missing_table
from ....store.sql.transactions import Transactions
from ....store.staleness import stale_reads
from ..contract import EntryOf, Found, Query, Searcher
from .candidates import CandidateQueries
from .conditions import clause_of
from .gathering import CandidateCollector, ParsedQuery
from .indexing import Arm, Indexer, WordsArm
from .pool import CandidatePool, recall_of
from .reading import RowsMemory, UnreadableRow, people_in
from .tables import create_tables, tables_there
from .vectors import VectorsArm
from .whole import MOST_WHOLE, Look, UserRows, look
from .words import terms_of

T = TypeVar("T")


class PostgresSearcher(Searcher):
    """Searches the records of an ``SQLStore`` on the same database.

    Args:
        engine: An engine on that database.
        entry_of: Returns the searchable entry of a record, or ``None`` if it must not be found. An
            entry's id is its record's seq.
        embedder: Makes the vectors; by default the best one installed. With ``None``, or if the
            extension ``vector`` is not available, only words are searched.
        ranking: As for ``Recall``.
        reranker: As for ``Recall``.
        zone: As for ``Recall``.
        floor: As for ``Recall``.
        clock: Decides what has expired, and the time of a question that does not give one.
        personal: As for ``Recall``.
        whole: Up to this many rows of a user are read in one statement and ranked as a whole.

    Raises:
        InvalidInput: If the engine is not one of PostgreSQL.
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
        whole: int = MOST_WHOLE,
    ) -> None:
        self._is_personal, self._whole = personal, whole
        self._transactions = Transactions(engine)
        if engine.dialect.name != "postgresql":
            raise InvalidInput(
                f"PostgresSearcher needs a PostgreSQL engine, got {engine.dialect.name}"
            )
        self._entry_of, self._clock, self._zone = entry_of, clock, zone
        self._ranking = default_ranking() if ranking is None else ranking
        self._reranker, self._floor = reranker, floor
        self._indexer = Indexer(self._transactions, self._entry)
        self._words = WordsArm()
        chosen = best_embedder() if embedder == "best" else embedder
        self._wanted = None if chosen is None else VectorsArm(chosen, clock)
        self._vectors: VectorsArm | None = None
        self._is_ready = False

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return a user's best matches, best first, ties newest first."""
        self._check(query)
        seen = await self._looked(user)
        if seen.rows is not None:
            if not len(seen.rows):
                return []
            return await asyncio.to_thread(self._found_in, user, seen.rows, query)
        candidates = await self._candidates(user, query, seen.speakers)
        if not candidates.found:
            return []
        hits = await asyncio.to_thread(self._hits, candidates, query)
        return [_found(candidates, hit) for hit in hits]

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Return why a search does not return a memory."""
        self._check(query)
        seen = await self._looked(user)
        if seen.rows is not None:
            return await asyncio.to_thread(self._why_not_in, user, seen.rows, query, seq)
        names = seen.speakers
        unfiltered = await self._candidates(
            user, change(query, only=Only(ids=frozenset({str(seq)}))), names, {seq}
        )
        if seq not in unfiltered.found:
            return _unknown(seq)
        reason = refusal(query.only, unfiltered.found[seq][1])
        if reason is not None:
            return WhyNot("filtered", reason)
        candidates = await self._candidates(user, query, names, {seq})
        answer = await asyncio.to_thread(self._explain, candidates, query, seq)
        if answer.rank is None or seq in candidates.named:
            return answer
        detail = f"no arm has it among its best; as a candidate it would rank {answer.rank}"
        return change(answer, reason="not a candidate", detail=detail)

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Return the embedder's status in this process. Rows that wait for it are not counted."""
        return EmbedderStatus(None) if self._wanted is None else self._wanted.status()

    async def forget(self, user: str) -> None:
        """Drop a user's rows of the index. The next search indexes the store's records again.

        There is no need to call this after a deletion: a row is removed with its record.
        """

        async def work(on: AsyncConnection) -> None:
            for table in await tables_there(on):
                await on.execute(delete(table).where(table.c.user_id == user))

        await self._transactions.write(work)

    async def traces(self, user: str) -> int:
        """Return the number of a user's rows in the index, made by any searcher."""

        async def work(on: AsyncConnection) -> int:
            found = 0
            for table in await tables_there(on):
                counting = select(func.count()).where(table.c.user_id == user)
                found += (await on.execute(counting)).scalar_one()
            return found

        return await self._transactions.read(work)

    def _found_in(self, user: str, rows: UserRows, query: Query) -> list[Found]:
        """Rank all rows of a user. In a thread."""

        def search(memory: RowsMemory, recall: Recall, only: Condition) -> list[Found]:
            hits = recall.search(
                query.text,
                query.top_k,
                only=only,
                now=self._now(query),
                explain=query.explain,
                matching=not query.neighbours,
            )
            return [_of_record(hit, memory) for hit in hits]

        return self._ranked_in(user, rows, query, search)

    def _why_not_in(self, user: str, rows: UserRows, query: Query, seq: int) -> WhyNot:
        if seq not in rows.seqs:
            return _unknown(seq)

        def explain(memory: RowsMemory, recall: Recall, only: Condition) -> WhyNot:
            answer = recall.why_not(
                query.text,
                str(seq),
                query.top_k,
                only=only,
                now=self._now(query),
                matching=not query.neighbours,
            )
            return change(answer, by=tuple(rows.id_of(int(each)) for each in answer.by))

        return self._ranked_in(user, rows, query, explain)

    def _ranked_in(
        self,
        user: str,
        rows: UserRows,
        query: Query,
        work: Callable[[RowsMemory, Recall, Condition], T],
    ) -> T:
        """Run work on a recall over rows; leave out those that turn out to be unreadable."""
        names, arm = people_in(rows), self._vectors
        question = ask(query.text, _moment(self._now(query), self._zone), names)
        vector = None if arm is None else arm.vector_now(question.focus)
        ranking = change(self._ranking, whole=max(self._ranking.whole, len(rows)))
        unreadable: set[int] = set()
        while True:
            memory = RowsMemory(
                user,
                rows,
                vector,
                self._entry,
                self._zone,
                personal=self._is_personal,
                unreadable=unreadable,
            )
            only = query.only
            if unreadable:
                only = AllOf((only, Not(Only(ids=frozenset(map(str, unreadable))))))
            recall = Recall.over(
                memory,
                ranking=ranking,
                reranker=self._reranker,
                zone=self._zone,
                clock=self._clock,
                floor=self._floor,
            )
            try:
                return work(memory, recall, only)
            except UnreadableRow as met:  # reported when it was to be indexed
                unreadable.add(met.seq)

    def _explain(self, candidates: CandidatePool, query: Query, seq: int) -> WhyNot:
        return self._recall(candidates).why_not(
            query.text,
            str(seq),
            query.top_k,
            only=self._only(candidates, query),
            now=self._now(query),
            matching=not query.neighbours,
        )

    def _hits(self, candidates: CandidatePool, query: Query) -> list[Hit]:
        return self._recall(candidates).search(
            query.text,
            query.top_k,
            only=self._only(candidates, query),
            now=self._now(query),
            explain=query.explain,
            matching=not query.neighbours,
        )

    def _only(self, candidates: CandidatePool, query: Query) -> Only:
        if query.neighbours:
            return Only(ids=frozenset(map(str, candidates.found)))
        return candidates.ranked(query.text, self._floor)

    def _recall(self, candidates: CandidatePool) -> Recall:
        return recall_of(
            candidates,
            ranking=self._ranking,
            reranker=self._reranker,
            zone=self._zone,
            floor=self._floor,
            personal=self._is_personal,
        )

    def _check(self, query: Query) -> None:
        if not isinstance(query.text, str):
            raise TypeError(f"the question must be a str, got {type(query.text).__name__}")
        if isinstance(query.top_k, bool) or operator.index(query.top_k) < 1:
            raise InvalidInput(f"top_k must be 1 or more, got {query.top_k}")
        _moment(self._now(query), self._zone)

    def _now(self, query: Query) -> float:
        return self._clock() if query.now is None else query.now

    def _entry(self, record: Record) -> Entry | None:
        """Return a record's entry, keyed by seq: two sessions may use the same id."""
        entry = self._entry_of(record)
        return None if entry is None else change(entry, id=str(record.seq), session=record.session)

    async def _candidates(
        self, user: str, query: Query, names: list[str], also: Collection[int] = ()
    ) -> CandidatePool:
        question = ask(query.text, _moment(self._now(query), self._zone), names)
        arm = self._vectors
        asked = ParsedQuery(
            user,
            query,
            question,
            names,
            None if arm is None else await arm.vector_of(question.focus),
            "" if arm is None else arm.embedder.name,
            terms_of(user, question.keywords),
            terms_of(user, question.text),
            also,
        )
        condition, now = clause_of(query.only).sql, self._clock()

        async def work(on: AsyncConnection) -> CandidatePool:
            queries = CandidateQueries(on, user, now, condition)
            await queries.settle()
            gathering = CandidateCollector(
                queries, asked, self._entry, self._floor, personal=self._is_personal
            )
            return await gathering.candidates(max(self._ranking.candidates, query.top_k))

        with stale_reads():  # the index was brought up to date on the primary
            return await self._transactions.read(work, user=user)

    async def _looked(self, user: str) -> Look:
        """Index new records; return the user's rows, or the speakers if there are many rows."""
        return await self._prepared(lambda: self._up_to_date(user))

    async def _up_to_date(self, user: str) -> Look:
        arms = self._arms()
        space = "" if self._vectors is None else self._vectors.embedder.name

        async def work(on: AsyncConnection) -> Look:
            await on.execution_options(isolation_level="AUTOCOMMIT")  # BEGIN is a round trip
            names = [arm.name for arm in arms]
            return await look(on, user, self._clock(), names, space, self._whole)

        seen = await self._transactions.read(work)
        if not seen.behind:
            return seen
        for arm in arms:
            if arm.name in seen.behind:
                await self._indexer.catch_up(user, arm)
        return await self._transactions.read(work)

    def _arms(self) -> list[Arm]:
        if self._vectors is None or self._vectors.rests:
            return [self._words]
        return [self._words, self._vectors]

    async def _prepared(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that needs the tables; create them again if they were dropped."""
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


def _found(candidates: CandidatePool, hit: Hit) -> Found:
    record, _ = candidates.found[int(hit.id)]
    assert record.session is not None  # every stored record has one
    newer = None if hit.superseded_by is None else candidates.found.get(int(hit.superseded_by))
    return Found(
        *(record.seq, record.id, record.session, hit.relevance, hit.why),
        superseded_by=None if newer is None else newer[0].id,
        by_meaning=hit.by_meaning,
        record=record,
    )


def _of_record(hit: Hit, memory: RowsMemory) -> Found:
    record = memory.record(int(hit.id))
    assert record.session is not None  # every stored record has one
    newer = None if hit.superseded_by is None else memory.record(int(hit.superseded_by)).id
    return Found(
        *(record.seq, record.id, record.session, hit.relevance, hit.why),
        superseded_by=newer,
        by_meaning=hit.by_meaning,
        record=record,
    )


def _unknown(seq: int) -> WhyNot:
    return WhyNot("unknown", f"no searchable memory has the seq {seq}")


def _moment(now: float, zone: tzinfo) -> datetime:
    try:
        return datetime.fromtimestamp(now, zone)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidInput(
            f"now must be a time in years 1 to 9999, got {now} s since 1970"
        ) from error
