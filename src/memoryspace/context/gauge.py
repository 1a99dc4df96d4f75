"""What a group adds to a prompt, by a counter and a formatter.

Some formatters make of a group what they make of it anywhere: it is formatted and counted. Others
join turns, put fillers where a provider wants somebody to speak, or draw lines around what was
said: for them a group is formatted within a small conversation, as it would stand in a large one,
and what that takes without it is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..formatter.base import FormatterBase
from ..message import Msg
from ..token import TokenCounterBase
from .rendering import text_of_content

_USER = Msg("user", "word", "user")
_ASSISTANT = Msg("assistant", "word", "assistant")
_STEP = [
    Msg("assistant", [{"type": "tool_use", "id": "a", "name": "b", "input": {}}], "assistant"),
    Msg("system", [{"type": "tool_result", "id": "a", "name": "b", "output": "word"}], "system"),
]


class Gauge:
    """Measures groups by a counter, on what the formatter makes of them."""

    def __init__(self, counter: TokenCounterBase, formatter: FormatterBase | None) -> None:
        self._counter = counter
        self._formatter = formatter
        self._known: dict[str, int] = {}
        self._is_plain: bool | None = None

    async def frame(self) -> int:
        """Return what a prompt takes besides its messages, fillers at both ends included."""
        if await self._formats_one_by_one():
            return await self._bare_frame()
        turn = await self._turn()
        bare = await self._short() - 3 * turn
        lone = await self._constant("lone", [_ASSISTANT])
        return bare + max(0, lone - bare - turn)

    async def cost(self, group: Sequence[Msg]) -> int:
        """Return what a group adds to a conversation."""
        if await self._formats_one_by_one():
            prompt = await self._prompt(list(group))
            counted = await self._counter.count(prompt) - await self._bare_frame() if prompt else 0
        elif len(group) > 1:
            counted = await self._count([_USER, *group, _ASSISTANT, _USER]) - await self._short()
        elif group[0].role == "system":
            counted = await self._count([*group, _USER]) - await self._constant("user", [_USER])
        elif group[0].role == "assistant":
            whole = await self._count([_USER, *group, _USER])
            counted = whole - await self._short() + await self._turn()
        else:
            whole = await self._count([_USER, _ASSISTANT, *group, _ASSISTANT, _USER])
            counted = whole - await self._long() + await self._turn()
        return max(0, counted)

    async def _formats_one_by_one(self) -> bool:
        """Whether it makes of messages together what it makes of each group by itself."""
        if self._is_plain is None:
            groups = [[_USER], [_ASSISTANT], _STEP, [_USER]]
            apart = [each for group in groups for each in await self._prompt(list(group))]
            together = await self._prompt([msg for group in groups for msg in group])
            self._is_plain = apart == together
        return self._is_plain

    async def _bare_frame(self) -> int:
        """What a counter adds to any prompt: what it counts of two is less than twice of one."""
        if "frame" not in self._known:
            one = await self._prompt([_USER])
            twice = await self._counter.count([*one, *one])
            self._known["frame"] = 2 * await self._counter.count(one) - twice
        return self._known["frame"]

    async def _turn(self) -> int:
        """What one word of anybody adds."""
        return -((await self._short() - await self._long()) // 2)

    async def _short(self) -> int:
        return await self._constant("short", [_USER, _ASSISTANT, _USER])

    async def _long(self) -> int:
        return await self._constant("long", [_USER, _ASSISTANT, _USER, _ASSISTANT, _USER])

    async def _constant(self, name: str, messages: list[Msg]) -> int:
        if name not in self._known:
            self._known[name] = await self._count(messages)
        return self._known[name]

    async def _count(self, messages: list[Msg]) -> int:
        return await self._counter.count(await self._prompt(messages))

    async def _prompt(self, messages: list[Msg]) -> list[dict[str, Any]]:
        if self._formatter is not None:
            return await self._formatter.format_group(messages)
        return [{"role": msg.role, "content": text_of_content(msg)} for msg in messages]
