"""``FakeTablestoreClient``: the methods of ``AsyncOTSClient``, on dicts.

Row operations are strongly consistent. Searches are not: with ``index_lag``, a search sees a write
only after ``settle()``. ``fail()`` schedules failures. Every call yields to other tasks before and
after it runs, so that concurrent calls interleave.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from tablestore import (
    BatchGetRowResponse,
    BatchWriteRowResponse,
    BatchWriteRowResponseItem,
    CapacityUnit,
    Direction,
    OTSServiceError,
    Row,
    RowDataItem,
    SearchResponse,
)

from .index import SearchIndex
from .tables import Key, Table, holds, refused, size_of

MAX_ROWS_WRITTEN, MAX_ROWS_READ = 200, 100
MAX_BYTES_WRITTEN = 4 * 1024 * 1024
MAX_ROWS_IN_RANGE = 5000

_COST = CapacityUnit(0, 0)

T = TypeVar("T")


class _Failure:
    def __init__(self, error: Exception, on: str | None, skip: int, *, after: bool) -> None:
        self.error = error
        self.on = on
        self.skip = skip
        self.after = after


class FakeTablestoreClient:
    """A Tablestore instance without tables, for one event loop at a time.

    ``calls`` counts the calls by method. ``is_closed`` is set by ``close``; like the real client,
    it can be used again afterwards.

    Args:
        index_lag: Make searches see a write only after ``settle()``.
    """

    def __init__(self, *, index_lag: bool = False) -> None:
        self.index_lag = index_lag
        self.calls: Counter[str] = Counter()
        self.is_closed = False
        self.tables: dict[str, Table] = {}
        self._indexes: dict[str, dict[str, SearchIndex]] = {}
        self._unseen: list[tuple[str, Key]] = []
        self._failures: list[_Failure] = []
        self._failing_rows = self._passing_rows = 0

    def fail(
        self,
        times: int = 1,
        *,
        on: str | None = None,
        error: Exception | None = None,
        skip: int = 0,
        after: bool = False,
    ) -> None:
        """Make the next calls raise.

        Args:
            times: How many calls fail.
            on: The name of the method that fails; any by default.
            error: The error to raise; an unavailable server by default.
            skip: How many calls succeed first.
            after: Carry the call out, then raise: its answer is lost.
        """
        if error is None:
            error = refused("OTSServerUnavailable", "Server is not available.", 503)
        self._failures += [_Failure(error, on, skip, after=after) for _ in range(times)]

    def heal(self) -> None:
        """Cancel all scheduled failures."""
        self._failures.clear()
        self._failing_rows = self._passing_rows = 0

    def fail_rows(self, count: int, *, skip: int = 0) -> None:
        """Make ``count`` rows of the next batches fail, while the batches themselves succeed."""
        self._failing_rows, self._passing_rows = count, skip

    def settle(self, count: int | None = None) -> int:
        """Apply the first ``count`` pending writes, or all, to the search indexes."""
        seen = self._unseen[:count]
        del self._unseen[: len(seen)]
        for table, key in seen:
            for index in self._indexes.get(table, {}).values():
                index.see(key)
        return len(seen)

    async def list_table(self) -> list[str]:
        """Return the names of all tables."""
        await self._begin("list_table")
        return await self._end("list_table", list(self.tables))

    async def create_table(self, table_meta: Any, *_: Any, **__: Any) -> None:
        """Create a table."""
        await self._begin("create_table")
        if table_meta.table_name in self.tables:
            raise refused("OTSObjectAlreadyExist", "Requested table already exists.", 409)
        self.tables[table_meta.table_name] = Table(
            table_meta.table_name, table_meta.schema_of_primary_key
        )
        self._indexes[table_meta.table_name] = {}
        await self._end("create_table", None)

    async def describe_table(self, table_name: str) -> Any:
        """Return the schema of a table."""
        await self._begin("describe_table")
        table = self._table(table_name)
        meta = SimpleNamespace(table_name=table_name, schema_of_primary_key=table.schema)
        return await self._end(
            "describe_table", SimpleNamespace(table_meta=meta, secondary_indexes=[])
        )

    async def delete_table(self, table_name: str) -> None:
        """Delete a table, which must have no search index."""
        await self._begin("delete_table")
        self._table(table_name)
        if self._indexes[table_name]:
            raise refused("OTSParameterInvalid", "Delete the search indexes of the table first.")
        del self.tables[table_name], self._indexes[table_name]
        await self._end("delete_table", None)

    async def create_secondary_index(self, table_name: str, *_: Any) -> None:
        """Record a secondary index. It is never read."""
        await self._begin("create_secondary_index")
        self._table(table_name)
        await self._end("create_secondary_index", None)

    async def list_search_index(self, table_name: str | None = None) -> list[tuple[str, str]]:
        """Return the tables and the names of their indexes."""
        await self._begin("list_search_index")
        found = [
            (table, name)
            for table, indexes in self._indexes.items()
            for name in indexes
            if table_name in (None, table)
        ]
        return await self._end("list_search_index", found)

    async def create_search_index(self, table_name: str, index_name: str, index_meta: Any) -> None:
        """Create an index over the current rows of a table."""
        await self._begin("create_search_index")
        table = self._table(table_name)
        if index_name in self._indexes[table_name]:
            raise refused("OTSObjectAlreadyExist", "Requested index already exists.", 409)
        self._indexes[table_name][index_name] = SearchIndex(table, index_meta)
        await self._end("create_search_index", None)

    async def delete_search_index(self, table_name: str, index_name: str) -> None:
        """Delete an index."""
        await self._begin("delete_search_index")
        self._index(table_name, index_name)
        del self._indexes[table_name][index_name]
        await self._end("delete_search_index", None)

    async def put_row(
        self, table_name: str, row: Any, condition: Any = None, *_: Any
    ) -> tuple[Any, Any]:
        """Write a row."""
        await self._begin("put_row")
        table = self._table(table_name)
        self._written(table, table.put(row.primary_key, row.attribute_columns, condition))
        return await self._end("put_row", (_COST, None))

    async def update_row(
        self, table_name: str, row: Any, condition: Any, *_: Any
    ) -> tuple[Any, Any]:
        """Update columns of a row."""
        await self._begin("update_row")
        table = self._table(table_name)
        self._written(table, table.update(row.primary_key, row.attribute_columns, condition))
        return await self._end("update_row", (_COST, None))

    async def delete_row(
        self, table_name: str, row: Any = None, condition: Any = None, *_: Any
    ) -> tuple[Any, Any]:
        """Delete a row."""
        await self._begin("delete_row")
        table = self._table(table_name)
        primary_key = row.primary_key if isinstance(row, Row) else row
        self._written(table, table.delete(primary_key, condition))
        return await self._end("delete_row", (_COST, None))

    async def get_row(
        self,
        table_name: str,
        primary_key: Any,
        columns_to_get: Sequence[str] | None = None,
        column_filter: Any = None,
        *_: Any,
        **__: Any,
    ) -> tuple[Any, Any, Any]:
        """Return a row, or ``None``."""
        await self._begin("get_row")
        table = self._table(table_name)
        row = _read(table, table.key_of(primary_key), columns_to_get, column_filter)
        return await self._end("get_row", (_COST, row, None))

    async def batch_get_row(self, request: Any) -> BatchGetRowResponse:
        """Return several rows."""
        await self._begin("batch_get_row")
        if sum(len(item.primary_keys) for item in request.items.values()) > MAX_ROWS_READ:
            raise refused("OTSParameterInvalid", f"Rows count exceeds {MAX_ROWS_READ}.")
        found = {
            name: [self._item(name, key, item.columns_to_get) for key in item.primary_keys]
            for name, item in request.items.items()
        }
        return await self._end("batch_get_row", BatchGetRowResponse(found))

    async def batch_write_row(self, request: Any) -> BatchWriteRowResponse:
        """Write rows independently: some may fail while others succeed."""
        await self._begin("batch_write_row")
        items = [item for table in request.items.values() for item in table.row_items]
        if len(items) > MAX_ROWS_WRITTEN or sum(map(_size, items)) > MAX_BYTES_WRITTEN:
            raise refused("OTSParameterInvalid", "The batch is too large.")
        done = {
            name: [self._write_item(self._table(name), each) for each in table.row_items]
            for name, table in request.items.items()
        }
        return await self._end("batch_write_row", BatchWriteRowResponse(request, done))

    async def get_range(
        self,
        table_name: str,
        direction: str,
        inclusive_start_primary_key: Any,
        exclusive_end_primary_key: Any,
        columns_to_get: Sequence[str] | None = None,
        limit: int | None = None,
        column_filter: Any = None,
        **_: Any,
    ) -> tuple[Any, Any, list[Row], Any]:
        """Return rows in key order, and the key of the next page."""
        await self._begin("get_range")
        table = self._table(table_name)
        most = MAX_ROWS_IN_RANGE if limit is None else min(limit, MAX_ROWS_IN_RANGE)
        rows: list[Row] = []
        onward = None
        for key in table.between(
            inclusive_start_primary_key,
            exclusive_end_primary_key,
            is_forward=direction == Direction.FORWARD,
        ):
            if len(rows) == most:
                onward = table.primary_key(key)
                break
            row = _read(table, key, columns_to_get, column_filter)
            rows += [] if row is None else [row]
        return await self._end("get_range", (_COST, onward, rows, None))

    async def search(
        self,
        table_name: str,
        index_name: str,
        search_query: Any,
        columns_to_get: Any = None,
        routing_keys: Any = None,
        timeout_s: float | None = None,
    ) -> SearchResponse:
        """Return the rows that an index finds among those it has seen."""
        await self._begin("search")
        index = self._index(table_name, index_name)
        return await self._end("search", index.search(search_query, columns_to_get, routing_keys))

    async def close(self) -> None:
        """Record that the client was closed."""
        self.is_closed = True

    async def _begin(self, name: str) -> None:
        await asyncio.sleep(0)
        self.calls[name] += 1
        self._raise_ordered(name, after=False)

    async def _end(self, name: str, answer: T) -> T:
        await asyncio.sleep(0)
        self._raise_ordered(name, after=True)
        return answer

    def _raise_ordered(self, name: str, *, after: bool) -> None:
        """Count the call for every scheduled failure; raise the first that is due."""
        due = None
        for failure in self._failures:
            if failure.after is after and failure.on in (None, name):
                if failure.skip > 0:
                    failure.skip -= 1
                elif due is None:
                    due = failure
        if due is not None:
            self._failures.remove(due)
            raise due.error

    def _table(self, name: str) -> Table:
        if name not in self.tables:
            raise refused("OTSObjectNotExist", "Requested table does not exist.", 404)
        return self.tables[name]

    def _index(self, table: str, name: str) -> SearchIndex:
        self._table(table)
        if name not in self._indexes[table]:
            raise refused("OTSObjectNotExist", f"index [{name}] does not exist.", 404)
        return self._indexes[table][name]

    def _item(self, name: str, primary_key: Any, columns: Sequence[str] | None) -> RowDataItem:
        table = self._table(name)
        row = _read(table, table.key_of(primary_key), columns, None)
        if row is None:
            return RowDataItem(True, "", "", name, _COST, None, None)
        return RowDataItem(True, "", "", name, _COST, row.primary_key, row.attribute_columns)

    def _write_item(self, table: Table, item: Any) -> BatchWriteRowResponseItem:
        try:
            if self._passing_rows:
                self._passing_rows -= 1
            elif self._failing_rows:
                self._failing_rows -= 1
                raise refused("OTSServerBusy", "The server is busy.", 503)
            if item.type == "delete":
                key = table.delete(item.row.primary_key, item.condition)
            else:
                write = table.put if item.type == "put" else table.update
                key = write(item.row.primary_key, item.row.attribute_columns, item.condition)
        except OTSServiceError as error:
            return BatchWriteRowResponseItem(False, error.code, error.message, None, None)
        self._written(table, key)
        return BatchWriteRowResponseItem(True, "", "", _COST, None)

    def _written(self, table: Table, key: Key) -> None:
        if not self._indexes[table.name]:
            return
        self._unseen.append((table.name, key))
        if not self.index_lag:
            self.settle()


def _read(table: Table, key: Key, columns: Sequence[str] | None, column_filter: Any) -> Row | None:
    row = table.rows.get(key)
    if row is None or (column_filter is not None and not holds(column_filter, row)):
        return None
    shown = [(name, value, 0) for name, value in row.items() if not columns or name in columns]
    return Row(table.primary_key(key), shown)


def _size(item: Any) -> int:
    columns = item.row.attribute_columns
    if isinstance(columns, dict):
        columns = columns.get("put", ())
    return sum(size_of(column[1]) for column in columns if len(column) > 1) if columns else 0
