"""Bringing the index up to date: before a search, whatever was stored since is indexed.

Work goes by session. Records of a session are stored one after the other, so all below a session's
``next_index`` is there to be read, and nothing will come to stand there later. What an arm has done
of it is a number in the database that is moved on in the transaction that adds the rows, and only
by whoever still finds it as it was: of two processes with the same work one adds it, never both.

Nothing is read, analysed or embedded inside that transaction.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Text,
    Values,
    and_,
    any_,
    bindparam,
    column,
    exists,
    literal,
    select,
    update,
    values,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import Select

from ....errors import CorruptData
from ....loops import PerLoop
from ....record import Record
from ....retrieval.entries import Entry, indexed_text
from ....retrieval.ranking.traits import INSTRUCTS, traits_of
from ....store.codec import clean_text, pack_marks
from ....store.sql.rows import COLUMNS, record_of
from ....store.sql.schema import records, sessions
from ....store.sql.transactions import Transactions
from .tables import READING, entries, progress
from .words import count_words

logger = logging.getLogger(__name__)

EntryOf = Callable[[Record], Entry | None]

_r, _s, _p = records.c, sessions.c, progress.c


class Stretch(NamedTuple):
    """Places of a session that an arm has yet to index; ``made`` tells which session it is."""

    session: str
    made: int
    start: int
    end: int


class Source(NamedTuple):
    """A record to be indexed, where it stands, and what a search knows of it."""

    record: Record
    place: int
    entry: Entry


class Arm(ABC):
    """One way of searching: what it keeps of a record, in a table of its own."""

    name: str
    at_once = 1000  # records indexed in one go

    @abstractmethod
    async def make(self, user: str, sources: Sequence[Source]) -> list[dict[str, Any]] | None:
        """Return the rows of records, ``None`` if they cannot be made now."""

    @abstractmethod
    async def add(self, on: AsyncConnection, rows: list[dict[str, Any]]) -> None:
        """Write rows down."""


class WordsArm(Arm):
    """Words, and what a search can be narrowed by."""

    name = f"words {READING}"

    async def make(self, user: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
        """Return the rows of records."""
        return await asyncio.to_thread(_rows_of_words, user, sources)

    async def add(self, on: AsyncConnection, rows: list[dict[str, Any]]) -> None:
        """Write rows down."""
        await on.execute(insert(entries).on_conflict_do_nothing(), rows)


class Filling:
    """Brings arms up to date with what a store holds."""

    def __init__(self, transactions: Transactions, entry_of: EntryOf) -> None:
        self._transactions = transactions
        self._entry_of = entry_of
        self._turns = PerLoop(WeakValueDictionary[str, asyncio.Lock])

    async def catch_up(self, user: str, arm: Arm) -> None:
        """Index everything that was stored before this call."""
        turns = self._turns.get()
        turn = turns.setdefault(f"{arm.name} of {user}", asyncio.Lock())
        async with turn:  # others here wait for the same; other processes may race
            while stretches := await self._pending(user, arm):
                if not await self._index(user, arm, _batch(stretches, arm.at_once)):
                    return

    async def _pending(self, user: str, arm: Arm) -> list[Stretch]:
        found = await self._transactions.read(lambda on: _stretches(on, user, arm.name))
        if all(made is not None for _, made, *_ in found):
            return [Stretch(*each) for each in found]
        await self._transactions.write(lambda on: _begin(on, user, arm.name))
        return await self._pending(user, arm)

    async def _index(self, user: str, arm: Arm, batch: Sequence[Stretch]) -> bool:
        """Index some stretches; tell whether that was possible. A lost race is no failure."""
        sources = await self._transactions.read(lambda on: self._sources(on, user, batch))
        rows = await arm.make(user, sources) if sources else []
        if rows is None:
            return False

        async def work(on: AsyncConnection) -> None:
            won = await _move_on(on, user, arm.name, batch)
            mine = {each.record.seq for each in sources if each.record.session in won}
            living = await _living(on, user, [row["seq"] for row in rows if row["seq"] in mine])
            if living:
                await arm.add(on, [row for row in rows if row["seq"] in living])

        await self._transactions.write(work)
        return True

    async def _sources(
        self, on: AsyncConnection, user: str, batch: Sequence[Stretch]
    ) -> list[Source]:
        found: list[Source] = []
        for row in await on.execute(_within(user, batch)):
            try:
                record = record_of(row[1:])
            except CorruptData as error:
                logger.warning("the record with seq %d cannot be indexed: %s", row[1], error)
                continue
            entry = self._entry_of(record)
            if entry is not None:
                found.append(Source(record, row[0], entry))
        return found


def _rows_of_words(user: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
    counted = count_words(user, [indexed_text(source.entry) for source in sources])
    return [
        {**_described(user, source), "length": w.length, "tokens": w.tokens, "counts": w.counts}
        for source, w in zip(sources, counted, strict=True)
    ]


def _described(user: str, source: Source) -> dict[str, Any]:
    record, place, entry = source
    return {
        "seq": record.seq,
        "reading": READING,
        "user_id": user,
        "session_id": record.session,
        "place": place,
        "kind": clean_text(entry.kind),
        "role": None if entry.role is None else clean_text(entry.role),
        "speaker": None if entry.speaker is None else clean_text(entry.speaker),
        "marks": pack_marks(entry.marks),
        "time": entry.time,
        "expires_at": record.expires_at,
        "instructs": bool(traits_of(entry) & INSTRUCTS),
    }


def _batch(stretches: Sequence[Stretch], most: int) -> list[Stretch]:
    """Return work of a bounded size, the first of what there is to do."""
    batch: list[Stretch] = []
    for stretch in stretches:
        if most <= 0:
            break
        batch.append(stretch._replace(end=min(stretch.end, stretch.start + most)))
        most -= batch[-1].end - stretch.start
    return batch


async def is_behind(on: AsyncConnection, user: str, arm: Arm) -> bool:
    """Tell whether there is anything that an arm has not indexed."""
    query = select(exists(_BEHIND))
    return bool((await on.execute(query, {"user": user, "arm": arm.name})).scalar_one())


async def _stretches(on: AsyncConnection, user: str, arm: str) -> list[Any]:
    """Return the sessions that hold more than an arm has indexed, as far as it has come."""
    return list(await on.execute(_BEHIND.order_by(_s.session_id), {"user": user, "arm": arm}))


def _behind() -> Select[Any]:
    mine = and_(
        _p.user_id == _s.user_id, _p.session_id == _s.session_id, _p.arm == bindparam("arm")
    )
    return (
        select(_s.session_id, _p.made, _p.done, _s.next_index)
        .select_from(sessions.outerjoin(progress, mine))
        .where(_s.user_id == bindparam("user"), _p.done.is_(None) | (_p.done < _s.next_index))
    )


_BEHIND = _behind()


async def _begin(on: AsyncConnection, user: str, arm: str) -> None:
    """Note for sessions that are new to an arm that nothing of them is done."""
    known = exists().where(_p.user_id == _s.user_id, _p.session_id == _s.session_id, _p.arm == arm)
    made = literal(secrets.randbits(62), BigInteger())
    new = (
        select(_s.user_id, _s.session_id, literal(arm), made, literal(0, BigInteger()))
        .where(_s.user_id == user, ~known)
        .order_by(_s.session_id)
        .with_for_update(read=True, key_share=True)  # leaves out what is just being erased
    )
    names = ["user_id", "session_id", "arm", "made", "done"]
    await on.execute(insert(progress).from_select(names, new).on_conflict_do_nothing())


def _within(user: str, batch: Sequence[Stretch]) -> Select[Any]:
    wanted = _listed(batch)
    return (
        select(_r.index, *COLUMNS)
        .join(wanted, _r.session_id == wanted.c.session_id)
        .where(
            _r.user_id == user,
            _r.index >= wanted.c.start,
            _r.index < wanted.c.end,
        )
        .order_by(_r.seq)
    )


async def _move_on(on: AsyncConnection, user: str, arm: str, batch: Sequence[Stretch]) -> set[str]:
    """Note stretches as done; return the sessions in which nobody else was quicker.

    The sessions are locked first, in the way of a foreign key: who adds to one does not wait, but
    who erases it does, and would otherwise wait for us while we wait for its records.
    """
    names = [stretch.session for stretch in batch]
    standing = select(_s.session_id).where(_s.user_id == user, _s.session_id.in_(names))
    await on.execute(standing.order_by(_s.session_id).with_for_update(read=True, key_share=True))
    wanted = _listed(batch)
    as_it_was = and_(
        _p.user_id == user,
        _p.arm == arm,
        _p.session_id == wanted.c.session_id,
        _p.made == wanted.c.made,
        _p.done == wanted.c.start,
    )
    query = select(_p.session_id).join(wanted, as_it_was).order_by(_p.session_id)
    won = set((await on.execute(query.with_for_update(of=progress, key_share=True))).scalars())
    mine = [stretch for stretch in batch if stretch.session in won]
    if mine:
        ends = _listed(mine)
        these = (_p.user_id == user, _p.arm == arm, _p.session_id == ends.c.session_id)
        await on.execute(update(progress).where(*these).values(done=ends.c.end))
    return won


async def _living(on: AsyncConnection, user: str, seqs: list[int]) -> set[int]:
    """Return which records are still there, and keep them until this transaction ends."""
    if not seqs:
        return set()
    these = _r.seq == any_(literal(seqs, ARRAY(BigInteger())))
    query = select(_r.seq).where(_r.user_id == user, these).order_by(_r.seq)
    return set((await on.execute(query.with_for_update(read=True, key_share=True))).scalars())


def _listed(batch: Sequence[Stretch]) -> Values:
    columns: tuple[Any, ...] = (
        column("session_id", Text()),
        column("made", BigInteger()),
        column("start", BigInteger()),
        column("end", BigInteger()),
    )
    return values(*columns, name="wanted").data([tuple(stretch) for stretch in batch])
