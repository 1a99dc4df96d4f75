"""``ContextWindow``: any working memory, seen through a window of so many tokens.

The memory keeps everything; the window decides what is resident. Its page table are marks of the
memory's messages and the memory's summary, so it lives wherever the messages live.

In what order things are written: first the archive has what leaves, then the summary stands for
it, then marks take it out of the window. Whoever stops in between has shown something twice, and
has lost nothing. Of two windows that compact at once, one is told that it was late and looks again.
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

_ATTEMPTS = 4  # at compacting while others do so too
_MAX_SNAPSHOTS = 8  # by different marks


class ContextWindow:
    """Reads a memory within a budget. Compacts when it has to, and then for a while not again.

    Messages marked ``pinned`` stay resident, those marked ``hint`` leave first. The window itself
    marks what left as ``compressed`` and what is shown in part as ``offloaded``; take such a mark
    off and the message is back. Nothing is ever deleted from the memory.

    ``compactor`` may be just the budget in tokens, or the limits.
    """

    def __init__(self, memory: MemoryBase, compactor: Compactor | Limits | int) -> None:
        self.memory = memory
        self.compactor = _as_compactor(compactor)
        self._report: LossReport | None = None
        self._snapshots: dict[_Filter, WindowSnapshot] = {}  # what was shown last

    @property
    def report(self) -> LossReport | None:
        """What the last compaction did; None before the first."""
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
        """Return the resident messages, the summary first; see ``Compactor.compact``.

        Of messages with ``mark`` and without ``exclude_mark``, if these are given.
        """
        wanted = optional_mark("mark", mark), optional_mark("exclude_mark", exclude_mark)
        with self._operation("context.messages") as done:
            async with _lock_of(self.memory):
                table = await self._read(wanted)
                shown = await self._shown(wanted, table, reserved, force)
            done.count(given=len(table.messages), returned=len(shown))
        return shown if prepend_summary else [msg for msg in shown if not is_summary(msg)]

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return what left under a handle, or the message that has this id, resident or not."""
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
        """``read_memory`` and ``search_memory``: functions with which a model gets back what left.

        They reach this window's archive and what of its memory is not resident, nothing else.
        """
        return PageReader(self.compactor.archive, self._left).tools

    async def release(self) -> list[str]:
        """Let go what left of messages that the memory no longer has; return its handles.

        A compaction does this too. Call it after deleting what must not be found any more.
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
        """Tell whether what was shown last still holds, with what has come behind it since."""
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
        """Compact and read again, until nothing leaves: what is shown is what others would see."""
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
        """Release what was deleted; trouble with that is no reason not to read."""
        try:
            await self.release()
        except (OSError, MemorySpaceError) as error:
            kind = type(error).__name__
            logger.warning("what was deleted could not leave the archive yet: %s", kind)

    async def _read(self, wanted: _Filter) -> MemoryPages:
        """Return the page table, of the messages that are asked for."""
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
        """Write down what a compaction decided, unless somebody else was first."""
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
        """Keep a report that tells something: of the first look, or of a compaction."""
        tells = report.troubles or report.excess or report.repairs
        if report.losses or (is_first and tells):
            self._report = report


_Filter: TypeAlias = tuple[frozenset[str], frozenset[str]]

_locks: weakref.WeakKeyDictionary[MemoryBase, PerLoop[asyncio.Lock]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _lock_of(memory: MemoryBase) -> asyncio.Lock:
    """Return the lock of all windows on a memory: one compacts, the others then need not."""
    with _making:
        return _locks.setdefault(memory, PerLoop(asyncio.Lock)).get()


def _as_compactor(given: Compactor | Limits | int) -> Compactor:
    if isinstance(given, Compactor):
        return given
    if isinstance(given, Limits):
        return Compactor(given)
    if type(given) is not int:
        raise InvalidInput(
            f"a window needs a budget in tokens, Limits or a Compactor, got {type(given).__name__}"
        )
    return Compactor(Limits(budget=given, tool_result=big_result(given)))


def _ids(messages: Sequence[Msg]) -> set[str]:
    return {msg.id for msg in messages}


def _divided(shown: Sequence[Msg]) -> set[str]:
    """Return the ids of messages of which a repaired part is still shown: they have not left."""
    return {msg.id.rpartition(".")[0] for msg in shown}
