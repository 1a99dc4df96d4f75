"""Token counting: each message is measured once, and all ways of measuring agree."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contexts import WORDS, conversation, said, step
from histories import trajectories
from memoryspace.context import Compactor, Limits, Meter
from memoryspace.context.meter import MEDIA_TOKENS, fingerprint
from memoryspace.formatter import (
    AnthropicChatFormatter,
    FormatterBase,
    GeminiChatFormatter,
    OpenAIChatFormatter,
    OpenAIMultiAgentFormatter,
)
from memoryspace.message import Msg, freeze
from memoryspace.token import CharTokenCounter, EstimatedTokenCounter, TokenCounterBase

PICTURE: Any = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 9000},
}


class Counting(TokenCounterBase):
    """Counts words, and how often it was asked to."""

    def __init__(self) -> None:
        self.asked = 0

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        self.asked += 1
        return 7 + sum(len(str(message).split()) for message in messages)


async def test_each_message_is_measured_once_however_often_it_is_compacted() -> None:
    counter = Counting()
    history = [*conversation(500), *[msg for n in range(500) for msg in step(n, WORDS)]]
    meter = Meter(counter, OpenAIChatFormatter())
    compactor = Compactor(Limits(budget=5000, keep_recent=4), meter=meter)
    first = await compactor.compact(history)
    asked = counter.asked
    assert 1500 <= asked < 1500 + 500 + 20  # groups, results in their thin form, and constants
    await compactor.compact(history, pages=first.pages)
    assert counter.asked <= asked + 1  # the barest form of the next summary
    await compactor.compact([*history, said("one more")], pages=first.pages)
    assert counter.asked <= asked + 2


async def test_what_a_prompt_takes_by_itself_is_counted_once() -> None:
    meter = Meter(Counting(), OpenAIChatFormatter())
    history = conversation(10)
    whole = await Counting().count(await OpenAIChatFormatter().format(history))
    assert await meter.frame() == 7
    assert sum(await meter.costs(history)) + await meter.frame() == whole


@pytest.mark.parametrize("counter", [EstimatedTokenCounter(), CharTokenCounter(), Counting()])
@pytest.mark.parametrize(
    "formatter",
    [
        OpenAIChatFormatter(),
        AnthropicChatFormatter(),
        GeminiChatFormatter(),
        OpenAIMultiAgentFormatter(),
    ],
)
async def test_the_parts_add_up_to_the_whole(
    counter: TokenCounterBase, formatter: FormatterBase
) -> None:
    turns = [(said(f"look {number}"), *step(number, WORDS * 5)) for number in range(60)]
    history = [said("Be brief.", "system"), *(msg for turn in turns for msg in turn)]
    meter = Meter(counter, formatter)
    whole = await counter.count(await formatter.format(history))
    measured = sum(await meter.costs(history)) + await meter.frame()
    assert 0 <= measured - whole <= 0.1 * whole


async def test_a_message_that_changes_is_measured_again() -> None:
    meter = Meter()
    msg = Msg("ann", [{"type": "text", "text": "short"}], "user")
    (short,) = await meter.costs([msg])
    msg.content.append({"type": "text", "text": WORDS * 10})  # type: ignore[union-attr]
    (long,) = await meter.costs([msg])
    assert long > short + 90
    assert fingerprint(msg) == fingerprint(freeze(msg))


async def test_a_picture_counts_as_a_picture_however_many_characters_it_has() -> None:
    bare = Msg("ann", [{"type": "text", "text": "see"}], "user")
    seen = Msg("ann", [{"type": "text", "text": "see"}, PICTURE], "user")
    result = step(1, [PICTURE, {"type": "text", "text": "ok"}])
    for meter in (
        Meter(),
        Meter(formatter=OpenAIChatFormatter()),
        Meter(CharTokenCounter(), GeminiChatFormatter()),
        Meter(Counting()),
    ):
        (without,), (with_,) = await meter.costs([bare]), await meter.costs([seen])
        assert with_ - without == MEDIA_TOKENS["image"]
        assert sum(await meter.costs(result)) < MEDIA_TOKENS["image"] + 600


async def test_a_call_and_its_results_share_what_they_take_together() -> None:
    meter = Meter(EstimatedTokenCounter(), OpenAIChatFormatter())
    call, result = await meter.costs(step(1, WORDS * 100))
    assert result > 900
    assert 0 < call < 100


def test_real_messages_are_estimated_as_they_are_counted() -> None:
    async def run() -> None:
        estimated = counted = 0
        meter = Meter(EstimatedTokenCounter(), OpenAIChatFormatter())
        for history in trajectories():
            estimated += sum(await Meter().costs(history))
            counted += sum(await meter.costs(history))
        assert abs(estimated - counted) < 0.05 * counted

    asyncio.run(run())


async def test_a_group_longer_than_a_prompt_may_be_is_measured_whole() -> None:
    long = [Msg("Ann", "word " * 500, "user")]
    limited = Meter(EstimatedTokenCounter(), OpenAIChatFormatter(max_tokens=50))
    free = Meter(EstimatedTokenCounter(), OpenAIChatFormatter())
    assert await limited.costs(long) == await free.costs(long)


async def test_a_call_that_is_still_open_is_measured() -> None:
    call = {"type": "tool_use", "id": "1", "name": "dig", "input": {"where": "here"}}
    meter = Meter(EstimatedTokenCounter(), OpenAIChatFormatter())
    assert (await meter.costs([Msg("Bob", [call], "assistant")]))[0] > 0  # type: ignore[list-item]
