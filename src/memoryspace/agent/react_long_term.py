"""What an agent remembers by itself: looked up before a reply, recorded after it.

Recording runs in the background and never fails a reply. A message is recorded once: it is marked
in the working memory when it has been, so that the marks are there wherever the messages are, after
a restart too. What could not be recorded has no mark and is recorded with the next reply, or when
the agent is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from ..errors import InvalidInput
from ..formatter.truncating import IS_HINT
from ..memory import MemoryBase
from ..memory.pages import COMPRESSED, HINT
from ..message import Msg
from ..model.prompting import tagged
from ..service.long_term import LongTermMemoryBase

LongTermMode: TypeAlias = Literal["agent_control", "static_control", "both"]
RECORDED = "recorded"  # the mark of messages that the long-term memory has
RECALLED = "long_term_memory"  # the name and the tag of what was looked up

logger = logging.getLogger(__name__)
_running: set[asyncio.Task[None]] = set()  # the loop holds tasks only weakly


class LongTerm:
    """The long-term memory of an agent; none is one that does nothing."""

    def __init__(self, long_term: LongTermMemoryBase | None, mode: LongTermMode) -> None:
        if mode not in get_args(LongTermMode):
            known = ", ".join(get_args(LongTermMode))
            raise InvalidInput(f"long_term_memory_mode must be one of {known}, got {mode!r}")
        self._long_term = long_term
        self._by_model = long_term is not None and mode != "static_control"
        self._by_itself = long_term is not None and mode != "agent_control"
        self._recording: asyncio.Task[None] | None = None

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """The functions by which the model remembers, if it is to."""
        if self._long_term is None or not self._by_model:
            return []
        return [self._long_term.record_to_memory, self._long_term.retrieve_from_memory]

    async def recalled(self, msg: Msg | list[Msg] | None) -> Msg | None:
        """Return what is remembered about what was asked, as a message for the prompt alone."""
        if self._long_term is None or not self._by_itself or not msg:
            return None
        try:
            text = await self._long_term.retrieve(msg)
        except Exception as error:  # an agent without memories is better than none
            logger.warning("nothing could be looked up: %s", type(error).__name__)
            return None
        if not text:
            return None
        return Msg(RECALLED, tagged(RECALLED, text), "user", metadata={IS_HINT: True})

    def record(self, memory: MemoryBase) -> None:
        """Record in the background what is new in a working memory."""
        if self._by_itself:
            self._recording = asyncio.create_task(self._record_after(self._recording, memory))
            _running.add(self._recording)
            self._recording.add_done_callback(_running.discard)

    async def flush(self, memory: MemoryBase) -> None:
        """Record what is still to be, and wait for it."""
        self.record(memory)
        if self._recording is not None:
            await asyncio.wait([self._recording])

    async def _record_after(self, earlier: asyncio.Task[None] | None, memory: MemoryBase) -> None:
        """One recording at a time: two would both see a message without its mark."""
        if earlier is not None and not earlier.done():
            await asyncio.wait([earlier])
        try:
            await self._record_new(memory)
        except Exception as error:
            logger.warning("not recorded yet: %s", type(error).__name__)

    async def _record_new(self, memory: MemoryBase) -> None:
        assert self._long_term is not None  # or nothing would be recorded
        new = await _unrecorded(memory)
        if new:
            await self._long_term.record([*new])
            await memory.update_messages_mark(RECORDED, msg_ids=[msg.id for msg in new])


async def _unrecorded(memory: MemoryBase) -> list[Msg]:
    """Return what is to be recorded, also what a memory with a window of its own shows no more."""
    shown = await memory.get_memory(exclude_mark=RECORDED, prepend_summary=False)
    left = await memory.get_memory(COMPRESSED, RECORDED, prepend_summary=False)
    hints = await memory.get_memory(HINT, prepend_summary=False)
    known = {msg.id for msg in shown}
    passing = {msg.id for msg in hints}
    new = [*(msg for msg in left if msg.id not in known), *shown]
    return [msg for msg in new if msg.id not in passing]
