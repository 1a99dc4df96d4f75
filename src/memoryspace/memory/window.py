"""``ContextWindow``: reads any working memory within a token budget.

The memory keeps everything; the window decides what is resident. The page table consists of marks
on the messages and the memory's summary, so it is stored wherever the messages are.

Writes are ordered: first the archive stores what leaves, then the summary replaces it, then marks
take it out of the window. A crash in between shows something twice and loses nothing. If two
windows compact at once, the later one fails to set the summary and reads again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeAlias

from ..context import Compacted, Compactor, Limits, LossReport, PageReader, Pages
from ..context.limits import big_result
from ..context.summaries.summary import is_summary
from ..errors import InvalidInput, MemorySpaceError, UnknownHandle
from ..loops import PerLoop, finish
from ..message import Msg
from ..operations import Operation, operation
from ..tool import ToolResponse
from .arguments import optional_mark
from .base import MemoryBase
from .pages import COMPRESSED, HINT, OFFLOADED, PINNED, MemoryPages
from .releasing import release_deleted
from .stored import StoredMemory
from .window_snapshot import WindowSnapshot
from .wrapping import MemoryWrapper

__all__ = ["COMPRESSED", "HINT", "OFFLOADED", "PINNED", "ContextWindow"]

logger = logging.getLogger(__name__)

_ATTEMPTS = 4  # at compacting while other windows do so too
_MAX_SNAPSHOTS = 8  # one per combination of marks


class ContextWindow:
    """Reads a memory within a token budget, compacting it when needed.

    Messages marked ``pinned`` stay resident; those marked ``hint`` leave first. The window marks
    messages that left as ``compressed``, and those shown in part as ``offloaded``. Remove such a
    mark to show the message again. The window never deletes messages.

    Args:
        memory: The memory to read.
        compactor: A compactor, limits, or just the budget in tokens.

    Raises:
        InvalidInput: ``compactor`` is none of these.

    Example::

        window = ContextWindow(memory, 8000)
        messages = await window.messages()
    """

    def __init__(self, memory: MemoryBase, compactor: Compactor | Limits | int) -> None:
        self.memory = memory
        self.compactor = _as_compactor(compactor)
        self._report: LossReport | None = None
        self._snapshots: dict[_Filter, WindowSnapshot] = {}

    def __repr__(self) -> str:
        return f"ContextWindow({self.memory!r}, budget={self.compactor.limits.budget})"

    @property
    def report(self) -> LossReport | None:
        """The report of the last compaction; None before the first."""
        return self._report

    async def messages(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        *,
        prepend_summary: bool = True,
        reserved: int = 0,
        force: bool = False,
    ) -> list[Msg]:
        """Return the resident messages, the summary first.

        Args:
            mark: Consider only messages with this mark.
            exclude_mark: Leave out messages with this mark.
            prepend_summary: Whether to include the summary.
            reserved: Tokens of the budget needed by the rest of the prompt.
            force: Compact even if the messages fit.

        Returns:
            Messages that the caller may change.
        """
        wanted = optional_mark("mark", mark), optional_mark("exclude_mark", exclude_mark)
        with self._operation("context.messages") as done:
            async with _lock_of(self.memory):
                table = await self._read(wanted)
                shown = await self._shown(wanted, table, reserved, force)
            done.count(given=len(table.messages), returned=len(shown))
        return shown if prepend_summary else [msg for msg in shown if not is_summary(msg)]

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return the archived content of a handle, or the message with this id.

        Raises:
            UnknownHandle: There is neither.
        """
        with self._operation("context.expand"):
            try:
                return await self.compactor.expand(handle)
            except UnknownHandle:
                found = [msg for msg in await self.memory.all_messages() if msg.id == handle]
                if not found:
                    raise
                return found

    @property
    def tools(self) -> list[Callable[..., Awaitable[ToolResponse]]]:
        """The tools ``read_memory`` and ``search_memory``, to give to a model.

        They reach this window's archive and the messages of its memory that are not resident,
        nothing else.
        """
        return PageReader(self.compactor.archive, self._left).tools

    async def release(self) -> list[str]:
        """Remove archived content of messages that were deleted; return its handles.

        Every compaction does this too. Call it after deleting what must not be found any more.
        """
        return await release_deleted(self.compactor.archive, self.memory)

    async def _left(self) -> list[Msg]:
        return await self.memory.get_memory(mark=COMPRESSED, prepend_summary=False)

    def _operation(self, name: str) -> Operation:
        memory = self.memory
        while isinstance(memory, MemoryWrapper):
            memory = memory.memory
        if not isinstance(memory, StoredMemory):
            return operation(name, on=type(memory).__name__)
        on, scope = type(memory).__name__, memory.scope
        return operation(name, on=on, scope=scope, events=memory.events)

    async def _shown(
        self, wanted: _Filter, table: MemoryPages, reserved: int, force: bool
    ) -> list[Msg]:
        snapshot = self._snapshots.get(wanted)
        if (
            snapshot is not None
            and not force
            and await self._still_shows(snapshot, table, reserved)
        ):
            return snapshot.messages(table)
        return await self._look(wanted, table, reserved, force)

    async def _still_shows(
        self, snapshot: WindowSnapshot, table: MemoryPages, reserved: int
    ) -> bool:
        """Return whether a snapshot is valid, growing it by appended messages if it can."""
        if snapshot.holds(table, reserved):
            return True
        new = snapshot.tail(table)
        if new is None:
            return False
        tokens = sum(await self.compactor.meter.costs(new))
        if not snapshot.fits(tokens, reserved):
            return False
        snapshot.grow(table, tokens)
        return True

    async def _look(
        self, wanted: _Filter, table: MemoryPages, reserved: int, force: bool
    ) -> list[Msg]:
        """Compact and read again until nothing leaves: other windows would show the same."""
        first = done = await self._compacted(table, reserved, force)
        self._note(first.report, is_first=True)
        for _ in range(_ATTEMPTS):
            if not done.report.losses:
                self._remember(
                    wanted, WindowSnapshot(table, done, reserved, self.compactor.limits.budget)
                )
                break
            await finish(self._settle(table, done))
            table = await self._read(wanted)
            done = await self._compacted(table, reserved, force=False)
            self._note(done.report)
        if first.report.losses:
            await self._tidy()
        return done.messages

    def _remember(self, wanted: _Filter, snapshot: WindowSnapshot) -> None:
        self._snapshots.pop(wanted, None)
        while len(self._snapshots) >= _MAX_SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        self._snapshots[wanted] = snapshot

    async def _tidy(self) -> None:
        """Release deleted content. A failure is logged and does not fail the read."""
        try:
            await self.release()
        except (OSError, MemorySpaceError) as error:
            kind = type(error).__name__
            logger.warning("could not remove deleted messages from the archive yet: %s", kind)

    async def _read(self, wanted: _Filter) -> MemoryPages:
        """Return the page table of the wanted messages."""
        table = await self.memory.read_pages()
        messages = table.messages
        for mark in wanted[0]:
            chosen = await self._marked(table, mark)
            messages = [msg for msg in messages if msg.id in chosen]
        for mark in wanted[1] - {COMPRESSED}:
            chosen = await self._marked(table, mark)
            messages = [msg for msg in messages if msg.id not in chosen]
        return table._replace(messages=messages)

    async def _marked(self, table: MemoryPages, mark: str) -> Collection[str]:
        known = table.marked.get(mark)
        return _ids(await self.memory.get_memory(mark, None, False)) if known is None else known

    async def _compacted(self, table: MemoryPages, reserved: int, force: bool) -> Compacted:
        return await self.compactor.compact(
            table.messages,
            pages=Pages(offloaded=table.marked[OFFLOADED], summary=table.summary),
            pinned=table.marked[PINNED],
            hints=table.marked[HINT],
            reserved=reserved,
            force=force,
        )

    async def _settle(self, table: MemoryPages, done: Compacted) -> None:
        """Store what a compaction decided, unless another window was first."""
        pages = done.pages
        is_new = pages.summary != table.summary
        if is_new and not await self.memory.swap_summary(table, pages.summary):
            return
        left = (pages.summarised | pages.dropped) - _divided(done.messages)
        await self._mark(OFFLOADED, table, pages.offloaded - table.marked[OFFLOADED])
        await self._mark(COMPRESSED, table, left)

    async def _mark(self, mark: str, table: MemoryPages, ids: Collection[str]) -> None:
        chosen = [msg.id for msg in table.messages if msg.id in ids]
        if chosen:
            await self.memory.update_messages_mark(mark, msg_ids=chosen)

    def _note(self, report: LossReport, is_first: bool = False) -> None:
        """Keep the report if something left, or if the first look found a problem."""
        tells = report.troubles or report.excess or report.repairs
        if report.losses or (is_first and tells):
            self._report = report


_Filter: TypeAlias = tuple[frozenset[str], frozenset[str]]

_locks: weakref.WeakKeyDictionary[MemoryBase, PerLoop[asyncio.Lock]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _lock_of(memory: MemoryBase) -> asyncio.Lock:
    """Return the lock shared by all windows on a memory: only one of them compacts."""
    with _making:
        return _locks.setdefault(memory, PerLoop(asyncio.Lock)).get()


def _as_compactor(given: Compactor | Limits | int) -> Compactor:
    if isinstance(given, Compactor):
        return given
    if isinstance(given, Limits):
        return Compactor(given)
    if type(given) is not int:
        kind = type(given).__name__
        raise InvalidInput(
            f"compactor must be a budget in tokens, Limits or a Compactor, got {kind}"
        )
    return Compactor(Limits(budget=given, tool_result=big_result(given)))


def _ids(messages: Sequence[Msg]) -> set[str]:
    return {msg.id for msg in messages}


def _divided(shown: Sequence[Msg]) -> set[str]:
    """Return the ids of messages of which a repaired part is still shown."""
    return {msg.id.rpartition(".")[0] for msg in shown}
