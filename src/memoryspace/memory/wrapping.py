"""``MemoryWrapper``: a base class for memories that change one aspect of another memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..message import Msg
from .base import MemoryBase
from .pages import MemoryPages


class MemoryWrapper(MemoryBase):
    """Delegates everything to ``memory`` and shares its state."""

    def __init__(self, memory: MemoryBase) -> None:
        super().__init__()
        self.memory = memory

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.memory!r})"

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
    ) -> None:
        """Append messages; see ``MemoryBase.add``."""
        await self.memory.add(
            memories, marks, allow_duplicates=allow_duplicates, skip_duplicated=skip_duplicated
        )

    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
    ) -> int:
        """Remove messages; see ``MemoryBase.delete``."""
        return await self.memory.delete(msg_ids, index=index)

    async def delete_by_mark(self, mark: str | list[str]) -> int:
        """Remove the messages that have any of the marks."""
        return await self.memory.delete_by_mark(mark)

    async def size(self) -> int:
        """Return the number of messages."""
        return await self.memory.size()

    async def clear(self) -> None:
        """Remove all messages and the summary."""
        await self.memory.clear()

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return messages in conversation order; see ``MemoryBase.get_memory``."""
        return await self.memory.get_memory(mark, exclude_mark, prepend_summary)

    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        """Add, remove or replace a mark; see ``MemoryBase.update_messages_mark``."""
        return await self.memory.update_messages_mark(new_mark, old_mark, msg_ids)

    async def update_compressed_summary(self, summary: str) -> None:
        """Set the summary."""
        await self.memory.update_compressed_summary(summary)

    async def all_messages(self) -> list[Msg]:
        """Return every message as it was added."""
        return await self.memory.all_messages()

    async def read_pages(self) -> MemoryPages:
        """Return the page table for a context window."""
        return await self.memory.read_pages()

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        """Set the summary if it has not changed since ``seen``; return whether it was set."""
        return await self.memory.swap_summary(seen, summary)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the memory."""
        return self.memory.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state of the memory."""
        self.memory.load_state_dict(state_dict, strict)

    async def close(self) -> None:
        """Close the memory."""
        await self.memory.close()
