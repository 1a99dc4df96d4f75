"""Storages for the two message lists of ``MemoryWithCompress``.

``MessageStorageBase`` is the contract for custom storages. A storage in RAM may also implement
``Snapshotting``; its messages are then part of the memory's state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Protocol, runtime_checkable

from ..lifecycle import Running
from ..message import Msg, freeze
from ..message.sharing import FrozenMsg, Loan, lend

_LOAN = Loan()  # loans are not tracked here: each read lends anew


class MessageStorageBase(Running, ABC):
    """A list of messages. Messages are copied in, and the caller may change what is returned.

    Example::

        memory = MemoryWithCompress(chat_history_storage=MyStorage())
    """

    @abstractmethod
    async def health(self) -> bool:
        """Return whether the storage is ready; ``start`` makes it ready."""

    @abstractmethod
    async def add(self, messages: list[Msg]) -> None:
        """Append messages."""

    @abstractmethod
    async def delete(self, indices: int | Iterable[int] | None = None) -> None:
        """Remove the messages at these positions; unknown positions are ignored."""

    @abstractmethod
    async def clear(self) -> None:
        """Remove all messages."""

    @abstractmethod
    async def get(self, recent_n: int | None = None) -> list[Msg]:
        """Return the messages in order, or the last ``recent_n`` of them."""

    @abstractmethod
    async def replace(self, messages: list[Msg]) -> None:
        """Replace all messages by these, atomically."""

    async def known(self, ids: Collection[str]) -> set[str]:
        """Return which of the ids are stored. Override it if there is a faster way."""
        return {msg.id for msg in await self.get()} & set(ids)

    async def size(self) -> int:
        """Return the number of messages. Override it if there is a faster way."""
        return len(await self.get())


@runtime_checkable
class Snapshotting(Protocol):
    """A storage that can return and replace its messages synchronously."""

    def snapshot(self) -> list[Msg]:
        """Return the messages in order."""

    def restore(self, messages: list[Msg]) -> None:
        """Replace all messages by these."""


class InMemoryMessageStorage(MessageStorageBase):
    """A list of messages in this process. ``stop`` empties it."""

    def __init__(self) -> None:
        self._messages: list[FrozenMsg] = []
        self._ids: set[str] = set()
        self._is_started = False

    async def start(self) -> None:
        """Make the storage ready. Stored messages stay."""
        self._is_started = True

    async def stop(self) -> None:
        """Remove all messages and mark the storage as not ready."""
        self._hold([])
        self._is_started = False

    async def health(self) -> bool:
        """Return whether the storage was started."""
        return self._is_started

    async def add(self, messages: list[Msg]) -> None:
        """Append copies of the messages."""
        new = [freeze(msg) for msg in messages]
        self._messages += new
        self._ids.update(msg.id for msg in new)

    async def delete(self, indices: int | Iterable[int] | None = None) -> None:
        """Remove the messages at these positions."""
        given = [indices] if isinstance(indices, int) else indices
        gone = set(given) if given is not None else set()
        self._hold([msg for place, msg in enumerate(self._messages) if place not in gone])

    async def clear(self) -> None:
        """Remove all messages."""
        self._hold([])

    async def get(self, recent_n: int | None = None) -> list[Msg]:
        """Return the messages in order, or the last ``recent_n`` of them."""
        found = self._messages
        if recent_n is not None:
            found = found[-recent_n:] if recent_n > 0 else []
        return [lend(msg, _LOAN) for msg in found]

    async def replace(self, messages: list[Msg]) -> None:
        """Replace all messages by copies of these."""
        self.restore(messages)

    async def known(self, ids: Collection[str]) -> set[str]:
        """Return which of the ids are stored."""
        return self._ids.intersection(ids)

    async def size(self) -> int:
        """Return the number of messages."""
        return len(self._messages)

    def snapshot(self) -> list[Msg]:
        """Return the messages in order."""
        return [lend(msg, _LOAN) for msg in self._messages]

    def restore(self, messages: list[Msg]) -> None:
        """Replace all messages by copies of these."""
        self._hold([freeze(msg) for msg in messages])

    def _hold(self, messages: list[FrozenMsg]) -> None:
        self._messages = messages
        self._ids = {msg.id for msg in messages}
