"""``CandidateCollector``: collects candidates for one question until enough are allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....errors import CorruptData
from ....record import Record
from ....retrieval import Entry
from ....retrieval.conditions import refusal
from ....retrieval.personal.reader import READ
from ....retrieval.ranking.asking import ParsedQuestion
from ....store.sql.rows import record_of
from ..contract import EntryOf, Query
from .candidates import CandidateQueries
from .pool import CandidatePool
from .vectors import Floats
from .words import QueryTerm, WordStatistics

_DEEPEN = 4
_LIKE = 0.1  # the least cosine at which ranking counts a text as similar to the question


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed query, with the terms and the vector to look for in the database."""

    user: str
    query: Query
    question: ParsedQuestion
    speakers: Sequence[str]
    vector: Floats | None
    space: str  # the space of the vector
    keywords: Sequence[QueryTerm]
    all_words: Sequence[QueryTerm]
    also: Collection[int]  # always considered

    @property
    def terms(self) -> list[QueryTerm]:
        """The distinct terms of the keywords and of all words."""
        return list({term.token: term for term in (*self.keywords, *self.all_words)}.values())


class _Selected(NamedTuple):
    everyone: set[int]
    matching: set[int]  # those that match, and are returned if they are allowed
    is_complete: bool  # no other row matches


class CandidateCollector:
    """Collects the candidates for one question. ``floor`` is the least cosine of a match."""

    def __init__(
        self,
        queries: CandidateQueries,
        asked: ParsedQuery,
        entry_of: EntryOf,
        floor: float,
        *,
        personal: bool = False,
    ) -> None:
        self._queries, self._asked, self._entry_of = queries, asked, entry_of
        self._is_personal = personal
        self._facts: dict[int, tuple[Record, Entry]] = {}  # from messages that may be returned
        self._is_matching = not asked.query.neighbours
        self._floor = floor if self._is_matching else _LIKE
        self._found: dict[int, tuple[Record, Entry] | None] = {}  # None: not allowed

    async def candidates(self, depth: int) -> CandidatePool:
        """Return up to ``depth`` candidates of each arm, or more if too few are allowed."""
        queries, asked = self._queries, self._asked
        statistics = await queries.statistics(asked.terms)
        named = await self._look(statistics, depth)
        while not named.is_complete and self._count(named.matching) < asked.query.top_k:
            depth *= _DEEPEN
            named = await self._look(statistics, depth)
        if self._is_personal:
            await self._add_personal_facts()
        found = {seq: known for seq, known in self._found.items() if known is not None}
        around = {*await queries.neighbours(found), *self._facts} if found else ()
        rows = await queries.rows(around, asked.terms) if around else {}
        near: dict[int, Floats] = {}
        if asked.vector is not None and rows:
            near = await queries.vectors(rows, asked.space)
        return CandidatePool(
            asked.user,
            statistics,
            asked.speakers,
            named.everyone,
            {seq: known for seq, known in found.items() if seq in rows},
            rows,
            asked.vector,
            near,
            {seq: fact for seq, fact in self._facts.items() if seq in rows},
        )

    async def _add_personal_facts(self) -> None:
        """Add the source messages of the facts found, and the facts derived from messages found.

        For a superseded fact, add its replacement and the messages behind it. If little was found,
        add the newest memories too: one that shares no word with the question may answer it.
        """
        if not self._is_matching and len(self._entries()) < READ:
            newest = await self._queries.newest(READ)
            await self._read([seq for seq in newest if seq not in self._found])
        await self._add_by_id(_sources_of(self._entries()))
        messages = [each.record for each in self._entries() if not each.sources and each.record]
        await self._add_facts(await self._queries.derived_from(messages) if messages else set())
        facts = [entry for _, entry in self._facts.values()]
        newer = {each.superseded_by for each in facts if each.superseded_by is not None}
        if newer:
            await self._add_facts(await self._queries.by_id(newer))
        await self._add_by_id(_sources_of(entry for _, entry in self._facts.values()))

    async def _add_by_id(self, ids: set[str]) -> None:
        missing = ids.difference(entry.record or "" for entry in self._entries())
        if missing:
            seqs = await self._queries.by_id(missing)
            await self._read([seq for seq in seqs if seq not in self._found])

    async def _add_facts(self, seqs: set[int]) -> None:
        """Read facts that are not candidates, whether the condition allows them or not."""
        missing = [seq for seq in seqs if self._found.get(seq) is None and seq not in self._facts]
        for record in await self._records(missing):
            entry = self._entry_of(record)
            if entry is not None:
                self._facts[record.seq] = record, entry

    def _entries(self) -> list[Entry]:
        return [known[1] for known in self._found.values() if known is not None]

    async def _look(self, statistics: WordStatistics, depth: int) -> _Selected:
        named = await self._named(statistics, depth)
        chosen = named.everyone | set(self._asked.also)
        if not self._is_matching and chosen:
            chosen = await self._queries.neighbours(chosen)
        await self._read([seq for seq in chosen if seq not in self._found])
        return named

    async def _named(self, statistics: WordStatistics, depth: int) -> _Selected:
        """Return the rows that the arms and the question select."""
        queries, asked = self._queries, self._asked
        best = set(await queries.by_words(asked.keywords, statistics, depth))
        if self._is_matching and len(best) < asked.query.top_k:
            best.update(await queries.by_words(asked.all_words, statistics, depth))
        near: dict[int, float] = {}
        if asked.vector is not None:
            near = await queries.by_vector(asked.vector, asked.space, depth)
        like = {seq for seq, cosine in near.items() if cosine >= self._floor}
        required = asked.all_words if self._is_matching else None
        wanted = await queries.requested(asked.question, required, depth)
        return _Selected(
            {*best, *near, *wanted},
            {*best, *like, *wanted},
            is_complete=len(best) < depth and len(like) < depth,
        )

    async def _read(self, seqs: Collection[int]) -> None:
        """Read records and note which ones the condition allows."""
        self._found.update(dict.fromkeys(seqs))
        for record in await self._records(seqs):
            entry = self._entry_of(record)
            if entry is not None and refusal(self._asked.query.only, entry) is None:
                self._found[record.seq] = record, entry

    async def _records(self, seqs: Collection[int]) -> list[Record]:
        records: list[Record] = []
        for row in await self._queries.records(seqs) if seqs else ():
            try:
                records.append(record_of(row))
            except CorruptData:  # logged when it was to be indexed
                continue
        return records

    def _count(self, seqs: Collection[int]) -> int:
        return sum(self._found.get(seq) is not None for seq in seqs)


def _sources_of(entries: Iterable[Entry]) -> set[str]:
    """Return the ids of the records that entries were derived from and stand for."""
    return {each for entry in entries if not entry.is_told_itself for each in entry.sources}
