"""Where ``MemoryWithCompress`` keeps its two lists of messages.

``MessageStorageBase`` is the contract for storages of one's own. A storage whose messages are in
RAM may also be a ``Snapshotting`` one: then they are part of the memory's state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Protocol, runtime_checkable

from ..lifecycle import Running
from ..message import Msg, freeze
from ..message.sharing import FrozenMsg, Loan, lend

_LOAN = Loan()  # nobody asks whether a reader has kept something: each reading lends anew


class MessageStorageBase(Running, ABC):
    """A list of messages. Messages are copied in, and what is handed out may be changed."""

    @abstractmethod
    async def health(self) -> bool:
        """Tell whether it can be used now; ``start`` makes it so."""

    @abstractmethod
    async def add(self, messages: list[Msg]) -> None:
        """Append messages."""

    @abstractmethod
    async def delete(self, indices: int | Iterable[int] | None = None) -> None:
        """Remove the messages at these places; places where there is none are ignored."""

    @abstractmethod
    async def clear(self) -> None:
        """Remove all messages."""

    @abstractmethod
    async def get(self, recent_n: int | None = None) -> list[Msg]:
        """Return the messages in order, or the last ``recent_n`` of them."""

    @abstractmethod
    async def replace(self, messages: list[Msg]) -> None:
        """Put these messages in the place of all that are there, whole or not at all."""

    async def known(self, ids: Collection[str]) -> set[str]:
        """Return which of the ids messages here have; a storage may know it faster."""
        return {msg.id for msg in await self.get()} & set(ids)

    async def size(self) -> int:
        """Return how many messages there are; a storage may know it faster."""
        return len(await self.get())


@runtime_checkable
class Snapshotting(Protocol):
    """What a storage can do whose messages are at hand without waiting."""

    def snapshot(self) -> list[Msg]:
        """Return the messages in order."""

    def restore(self, messages: list[Msg]) -> None:
        """Put these messages in the place of all that are there."""


class InMemoryMessageStorage(MessageStorageBase):
    """A list in this process. ``stop`` empties it."""

    def __init__(self) -> None:
        self._messages: list[FrozenMsg] = []
        self._ids: set[str] = set()
        self._is_started = False

    async def start(self) -> None:
        """Make it ready; messages that are there stay."""
        self._is_started = True

    async def stop(self) -> None:
        """Forget all messages."""
        self._hold([])
        self._is_started = False

    async def health(self) -> bool:
        """Tell whether it was started."""
        return self._is_started

    async def add(self, messages: list[Msg]) -> None:
        """Append copies of the messages."""
        new = [freeze(msg) for msg in messages]
        self._messages += new
        self._ids.update(msg.id for msg in new)

    async def delete(self, indices: int | Iterable[int] | None = None) -> None:
        """Remove the messages at these places."""
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
        """Put copies of these messages in the place of all."""
        self.restore(messages)

    async def known(self, ids: Collection[str]) -> set[str]:
        """Return which of the ids messages here have."""
        return self._ids.intersection(ids)

    async def size(self) -> int:
        """Return how many messages there are."""
        return len(self._messages)

    def snapshot(self) -> list[Msg]:
        """Return the messages in order."""
        return [lend(msg, _LOAN) for msg in self._messages]

    def restore(self, messages: list[Msg]) -> None:
        """Put copies of these messages in the place of all."""
        self._hold([freeze(msg) for msg in messages])

    def _hold(self, messages: list[FrozenMsg]) -> None:
        self._messages = messages
        self._ids = {msg.id for msg in messages}
