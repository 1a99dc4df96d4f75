"""The SQL that selects candidates. Every statement filters by user and skips expired rows.

Candidates are the best rows by words and by vectors, and what a question requests in other ways: a
day, a speaker, standing instructions of the user. There are as many as a ``Recall`` considers in a
large memory. The ``Recall`` then ranks them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Double,
    Text,
    any_,
    bindparam,
    case,
    column,
    func,
    lateral,
    literal,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement, CompoundSelect, Select

from ....retrieval.ranking.asking import ParsedQuestion
from ....retrieval.ranking.pool import REACH
from ....store.codec import MARK_SEPARATOR
from ....store.sql.rows import COLUMNS
from ....store.sql.schema import records
from ...values.envelope import derived_mark
from ...values.kinds import FACT, INSIGHT
from .tables import READING, entries, vectors
from .vectors import Floats, read_vectors
from .words import QueryTerm, WordCounts, WordStatistics

MOST_SPEAKERS = 1000  # names looked for in a question

_SCORED_TERMS = 32  # the rarest words of a question; the others hardly change the ranking
_RARE_SHARE, _RARE_ANYWAY = 0.02, 2_000  # a rare word's share of the rows, or number of rows
_COMMON, _ALONE = 20_000, 50_000  # rows common words may select, with and without rare words
_MOST_STANDING = 50
_MOST_DATED = 62 * 86400.0  # seconds; rows of a longer period are not selected by date

_e, _v, _r = entries.c, vectors.c, records.c


class IndexedRow(NamedTuple):
    """The columns of an index row that ranking needs."""

    session: str
    role: str | None
    words: WordCounts
    is_allowed: bool  # by the part of the condition that columns can express


class CandidateQueries:
    """Queries over one user's rows, at one point in time, on one connection."""

    def __init__(
        self, on: AsyncConnection, user: str, now: float, condition: ColumnElement[bool]
    ) -> None:
        self._on, self._user, self._now = on, user, now
        self._condition = condition
        self._mine = (
            _e.user_id == user,
            _e.reading == READING,
            _e.expires_at.is_(None) | (_e.expires_at > now),
        )
        self._allowed = (*self._mine, condition)
        self._lives = _r.expires_at.is_(None) | (_r.expires_at > now)

    async def settle(self) -> None:
        """Set the planner options of this transaction: custom plans, no JIT, no sequential scan.

        A generic plan fits no particular words, and compiling takes longer than running.
        """
        await self._on.exec_driver_sql(_SETTINGS)

    async def statistics(self, terms: Sequence[QueryTerm]) -> WordStatistics:
        """Return the number of rows, their total length, and how many rows have each term."""
        whole = select(func.count(), func.coalesce(func.sum(_e.length), 0)).where(*self._mine)
        rows, length = (await self._on.execute(whole)).one()
        listed = func.unnest(_array([term.token for term in terms]))
        wanted = listed.table_valued(column("token", BigInteger())).render_derived(name="wanted")
        having = (
            select(func.count())
            .where(*self._mine, _e.tokens.contains(array([wanted.c.token])))
            .scalar_subquery()
        )
        counted = {row[0]: row[1] for row in await self._on.execute(select(wanted.c.token, having))}
        return WordStatistics(rows, int(length), counted)

    async def by_words(
        self, terms: Sequence[QueryTerm], statistics: WordStatistics, most: int
    ) -> list[int]:
        """Return the best rows by BM25, best first, ties newest first."""
        held = statistics.held(terms)[:_SCORED_TERMS]
        selective = _count_selective(held, statistics)
        while held:
            found = await self._best(held, held[:selective], statistics, most)
            if len(found) == most or selective == len(held):
                return found
            selective = len(held)
        return []

    async def by_vector(self, vector: Floats, space: str, most: int) -> dict[int, float]:
        """Return the nearest rows and their cosines, nearest first, ties newest first."""
        asked = literal(vector.tolist(), _v.vector.type)
        distance: Any = _v.vector.op("<#>", return_type=Double())(asked).label("distance")
        query = (
            select(_v.seq, distance)
            .join(entries, _e.seq == _v.seq)
            .where(_v.user_id == self._user, _v.space == space, *self._allowed)
            .order_by(distance, _v.seq.desc())
            .limit(most)
        )
        return {row[0]: -row[1] for row in await self._on.execute(query)}

    async def requested(
        self, question: ParsedQuestion, terms: Sequence[QueryTerm] | None, most: int
    ) -> list[int]:
        """Return the newest rows requested other than by words: instructions, days, speakers.

        With ``terms``, return only rows that have one of them.
        """
        allowed: tuple[Any, ...] = self._allowed
        if terms is not None:
            allowed = (*allowed, _e.tokens.overlap(_array([term.token for term in terms])))
        wanted = [_newest(allowed, _e.instructs, _MOST_STANDING)]
        spans = [(each.start.timestamp(), each.end.timestamp()) for each in question.times]
        wanted += [
            _newest(allowed, (_e.time >= start) & (_e.time < end), max(1, most // len(spans)))
            for start, end in spans
            if end - start <= _MOST_DATED
        ]
        wanted += [
            _newest(allowed, _e.speaker == name, max(1, most // len(question.speakers)))
            for name in sorted(question.speakers)
        ]
        return list((await self._on.execute(union_all(*wanted))).scalars())

    async def neighbours(self, seqs: Collection[int]) -> set[int]:
        """Return these rows and those within reach before and after them."""
        return {*seqs, *(await self._on.execute(_NEIGHBOURS, self._bind(seqs))).scalars()}

    async def records(self, seqs: Collection[int]) -> list[Any]:
        """Return the store's rows of records."""
        query = select(*COLUMNS).where(_r.user_id == self._user, _r.seq == _any(seqs), self._lives)
        return list((await self._on.execute(query)).all())

    async def newest(self, most: int) -> list[int]:
        """Return the newest rows that the condition allows."""
        query = select(_e.seq).where(*self._allowed).order_by(_e.seq.desc()).limit(most)
        return list((await self._on.execute(query)).scalars())

    async def by_id(self, ids: Collection[str]) -> set[int]:
        """Return the seqs of records by id."""
        query = select(_r.seq).where(_r.user_id == self._user, _r.id == _any_text(ids), self._lives)
        return set((await self._on.execute(query)).scalars())

    async def derived_from(self, ids: Collection[str]) -> set[int]:
        """Return the seqs of facts and insights derived from messages."""
        each = func.unnest(func.string_to_array(_r.marks, MARK_SEPARATOR)).label("mark")
        mine = (_r.user_id == self._user, _r.kind.in_((FACT, INSIGHT)), self._lives)
        marks = select(_r.seq, each).where(*mine, _r.marks != "").subquery()
        query = select(marks.c.seq).where(marks.c.mark == _any_text(map(derived_mark, ids)))
        return set((await self._on.execute(query)).scalars())

    async def rows(
        self, seqs: Collection[int], terms: Sequence[QueryTerm]
    ) -> dict[int, IndexedRow]:
        """Return rows, oldest first. Words are read only for rows that have one of the terms."""
        query = _ROWS.add_columns(self._condition.label("is_allowed"))
        given = {**self._bind(seqs), "now": self._now, "tokens": [term.token for term in terms]}
        return {
            seq: IndexedRow(
                session, role, WordCounts(tokens or [], counts or b"", length), bool(is_allowed)
            )
            for seq, session, role, length, tokens, counts, is_allowed in (
                await self._on.execute(query, given)
            ).all()
        }

    async def vectors(self, seqs: Collection[int], space: str) -> dict[int, Floats]:
        """Return the vectors of rows that have one."""
        query = select(_v.seq, _v.vector).where(
            _v.user_id == self._user, _v.space == space, _v.seq == _any(seqs)
        )
        sent = (await self._on.execute(query)).all()
        numbers = read_vectors([row[1] for row in sent])
        return dict(zip((row[0] for row in sent), numbers, strict=True))

    async def _best(
        self,
        terms: Sequence[QueryTerm],
        selective: Sequence[QueryTerm],
        statistics: WordStatistics,
        most: int,
    ) -> list[int]:
        query = (
            select(_e.seq)
            .where(*self._allowed, _e.tokens.overlap(_array([term.token for term in selective])))
            .order_by(_score(len(terms)).desc(), _e.seq.desc())
            .limit(most)
        )
        given: dict[str, float] = {"fixed": statistics.fixed, "by_length": statistics.by_length}
        for number, term in enumerate(terms):
            given |= {f"token_{number}": term.token, f"weight_{number}": statistics.weight(term)}
        return list((await self._on.execute(query, given)).scalars())

    def _bind(self, seqs: Collection[int]) -> dict[str, Any]:
        return {"user": self._user, "seqs": list(seqs)}


async def speakers(on: AsyncConnection, user: str) -> list[str]:
    """Return everyone who ever spoke to a user, except tools. Each name is one index lookup."""
    return list((await on.execute(_SPEAKERS, {"user": user})).scalars())


def _speakers() -> Select[Any]:
    theirs = select(func.min(_e.speaker).label("name")).where(_e.user_id == bindparam("user"))
    names = theirs.cte("names", recursive=True)
    after = theirs.where(_e.speaker > names.c.name).scalar_subquery()
    names = names.union_all(select(after).where(names.c.name.is_not(None)))
    own = (_e.user_id == bindparam("user"), _e.speaker == names.c.name)
    first = select(_e.role).where(*own).order_by(_e.seq).limit(1).scalar_subquery()
    is_person = func.coalesce(first, "") != "tool"
    return select(names.c.name).where(names.c.name.is_not(None), is_person).limit(MOST_SPEAKERS)


def _neighbours() -> CompoundSelect[Any]:
    """Select rows before and after by order of place: removed records leave gaps."""
    near, at = entries.alias("near"), entries.alias("at")
    same = (
        near.c.user_id == bindparam("user"),
        near.c.session_id == at.c.session_id,
        near.c.reading == READING,
    )
    beside = select(near.c.seq).where(*same).limit(REACH).correlate(at)
    before = beside.where(near.c.place < at.c.place).order_by(near.c.place.desc())
    behind = beside.where(near.c.place > at.c.place).order_by(near.c.place)
    these = (
        at.c.user_id == bindparam("user"),
        at.c.reading == READING,
        at.c.seq == any_(bindparam("seqs", type_=ARRAY(BigInteger()))),
    )
    sides = [lateral(before), lateral(behind)]
    return union_all(
        *(
            select(side.c.seq).select_from(at.join(side, literal(True))).where(*these)
            for side in sides
        )
    )


def _rows() -> Select[Any]:
    has_any = _e.tokens.overlap(bindparam("tokens", type_=ARRAY(BigInteger())))
    seqs = any_(bindparam("seqs", type_=ARRAY(BigInteger())))
    return (
        select(
            _e.seq,
            _e.session_id,
            _e.role,
            _e.length,
            case((has_any, _e.tokens)),
            case((has_any, _e.counts)),
        )
        .where(
            _e.user_id == bindparam("user"),
            _e.reading == READING,
            _e.expires_at.is_(None) | (_e.expires_at > bindparam("now", type_=Double())),
            _e.seq == seqs,
        )
        .order_by(_e.seq)
    )


_SETTINGS = (
    "SELECT set_config('jit', 'off', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true), "
    "set_config('enable_seqscan', 'off', true)"  # a scan would read every user's rows
)
_SPEAKERS = _speakers()
_NEIGHBOURS = _neighbours()
_ROWS = _rows()


@cache
def _score(terms: int) -> ColumnElement[float]:
    """Return the BM25 score of a row for this number of terms."""
    norm = _given("fixed") + _given("by_length") * _e.length
    score: ColumnElement[float] = literal(0.0, Double())
    for number in range(terms):
        token = bindparam(f"token_{number}", type_=BigInteger())
        count = func.get_byte(_e.counts, func.array_position(_e.tokens, token) - 1)
        gain = _given(f"weight_{number}") / (literal(1.0, Double()) + norm / count)
        score = score + func.coalesce(gain, literal(0.0, Double()))
    return score


def _count_selective(terms: Sequence[QueryTerm], statistics: WordStatistics) -> int:
    """Return how many terms, rarest first, select candidates: common terms cost the most."""
    sizes = [statistics.having[term.token] for term in terms]
    rare = bisect_right(sizes, max(_RARE_ANYWAY, _RARE_SHARE * statistics.rows))
    budget = _COMMON if rare else _ALONE
    return max(rare, bisect_right(list(accumulate(sizes)), budget), min(1, len(sizes)))


def _newest(
    allowed: Sequence[ColumnElement[bool]], wanted: ColumnElement[bool], most: int
) -> Select[Any]:
    found = select(_e.seq).where(*allowed, wanted).order_by(_e.seq.desc()).limit(most)
    return select(found.subquery().c.seq)


def _array(numbers: Collection[int]) -> ColumnElement[Any]:
    return literal(list(numbers), ARRAY(BigInteger()))


def _any(numbers: Collection[int]) -> ColumnElement[Any]:
    return any_(_array(numbers))


def _any_text(texts: Iterable[str]) -> ColumnElement[Any]:
    return any_(bindparam(None, list(texts), type_=ARRAY(Text()), unique=True))


def _given(name: str) -> ColumnElement[float]:
    return bindparam(name, type_=Double())
