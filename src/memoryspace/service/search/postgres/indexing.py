"""``Indexer``: indexes, before a search, the records stored since the last one.

Work is divided by session. The records of a session are stored in order, so everything below its
``next_index`` can be read and nothing is added there later. The progress of an arm is a number in
the database. The transaction that adds rows advances it, and only if it is unchanged: of two
processes with the same work, exactly one adds the rows.

Nothing is read, analysed or embedded inside that transaction.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
from ....retrieval.ranking.traits import INSTRUCTS, fullness_of, traits_of
from ....store.codec import clean_text, pack_marks
from ....store.sql.rows import COLUMNS, record_of
from ....store.sql.schema import records, sessions
from ....store.sql.transactions import Transactions
from ..contract import EntryOf
from .tables import READING, entries, progress
from .words import count_words

logger = logging.getLogger(__name__)


_r, _s, _p = records.c, sessions.c, progress.c


class PendingRange(NamedTuple):
    """Places of a session that an arm has not indexed; ``made`` identifies the session's row."""

    session: str
    made: int
    start: int
    end: int


class RecordToIndex(NamedTuple):
    """A record to index, its place in the session, and its searchable entry."""

    record: Record
    place: int
    entry: Entry


class Arm(ABC):
    """One way to search, with a table of its own."""

    name: str
    at_once = 1000  # records indexed in one transaction

    @abstractmethod
    async def make(
        self, user: str, sources: Sequence[RecordToIndex]
    ) -> list[dict[str, Any]] | None:
        """Return the rows of records; ``None`` if they cannot be made now."""

    @abstractmethod
    async def add(self, on: AsyncConnection, rows: list[dict[str, Any]]) -> None:
        """Insert rows."""


class WordsArm(Arm):
    """The arm of words and of the columns that conditions filter by."""

    name = f"words {READING}"

    async def make(self, user: str, sources: Sequence[RecordToIndex]) -> list[dict[str, Any]]:
        """Return the rows of records."""
        return await asyncio.to_thread(_rows_of_words, user, sources)

    async def add(self, on: AsyncConnection, rows: list[dict[str, Any]]) -> None:
        """Insert rows."""
        await on.execute(insert(entries).on_conflict_do_nothing(), rows)


class Indexer:
    """Brings arms up to date with the records of a store."""

    def __init__(self, transactions: Transactions, entry_of: EntryOf) -> None:
        self._transactions = transactions
        self._entry_of = entry_of
        self._locks = PerLoop(WeakValueDictionary[str, asyncio.Lock])

    async def catch_up(self, user: str, arm: Arm) -> None:
        """Index every record stored before this call."""
        locks = self._locks.get()
        lock = locks.setdefault(f"{arm.name} of {user}", asyncio.Lock())
        async with lock:  # callers in this process wait; other processes may race
            while ranges := await self._pending_ranges(user, arm):
                if not await self._index(user, arm, _batch(ranges, arm.at_once)):
                    return

    async def _pending_ranges(self, user: str, arm: Arm) -> list[PendingRange]:
        found = await self._transactions.read(lambda on: _pending_ranges(on, user, arm.name))
        if all(made is not None for _, made, *_ in found):
            return [PendingRange(*each) for each in found]
        await self._transactions.write(lambda on: _begin(on, user, arm.name))
        return await self._pending_ranges(user, arm)

    async def _index(self, user: str, arm: Arm, batch: Sequence[PendingRange]) -> bool:
        """Index some ranges; return whether that was possible. A lost race is not a failure."""
        sources = await self._transactions.read(lambda on: self._sources(on, user, batch))
        rows = await arm.make(user, sources) if sources else []
        if rows is None:
            return False

        async def work(on: AsyncConnection) -> None:
            won = await _claim(on, user, arm.name, batch)
            mine = {each.record.seq for each in sources if each.record.session in won}
            existing = await _lock_existing(
                on, user, [row["seq"] for row in rows if row["seq"] in mine]
            )
            if existing:
                await arm.add(on, [row for row in rows if row["seq"] in existing])

        await self._transactions.write(work, user=user)
        return True

    async def _sources(
        self, on: AsyncConnection, user: str, batch: Sequence[PendingRange]
    ) -> list[RecordToIndex]:
        found: list[RecordToIndex] = []
        for row in await on.execute(_records_in(user, batch)):
            try:
                record = record_of(row[1:])
            except CorruptData as error:
                logger.warning("cannot index the record with seq %d: %s", row[1], error)
                continue
            entry = self._entry_of(record)
            if entry is not None:
                found.append(RecordToIndex(record, row[0], entry))
        return found


def _rows_of_words(user: str, sources: Sequence[RecordToIndex]) -> list[dict[str, Any]]:
    counted = count_words(user, [indexed_text(source.entry) for source in sources])
    return [
        {**_columns_of(user, source), "length": w.length, "tokens": w.tokens, "counts": w.counts}
        for source, w in zip(sources, counted, strict=True)
    ]


def _columns_of(user: str, source: RecordToIndex) -> dict[str, Any]:
    record, place, entry = source
    traits = traits_of(entry)
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
        "instructs": bool(traits & INSTRUCTS),
        "title": None if entry.title is None else clean_text(entry.title),
        "importance": entry.importance,
        "traits": traits,
        "fullness": fullness_of(indexed_text(entry)),
    }


def _batch(ranges: Sequence[PendingRange], most: int) -> list[PendingRange]:
    """Return the first pending ranges, with at most this many records in all."""
    batch: list[PendingRange] = []
    for each in ranges:
        if most <= 0:
            break
        batch.append(each._replace(end=min(each.end, each.start + most)))
        most -= batch[-1].end - each.start
    return batch


async def is_behind(on: AsyncConnection, user: str, arm: Arm) -> bool:
    """Return whether an arm has records of a user left to index."""
    query = select(exists(_UNINDEXED))
    return bool((await on.execute(query, {"user": user, "arm": arm.name})).scalar_one())


async def _pending_ranges(on: AsyncConnection, user: str, arm: str) -> list[Any]:
    """Return the sessions with records that an arm has not indexed, and its progress in each."""
    return list(await on.execute(_UNINDEXED.order_by(_s.session_id), {"user": user, "arm": arm}))


def _unindexed() -> Select[Any]:
    mine = and_(
        _p.user_id == _s.user_id, _p.session_id == _s.session_id, _p.arm == bindparam("arm")
    )
    return (
        select(_s.session_id, _p.made, _p.done, _s.next_index)
        .select_from(sessions.outerjoin(progress, mine))
        .where(_s.user_id == bindparam("user"), _p.done.is_(None) | (_p.done < _s.next_index))
    )


_UNINDEXED = _unindexed()


async def _begin(on: AsyncConnection, user: str, arm: str) -> None:
    """Insert a progress of zero for sessions that are new to an arm."""
    known = exists().where(_p.user_id == _s.user_id, _p.session_id == _s.session_id, _p.arm == arm)
    made = literal(secrets.randbits(62), BigInteger())
    new = (
        select(_s.user_id, _s.session_id, literal(arm), made, literal(0, BigInteger()))
        .where(_s.user_id == user, ~known)
        .order_by(_s.session_id)
        .with_for_update(read=True, key_share=True)  # skips sessions that are being erased
    )
    names = ["user_id", "session_id", "arm", "made", "done"]
    await on.execute(insert(progress).from_select(names, new).on_conflict_do_nothing())


def _records_in(user: str, batch: Sequence[PendingRange]) -> Select[Any]:
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


async def _claim(
    on: AsyncConnection, user: str, arm: str, batch: Sequence[PendingRange]
) -> set[str]:
    """Mark ranges as done; return the sessions in which no other process was faster.

    The sessions are locked first, as a foreign key locks them: a writer to the session does not
    wait, but one that erases it does. Otherwise it would wait for us while we wait for its records.
    """
    names = [each.session for each in batch]
    existing = select(_s.session_id).where(_s.user_id == user, _s.session_id.in_(names))
    await on.execute(existing.order_by(_s.session_id).with_for_update(read=True, key_share=True))
    wanted = _listed(batch)
    is_unchanged = and_(
        _p.user_id == user,
        _p.arm == arm,
        _p.session_id == wanted.c.session_id,
        _p.made == wanted.c.made,
        _p.done == wanted.c.start,
    )
    query = select(_p.session_id).join(wanted, is_unchanged).order_by(_p.session_id)
    won = set((await on.execute(query.with_for_update(of=progress, key_share=True))).scalars())
    mine = [each for each in batch if each.session in won]
    if mine:
        ends = _listed(mine)
        these = (_p.user_id == user, _p.arm == arm, _p.session_id == ends.c.session_id)
        await on.execute(update(progress).where(*these).values(done=ends.c.end))
    return won


async def _lock_existing(on: AsyncConnection, user: str, seqs: list[int]) -> set[int]:
    """Return the records that still exist, locked until this transaction ends."""
    if not seqs:
        return set()
    these = _r.seq == any_(literal(seqs, ARRAY(BigInteger())))
    query = select(_r.seq).where(_r.user_id == user, these).order_by(_r.seq)
    return set((await on.execute(query.with_for_update(read=True, key_share=True))).scalars())


def _listed(batch: Sequence[PendingRange]) -> Values:
    columns: tuple[Any, ...] = (
        column("session_id", Text()),
        column("made", BigInteger()),
        column("start", BigInteger()),
        column("end", BigInteger()),
    )
    return values(*columns, name="wanted").data([tuple(each) for each in batch])
