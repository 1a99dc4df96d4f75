"""The wide-column tables of the fake Tablestore: rows in key order, and conditional writes.

They refuse what the service refuses: keys and columns that are too long, unsupported types, and
rows that do not fit the table.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tablestore import (
    INF_MAX,
    INF_MIN,
    ColumnConditionType,
    ComparatorType,
    LogicalOperator,
    OTSServiceError,
    RowExistenceExpectation,
)

MAX_KEY_BYTES = 1024
MAX_COLUMN_BYTES = 2 * 1024 * 1024

Columns: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[tuple[int, Any], ...]  # per part: minimum, value or maximum, in sort order

_COMPARE: Mapping[int, Callable[[Any, Any], bool]] = {
    ComparatorType.EQUAL: operator.eq,
    ComparatorType.NOT_EQUAL: operator.ne,
    ComparatorType.GREATER_THAN: operator.gt,
    ComparatorType.GREATER_EQUAL: operator.ge,
    ComparatorType.LESS_THAN: operator.lt,
    ComparatorType.LESS_EQUAL: operator.le,
}


def refused(code: str, message: str, status: int = 400) -> OTSServiceError:
    """Return the error that the service would raise."""
    return OTSServiceError(status, code, message, "fake-request")


class Table:
    """One table: rows of columns, in the order of the primary keys."""

    def __init__(self, name: str, schema: Sequence[tuple[str, str]]) -> None:
        self.name = name
        self.schema = list(schema)
        self.rows: dict[Key, Columns] = {}
        self._order: list[Key] = []

    def put(self, primary_key: Any, columns: Any, condition: Any) -> Key:
        """Write a row, replacing an existing one."""
        key = self.key_of(primary_key)
        self.check(key, condition)
        return self._write(key, columns_of(columns))

    def update(self, primary_key: Any, changes: Mapping[str, Any], condition: Any) -> Key:
        """Update columns of a row; create the row if it does not exist."""
        key = self.key_of(primary_key)
        self.check(key, condition)
        new = {**self.rows.get(key, {}), **columns_of(changes.get("put", ()))}
        for kind in ("delete", "delete_all"):
            for column in changes.get(kind, ()):
                new.pop(column if isinstance(column, str) else column[0], None)
        return self._write(key, new)

    def delete(self, primary_key: Any, condition: Any) -> Key:
        """Delete a row if it exists."""
        key = self.key_of(primary_key)
        self.check(key, condition)
        if self.rows.pop(key, None) is not None:
            del self._order[bisect_left(self._order, key)]
        return key

    def between(self, start: Any, end: Any, *, is_forward: bool) -> Iterator[Key]:
        """Yield the keys from ``start`` up (or down) to ``end``, which is excluded."""
        first, last = self.key_of(start, bound=True), self.key_of(end, bound=True)
        if is_forward:
            yield from self._order[bisect_left(self._order, first) : bisect_left(self._order, last)]
            return
        low, high = bisect_left(self._order, last), bisect_left(self._order, first)
        high += high < len(self._order) and self._order[high] == first
        low += low < len(self._order) and self._order[low] == last
        yield from reversed(self._order[low:high])

    def key_of(self, primary_key: Any, *, bound: bool = False) -> Key:
        """Return a primary key in its sortable form; raise if it is invalid."""
        if [name for name, _ in primary_key] != [name for name, _ in self.schema]:
            raise refused("OTSInvalidPK", "Validate PK name fail.")
        parts = []
        for (_, value), (_, kind) in zip(primary_key, self.schema, strict=True):
            if value is INF_MIN or value is INF_MAX:
                if not bound:
                    raise refused("OTSParameterInvalid", "INF_MIN and INF_MAX are for ranges.")
                parts.append((0 if value is INF_MIN else 2, None))
            else:
                parts.append((1, _key_value(value, kind)))
        return tuple(parts)

    def primary_key(self, key: Key) -> list[tuple[str, Any]]:
        """Return a key in the form that the client returns."""
        return [(name, part[1]) for (name, _), part in zip(self.schema, key, strict=True)]

    def check(self, key: Key, condition: Any) -> None:
        """Raise if the condition of a write does not hold."""
        if condition is None:
            return
        expected, row = condition.get_row_existence_expectation(), self.rows.get(key)
        is_wrong = (expected == RowExistenceExpectation.EXPECT_EXIST and row is None) or (
            expected == RowExistenceExpectation.EXPECT_NOT_EXIST and row is not None
        )
        column = condition.get_column_condition()
        if is_wrong or (column is not None and not holds(column, {} if row is None else row)):
            raise refused("OTSConditionCheckFail", "Condition check failed.", 403)

    def _write(self, key: Key, columns: Columns) -> Key:
        if key not in self.rows:
            insort(self._order, key)
        self.rows[key] = columns
        return key


def holds(condition: Any, row: Columns) -> bool:
    """Return whether a condition on columns holds for a row."""
    if condition.get_type() == ColumnConditionType.COMPOSITE_COLUMN_CONDITION:
        parts = [holds(each, row) for each in condition.sub_conditions]
        if condition.get_combinator() == LogicalOperator.NOT:
            return not parts[0]
        return all(parts) if condition.get_combinator() == LogicalOperator.AND else any(parts)
    if condition.get_column_name() not in row:
        return bool(condition.get_pass_if_missing())
    compare = _COMPARE[condition.get_comparator()]
    return compare(row[condition.get_column_name()], condition.get_column_value())


def columns_of(columns: Any) -> Columns:
    """Return columns as a row stores them; raise if they are invalid."""
    found = {}
    for name, value, *_ in columns if columns is not None else ():
        found[name] = value.decode() if isinstance(value, bytes) else value
        if not isinstance(value, str | int | float | bytes | bytearray):
            raise refused("OTSParameterInvalid", f"Unsupported column type: {type(value)}")
        if not name or size_of(value) > MAX_COLUMN_BYTES:
            raise refused("OTSParameterInvalid", f"The length of column '{name}' exceeds")
    return found


def size_of(value: Any) -> int:
    """Return the size of a value in bytes."""
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes | bytearray) else 8


def _key_value(value: Any, kind: str) -> Any:
    if kind == "INTEGER":
        if not isinstance(value, int) or isinstance(value, bool):
            raise refused("OTSInvalidPK", "Validate PK type fail.")
        return value
    text = value.decode() if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise refused("OTSInvalidPK", "Validate PK type fail.")
    if len(text.encode()) > MAX_KEY_BYTES:
        raise refused("OTSParameterInvalid", "The length of primary key column exceeds 1024.")
    return text
