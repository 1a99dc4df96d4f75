"""``MemoryBase``: the contract of working memory.

A custom memory implements the four abstract methods; the others build on them. Marks are labels
beside a message, never inside it. The compressed summary replaces messages that were left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NoReturn

from ..lifecycle import Closing
from ..message import Msg
from ..module import StateModule
from .arguments import checked_summary, required_marks
from .pages import COMPRESSED, WINDOW_MARKS, MemoryPages

_UNUSED_MARK = "memoryspace:nobody"  # no message has it, so that only the summary is returned


class MemoryBase(StateModule, Closing, ABC):
    """Working memory: the messages of one conversation, in order, with marks and a summary.

    Its state holds the compressed summary under ``_compressed_summary``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._compressed_summary = ""
        self.register_state("_compressed_summary")

    @abstractmethod
    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
    ) -> None:
        """Append messages.

        A message whose id is already stored is not added again; its marks are added to the stored
        message.

        Args:
            memories: One message or a list of them. ``None`` adds nothing.
            marks: One mark or several, for all messages.
            allow_duplicates: Store a message whose id is known once more, with a fresh id.
            skip_duplicated: The opposite of ``allow_duplicates``, under its other name.

        Raises:
            TypeError: ``memories`` holds something other than ``Msg``.
            InvalidInput: An id or mark cannot be used, or the two options contradict each other.

        Example::

            await memory.add(Msg("Alice", "Plan a garden.", "user"), marks="goal")
        """

    @abstractmethod
    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
    ) -> int:
        """Remove messages.

        Args:
            msg_ids: Ids of messages; unknown ones are ignored. Ints are positions, as in AgentScope
                before 1.0.12.
            index: Positions, by name.

        Returns:
            How many messages were removed.

        Raises:
            IndexError: A position is out of range. Nothing is removed.
            TypeError: Both or neither of ``msg_ids`` and ``index`` were passed.
        """

    @abstractmethod
    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return messages in conversation order.

        Args:
            mark: Return only messages with this mark.
            exclude_mark: Leave out messages with this mark.
            prepend_summary: Return the summary first, as a new user message, if there is one.
                Filters do not apply to it.

        Returns:
            Messages that the caller may change; the stored ones stay as they are.
        """

    @abstractmethod
    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        """Add, remove or replace a mark.

        Args:
            new_mark: The mark to add, or ``None`` to remove ``old_mark``.
            old_mark: The mark to remove. Only messages that have it are changed.
            msg_ids: Change only messages with these ids.

        Returns:
            How many messages changed.

        Example::

            await memory.update_messages_mark("archived", "compressed")
        """

    async def delete_by_mark(self, mark: str | list[str]) -> int:
        """Remove the messages that have any of the marks; return how many there were."""
        ids: dict[str, None] = {}
        for each in sorted(required_marks(mark)):
            ids.update((msg.id, None) for msg in await self.get_memory(each, None, False))
        return await self.delete(list(ids)) if ids else 0

    async def size(self) -> int:
        """Return the number of messages, without the summary."""
        return len(await self.get_memory(prepend_summary=False))

    async def clear(self) -> None:
        """Remove all messages and the summary."""
        await self.delete([msg.id for msg in await self.get_memory(prepend_summary=False)])
        await self.update_compressed_summary("")

    async def update_compressed_summary(self, summary: str) -> None:
        """Set the summary that ``get_memory`` returns first; "" removes it."""
        self._compressed_summary = checked_summary(summary)

    async def all_messages(self) -> list[Msg]:
        """Return every message as it was added, without compaction or a summary."""
        return await self.get_memory(prepend_summary=False)

    async def read_pages(self) -> MemoryPages:
        """Return the page table for a context window.

        This uses the other methods; a memory that can read it in one step overrides it.
        """
        messages = await self.get_memory(exclude_mark=COMPRESSED, prepend_summary=False)
        marked = {
            mark: frozenset(msg.id for msg in await self.get_memory(mark, COMPRESSED, False))
            for mark in WINDOW_MARKS
        }
        summary = await self._read_summary()
        return MemoryPages(messages, marked, summary, summary)

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        """Set the summary if it has not changed since ``seen``; return whether it was set.

        Another process may write in between; a memory with compare-and-set overrides this.
        """
        if await self._read_summary() != seen.version:
            return False
        await self.update_compressed_summary(summary)
        return True

    async def _read_summary(self) -> str:
        found = await self.get_memory(mark=_UNUSED_MARK)
        return (found[0].get_text_content() or "") if found else ""

    async def retrieve(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: search is for long-term memory."""
        raise NotImplementedError(
            f"{type(self).__name__} does not support retrieve(); use get_memory()"
        )


def summary_message(summary: str) -> Msg:
    """Return a summary as a message: new each time and never stored."""
    return Msg("user", summary, "user")
