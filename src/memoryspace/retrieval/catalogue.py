"""``Catalogue``: the entries, each in a row, and what can be asked of many rows at once.

A row is a small number that both indexes know an entry by; it is given out again after a removal.
Columns are flat arrays by row. Rows of one session are linked in the order of adding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .entries import EVERYTHING, Entry, Only, Plain, same

Rows = NDArray[np.int64]

NO_ROW = -1
_LEAST = 256


class RowSet:
    """Some rows: added and removed in constant time, read as one array in no special order."""

    def __init__(self) -> None:
        self._rows: Rows = np.empty(4, np.int64)
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, row: int) -> bool:
        return row in self._places

    def add(self, row: int) -> None:
        """Take in a row that is not here."""
        place = len(self._places)
        if place == len(self._rows):
            self._rows = np.resize(self._rows, 2 * place)
        self._rows[place] = row
        self._places[row] = place

    def discard(self, row: int) -> None:
        """Let a row go: the last one moves to its place."""
        place = self._places.pop(row)
        last = int(self._rows[len(self._places)])
        if last != row:
            self._rows[place] = last
            self._places[last] = place

    @property
    def array(self) -> Rows:
        """The rows, as a view for the moment."""
        return self._rows[: len(self._places)]


class Catalogue:
    """Entries by row and by id."""

    def __init__(self) -> None:
        self.entries: list[Entry | None] = []
        self._by_id: dict[str, int] = {}
        self._free: list[int] = []
        self._everyone = RowSet()
        self._facets: dict[str, dict[Any, RowSet]] = {}  # name → value → rows
        self._tails: dict[str, int] = {}  # session → its newest row
        self._added = 0
        self._in_order: Rows | None = None  # everyone, until somebody comes or goes
        self._living: NDArray[np.bool_] = np.zeros(_LEAST, np.bool_)
        self.before: Rows = _column(np.int64)  # the row before it in its session
        self.behind: Rows = _column(np.int64)
        self.sessions: Rows = _column(np.int64)  # a number that rows of one session share
        self.times: NDArray[np.float64] = _column(np.float64)  # nan: it has none
        self.importances: NDArray[np.float64] = _column(np.float64)
        self.ages: Rows = _column(np.int64)  # grows with every adding
        self._session_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._by_id

    def find(self, entry_id: str) -> int:
        """Return the row of an entry, or ``NO_ROW``."""
        return self._by_id.get(entry_id, NO_ROW)

    def at(self, row: int) -> Entry:
        """Return the entry in a row."""
        entry = self.entries[row]
        assert entry is not None, f"row {row} is empty"
        return entry

    def add(self, entry: Entry) -> int:
        """Give an entry whose id is new a row; return it."""
        row = self._new_row()
        self._by_id[entry.id] = row
        self._everyone.add(row)
        self._living[row], self._in_order = True, None
        self._describe(row, entry)
        self._link(row, entry)
        self._added += 1
        self.ages[row] = self._added
        return row

    def replace(self, row: int, entry: Entry) -> None:
        """Put an entry of the same id and session in the place of another: it stays its place."""
        old = self.at(row)
        assert (old.id, old.session) == (entry.id, entry.session), "that would be another one"
        self._forget_facets(row, old)
        self._describe(row, entry)

    def remove(self, row: int) -> None:
        """Take an entry out."""
        entry = self.at(row)
        self._unlink(row, entry)
        self._forget_facets(row, entry)
        self._everyone.discard(row)
        self._living[row], self._in_order = False, None
        del self._by_id[entry.id]
        self.entries[row] = None
        self._free.append(row)

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows that have one value of session, speaker, role, kind or mark."""
        members = self._facets.get(name, {}).get(value)
        return np.empty(0, np.int64) if members is None else members.array

    def has(self, name: str, value: Any) -> bool:
        """Tell whether any entry has this session, speaker, role, kind or mark."""
        return value in self._facets.get(name, {})

    def values_of(self, name: str) -> list[Any]:
        """Return all values that entries have of session, speaker, role, kind or mark."""
        return list(self._facets.get(name, {}))

    def allowed(self, only: Only = EVERYTHING) -> Rows:
        """Return the rows that a search may return, rising."""
        if only == EVERYTHING:
            return self._all_in_order()
        chosen = self._chosen(only)
        if only.since is not None:
            chosen = chosen[self.times[chosen] >= only.since]
        if only.until is not None:
            chosen = chosen[self.times[chosen] < only.until]
        return np.sort(chosen)

    def living(self) -> NDArray[np.bool_]:
        """Return for every row whether there is an entry in it, as a view for the moment."""
        return self._living[: len(self.entries)]

    def mask(self, rows: Rows) -> NDArray[np.bool_]:
        """Return for every row whether it is one of these."""
        found = np.zeros(len(self.entries), np.bool_)
        found[rows] = True
        return found

    def neighbours(self, rows: Rows, reach: int) -> list[tuple[int, Rows]]:
        """Return, for each distance from ``-reach`` to ``reach`` but 0, the rows at it.

        Where a session does not reach so far, the row is ``NO_ROW``.
        """
        found = []
        for sign, link in ((-1, self.before), (1, self.behind)):
            at = rows
            for distance in range(1, reach + 1):
                at = np.where(at >= 0, link[at], NO_ROW)
                found.append((sign * distance, at))
        return found

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        living = {row for row, entry in enumerate(self.entries) if entry is not None}
        assert living == set(self._by_id.values()) == set(self._everyone.array.tolist())
        assert living.isdisjoint(self._free)
        assert len(living) + len(self._free) == len(self.entries)
        assert living == set(self.allowed().tolist()) == set(np.flatnonzero(self._living).tolist())
        members: dict[tuple[str, Any], set[int]] = {}
        for row in living:
            for facet in _facets(self.at(row)):
                members.setdefault(facet, set()).add(row)
        assert members == {
            (name, value): set(each.array.tolist())
            for name, by_value in self._facets.items()
            for value, each in by_value.items()
        }
        self._check_links(living)

    def _check_links(self, living: set[int]) -> None:
        for row in living:
            behind, session = int(self.behind[row]), self.at(row).session
            if behind != NO_ROW:
                assert self.at(behind).session == session, "sessions are tangled"
                assert int(self.before[behind]) == row
                assert self.ages[behind] > self.ages[row]
            elif session is not None:
                assert self._tails[session] == row

    def _describe(self, row: int, entry: Entry) -> None:
        """Note everything about an entry but its place among the others."""
        self.entries[row] = entry
        for name, value in _facets(entry):
            by_value = self._facets.setdefault(name, {})
            if value not in by_value:
                by_value[value] = RowSet()
            by_value[value].add(row)
        self.times[row] = np.nan if entry.time is None else entry.time
        self.importances[row] = entry.importance

    def _forget_facets(self, row: int, entry: Entry) -> None:
        for name, value in _facets(entry):
            members = self._facets[name][value]
            members.discard(row)
            if not len(members):
                del self._facets[name][value]

    def _all_in_order(self) -> Rows:
        if self._in_order is None:
            self._in_order = np.flatnonzero(self._living)
            self._in_order.flags.writeable = False  # many will see it
        return self._in_order

    def _chosen(self, only: Only) -> Rows:
        wanted = [self._everyone.array, *self._wanted(only)]
        wanted.sort(key=len)
        chosen, *others = wanted
        for other in others:
            if len(other) < len(self):  # else it is everyone
                chosen = chosen[self.mask(other)[chosen]]
        if only.without:
            unwanted = [self.rows_of("mark", mark) for mark in only.without]
            chosen = chosen[~self.mask(np.concatenate(unwanted))[chosen]]
        return chosen

    def _wanted(self, only: Only) -> list[Rows]:
        """For each condition that names a value, the rows that fulfil it."""
        found = [
            self.rows_of(name, value)
            for name in ("session", "speaker", "role", "kind")
            if (value := getattr(only, name)) is not None
        ]
        if only.marks:
            found.append(np.unique(np.concatenate([self.rows_of("mark", m) for m in only.marks])))
        if only.ids is not None:
            rows = [self._by_id[each] for each in only.ids if each in self._by_id]
            found.append(np.array(rows, np.int64))
        items = {} if only.metadata is None else only.metadata
        return found + [self._with_item(key, value) for key, value in items.items()]

    def _with_item(self, key: str, value: Plain) -> Rows:
        """Rows with this very item; a value that is not itself (nan) is nobody's."""
        return self.rows_of("metadata", _item(key, value) if same(value, value) else None)

    def _link(self, row: int, entry: Entry) -> None:
        self.before[row] = self.behind[row] = self.sessions[row] = NO_ROW
        if entry.session is None:
            return
        number = self._session_numbers.setdefault(entry.session, len(self._session_numbers))
        self.sessions[row] = number
        tail = self._tails.get(entry.session, NO_ROW)
        if tail != NO_ROW:
            self.before[row], self.behind[tail] = tail, row
        self._tails[entry.session] = row

    def _unlink(self, row: int, entry: Entry) -> None:
        before, behind = int(self.before[row]), int(self.behind[row])
        if before != NO_ROW:
            self.behind[before] = behind
        if behind != NO_ROW:
            self.before[behind] = before
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
            for name in ("before", "behind", "sessions", "times", "importances", "ages"):
                setattr(self, name, np.resize(getattr(self, name), 2 * row))
            self._living = np.concatenate([self._living, np.zeros(row, np.bool_)])
        return row


def distinct(rows: Rows) -> Rows:
    """Return rows rising and each once, without ``NO_ROW``; sorting is quicker than hashing."""
    rows = np.sort(rows)
    keep = rows != NO_ROW
    keep[1:] &= rows[1:] != rows[:-1]
    kept: Rows = rows[keep]
    return kept


def _facets(entry: Entry) -> list[tuple[str, Any]]:
    """Everything that an entry can be chosen by, apart from its id and its time."""
    named = [(name, getattr(entry, name)) for name in ("session", "speaker", "role", "kind")]
    found = [facet for facet in named if facet[1] is not None]
    found += [("mark", mark) for mark in entry.marks]
    items: Mapping[str, Plain] = {} if entry.metadata is None else entry.metadata
    return found + [("metadata", _item(key, value)) for key, value in items.items()]


def _item(key: str, value: Plain) -> tuple[str, Plain, bool]:
    """An item as a key of a dict, in which 1 and ``True`` would be the same."""
    return key, value, isinstance(value, bool)


def _column(kind: DTypeLike) -> NDArray[Any]:
    return np.empty(_LEAST, kind)
