"""``MemoryBase``: what an agent may ask of its working memory.

A memory of one's own implements the four abstract methods; the rest works on top of them. Marks
are labels beside a message, never inside it; the compressed summary stands for what was left out.
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

_NOBODYS = "memoryspace:nobody"  # a mark that no message has: what is left is the summary


class MemoryBase(StateModule, Closing, ABC):
    """Working memory. Its state holds the compressed summary under ``_compressed_summary``."""

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
        """Append messages, with marks if given. ``None`` adds nothing.

        A message whose id is stored already is not added again; marks given with it are added to
        the stored one. ``allow_duplicates=True`` (or ``skip_duplicated=False``, its other name)
        keeps such a message once more, as a message of its own with a fresh id.
        """

    @abstractmethod
    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
    ) -> int:
        """Remove messages by id and return how many there were; unknown ids are ignored.

        Whole numbers, or ``index``, are positions instead, as in AgentScope before 1.0.12; one
        that is out of range raises ``IndexError`` and nothing is removed.
        """

    @abstractmethod
    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return messages in conversation order: with ``mark`` and without ``exclude_mark``.

        A summary that is not empty comes first, as a new user message, whatever the filters.
        """

    @abstractmethod
    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        """Add, remove or change a mark and return how many messages changed.

        ``new_mark`` alone is added, ``old_mark`` alone removed; both change one into the other.
        ``old_mark`` and ``msg_ids`` narrow the choice to messages that have it, or are among them.
        """

    async def delete_by_mark(self, mark: str | list[str]) -> int:
        """Remove the messages that carry any of the marks and return how many there were."""
        ids: dict[str, None] = {}
        for each in sorted(required_marks(mark)):
            ids.update((msg.id, None) for msg in await self.get_memory(each, None, False))
        return await self.delete(list(ids)) if ids else 0

    async def size(self) -> int:
        """Return how many messages there are; the summary does not count."""
        return len(await self.get_memory(prepend_summary=False))

    async def clear(self) -> None:
        """Remove all messages, and the summary of those that were left out before."""
        await self.delete([msg.id for msg in await self.get_memory(prepend_summary=False)])
        await self.update_compressed_summary("")

    async def update_compressed_summary(self, summary: str) -> None:
        """Set the summary that ``get_memory`` puts first; an empty one removes it."""
        self._compressed_summary = checked_summary(summary)

    async def all_messages(self) -> list[Msg]:
        """Return every message as it was added, for those who look after the memory as a whole."""
        return await self.get_memory(prepend_summary=False)

    async def read_pages(self) -> MemoryPages:
        """Return what a context window has to know, with the other methods; a memory that can
        read it in one step does so."""
        messages = await self.get_memory(exclude_mark=COMPRESSED, prepend_summary=False)
        marked = {
            mark: frozenset(msg.id for msg in await self.get_memory(mark, COMPRESSED, False))
            for mark in WINDOW_MARKS
        }
        summary = await self._read_summary()
        return MemoryPages(messages, marked, summary, summary)

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        """Set the summary if it is still the one that was seen; tell whether it was.

        Here another process may come in between; a memory that can compare and set does so.
        """
        if await self._read_summary() != seen.version:
            return False
        await self.update_compressed_summary(summary)
        return True

    async def _read_summary(self) -> str:
        found = await self.get_memory(mark=_NOBODYS)
        return (found[0].get_text_content() or "") if found else ""

    async def retrieve(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not for working memory: searching is what long-term memory is for."""
        raise NotImplementedError(
            f"{type(self).__name__} has no retrieve(); read it with get_memory()"
        )


def summary_message(summary: str) -> Msg:
    """Return the message a summary is shown as: new each time and never stored."""
    return Msg("user", summary, "user")
