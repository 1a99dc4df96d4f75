"""``StoredMemory``: working memory over any store, with the same behaviour on every backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput
from ..events import EventStream
from ..message import Msg, thaw
from ..record import (
    MESSAGE,
    SUMMARY,
    SUMMARY_ID,
    Record,
    Scope,
    Where,
    as_marks,
)
from ..store import Store
from .arguments import (
    as_ids,
    as_messages,
    check_positions,
    checked_summary,
    ids_or_positions,
    optional_mark,
    record_of,
    required_marks,
    wants_duplicates,
    with_fresh_ids,
)
from .base import MemoryBase, summary_message
from .pages import COMPRESSED, WINDOW_MARKS, MemoryPages

_MESSAGES = Where(kind=MESSAGE)
SUMMARY_PLACE = Where(ids=frozenset({SUMMARY_ID}))
_RESIDENT = Where(without=frozenset({COMPRESSED}))


class StoredMemory(MemoryBase):
    """The messages of one session in a store, with their summary.

    The store is authoritative: ``_compressed_summary`` is only the summary as last read. A summary
    loaded with a state takes effect if the store has none.

    Args:
        store: Where the messages are stored.
        scope: The user and session they belong to.

    Raises:
        InvalidInput: ``scope`` has no session.

    Example::

        memory = StoredMemory(MyStore(), Scope("alice", "garden"))
    """

    def __init__(self, store: Store, scope: Scope) -> None:
        super().__init__()
        if scope.session is None:
            raise InvalidInput("working memory needs a session id, got a Scope without one")
        self._store = store
        self._scope = scope
        self._loaded_summary = ""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(user_id={self.user_id!r}, session_id={self.session_id!r})"

    @property
    def events(self) -> EventStream:
        """The event stream of the store."""
        return self._store.events

    @property
    def scope(self) -> Scope:
        """The user and session of this memory."""
        return self._scope

    @property
    def user_id(self) -> str:
        """The user the messages belong to."""
        return self._scope.user

    @property
    def session_id(self) -> str:
        """The session of the user."""
        assert self._scope.session is not None  # checked in __init__
        return self._scope.session

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
    ) -> None:
        messages = as_messages(memories)
        names = as_marks(marks)
        if not messages:
            return
        if wants_duplicates(allow_duplicates, skip_duplicated):
            await self._add_all(messages, names)
        else:
            await self._store.append(self._scope, self._records(messages, names))

    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
    ) -> int:
        ids, positions = ids_or_positions(msg_ids, index)
        if positions:
            ids = await self._ids_at(positions)
        if not ids:
            return 0
        return len(await self._store.delete(self._scope, Where(kind=MESSAGE, ids=frozenset(ids))))

    async def delete_by_mark(self, mark: str | list[str]) -> int:
        marks = required_marks(mark)
        if not marks:
            return 0
        return len(await self._store.delete(self._scope, Where(kind=MESSAGE, marks=marks)))

    async def size(self) -> int:
        return await self._store.count(self._scope, _MESSAGES)

    async def clear(self) -> None:
        await self._store.delete(self._scope)
        self._compressed_summary = self._loaded_summary = ""

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        where = Where(
            kind=MESSAGE,
            marks=optional_mark("mark", mark),
            without=optional_mark("exclude_mark", exclude_mark),
        )
        messages = await self._messages(where)
        if not prepend_summary:
            return messages
        summary = await self._summary()
        return [summary_message(summary), *messages] if summary else messages

    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        new, old = optional_mark("new_mark", new_mark), optional_mark("old_mark", old_mark)
        ids = None if msg_ids is None else frozenset(as_ids(msg_ids))
        if not new and not old:
            return 0
        where = Where(kind=MESSAGE, marks=old, ids=ids)
        return await self._store.mark(self._scope, where, add=new, remove=old - new)

    async def update_compressed_summary(self, summary: str) -> None:
        records = self._summary_records(checked_summary(summary))
        await self._store.replace(self._scope, SUMMARY_PLACE, records)
        self._compressed_summary, self._loaded_summary = summary, ""

    async def read_pages(self) -> MemoryPages:
        """Read messages, marks and summary in one step."""
        if self._loaded_summary:
            await self._summary()
        records = await self._store.select(self._scope, _RESIDENT)
        summary = next((each for each in records if each.id == SUMMARY_ID), None)
        self._compressed_summary = "" if summary is None else str(summary.value)
        messages = [_own(each.value) for each in records if isinstance(each.value, Msg)]
        marked = {
            mark: frozenset(each.id for each in records if mark in each.marks)
            for mark in WINDOW_MARKS
        }
        version = None if summary is None else summary.seq
        return MemoryPages(messages, marked, self._compressed_summary, version)

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        """Compare and set: of two callers that saw the same summary, only one succeeds."""
        records = self._summary_records(summary)
        if seen.version is None:
            added = await self._store.append(self._scope, records)
        else:
            where = Where(ids=SUMMARY_PLACE.ids, after=seen.version - 1, before=seen.version + 1)
            added = await self._store.replace(self._scope, where, records, if_found=True)
        if added:
            self._compressed_summary, self._loaded_summary = summary, ""
        return bool(added)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> None:
        """Load a state. Its summary takes effect if the store has none."""
        if "_compressed_summary" in state_dict:
            checked_summary(state_dict["_compressed_summary"])
        super().load_state_dict(state_dict, strict)
        self._loaded_summary = self._compressed_summary

    async def close(self) -> None:
        """Close the store. It reopens when the memory is used again."""
        await self._store.close()

    async def _messages(self, where: Where) -> list[Msg]:
        """Return messages the caller may change: freshly decoded, or copies."""
        values = await self._store.values(self._scope, where)
        return [_own(value) for value in values if isinstance(value, Msg)]

    async def _summary(self) -> str:
        """Return the stored summary; if there is none, store the one that was loaded."""
        stored = await self._store.select(self._scope, SUMMARY_PLACE)
        if stored:
            self._compressed_summary, self._loaded_summary = str(stored[0].value), ""
        elif self._loaded_summary:  # kept until read from the store: a caller may roll back
            await self._store.append(self._scope, self._summary_records(self._loaded_summary))
            self._compressed_summary = self._loaded_summary
        else:
            self._compressed_summary = ""
        return self._compressed_summary

    def _summary_records(self, summary: str) -> list[Record]:
        if not summary:
            return []
        return [
            Record(
                SUMMARY_ID,
                summary,
                text=summary,
                kind=SUMMARY,
                created_at=self._store.clock(),
                pinned=True,
            )
        ]

    async def _ids_at(self, positions: list[int]) -> list[str]:
        records = await self._store.select(self._scope, _MESSAGES)
        check_positions(positions, len(records))
        return [records[position].id for position in positions]

    async def _add_all(self, messages: list[Msg], marks: frozenset[str]) -> None:
        """Add every message, under a fresh id where its own is taken."""
        ids = frozenset(msg.id for msg in messages)
        known = await self._store.select(self._scope, Where(ids=ids))
        messages = with_fresh_ids(messages, {record.id for record in known})
        while messages:
            added = set(await self._store.append(self._scope, self._records(messages, marks)))
            left = [msg for msg in messages if msg.id not in added]  # another writer was first
            messages = with_fresh_ids(left, {msg.id for msg in left})

    def _records(self, messages: list[Msg], marks: frozenset[str]) -> list[Record]:
        now = self._store.clock()
        return [record_of(msg, marks, now) for msg in messages]


def _own(msg: Msg) -> Msg:
    return msg if type(msg) is Msg else thaw(msg)
