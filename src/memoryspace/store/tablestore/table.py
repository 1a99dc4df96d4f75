"""``LogTable``: the table with conditional writes. It is not searchable.

Each user has a head (``stamp`` 0) and, above it, commits in parts. A key that no user can have
holds the counter for all numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, TypeAlias

from tablestore import (
    INF_MAX,
    INF_MIN,
    BatchWriteRowRequest,
    CapacityUnit,
    ComparatorType,
    Condition,
    DeleteRowItem,
    Direction,
    PutRowItem,
    ReservedThroughput,
    Row,
    RowExistenceExpectation,
    SingleColumnCondition,
    TableInBatchWriteRowItem,
    TableMeta,
    TableOptions,
)

from ...errors import StoreBusy, StoreError
from ...loops import PerLoop
from ...retrying import Attempts, Backoff
from .troubles import BUSY, already_exists, is_condition_failed, translated

Columns: TypeAlias = list[tuple[str, Any]]
PrimaryKey: TypeAlias = list[tuple[str, Any]]

COUNTER = "seq"  # the tenants of users start with "u:"
HEAD = 0

MAX_ROWS = 200  # in one request
MAX_BYTES = 3 * 1024 * 1024  # of 4 MiB; the rest is for names and numbers
PART_BYTES = 1024 * 1024
_COUNTING = Backoff(first=0.02, longest=0.16, attempts=10)
_WRITING = Backoff(first=0.02, longest=5.12, attempts=10, jitter=False)

_ANY = Condition(RowExistenceExpectation.IGNORE)
_NEW = Condition(RowExistenceExpectation.EXPECT_NOT_EXIST)


class LogTable:
    """Heads, commits and the counter, with conditional writes of single rows."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name
        self._counted = 0  # the counter as last read or written
        self._counter_lock = PerLoop(asyncio.Lock)

    async def create(self) -> None:
        """Create the table if it is missing."""
        with translated():
            if self._name in await self._client.list_table():
                return
        schema = [("tenant", "STRING"), ("stamp", "INTEGER"), ("part", "INTEGER")]
        unreserved = ReservedThroughput(CapacityUnit(0, 0))
        try:
            with translated():
                meta = TableMeta(self._name, schema)
                await self._client.create_table(meta, TableOptions(), unreserved)
        except StoreError as error:
            if not already_exists(error):
                raise

    async def reserve(self, count: int, above: int) -> int:
        """Reserve ``count`` consecutive numbers above ``above`` and return the first."""
        async with self._counter_lock.get():
            async for _ in Attempts(_COUNTING):
                first = max(self._counted, above) + 1
                if await self._set_counter(first + count - 1):
                    return first
                self._counted = await self._read_counter()
        raise StoreBusy("other writers kept changing the counter for new records; try again")

    async def head(self, tenant: str) -> tuple[int, int] | None:
        """Return the stamps of a user's last and first commit."""
        columns = await self._get(_key(tenant, HEAD))
        return None if columns is None else (columns["last"], columns["base"])

    async def move_head(self, tenant: str, seen: int, last: int, base: int) -> bool:
        """Set the last commit if ``seen`` (0 for no head) still is the last; return whether."""
        columns: Columns = [("last", last), ("base", base)]
        if seen == 0:
            return await self._write("put_row", Row(_key(tenant, HEAD), columns), _NEW)
        row = Row(_key(tenant, HEAD), {"put": columns})
        return await self._write("update_row", row, _still("last", seen))

    async def drop_head(self, tenant: str, seen: int) -> bool:
        """Delete a user's head if ``seen`` is still the last commit; return whether."""
        return await self._write("delete_row", Row(_key(tenant, HEAD)), _still("last", seen))

    async def put_commit(self, tenant: str, stamp: int, data: bytes) -> None:
        """Write a commit, which takes effect once a head names it."""
        slices = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
        rows = [
            Row(_key(tenant, stamp, part), [("data", bytearray(each)), ("parts", len(slices))])
            for part, each in enumerate(slices)
        ]
        await write_rows(self._client, self._name, [PutRowItem(row, _ANY) for row in rows])

    async def commits(self, tenant: str, first: int, end: int) -> dict[int, bytes]:
        """Return the complete commits from ``first`` up to ``end``, by stamp."""
        found: dict[int, list[bytes]] = {}
        whole: dict[int, int] = {}
        async for key, columns in self._range(_key(tenant, first), _key(tenant, end)):
            found.setdefault(key["stamp"], []).append(bytes(columns["data"]))
            whole[key["stamp"]] = columns["parts"]
        return {
            stamp: b"".join(parts) for stamp, parts in found.items() if len(parts) == whole[stamp]
        }

    async def remove_commits(self, tenant: str, first: int, end: int) -> int:
        """Delete the rows of the commits from ``first`` up to ``end``; return how many."""
        rows = [
            Row(list(key.items()))
            async for key, _ in self._range(_key(tenant, first), _key(tenant, end), ["parts"])
        ]
        await write_rows(self._client, self._name, [DeleteRowItem(row, _ANY) for row in rows])
        return len(rows)

    async def next_tenant(self, tenant: str) -> str | None:
        """Return the next tenant that has any row."""
        start: PrimaryKey = [("tenant", tenant), ("stamp", INF_MAX), ("part", INF_MAX)]
        end: PrimaryKey = [("tenant", INF_MAX), ("stamp", INF_MAX), ("part", INF_MAX)]
        with translated():
            _, _, rows, _ = await self._client.get_range(
                self._name, Direction.FORWARD, start, end, ["last", "parts"], 1
            )
        return str(dict(rows[0].primary_key)["tenant"]) if rows else None

    async def count_rows(self, tenant: str) -> int:
        """Return the number of a user's rows."""
        start: PrimaryKey = [("tenant", tenant), ("stamp", INF_MIN), ("part", INF_MIN)]
        end: PrimaryKey = [("tenant", tenant), ("stamp", INF_MAX), ("part", INF_MAX)]
        return sum([1 async for _ in self._range(start, end, ["parts", "last"])])

    async def _set_counter(self, value: int) -> bool:
        key = _key(COUNTER, HEAD)
        if self._counted == 0:
            done = await self._write("put_row", Row(key, [("n", value)]), _NEW)
        else:
            row = Row(key, {"put": [("n", value)]})
            done = await self._write("update_row", row, _still("n", self._counted))
        if done:
            self._counted = value
        return done

    async def _read_counter(self) -> int:
        columns = await self._get(_key(COUNTER, HEAD))
        return 0 if columns is None else int(columns["n"])

    async def _get(self, key: PrimaryKey) -> dict[str, Any] | None:
        with translated():
            _, row, _ = await self._client.get_row(self._name, key)
        return None if row is None else _named(row.attribute_columns)

    async def _write(self, verb: str, row: Row, condition: Condition) -> bool:
        try:
            with translated():
                await getattr(self._client, verb)(self._name, row, condition)
        except StoreError as error:
            if is_condition_failed(error):
                return False
            raise
        return True

    async def _range(
        self, start: PrimaryKey | None, end: PrimaryKey, columns: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any]]]:
        while start is not None:
            with translated():
                _, start, rows, _ = await self._client.get_range(
                    self._name, Direction.FORWARD, start, end, columns
                )
            for row in rows:
                yield dict(row.primary_key), _named(row.attribute_columns)


async def write_rows(client: Any, table: str, items: Sequence[Any]) -> None:
    """Write or delete rows in batches. A row may be written twice."""
    for batch in _batches(items):
        waiting = batch
        async for _ in Attempts(_WRITING):
            request = BatchWriteRowRequest()
            request.add(TableInBatchWriteRowItem(table, waiting))
            with translated():
                response = await client.batch_write_row(request)
            failed = [*response.get_put()[1], *response.get_delete()[1]]
            if not failed:
                break
            codes = {each.error_code for each in failed}
            if not codes <= BUSY:
                raise StoreError(f"Tablestore refused {len(failed)} rows: {sorted(codes)}")
            waiting = [waiting[each.index] for each in failed]
        else:
            raise StoreBusy(f"Tablestore stayed too busy to write {len(waiting)} rows; try again")


def _batches(items: Iterable[Any]) -> list[list[Any]]:
    batches: list[list[Any]] = []
    free = 0
    for item in items:
        size = sum(_size(value) for _, value in item.row.attribute_columns or ())
        if not batches or size > free or len(batches[-1]) == MAX_ROWS:
            batches.append([])
            free = MAX_BYTES
        batches[-1].append(item)
        free -= size
    return batches


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes | bytearray) else 8


def _key(tenant: str, stamp: int, part: int = 0) -> PrimaryKey:
    return [("tenant", tenant), ("stamp", stamp), ("part", part)]


def _named(columns: Iterable[Any]) -> dict[str, Any]:
    return {column[0]: column[1] for column in columns}


def _still(name: str, value: int) -> Condition:
    column = SingleColumnCondition(name, value, ComparatorType.EQUAL, False)
    return Condition(RowExistenceExpectation.EXPECT_EXIST, column)
