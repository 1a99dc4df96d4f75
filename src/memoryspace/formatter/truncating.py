"""``TruncatedFormatterBase``: prompts within a token limit; the oldest messages are dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInput
from ..message import Msg, groups_of, repair
from ..message.msg import peek_metadata
from ..message.tool_blocks import has_tool_blocks
from ..token import EstimatedTokenCounter, TokenCounterBase
from .base import FormatterBase

IS_HINT = "_is_hint"  # in the metadata of a user message that the program wrote


class PromptTooLong(InvalidInput):
    """The messages that must stay have more tokens than ``max_tokens``."""


class TruncatedFormatterBase(FormatterBase, ABC):
    """A formatter that drops the oldest messages of a prompt longer than ``max_tokens``.

    The leading system messages and the newest user message stay; hints of an agent to its model do
    not count as user messages. A tool call and its results stay or go together.

    Every atomic group is counted once, and the whole prompt twice, on the assumption that a count
    is the sum of its messages' counts plus a constant. Where this does not hold, the prompt is
    counted a few times more, about as often as the number of groups can be halved.

    Subclasses implement ``_format``, which gets a repaired history.

    Args:
        token_counter: Counts tokens; estimated by default.
        max_tokens: The largest prompt; None for no limit.

    Raises:
        InvalidInput: If ``max_tokens`` is not a positive integer.
    """

    def __init__(
        self, token_counter: TokenCounterBase | None = None, max_tokens: int | None = None
    ) -> None:
        if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens <= 0):
            raise InvalidInput(f"max_tokens must be an integer of 1 or more, got {max_tokens!r}")
        self.token_counter = token_counter
        self.max_tokens = max_tokens

    async def format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        """Convert messages to the format of the provider's API, within ``max_tokens``.

        Raises:
            PromptTooLong: If the messages that must stay have too many tokens.
        """
        self.assert_list_of_msgs(msgs)
        if not msgs:
            return []
        messages = repair(msgs).messages
        prompt = await self._format(messages)
        if self.max_tokens is None:
            return prompt
        total = await self._count(prompt)
        if total <= self.max_tokens:
            return prompt
        asked = {msg.id for msg in msgs if msg.role == "user" and IS_HINT not in peek_metadata(msg)}
        return await self._truncated(groups_of(messages), asked, total, self.max_tokens)

    async def format_group(self, group: list[Msg]) -> list[dict[str, Any]]:
        """Convert messages without truncating them."""
        return await self._format(repair(group).messages)

    @abstractmethod
    async def _format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        """Convert repaired messages, or some of their groups, to the provider's format."""

    async def _count(self, prompt: list[dict[str, Any]]) -> int:
        counter = self.token_counter
        if counter is None:
            counter = EstimatedTokenCounter()
        return await counter.count([dict(message) for message in prompt])  # may be changed

    async def _truncated(
        self, groups: list[list[Msg]], asked: set[str], total: int, limit: int
    ) -> list[dict[str, Any]]:
        """Return the prompt of the groups that stay and as many of the newest as fit."""
        costs = [await self._count(await self._format(group)) for group in groups]
        stays = _what_stays(groups, asked)

        async def attempt(start: int) -> _Attempt:
            kept = [group for at, group in enumerate(groups) if at in stays or at >= start]
            prompt = await self._format([msg for group in kept for msg in group])
            return _Attempt(prompt, await self._count(prompt))

        start = _start_of_rest(costs, stays, total, limit)
        return await _first_that_fits(attempt, start, len(groups), limit)


class _Attempt(NamedTuple):
    prompt: list[dict[str, Any]]
    tokens: int


async def _first_that_fits(
    attempt: Callable[[int], Awaitable[_Attempt]], start: int, end: int, limit: int
) -> list[dict[str, Any]]:
    """Return the prompt from ``start``, or from the first later group that fits.

    The first attempt mostly fits. Otherwise the step doubles until one fits, and then halves.
    """
    found, too_long, step = await attempt(start), start - 1, 1
    while found.tokens > limit:
        if start >= end:
            raise PromptTooLong(
                f"the system messages and the newest user message have {found.tokens} tokens, "
                f"but max_tokens is {limit}; raise max_tokens or shorten them"
            )
        start, too_long, step = min(start + step, end), start, 2 * step
        found = await attempt(start)
    while start - too_long > 1:
        middle = (start + too_long) // 2
        other = await attempt(middle)
        if other.tokens <= limit:
            start, found = middle, other
        else:
            too_long = middle
    return found.prompt


def _what_stays(groups: Sequence[Sequence[Msg]], asked: set[str]) -> set[int]:
    """Return the groups that always stay: leading system messages and the newest user message.

    Without a user message, the newest group stays.
    """
    stays: set[int] = set()
    for at, group in enumerate(groups):
        if group[0].role != "system" or has_tool_blocks(group[0]):
            break
        stays.add(at)
    by_user = [at for at, group in enumerate(groups) if group[0].id in asked and _is_talk(group)]
    return stays | {by_user[-1] if by_user else len(groups) - 1}


def _is_talk(group: Sequence[Msg]) -> bool:
    return group[0].role == "user" and not has_tool_blocks(group[0])


def _start_of_rest(costs: Sequence[int], stays: set[int], total: int, limit: int) -> int:
    """Return the first group from which all groups fit, beside those that stay.

    Each cost includes a constant that a prompt has only once; the total reveals that constant.
    """
    constant = max(0.0, (sum(costs) - total) / max(1, len(costs) - 1))
    sum_so_far = constant + sum(costs[at] - constant for at in stays)
    start = len(costs)
    for at in reversed(range(len(costs))):
        if at not in stays:
            sum_so_far += costs[at] - constant
            if sum_so_far > limit:
                break
        start = at
    return start
