"""``TwoListMemory``: a memory of two lists, the full chat history and the memory that is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ..loops import PerLoop
from ..message import Msg, thaw
from ..record import as_marks, check_id
from .arguments import (
    as_ids,
    as_messages,
    check_positions,
    checked_summary,
    ids_or_positions,
    optional_mark,
    wants_duplicates,
    with_fresh_ids,
)
from .base import MemoryBase, summary_message
from .marks import Marks
from .message_storage import InMemoryMessageStorage, MessageStorageBase, Snapshotting
from .pages import COMPRESSED, WINDOW_MARKS, MemoryPages

_ANY: frozenset[str] = frozenset()
_LEFT = frozenset({COMPRESSED})


class TwoListMemory(MemoryBase):
    """Stores every message in ``chat_history_storage`` and reads from ``memory_storage``.

    Both are in RAM by default. Marks and the summary belong to this object and its state; storages
    hold only messages. Storages are started when needed and never stopped here.
    """

    def __init__(
        self,
        chat_history_storage: MessageStorageBase | None = None,
        memory_storage: MessageStorageBase | None = None,
    ) -> None:
        super().__init__()
        self.chat_history_storage = _or_own(chat_history_storage)
        self.memory_storage = _or_own(memory_storage)
        self._marks = Marks()  # of messages in memory_storage
        self._writing = PerLoop(asyncio.Lock)  # held briefly by every change

    async def check_health(self) -> None:
        """Start the storages that are not ready."""
        for storage in (self.chat_history_storage, self.memory_storage):
            if not await storage.health():
                await storage.start()

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
    ) -> None:
        """Append messages to both lists; see ``MemoryBase.add``.

        A message that is in the history but not in the memory is added to the memory again.
        """
        messages, names = as_messages(memories), as_marks(marks)
        for msg in messages:
            check_id("message id", msg.id)
        as_own = wants_duplicates(allow_duplicates, skip_duplicated)
        await self.check_health()
        async with self._writing.get():
            await self._append(messages, names, as_own)

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
        *,
        recent_n: int | None = None,
        filter_func: Callable[[int, Msg], bool] | None = None,
    ) -> list[Msg]:
        """Return messages of the memory; see ``MemoryBase.get_memory``.

        Args:
            mark: Return only messages with this mark.
            exclude_mark: Leave out messages with this mark.
            prepend_summary: Return the summary first, if there is one.
            recent_n: Return only the last messages, if more than 0.
            filter_func: Called with position and message; returns whether to include the message.
        """
        wanted = optional_mark("mark", mark)
        unwanted = optional_mark("exclude_mark", exclude_mark)
        await self.check_health()
        found = [
            msg
            for place, msg in enumerate(await self.memory_storage.get())
            if self._marks.fit(msg, wanted, unwanted)
            and (filter_func is None or filter_func(place, msg))
        ]
        if recent_n is not None and recent_n > 0:
            found = found[-recent_n:]
        summary = self._compressed_summary if prepend_summary else ""
        return [summary_message(summary), *found] if summary else found

    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
        indices: int | Iterable[int] | None = None,
    ) -> int:
        """Remove messages from the memory; the history keeps them. See ``MemoryBase.delete``.

        ``indices`` is another name for ``index``.
        """
        ids, positions = ids_or_positions(msg_ids, index if indices is None else indices)
        await self.check_health()
        async with self._writing.get():
            there = await self.memory_storage.get()
            check_positions(positions, len(there))
            chosen = set(ids)
            gone = {place for place, msg in enumerate(there) if msg.id in chosen} | {*positions}
            if gone:
                await self.memory_storage.delete(sorted(gone))
                self._marks.forget(there[place].id for place in gone)
        return len(gone)

    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        """Add, remove or replace a mark; see ``MemoryBase.update_messages_mark``."""
        new, old = optional_mark("new_mark", new_mark), optional_mark("old_mark", old_mark)
        ids = None if msg_ids is None else frozenset(as_ids(msg_ids))
        if not new and not old:
            return 0
        await self.check_health()
        chosen = [
            msg.id
            for msg in await self.memory_storage.get()
            if (ids is None or msg.id in ids) and self._marks.fit(msg, old)
        ]
        return self._marks.change(chosen, add=new, remove=old - new)

    async def size(self) -> int:
        """Return the number of messages in the history, compressed or deleted ones included."""
        await self.check_health()
        return await self.chat_history_storage.size()

    async def clear(self) -> None:
        """Empty both lists and remove the summary."""
        await self.check_health()
        async with self._writing.get():
            await self.memory_storage.clear()
            await self.chat_history_storage.clear()
            self._marks = Marks()
            self._compressed_summary = ""

    async def all_messages(self) -> list[Msg]:
        """Return every message of the memory."""
        await self.check_health()
        return await self.memory_storage.get()

    async def read_pages(self) -> MemoryPages:
        """Return the page table for a context window."""
        shown = [msg for msg in await self.all_messages() if self._marks.fit(msg, _ANY, _LEFT)]
        marked = {
            mark: frozenset(msg.id for msg in shown if self._marks.fit(msg, frozenset({mark})))
            for mark in WINDOW_MARKS
        }
        return MemoryPages(shown, marked, self._compressed_summary, self._compressed_summary)

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        """Set the summary if it has not changed since ``seen``; return whether it was set."""
        if self._compressed_summary != seen.version:
            return False
        self._compressed_summary = checked_summary(summary)
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the summary, the marks and the lists in RAM, as plain data.

        Lists in other storages are not included.
        """
        state = {**super().state_dict(), "marks": self._marks.to_dict()}
        for name, storage in self._snapshotting().items():
            state[name] = [thaw(msg).to_dict() for msg in storage.snapshot()]
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state, all of it or nothing. Without ``strict``, a missing list stays as it is."""
        storages = self._snapshotting()
        missing = [name for name in storages if name not in state_dict]
        if strict and missing:
            raise KeyError(f"the state of a {type(self).__name__} has no {', '.join(missing)}")
        summary = checked_summary(state_dict.get("_compressed_summary", ""))
        marks = Marks.from_dict(state_dict.get("marks", {}))
        lists = {
            name: [Msg.from_dict(each) for each in state_dict[name]]
            for name in storages
            if name in state_dict
        }
        super().load_state_dict({**state_dict, "_compressed_summary": summary}, strict)
        self._marks = marks
        for name, messages in lists.items():
            storages[name].restore(messages)

    async def _append(self, messages: list[Msg], marks: frozenset[str], as_own: bool) -> None:
        """Add new messages, to the history first: if the second step fails, adding again helps."""
        ids = {msg.id for msg in messages}
        said = await self.chat_history_storage.known(ids)
        there = await self.memory_storage.known(ids)
        if as_own:
            messages = with_fresh_ids(messages, said | there)
        await self.chat_history_storage.add(_unknown(messages, said))
        await self.memory_storage.add(_unknown(messages, there))
        if marks:
            self._marks.change([msg.id for msg in messages], add=marks)

    async def _replace(self, messages: list[Msg]) -> None:
        """Replace the whole memory. The caller holds the lock."""
        await self.memory_storage.replace(messages)
        self._marks.keep({msg.id for msg in messages})

    def _snapshotting(self) -> dict[str, Snapshotting]:
        storages = {
            "chat_history_storage": self.chat_history_storage,
            "memory_storage": self.memory_storage,
        }
        return {name: each for name, each in storages.items() if isinstance(each, Snapshotting)}


def _or_own(storage: MessageStorageBase | None) -> MessageStorageBase:
    return InMemoryMessageStorage() if storage is None else storage


def _unknown(messages: list[Msg], known: Collection[str]) -> list[Msg]:
    """Return the messages with unknown ids, each once."""
    new: dict[str, Msg] = {}
    for msg in messages:
        if msg.id not in known:
            new.setdefault(msg.id, msg)
    return list(new.values())
