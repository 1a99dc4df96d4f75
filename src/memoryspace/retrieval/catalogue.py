"""``Catalogue``: the entries, each in a row, and what can be asked of many rows at once.

A row is a small number that both indexes know an entry by; it is given out again after a removal.
Columns are flat arrays by row. Rows of one session are linked in the order of adding.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .conditions import ANYTHING, AllOf, Condition, Item, Not
from .entries import NAMED, Entry, Only, names
from .facets import NOBODY, Facets, RowSet

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_ROW = -1
_LEAST = 256
_MANY = 32  # one in so many rows
_ENTRY_BYTES = 1000  # measured: an entry of no text, its rows in all columns, its profile
_SORTED_AT = 64  # one in so many: fewer than that are sorted sooner than marked


class Catalogue:
    """Entries by row and by id."""

    def __init__(self) -> None:
        self.entries: list[Entry | None] = []
        self._by_id: dict[str, int] = {}
        self._free: list[int] = []
        self._everyone = RowSet()
        self._facets = Facets()
        self._tails: dict[str, int] = {}  # session → its newest row
        self._added = 0
        self._texts = 0  # bytes of what they say
        self._in_order: Rows | None = None  # everyone, until somebody comes or goes
        self._allowed_last: tuple[str, Rows] | None = None  # until anything changes
        self._living: Mask = np.zeros(_LEAST, np.bool_)
        self.before: Rows = _column(np.int64)  # the row before it in its session
        self.behind: Rows = _column(np.int64)
        self.sessions: Rows = _column(np.int64)  # a number that rows of one session share
        self.times: NDArray[np.float64] = _column(np.float64)  # nan: it has none
        self.importances: NDArray[np.float64] = _column(np.float64)
        self.ages: Rows = _column(np.int64)  # grows with every adding
        self._session_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def nbytes(self) -> int:
        """About how many bytes the entries take, with what is known of each beside its words."""
        return self._texts + _ENTRY_BYTES * len(self)

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
        self._living[row], self._in_order, self._allowed_last = True, None, None
        self._describe(row, entry)
        self._link(row, entry)
        self._added += 1
        self.ages[row] = self._added
        return row

    def replace(self, row: int, entry: Entry) -> None:
        """Put an entry of the same id and session in the place of another: it stays its place."""
        old = self.at(row)
        assert (old.id, old.session) == (entry.id, entry.session), "that would be another one"
        self._facets.remove(row, old)
        self._texts -= _text_bytes(old)
        self._describe(row, entry)
        self._allowed_last = None

    def remove(self, row: int) -> None:
        """Take an entry out."""
        entry = self.at(row)
        self._unlink(row, entry)
        self._facets.remove(row, entry)
        self._texts -= _text_bytes(entry)
        self._everyone.discard(row)
        self._living[row], self._in_order, self._allowed_last = False, None, None
        del self._by_id[entry.id]
        self.entries[row] = None
        self._free.append(row)

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows that have one value of session, speaker, role, kind or mark."""
        return self._facets.rows_of(name, value)

    def has(self, name: str, value: Any) -> bool:
        """Tell whether any entry has this session, speaker, role, kind or mark."""
        return self._facets.has(name, value)

    def values_of(self, name: str) -> list[Any]:
        """Return all values that entries have of session, speaker, role, kind or mark."""
        return self._facets.values_of(name)

    def people(self) -> list[str]:
        """Return who ever said something. A tool that answered did not: its name is a topic."""
        return [name for name in self.values_of("speaker") if not self._is_tool(name)]

    def _is_tool(self, speaker: str) -> bool:
        rows = self.rows_of("speaker", speaker)
        return len(rows) > 0 and self.at(int(rows[0])).role == "tool"

    def ids(self) -> list[str]:
        """Return the ids of all entries, in no special order."""
        return list(self._by_id)

    def allowed(self, only: Condition = ANYTHING) -> Rows:
        """Return the rows that a search may return, rising.

        One search after another asks for the same, so the last answer is kept.
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
        if _MANY * len(chosen) > len(self):  # to sort them would take longer
            return np.flatnonzero(self.mask(chosen))
        return np.sort(chosen)

    def living(self) -> Mask:
        """Return for every row whether there is an entry in it, as a view for the moment."""
        return self._living[: len(self.entries)]

    def mask(self, rows: Rows) -> Mask:
        """Return for every row whether it is one of these."""
        found = np.zeros(len(self.entries), np.bool_)
        found[rows] = True
        return found

    def distinct(self, rows: Rows) -> Rows:
        """Return rows rising and each once, without ``NO_ROW``."""
        if len(self.entries) > _SORTED_AT * len(rows):
            return distinct(rows)
        found = np.zeros(len(self.entries) + 1, np.bool_)
        found[rows] = True  # ``NO_ROW`` is the last
        return found[:-1].nonzero()[0]

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
        self._facets.check({row: self.at(row) for row in living})
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
        self._texts += _text_bytes(entry)
        self._facets.add(row, entry)
        self.times[row] = np.nan if entry.time is None else entry.time
        self.importances[row] = entry.importance

    def _all_in_order(self) -> Rows:
        if self._in_order is None:
            self._in_order = np.flatnonzero(self._living)
            self._in_order.flags.writeable = False  # many will see it
        return self._in_order

    def _fulfils(self, condition: Condition) -> Mask:
        """Return for every row whether a condition is true of its entry; of no entry nothing is."""
        if isinstance(condition, Only):
            return self.mask(self._chosen(condition))
        if isinstance(condition, Item):
            return self._has_item(condition)
        if isinstance(condition, Not):
            return self.living() & ~self._fulfils(condition.part)
        if isinstance(condition, AllOf):
            found = self.living().copy()
            for part in condition.parts:
                found &= self._fulfils(part)
            return found
        found = self.mask(NOBODY)
        for part in condition.parts:
            found |= self._fulfils(part)
        return found

    def _has_item(self, item: Item) -> Mask:
        if item.op == "exists" and not item.value:
            return self.living() & ~self.mask(self._facets.with_key(item.key))
        return self.mask(self._facets.fitting(item))

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
        if only.since is not None:
            chosen = chosen[self.times[chosen] >= only.since]
        if only.until is not None:
            chosen = chosen[self.times[chosen] < only.until]
        return chosen

    def _wanted(self, only: Only) -> list[Rows]:
        """For each field that names values, the rows that have one of these."""
        found = [
            np.concatenate([NOBODY, *(self.rows_of(name, each) for each in names(wanted))])
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


def _column(kind: DTypeLike) -> NDArray[Any]:
    return np.empty(_LEAST, kind)


def _text_bytes(entry: Entry) -> int:
    """Return the bytes of what an entry says; of values within values only the outermost."""
    known = {} if entry.metadata is None else entry.metadata
    return sum(map(sys.getsizeof, (entry.text, entry.title, known, *known.values())))
