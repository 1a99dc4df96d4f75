"""``Facets``: inverted index from the fields and metadata of entries to their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .conditions import Item
from .entries import NAMED, OPAQUE, Entry, Plain, Value, same

Rows = NDArray[np.int64]

NO_ROWS: Rows = np.empty(0, np.int64)

_A_LIST = ((), False)  # the value that stands for any list; its members are indexed apart


class RowSet:
    """A set of rows: constant-time add and remove, read as one array in no particular order."""

    def __init__(self) -> None:
        self._rows: Rows = np.empty(4, np.int64)
        self._count = 0
        self._places: dict[int, int] | None = {}  # ``None`` until a restored set is changed

    @classmethod
    def of(cls, rows: Rows) -> RowSet:
        """Return the set of some rows, each named once."""
        made = cls()
        made._rows = np.array(rows if len(rows) else [0], np.int64)
        made._count = len(rows)
        made._places = None
        return made

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: int) -> bool:
        return row in self._placed()

    def add(self, row: int) -> None:
        """Add a row that is not in the set."""
        place = self._count
        if place == len(self._rows):
            self._rows = np.resize(self._rows, 2 * place)
        self._placed()[row] = place
        self._rows[place] = row
        self._count += 1

    def discard(self, row: int) -> None:
        """Remove a row; the last one takes its place."""
        places = self._placed()
        place = places.pop(row)
        self._count -= 1
        last = int(self._rows[self._count])
        if last != row:
            self._rows[place] = last
            places[last] = place

    @property
    def array(self) -> Rows:
        """The rows, as a view that is valid until the next change."""
        return self._rows[: self._count]

    def _placed(self) -> dict[int, int]:
        if self._places is None:
            self._places = {row: place for place, row in enumerate(self.array.tolist())}
        return self._places


class Facets:
    """Rows by session, speaker, role, kind and mark, and by each item of the metadata.

    All lists of one key count as one value; their members are indexed under a key of their own.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[Any, RowSet]] = {}  # name → value → rows

    def add(self, row: int, entry: Entry) -> None:
        """Index the facets of an entry."""
        for name, value in _facets(entry):
            by_value = self._rows.setdefault(name, {})
            if value not in by_value:
                by_value[value] = RowSet()
            by_value[value].add(row)

    def remove(self, row: int, entry: Entry) -> None:
        """Remove the facets of an entry; drop names and values that no row has any more."""
        for name, value in _facets(entry):
            by_value = self._rows[name]
            by_value[value].discard(row)
            if not len(by_value[value]):
                del by_value[value]
            if not by_value:
                del self._rows[name]

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows with one value."""
        members = self._rows.get(name, {}).get(value)
        return NO_ROWS if members is None else members.array

    def has(self, name: str, value: Any) -> bool:
        """Return whether any row has a value."""
        return value in self._rows.get(name, {})

    def values_of(self, name: str) -> list[Any]:
        """Return all values of a name."""
        return list(self._rows.get(name, {}))

    def with_item(self, key: str, value: Plain) -> Rows:
        """Return the rows with an item equal to this; none for nan, which equals nothing."""
        return self.rows_of(_item(key), _value(value)) if same(value, value) else NO_ROWS

    def with_key(self, key: str) -> Rows:
        """Return the rows whose metadata has a key."""
        return _union([each.array for each in self._rows.get(_item(key), {}).values()])

    def fitting(self, item: Item) -> Rows:
        """Return the rows whose item satisfies a comparison.

        ``eq``, ``in`` and the members of lists are looked up; other operators test each distinct
        value of the key.
        """
        if item.op in ("eq", "in"):
            wanted = item.value if isinstance(item.value, tuple) else (item.value,)
            distinct = {_value(each): each for each in wanted}.values()
            return _union([self.with_item(item.key, each) for each in distinct])
        by_value = self._rows.get(_item(item.key), {})
        found = [each.array for (value, _), each in by_value.items() if item.fits(value)]
        if item.op == "contains":
            found.append(self.rows_of(_within(item.key), _value(item.value)))
        return _union(found)

    def export(self) -> tuple[list[tuple[str, list[Any]]], Rows]:
        """Return each name with its value as plain data and its number of rows; and all rows."""
        named = [
            (name, [*_plain(value), len(rows)])
            for name, by_value in self._rows.items()
            for value, rows in by_value.items()
        ]
        every = [rows.array for by_value in self._rows.values() for rows in by_value.values()]
        return named, _union(every)

    @classmethod
    def restore(cls, named: Sequence[tuple[str, list[Any]]], every: Rows) -> Facets:
        """Return the facets that were exported."""
        made, begin = cls(), 0
        for name, (form, value, count) in named:
            rows = RowSet.of(every[begin : begin + count])
            made._rows.setdefault(name, {})[_from_plain(form, value)] = rows
            begin += count
        return made

    def check(self, entries: Mapping[int, Entry]) -> None:
        """Verify that exactly the facets of these entries are indexed."""
        expected: dict[tuple[str, Any], set[int]] = {}
        for row, entry in entries.items():
            for facet in _facets(entry):
                expected.setdefault(facet, set()).add(row)
        assert expected == {
            (name, value): set(each.array.tolist())
            for name, by_value in self._rows.items()
            for value, each in by_value.items()
        }
        assert all(self._rows.values()), "a name that no row has is kept"


def _facets(entry: Entry) -> list[tuple[str, Any]]:
    named = [(name, getattr(entry, name)) for name in NAMED]
    found = [facet for facet in named if facet[1] is not None]
    found += [("mark", mark) for mark in entry.marks]
    if entry.metadata is None:
        return found
    for key, value in entry.metadata.items():
        if isinstance(value, tuple):
            found.append((_item(key), _A_LIST))
            found += [(_within(key), each) for each in set(map(_value, value))]
        else:
            found.append((_item(key), _value(value)))
    return found


def _plain(value: Any) -> tuple[str, Any]:
    if isinstance(value, str):
        return "name", value
    if value == _A_LIST:
        return "list", None
    if value[0] is OPAQUE:
        return "opaque", None
    return "value", value[0]


def _from_plain(form: str, value: Any) -> Any:
    if form == "name":
        return value
    if form == "list":
        return _A_LIST
    return _value(OPAQUE if form == "opaque" else value)


def _item(key: str) -> str:
    """Return the facet name of a metadata item; other names contain no space."""
    return f"metadata {key}"


def _within(key: str) -> str:
    """Return the facet name of the members of an item's lists."""
    return f"within {key}"


def _value(value: Value) -> tuple[Value, bool]:
    """Return a value as a dict key that tells 1 from ``True``."""
    return value, isinstance(value, bool)


def _union(groups: list[Rows]) -> Rows:
    return np.concatenate(groups) if groups else NO_ROWS
