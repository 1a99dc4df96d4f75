"""Gathering the candidates for one question, until enough of them are allowed."""

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
from ..contract import Query
from .candidates import Choosing
from .filling import EntryOf
from .pool import Candidates
from .vectors import Floats
from .words import Statistics, Term

_DEEPEN = 4
_LIKE = 0.1  # cosine from which on ranking takes a text for like another, if that is all it needs


@dataclass(frozen=True)
class Asked:
    """A query taken apart, with what the database must be asked for it."""

    user: str
    query: Query
    question: ParsedQuestion
    speakers: Sequence[str]
    vector: Floats | None
    space: str  # the vector's
    keywords: Sequence[Term]
    all_words: Sequence[Term]
    also: Collection[int]  # looked at in any case

    @property
    def terms(self) -> list[Term]:
        """Every word that will be asked about."""
        return list({term.token: term for term in (*self.keywords, *self.all_words)}.values())


class _Named(NamedTuple):
    everyone: set[int]
    matching: set[int]  # those of them that will be found, if they are allowed
    is_all: bool  # nobody else would be


class Gathering:
    """The candidates for one question. ``floor`` is the cosine from which on one matches."""

    def __init__(
        self,
        choosing: Choosing,
        asked: Asked,
        entry_of: EntryOf,
        floor: float,
        *,
        personal: bool = False,
    ) -> None:
        self._choosing, self._asked, self._entry_of = choosing, asked, entry_of
        self._is_personal = personal
        self._facts: dict[int, tuple[Record, Entry]] = {}  # of messages that may be returned
        self._is_matching = not asked.query.neighbours
        self._floor = floor if self._is_matching else _LIKE
        self._found: dict[int, tuple[Record, Entry] | None] = {}  # None: it is not allowed

    async def candidates(self, depth: int) -> Candidates:
        """Return as many of each arm as ``depth``, or more if few of these are allowed."""
        choosing, asked = self._choosing, self._asked
        statistics = await choosing.statistics(asked.terms)
        named = await self._look(statistics, depth)
        while not named.is_all and self._count(named.matching) < asked.query.top_k:
            depth *= _DEEPEN
            named = await self._look(statistics, depth)
        if self._is_personal:
            await self._add_what_is_known()
        found = {seq: known for seq, known in self._found.items() if known is not None}
        around = {*await choosing.beside(found), *self._facts} if found else ()
        rows = await choosing.rows(around, asked.terms) if around else {}
        near: dict[int, Floats] = {}
        if asked.vector is not None and rows:
            near = await choosing.vectors(rows, asked.space)
        return Candidates(
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

    async def _add_what_is_known(self) -> None:
        """Add the messages behind the facts that were found, and the facts of all messages.

        Of a fact that no longer holds, also what took its place and the messages behind that. Where
        little was found, the newest are looked at too: who shares no word may answer.
        """
        if not self._is_matching and len(self._entries()) < READ:
            newest = await self._choosing.newest(READ)
            await self._read([seq for seq in newest if seq not in self._found])
        await self._add_named(_sources_of(self._entries()))
        said = [each.record for each in self._entries() if not each.sources and each.record]
        await self._add_facts(await self._choosing.derived_from(said) if said else set())
        facts = [entry for _, entry in self._facts.values()]
        heirs = {each.superseded_by for each in facts if each.superseded_by is not None}
        if heirs:
            await self._add_facts(await self._choosing.named(heirs))
        await self._add_named(_sources_of(entry for _, entry in self._facts.values()))

    async def _add_named(self, ids: set[str]) -> None:
        missing = ids.difference(entry.record or "" for entry in self._entries())
        if missing:
            seqs = await self._choosing.named(missing)
            await self._read([seq for seq in seqs if seq not in self._found])

    async def _add_facts(self, seqs: set[int]) -> None:
        """Read facts, whether they may be returned or not; those that may be found are there."""
        missing = [seq for seq in seqs if self._found.get(seq) is None and seq not in self._facts]
        for record in await self._records(missing):
            entry = self._entry_of(record)
            if entry is not None:
                self._facts[record.seq] = record, entry

    def _entries(self) -> list[Entry]:
        return [known[1] for known in self._found.values() if known is not None]

    async def _look(self, statistics: Statistics, depth: int) -> _Named:
        named = await self._named(statistics, depth)
        chosen = named.everyone | set(self._asked.also)
        if not self._is_matching and chosen:
            chosen = await self._choosing.beside(chosen)
        await self._read([seq for seq in chosen if seq not in self._found])
        return named

    async def _named(self, statistics: Statistics, depth: int) -> _Named:
        """Return whom the arms and the question name."""
        choosing, asked = self._choosing, self._asked
        best = set(await choosing.by_words(asked.keywords, statistics, depth))
        if self._is_matching and len(best) < asked.query.top_k:
            best.update(await choosing.by_words(asked.all_words, statistics, depth))
        near: dict[int, float] = {}
        if asked.vector is not None:
            near = await choosing.by_vector(asked.vector, asked.space, depth)
        like = {seq for seq, cosine in near.items() if cosine >= self._floor}
        required = asked.all_words if self._is_matching else None
        wanted = await choosing.asked_for(asked.question, required, depth)
        return _Named(
            {*best, *near, *wanted},
            {*best, *like, *wanted},
            is_all=len(best) < depth and len(like) < depth,
        )

    async def _read(self, seqs: Collection[int]) -> None:
        """Find out who of these is allowed."""
        self._found.update(dict.fromkeys(seqs))
        for record in await self._records(seqs):
            entry = self._entry_of(record)
            if entry is not None and refusal(self._asked.query.only, entry) is None:
                self._found[record.seq] = record, entry

    async def _records(self, seqs: Collection[int]) -> list[Record]:
        records: list[Record] = []
        for row in await self._choosing.records(seqs) if seqs else ():
            try:
                records.append(record_of(row))
            except CorruptData:  # said when it was to be indexed
                continue
        return records

    def _count(self, seqs: Collection[int]) -> int:
        return sum(self._found.get(seq) is not None for seq in seqs)


def _sources_of(entries: Iterable[Entry]) -> set[str]:
    """Return the records that entries are an index over."""
    return {each for entry in entries if not entry.is_told_itself for each in entry.sources}
