"""Prompts of a ReAct agent: instructions, the resident part of its memory, hints."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..formatter import FormatterBase
from ..memory import ContextWindow, MemoryBase
from ..memory.pages import COMPRESSED
from ..message import Msg
from ..model.schemas import Schema
from ..token import TokenCounterBase
from .react_state import ReplyState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PromptBuilder:
    """Builds prompts. With a window they fit its budget, instructions and tools included."""

    memory: MemoryBase
    formatter: FormatterBase
    window: ContextWindow | None
    counter: TokenCounterBase

    async def build(
        self,
        instructions: str,
        state: ReplyState,
        hints: Sequence[Msg],
        tools: Sequence[Schema],
    ) -> list[dict[str, Any]]:
        """Return a prompt, with retrieved memories before the question and hints at the end."""
        system = [Msg("system", instructions, "system")] if instructions else []
        recalled = [state.recalled] if state.recalled is not None else []
        resident = await self._resident([*system, *recalled, *hints], tools)
        at = _place_of({msg.id for msg in state.asked}, resident)
        return await self.formatter.format(
            [*system, *resident[:at], *recalled, *resident[at:], *hints]
        )

    async def _resident(self, around: list[Msg], tools: Sequence[Schema]) -> list[Msg]:
        if self.window is None:
            return await self.memory.get_memory()
        try:
            prompt = await self.formatter.format(around)
            reserved = await self.counter.count(prompt, [*tools])
            return await self.window.messages(reserved=reserved)
        except Exception as error:  # a prompt that is too long is better than no reply
            logger.warning("the context could not be compacted: %s", type(error).__name__)
            return await self.memory.get_memory(exclude_mark=COMPRESSED)


def _place_of(ids: Collection[str], messages: Sequence[Msg]) -> int:
    return next((at for at, msg in enumerate(messages) if msg.id in ids), len(messages))
