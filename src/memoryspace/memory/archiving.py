"""``StoreArchive``: keeps what left a context window beside the messages, in their store.

A content is a record; its holders are the record's marks, which a store adds and removes in one
step. So the archive is as durable, as shared and as erasable as the messages themselves.
"""
# ruff: noqa: D102  # Archive documents these methods, and help() shows it

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..context import Archive, Kept, Parcel
from ..context.archive.base import SHORTEST_HANDLE, checked_handle, described, unknown
from ..context.rendering import Kind
from ..errors import CorruptData, InvalidInput
from ..record import ARCHIVED, MAX_MARKS, RESERVED_PREFIX, Record, Scope, Where
from ..store import Store

T = TypeVar("T")

_PREFIX = RESERVED_PREFIX + "archive:"
_ALL = Where(kind=ARCHIVED)

_loop: ContextVar[asyncio.AbstractEventLoop] = ContextVar("archive_loop")


class StoreArchive(Archive):
    """Stores what left the context of one session in a store.

    The methods wait for the store, so they are called in threads, as by every window. The event
    loop that serves them is the one that ``reached_from_here`` was entered on.

    Args:
        store: Where the messages of the session are stored.
        scope: The user and the session.
    """

    def __init__(self, store: Store, scope: Scope) -> None:
        if scope.session is None:
            raise InvalidInput("an archive needs a session id, got a Scope without one")
        self._store = store
        self._scope = scope

    def __repr__(self) -> str:
        return f"StoreArchive({self._scope!r})"

    @staticmethod
    @contextmanager
    def reached_from_here() -> Iterator[None]:
        """Let threads that are started within this block use the running event loop."""
        token = _loop.set(asyncio.get_running_loop())
        try:
            yield
        finally:
            _loop.reset(token)

    def put(self, parcels: Sequence[Parcel]) -> builtins.list[Kept]:
        return _wait(self._put(parcels)) if parcels else []

    def get(self, handle: str) -> Parcel:
        found = _wait(self._find([checked_handle(handle)]))
        if not found:
            raise unknown(handle)
        return _parcel_of(found[0])

    def release(self, holders: Sequence[str]) -> builtins.list[str]:
        return _wait(self._release(list(dict.fromkeys(holders))))

    def holders(self) -> set[str]:
        return {mark for record in _wait(self._select(_ALL)) for mark in record.marks}

    def list(self) -> builtins.list[Kept]:
        return [_kept_of(record) for record in _wait(self._select(_ALL))]

    def holds(self, handle: str) -> bool:
        return bool(handle) and bool(_wait(self._find([handle])))

    def clear(self) -> None:
        _wait(self._store.delete(self._scope, _ALL))

    def check(self) -> None:
        for record in _wait(self._select(_ALL)):
            parcel = _parcel_of(record)
            is_same = self.digest(parcel.kind, parcel.data).startswith(_handle_of(record))
            if not (record.marks and is_same):
                raise CorruptData(f"archived content {record.id!r} has changed or has no holder")

    async def _put(self, parcels: Sequence[Parcel]) -> builtins.list[Kept]:
        contents = dict.fromkeys((parcel.kind, parcel.data) for parcel in parcels)
        placed = {content: await self._placed(*content) for content in contents}
        kept = [placed[parcel.kind, parcel.data] for parcel in parcels]
        by_handle: dict[str, Record] = {}
        for parcel, each in zip(parcels, kept, strict=True):
            marks = frozenset({parcel.holder})
            if each.handle in by_handle:
                marks |= by_handle[each.handle].marks
            by_handle[each.handle] = self._record(parcel, each, marks)
        await self._store.append(self._scope, [*by_handle.values()])
        return kept

    async def _placed(self, kind: Kind, data: str) -> Kept:
        """Return the listing of a content under the shortest handle that no other one has."""
        digest = self.digest(kind, data)
        for length in range(SHORTEST_HANDLE, len(digest) + 1):
            there = await self._find([digest[:length]])
            if not there or _content_of(there[0]) == (kind, data):
                return described(kind, data, digest[:length])
        raise CorruptData("two contents have the same digest; the second was not stored")

    async def _release(self, holders: builtins.list[str]) -> builtins.list[str]:
        """Remove holders; then delete the contents that have none left."""
        touched: set[str] = set()
        for start in range(0, len(holders), MAX_MARKS):
            marks = frozenset(holders[start : start + MAX_MARKS])
            there = await self._select(Where(kind=ARCHIVED, marks=marks))
            touched.update(record.id for record in there)
            await self._store.mark(self._scope, Where(kind=ARCHIVED, marks=marks), remove=marks)
        left = await self._select(Where(kind=ARCHIVED, ids=frozenset(touched)))
        bare = frozenset(record.id for record in left if not record.marks)
        gone = await self._store.delete(self._scope, Where(kind=ARCHIVED, ids=bare)) if bare else []
        return [each.removeprefix(_PREFIX) for each in gone]

    async def _find(self, handles: Sequence[str]) -> builtins.list[Record]:
        ids = frozenset(_PREFIX + handle for handle in handles)
        return await self._select(Where(kind=ARCHIVED, ids=ids))

    async def _select(self, where: Where) -> builtins.list[Record]:
        return await self._store.select(self._scope, where)

    def _record(self, parcel: Parcel, kept: Kept, marks: frozenset[str]) -> Record:
        value = {"kind": parcel.kind, "data": parcel.data}
        now = self._store.clock()
        return Record(
            _PREFIX + kept.handle, value, kind=ARCHIVED, marks=marks, created_at=now, pinned=True
        )


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Run work on the session's event loop and wait for it, in a thread."""
    loop = _loop.get(None)
    if loop is None:
        work.close()
        raise RuntimeError("a StoreArchive is used by a window within reached_from_here()")
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _handle_of(record: Record) -> str:
    return record.id.removeprefix(_PREFIX)


def _content_of(record: Record) -> tuple[Kind, str]:
    value = record.value
    kind, data = (value.get("kind"), value.get("data")) if isinstance(value, dict) else (None, None)
    if kind not in ("text", "blocks", "messages") or not isinstance(data, str):
        raise CorruptData(f"archived content {record.id!r} does not read back")
    return kind, data


def _parcel_of(record: Record) -> Parcel:
    kind, data = _content_of(record)
    return Parcel(data, kind, min(record.marks, default=""))


def _kept_of(record: Record) -> Kept:
    kind, data = _content_of(record)
    return described(kind, data, _handle_of(record))
