"""Automatic use of long-term memory: looked up before a reply, recorded after it.

Recording runs in the background and never fails a reply. Each message is recorded once: a recorded
message is marked in the working memory, so the mark survives wherever the message does, also across
restarts. Messages that could not be recorded have no mark; they are recorded with the next reply,
or when the agent is closed.
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
RECORDED = "recorded"  # the mark of messages that are in long-term memory
RECALLED = "long_term_memory"  # the name and the tag of retrieved memories

logger = logging.getLogger(__name__)
_running: set[asyncio.Task[None]] = set()  # strong references: event loops hold tasks weakly


class LongTerm:
    """The long-term memory of an agent. Without one, every method does nothing."""

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
        """The functions by which the model uses long-term memory, if it controls it."""
        if self._long_term is None or not self._by_model:
            return []
        return [self._long_term.record_to_memory, self._long_term.retrieve_from_memory]

    async def recalled(self, msg: Msg | list[Msg] | None) -> Msg | None:
        """Return the memories about a question as a message for this prompt only, or None."""
        if self._long_term is None or not self._by_itself or not msg:
            return None
        try:
            text = await self._long_term.retrieve(msg)
        except Exception as error:  # a reply without memories is better than none
            logger.warning("long-term memory could not be searched: %s", type(error).__name__)
            return None
        if not text:
            return None
        return Msg(RECALLED, tagged(RECALLED, text), "user", metadata={IS_HINT: True})

    def record(self, memory: MemoryBase) -> None:
        """Record the new messages of a working memory in the background."""
        if self._by_itself:
            self._recording = asyncio.create_task(self._record_after(self._recording, memory))
            _running.add(self._recording)
            self._recording.add_done_callback(_running.discard)

    async def flush(self, memory: MemoryBase) -> None:
        """Record the remaining messages and wait until that is done."""
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
            logger.warning("long-term memory was not recorded yet: %s", type(error).__name__)

    async def _record_new(self, memory: MemoryBase) -> None:
        assert self._long_term is not None  # otherwise nothing is recorded
        new = await _unrecorded(memory)
        if new:
            await self._long_term.record([*new])
            await memory.update_messages_mark(RECORDED, msg_ids=[msg.id for msg in new])


async def _unrecorded(memory: MemoryBase) -> list[Msg]:
    """Return the messages to record, also those that a compacting memory no longer shows."""
    shown = await memory.get_memory(exclude_mark=RECORDED, prepend_summary=False)
    left = await memory.get_memory(COMPRESSED, RECORDED, prepend_summary=False)
    hints = await memory.get_memory(HINT, prepend_summary=False)
    known = {msg.id for msg in shown}
    passing = {msg.id for msg in hints}
    new = [*(msg for msg in left if msg.id not in known), *shown]
    return [msg for msg in new if msg.id not in passing]
