"""``Facets``: the rows of entries by what these can be chosen by, apart from id and time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .conditions import Item
from .entries import NAMED, Entry, Plain, Value, same

Rows = NDArray[np.int64]

NOBODY: Rows = np.empty(0, np.int64)

_A_LIST = ((), False)  # any list, compared as an empty one: what is in it is looked up


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


class Facets:
    """Rows by session, speaker, role, kind and mark, and by each item of the metadata.

    All lists of one key are one value; beside it, rows stand by each value that is in their list.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[Any, RowSet]] = {}  # name → value → rows

    def add(self, row: int, entry: Entry) -> None:
        """Note what an entry can be chosen by."""
        for name, value in _facets(entry):
            by_value = self._rows.setdefault(name, {})
            if value not in by_value:
                by_value[value] = RowSet()
            by_value[value].add(row)

    def remove(self, row: int, entry: Entry) -> None:
        """Forget it; a name or value that nobody has left is forgotten, too."""
        for name, value in _facets(entry):
            by_value = self._rows[name]
            by_value[value].discard(row)
            if not len(by_value[value]):
                del by_value[value]
            if not by_value:
                del self._rows[name]

    def rows_of(self, name: str, value: Any) -> Rows:
        """Return the rows that have one value."""
        members = self._rows.get(name, {}).get(value)
        return NOBODY if members is None else members.array

    def has(self, name: str, value: Any) -> bool:
        """Tell whether any row has a value."""
        return value in self._rows.get(name, {})

    def values_of(self, name: str) -> list[Any]:
        """Return all values of a name."""
        return list(self._rows.get(name, {}))

    def with_item(self, key: str, value: Plain) -> Rows:
        """Return the rows with this very item; a value that is not itself (nan) is nobody's."""
        return self.rows_of(_item(key), _value(value)) if same(value, value) else NOBODY

    def with_key(self, key: str) -> Rows:
        """Return the rows whose metadata have a key."""
        return _union([each.array for each in self._rows.get(_item(key), {}).values()])

    def fitting(self, item: Item) -> Rows:
        """Return the rows that have the item's key with a value that fits.

        Values to be equal to, and those within lists, are looked up; else each value that the key
        has is looked at.
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

    def check(self, entries: Mapping[int, Entry]) -> None:
        """Verify that these rows are here with what their entries have, and nothing else."""
        expected: dict[tuple[str, Any], set[int]] = {}
        for row, entry in entries.items():
            for facet in _facets(entry):
                expected.setdefault(facet, set()).add(row)
        assert expected == {
            (name, value): set(each.array.tolist())
            for name, by_value in self._rows.items()
            for value, each in by_value.items()
        }
        assert all(self._rows.values()), "a name that nobody has is kept"


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


def _item(key: str) -> str:
    """What an item of the metadata is called among the others, which have no space in them."""
    return f"metadata {key}"


def _within(key: str) -> str:
    """What the values in lists of an item are called."""
    return f"within {key}"


def _value(value: Value) -> tuple[Value, bool]:
    """A value as a key of a dict, in which 1 and ``True`` would be the same."""
    return value, isinstance(value, bool)


def _union(groups: list[Rows]) -> Rows:
    return np.concatenate(groups) if groups else NOBODY
