"""A user's rows as a ``Recall`` that holds all of them, made in a millisecond.

Columns come as arrays from the database; entries are decoded when ranking looks at them, which it
does for few. So the answers are those of a ``Recall`` in this process, from the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from itertools import compress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....errors import CorruptData
from ....record import Record
from ....retrieval import Entry, SparseIndex
from ....retrieval.catalogue import NO_ROW, Catalogue, Rows
from ....retrieval.entries import NAMED
from ....retrieval.facets import NO_ROWS, Facets, RowSet
from ....retrieval.personal import PersonalReader
from ....retrieval.ranking.profiles import Profiles, Span
from ....retrieval.ranking.traits import INSTRUCTS
from ....retrieval.vector_arm import VectorArm
from ....store.codec import MARK_SEPARATOR, clean_text
from .vectors import Floats
from .whole import UserRows
from .words import PoolWords, WordStatistics

EntryOfRecord = Callable[[Record], Entry | None]


class UnreadableRow(Exception):  # a signal between two functions, not an error
    """A row whose record cannot be decoded, met while ranking."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq)
        self.seq = seq


def people_in(rows: UserRows) -> list[str]:
    """Return the names of all speakers except tools: a tool's name is a topic, not a person."""
    first: dict[str, str | None] = {}
    for name, role in zip(rows.names("speaker"), rows.names("role"), strict=True):
        if name is not None:
            first.setdefault(name, role)
    return [name for name, role in first.items() if role != "tool"]


class RowsMemory:
    """The indexes over a user's rows that ranking reads, and the records behind them."""

    def __init__(
        self,
        user: str,
        rows: UserRows,
        vector: Floats | None,
        entry_of: EntryOfRecord,
        zone: tzinfo,
        *,
        personal: bool,
        unreadable: Collection[int] = (),
    ) -> None:
        self._rows, self._entry_of = rows, entry_of
        self._unreadable = unreadable
        self._records: dict[int, Record] = {}
        self.catalogue: Catalogue = _RowsCatalogue(rows, self.entry)
        self.profiles: Profiles = _RowsProfiles(rows, self.entry, zone)
        self.sparse = cast(SparseIndex, _RowsWords(user, rows))  # all that ranking asks of one
        self.vectors = cast(VectorArm, _RowsVectors(rows, vector))
        self._reader = PersonalReader() if personal else None
        self._has_facts = False

    @property
    def reader(self) -> PersonalReader | None:
        """The personal second pass, which knows every fact; decoded when it is asked for."""
        if self._reader is not None and not self._has_facts:
            self._has_facts = True
            for row in range(len(self._rows)):
                self._reader.facts.add(row, self.catalogue.at(row))
        return self._reader

    def entry(self, row: int) -> Entry:
        """Decode the entry of a row. One that is known to be unreadable has no text."""
        seq = self._rows.seqs[row]
        if seq in self._unreadable:
            return Entry(str(seq), "", session=self._rows.names("session_id")[row])
        try:
            record = self._rows.record(row)
        except CorruptData as error:
            raise UnreadableRow(seq) from error
        entry = self._entry_of(record)
        if entry is None:  # it is of another kind than when it was indexed
            raise UnreadableRow(seq)
        self._records[seq] = record
        return entry

    def record(self, seq: int) -> Record:
        """Return the record of a row that was decoded."""
        return self._records[seq]


class _RowsCatalogue(Catalogue):
    """A catalogue of rows that cannot be changed; row numbers rise with the seqs."""

    def __init__(self, rows: UserRows, entry_of_row: Callable[[int], Entry]) -> None:
        super().__init__()
        count = len(rows)
        self._source, self._entry_of_row = rows, entry_of_row
        self.entries = [None] * count
        self._by_id = {str(seq): row for row, seq in enumerate(rows.seqs)}
        self._all_rows = RowSet.of(np.arange(count))
        self._facets = _RowsFacets(rows, self)
        self._used = np.ones(count, np.bool_)
        self.times, self.importances = rows.times, rows.importances
        self.ages = np.arange(1, count + 1)
        numbers: dict[str | None, int] = {}
        held = rows.names("session_id")
        self.sessions = np.array(
            [numbers.setdefault(name, len(numbers)) for name in held], np.int64
        )
        self.before, self.after = _links(self.sessions)

    def at(self, row: int) -> Entry:
        """Return the entry in a row, decoded when it is first asked for."""
        entry = self.entries[row]
        if entry is None:
            entry = self.entries[row] = self._entry_of_row(row)
        return entry

    def people(self) -> list[str]:
        """Return the names of all speakers except tools."""
        return people_in(self._source)


class _RowsFacets(Facets):
    """Facets that are looked up in columns; those of the metadata are made when asked for."""

    def __init__(self, rows: UserRows, catalogue: Catalogue) -> None:
        self._source, self._catalogue = rows, catalogue

    @cached_property
    def _rows(self) -> dict[str, dict[Any, RowSet]]:  # type: ignore[override]  # made when needed
        made = Facets()
        for row in range(len(self._source)):
            made.add(row, self._catalogue.at(row))
        return made._rows

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows with one value."""
        if name == "mark" and isinstance(value, str):
            packed = f"{MARK_SEPARATOR}{value}{MARK_SEPARATOR}"
            return _where(packed in (each or "") for each in self._source.names("marks"))
        if name in NAMED and isinstance(value, str):
            wanted = clean_text(value)
            return _where(each == wanted for each in self._column(name))
        return super().rows_of(name, value)

    def has(self, name: str, value: Any) -> bool:
        """Return whether any row has a value."""
        return len(self.rows_of(name, value)) > 0

    def values_of(self, name: str) -> list[Any]:
        """Return all values of a name."""
        if name in NAMED:
            return [each for each in dict.fromkeys(self._column(name)) if each is not None]
        return super().values_of(name)

    def _column(self, name: str) -> Sequence[str | None]:
        return self._source.names("session_id" if name == "session" else name)


class _RowsProfiles(Profiles):
    """Profiles whose traits are in the index; times in texts are read if a question has any."""

    def __init__(self, rows: UserRows, entry_of_row: Callable[[int], Entry], zone: tzinfo) -> None:
        super().__init__(zone)
        self.traits, self.fullness = rows.traits, rows.fullness
        self.said = cast("dict[int, tuple[Span, ...]]", _TimesSaid(self, entry_of_row, len(rows)))
        standing: list[int] = np.flatnonzero(rows.traits & INSTRUCTS).tolist()
        self.instructions = dict.fromkeys(standing)
        for row, title in enumerate(rows.names("title")):
            if title is not None:
                self.names.add(row, title)

    def times_said(self, entry: Entry) -> tuple[Span, ...]:
        """Return the times that an entry's text mentions."""
        return self._times_said(entry)


class _TimesSaid(Mapping[int, tuple[Span, ...]]):
    """Row → the times that its text mentions, read when asked for."""

    def __init__(
        self, profiles: _RowsProfiles, entry_of_row: Callable[[int], Entry], count: int
    ) -> None:
        self._profiles, self._entry_of_row, self._count = profiles, entry_of_row, count
        self._known: dict[int, tuple[Span, ...]] = {}

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and bool(self[row])

    def __getitem__(self, row: int) -> tuple[Span, ...]:
        if row not in self._known:
            self._known[row] = self._profiles.times_said(self._entry_of_row(row))
        return self._known[row]

    def __iter__(self) -> Iterator[int]:
        return compress(range(self._count), map(self.__contains__, range(self._count)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _RowsWords(PoolWords):
    """The words of all rows, which are their own statistics."""

    def __init__(self, user: str, rows: UserRows) -> None:
        statistics = WordStatistics(len(rows), int(rows.lengths.sum()), _Having(rows.tokens))
        self._user, self._statistics = user, statistics
        self._lengths, self._owners = rows.lengths, rows.owners
        self._tokens, self._counts = rows.tokens, rows.counts


class _Having(dict[int, int]):
    """Token → the number of rows that have it; counted when asked for."""

    def __init__(self, tokens: NDArray[np.int64]) -> None:
        super().__init__()
        self._tokens = tokens

    def __missing__(self, token: int) -> int:
        self[token] = found = int(np.count_nonzero(self._tokens == token))
        return found

    def get(self, token: int, default: Any = 0) -> Any:
        """Return the number of rows that have a token."""
        return self[token]


class _RowsVectors:
    """The part of a ``VectorArm`` that ranking uses. It is its own index."""

    embedder = None

    def __init__(self, rows: UserRows, vector: Floats | None) -> None:
        is_comparable = vector is not None and rows.vectors.shape[1] == len(vector)
        self._rows, self._vector = rows, vector if is_comparable else None

    def __contains__(self, row: int) -> bool:
        return bool(self._rows.has_vector[row])

    def vector_of(self, _: str) -> Floats | None:
        return self._vector

    @property
    def index(self) -> _RowsVectors | None:
        return None if self._vector is None else self

    def vectors(self, rows: Rows) -> Floats:
        return self._rows.vectors[rows]


def _links(sessions: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Return for every row the one before and the one after it in its session."""
    order = np.argsort(sessions, kind="stable")
    before, after = np.full(len(order), NO_ROW), np.full(len(order), NO_ROW)
    is_same = sessions[order[1:]] == sessions[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    after[order[:-1][is_same]] = order[1:][is_same]
    return before, after


def _where(are: Iterator[bool]) -> Rows:
    found = [row for row, is_one in enumerate(are) if is_one]
    return np.array(found, np.int64) if found else NO_ROWS
