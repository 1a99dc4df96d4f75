"""``Catalogue``: the table of entries, with columns that can be read for many rows at once.

A row is a small int by which both indexes know an entry; it is reused after a removal. Columns are
flat arrays by row. The rows of one session are linked in the order of adding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace as change
from numpy.typing import DTypeLike, NDArray

from .conditions import ANYTHING, AllOf, Condition, Item, Not
from .entries import NAMED, OPAQUE, Entry, Only, is_plain, names
from .facets import NO_ROWS, Facets, RowSet

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_ROW = -1
_LEAST = 256
_MANY = 32  # above one row in 32, a mask is faster than sorting
_ENTRY_BYTES = 1000  # measured: an entry without text, its columns and its profile
_SORTED_AT = 64  # below one row in 64, sorting is faster than a mask


class StoredEntries:
    """Encoded entries by row, as they come from a file."""

    def __init__(self, whole: bytes, sizes: NDArray[np.int64]) -> None:
        ends = np.cumsum(sizes)
        if (sizes < 0).any() or int(ends[-1] if len(ends) else 0) != len(whole):
            raise ValueError("entries are missing")
        self.sizes = sizes
        self._whole, self._ends = whole, ends

    def at(self, row: int) -> bytes:
        """Return the bytes of the entry in a row."""
        end = int(self._ends[row])
        return self._whole[end - int(self.sizes[row]) : end]


class Catalogue:
    """Entries by row and by id."""

    def __init__(self) -> None:
        self.entries: list[Entry | None] = []
        self._by_id: dict[str, int] = {}
        self._stored: StoredEntries | None = None  # those of rows that were not looked at yet
        self._free: list[int] = []
        self._all_rows = RowSet()
        self._facets = Facets()
        self._tails: dict[str, int] = {}  # session → its newest row
        self._added = 0
        self._texts = 0  # bytes of texts and metadata
        self._in_order: Rows | None = None  # all rows, cached until one is added or removed
        self._allowed_last: tuple[str, Rows] | None = None  # cached until anything changes
        self._used: Mask = np.zeros(_LEAST, np.bool_)
        self.before: Rows = _column(np.int64)  # the previous row of the session
        self.after: Rows = _column(np.int64)  # the next row of the session
        self.sessions: Rows = _column(np.int64)  # a number per session
        self.times: NDArray[np.float64] = _column(np.float64)  # nan without a time
        self.importances: NDArray[np.float64] = _column(np.float64)
        self.ages: Rows = _column(np.int64)  # grows with every entry added: the newest is largest
        self._session_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def nbytes(self) -> int:
        """The approximate bytes that the entries take, including their columns and profiles."""
        return self._texts + _ENTRY_BYTES * len(self)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._by_id

    def find(self, entry_id: str) -> int:
        """Return the row of an entry, or ``NO_ROW``."""
        return self._by_id.get(entry_id, NO_ROW)

    def at(self, row: int) -> Entry:
        """Return the entry in a row."""
        entry = self.entries[row]
        if entry is None:
            entry = self.entries[row] = self._decoded(row)
        return entry

    def add(self, entry: Entry) -> int:
        """Add an entry with a new id; return its row."""
        row = self._new_row()
        self._by_id[entry.id] = row
        self._all_rows.add(row)
        self._used[row], self._in_order, self._allowed_last = True, None, None
        self._describe(row, entry)
        self._link(row, entry)
        self._added += 1
        self.ages[row] = self._added
        return row

    def replace(self, row: int, entry: Entry) -> None:
        """Replace an entry by one with the same id and session, which keeps its place."""
        old = self.at(row)
        assert (old.id, old.session) == (entry.id, entry.session), "id and session must be the same"
        self._facets.remove(row, old)
        self._texts -= _text_bytes(old)
        self._describe(row, entry)
        self._allowed_last = None

    def remove(self, row: int) -> None:
        """Remove an entry."""
        entry = self.at(row)
        self._unlink(row, entry)
        self._facets.remove(row, entry)
        self._texts -= _text_bytes(entry)
        self._all_rows.discard(row)
        self._used[row], self._in_order, self._allowed_last = False, None, None
        del self._by_id[entry.id]
        self.entries[row] = None
        self._free.append(row)

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows with one value of session, speaker, role, kind or mark."""
        return self._facets.rows_of(name, value)

    def has(self, name: str, value: Any) -> bool:
        """Return whether any entry has this session, speaker, role, kind or mark."""
        return self._facets.has(name, value)

    def values_of(self, name: str) -> list[Any]:
        """Return all values that entries have of session, speaker, role, kind or mark."""
        return self._facets.values_of(name)

    def encoded(self, row: int) -> bytes:
        """Return the entry in a row as bytes for ``restore``; none if the row is empty."""
        entry = self.entries[row]
        if entry is not None:
            return encode_entry(entry)
        return self._stored.at(row) if self._stored is not None and self._used[row] else b""

    def export_facets(self) -> tuple[list[tuple[str, list[Any]]], Rows]:
        """Return the facets as plain data and an array of rows."""
        return self._facets.export()

    def export_rest(self) -> dict[str, Any]:
        """Return as plain data what neither the entries nor the columns tell."""
        return {"added": self._added, "texts": self._texts, "sessions": [*self._session_numbers]}

    def restore(
        self,
        stored: StoredEntries,
        facets: Facets,
        columns: Mapping[str, NDArray[Any]],
        rest: Mapping[str, Any],
    ) -> None:
        """Take over what was exported. Entries are decoded when they are looked at."""
        used = stored.sizes > 0
        self.entries = [None] * len(used)
        self._stored, self._facets = stored, facets
        self._added, self._texts = rest["added"], rest["texts"]
        self._session_numbers = {name: number for number, name in enumerate(rest["sessions"])}
        self._used = _roomy(used)
        for name, column in columns.items():
            setattr(self, name, _roomy(column))
        rows = np.flatnonzero(used)
        self._all_rows, self._in_order = RowSet.of(rows), None
        self._free = np.flatnonzero(~used).tolist()
        last = rows[(columns["after"][rows] == NO_ROW) & (columns["sessions"][rows] != NO_ROW)]
        names = rest["sessions"]
        self._tails = {names[int(columns["sessions"][row])]: int(row) for row in last}

    def name_rows(self, ids: Mapping[str, int]) -> None:
        """Take over the ids of the rows that were restored."""
        if len(ids) != len(self._all_rows):
            raise ValueError(f"{len(ids)} ids for {len(self._all_rows)} entries")
        self._by_id = dict(ids)

    def _decoded(self, row: int) -> Entry:
        assert self._stored is not None, f"row {row} is empty"
        assert self._used[row], f"row {row} is empty"
        return decode_entry(self._stored.at(row))

    def people(self) -> list[str]:
        """Return the names of all speakers except tools: a tool's name is a topic, not a person."""
        return [name for name in self.values_of("speaker") if not self._is_tool(name)]

    def _is_tool(self, speaker: str) -> bool:
        rows = self.rows_of("speaker", speaker)
        return len(rows) > 0 and self.at(int(rows[0])).role == "tool"

    def ids(self) -> list[str]:
        """Return the ids of all entries, in no particular order."""
        return list(self._by_id)

    def allowed(self, only: Condition = ANYTHING) -> Rows:
        """Return the rows that satisfy a condition, in rising order.

        The last result is cached: consecutive searches often use the same condition.
        """
        if only == ANYTHING:
            return self._all_in_order()
        asked = repr(only)  # tells 1 from True, which are equal
        if self._allowed_last is None or self._allowed_last[0] != asked:
            rows = self._allowed(only)
            rows.flags.writeable = False
            self._allowed_last = (asked, rows)
        return self._allowed_last[1]

    def _allowed(self, only: Condition) -> Rows:
        if not isinstance(only, Only):
            return np.flatnonzero(self._fulfils(only))
        chosen = self._chosen(only)
        if _MANY * len(chosen) > len(self):  # faster than sorting
            return np.flatnonzero(self.mask(chosen))
        return np.sort(chosen)

    def used_rows(self) -> Mask:
        """Return for every row whether it holds an entry; valid until the next change."""
        return self._used[: len(self.entries)]

    def mask(self, rows: Rows) -> Mask:
        """Return for every row whether it is one of the given rows."""
        found = np.zeros(len(self.entries), np.bool_)
        found[rows] = True
        return found

    def distinct(self, rows: Rows) -> Rows:
        """Return the distinct rows in rising order, without ``NO_ROW``."""
        if len(self.entries) > _SORTED_AT * len(rows):
            return distinct(rows)
        found = np.zeros(len(self.entries) + 1, np.bool_)
        found[rows] = True  # ``NO_ROW`` is the last
        return found[:-1].nonzero()[0]

    def neighbours(self, rows: Rows, reach: int) -> list[tuple[int, Rows]]:
        """Return the rows at each distance from ``-reach`` to ``reach`` in the session, except 0.

        Beyond the ends of a session the row is ``NO_ROW``.
        """
        found = []
        for sign, link in ((-1, self.before), (1, self.after)):
            at = rows
            for distance in range(1, reach + 1):
                at = np.where(at >= 0, link[at], NO_ROW)
                found.append((sign * distance, at))
        return found

    def check(self) -> None:
        """Verify every invariant. Reads everything; meant for tests."""
        for row in self._all_rows.array.tolist():
            self.at(row)
        used = {row for row, entry in enumerate(self.entries) if entry is not None}
        assert used == set(self._by_id.values()) == set(self._all_rows.array.tolist())
        assert used.isdisjoint(self._free)
        assert len(used) + len(self._free) == len(self.entries)
        assert used == set(self.allowed().tolist()) == set(np.flatnonzero(self._used).tolist())
        self._facets.check({row: self.at(row) for row in used})
        self._check_links(used)

    def _check_links(self, used: set[int]) -> None:
        for row in used:
            after, session = int(self.after[row]), self.at(row).session
            if after != NO_ROW:
                assert self.at(after).session == session, "a link leads to another session"
                assert int(self.before[after]) == row
                assert self.ages[after] > self.ages[row]
            elif session is not None:
                assert self._tails[session] == row

    def _describe(self, row: int, entry: Entry) -> None:
        """Store everything about an entry except its place in the session."""
        self.entries[row] = entry
        self._texts += _text_bytes(entry)
        self._facets.add(row, entry)
        self.times[row] = np.nan if entry.time is None else entry.time
        self.importances[row] = entry.importance

    def _all_in_order(self) -> Rows:
        if self._in_order is None:
            self._in_order = np.flatnonzero(self._used)
            self._in_order.flags.writeable = False  # it is shared with callers
        return self._in_order

    def _fulfils(self, condition: Condition) -> Mask:
        """Return for every row whether its entry satisfies a condition; false for empty rows."""
        if isinstance(condition, Only):
            return self.mask(self._chosen(condition))
        if isinstance(condition, Item):
            return self._has_item(condition)
        if isinstance(condition, Not):
            return self.used_rows() & ~self._fulfils(condition.part)
        if isinstance(condition, AllOf):
            found = self.used_rows().copy()
            for part in condition.parts:
                found &= self._fulfils(part)
            return found
        found = self.mask(NO_ROWS)
        for part in condition.parts:
            found |= self._fulfils(part)
        return found

    def _has_item(self, item: Item) -> Mask:
        if item.op == "exists" and not item.value:
            return self.used_rows() & ~self.mask(self._facets.with_key(item.key))
        return self.mask(self._facets.fitting(item))

    def _chosen(self, only: Only) -> Rows:
        wanted = [self._all_rows.array, *self._wanted(only)]
        wanted.sort(key=len)
        chosen, *others = wanted
        for other in others:
            if len(other) < len(self):  # otherwise it contains every row
                chosen = chosen[self.mask(other)[chosen]]
        if only.without:
            unwanted = [self.rows_of("mark", mark) for mark in only.without]
            chosen = chosen[~self.mask(np.concatenate(unwanted))[chosen]]
        if only.since is not None:
            chosen = chosen[self.times[chosen] >= _seconds(only.since)]
        if only.until is not None:
            chosen = chosen[self.times[chosen] < _seconds(only.until)]
        return chosen

    def _wanted(self, only: Only) -> list[Rows]:
        """Return, for each field that requires values, the rows with one of them."""
        found = [
            np.concatenate([NO_ROWS, *(self.rows_of(name, each) for each in names(wanted))])
            for name in NAMED
            if (wanted := getattr(only, name)) is not None
        ]
        if only.marks:
            found.append(np.unique(np.concatenate([self.rows_of("mark", m) for m in only.marks])))
        if only.ids is not None:
            rows = [self._by_id[each] for each in only.ids if each in self._by_id]
            found.append(np.array(rows, np.int64))
        items = {} if only.metadata is None else only.metadata
        return found + [self._facets.with_item(key, value) for key, value in items.items()]

    def _link(self, row: int, entry: Entry) -> None:
        self.before[row] = self.after[row] = self.sessions[row] = NO_ROW
        if entry.session is None:
            return
        number = self._session_numbers.setdefault(entry.session, len(self._session_numbers))
        self.sessions[row] = number
        tail = self._tails.get(entry.session, NO_ROW)
        if tail != NO_ROW:
            self.before[row], self.after[tail] = tail, row
        self._tails[entry.session] = row

    def _unlink(self, row: int, entry: Entry) -> None:
        before, after = int(self.before[row]), int(self.after[row])
        if before != NO_ROW:
            self.after[before] = after
        if after != NO_ROW:
            self.before[after] = before
        elif entry.session is not None:
            if before != NO_ROW:
                self._tails[entry.session] = before
            else:
                del self._tails[entry.session]

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        row = len(self.entries)
        self.entries.append(None)
        if row == len(self.times):
            for name in ("before", "after", "sessions", "times", "importances", "ages"):
                setattr(self, name, np.resize(getattr(self, name), 2 * row))
            self._used = np.concatenate([self._used, np.zeros(row, np.bool_)])
        return row


def distinct(rows: Rows) -> Rows:
    """Return the distinct rows in rising order, without ``NO_ROW``; sorting beats hashing here."""
    rows = np.sort(rows)
    keep = rows != NO_ROW
    keep[1:] &= rows[1:] != rows[:-1]
    kept: Rows = rows[keep]
    return kept


def encode_entry(entry: Entry) -> bytes:
    """Return an entry as bytes. Of its metadata lists become arrays, and what is opaque a map."""
    if entry.metadata is not None and not all(map(is_plain, entry.metadata.values())):
        known = {key: {} if value is OPAQUE else value for key, value in entry.metadata.items()}
        entry = change(entry, metadata=known)
    return _encode(entry)


def decode_entry(body: bytes) -> Entry:
    """Return the entry in bytes."""
    entry = _decode(body)
    if entry.metadata is None or all(map(is_plain, entry.metadata.values())):
        return entry
    return change(entry, metadata={key: _opened(value) for key, value in entry.metadata.items()})


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return OPAQUE
    return tuple(value) if isinstance(value, list) else value


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


def _roomy(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column with as much room as ``Catalogue`` keeps for its rows."""
    room = _LEAST
    while room < len(column):
        room *= 2
    made = np.zeros(room, column.dtype)
    made[: len(column)] = column
    return made


def _column(kind: DTypeLike) -> NDArray[Any]:
    return np.empty(_LEAST, kind)


def _seconds(moment: float) -> float:
    try:
        return float(moment)
    except OverflowError:  # an int that no float can hold
        return math.inf if moment > 0 else -math.inf


def _text_bytes(entry: Entry) -> int:
    """Return the bytes of an entry's text and metadata, without the insides of nested values."""
    known = {} if entry.metadata is None else entry.metadata
    return sum(map(sys.getsizeof, (entry.text, entry.title, known, *known.values())))
