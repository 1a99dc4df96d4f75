"""Truncation: what is too long loses its oldest groups, in one pass, and stays valid."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_formatter import (
    FORMATTERS,
    assistant,
    call,
    check_of,
    formatter,
    result,
    system,
    text,
    user,
)

from histories import histories, trajectories
from memoryspace.errors import InvalidInput
from memoryspace.formatter import (
    AnthropicChatFormatter,
    OpenAIChatFormatter,
    OpenAIMultiAgentFormatter,
    PromptTooLong,
)
from memoryspace.message import Msg
from memoryspace.testing.providers import check_openai
from memoryspace.token import CharTokenCounter, EstimatedTokenCounter, TokenCounterBase


class Tally(TokenCounterBase):
    """Ten tokens a message and five for the prompt; knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        self.asked.append(len(messages))
        return 10 * len(messages) + 5


class Squares(TokenCounterBase):
    """A counter that is not additive at all: more messages are more than their sum."""

    def __init__(self) -> None:
        self.asked = 0

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        self.asked += 1
        return len(messages) ** 2


class Plunderer(TokenCounterBase):
    """A counter that takes the prompt apart while it counts."""

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        number = len(messages)
        while messages:
            messages.pop().clear()
        return 10 * number


def talk(rounds: int) -> list[Msg]:
    history = [system("Be brief.")]
    for number in range(rounds):
        history += [user(f"question {number}"), assistant(f"answer {number}")]
    return history


def errand(steps: int) -> list[Msg]:
    history = [system("Be brief."), user("Go.")]
    for number in range(steps):
        history += [assistant([call(f"call_{number}")]), system([result(f"call_{number}")])]
    return history


def said(prompt: list[dict[str, Any]]) -> list[str]:
    return [
        message["content"][0]["text"] for message in prompt if isinstance(message["content"], list)
    ]


async def test_what_fits_is_counted_once_and_left_alone() -> None:
    tally = Tally()
    whole = await OpenAIChatFormatter().format(talk(10))
    assert await OpenAIChatFormatter(tally, 215).format(talk(10)) == whole
    assert tally.asked == [21]


async def test_the_oldest_go_and_the_system_message_stays() -> None:
    prompt = await OpenAIChatFormatter(Tally(), 45).format(talk(10))
    assert said(prompt) == ["Be brief.", "answer 8", "question 9", "answer 9"]


async def test_what_stays_is_formatted_as_it_was() -> None:
    history = errand(20)
    whole = await OpenAIChatFormatter().format(history)
    prompt = await OpenAIChatFormatter(Tally(), 105).format(history)
    assert prompt == [*whole[:2], *whole[-8:]]


@pytest.mark.parametrize("limit", range(35, 425, 10))
async def test_a_call_and_its_results_stay_or_go_together(limit: int) -> None:
    prompt = await OpenAIChatFormatter(Tally(), limit).format(errand(20))
    check_openai(prompt)
    assert said(prompt) == ["Be brief.", "Go."]  # the newest of the user stays
    assert limit - 20 < 10 * len(prompt) + 5 <= limit


async def test_each_group_is_counted_once_and_the_whole_a_few_times() -> None:
    for history, groups in ((talk(1000), 2001), (errand(1000), 1002)):
        tally = Tally()
        await OpenAIChatFormatter(tally, 200).format(history)
        assert len(tally.asked) <= groups + 3
        assert sum(tally.asked) <= 3 * len(history)


async def test_a_counter_that_is_not_additive_costs_a_few_counts_more() -> None:
    squares = Squares()
    prompt = await OpenAIChatFormatter(squares, 10_000).format(talk(1000))
    check_openai(prompt)
    assert len(prompt) == 100
    assert squares.asked <= 2001 + 24


async def test_a_counter_that_takes_the_prompt_apart_takes_nothing_from_it() -> None:
    prompt = await AnthropicChatFormatter(Plunderer(), 40).format(talk(10))
    assert prompt[0] == {"role": "system", "content": [text("Be brief.")]}
    assert len(prompt) == 4


async def test_an_unanswered_call_is_no_end() -> None:
    history = [*errand(20), assistant([call("lost")]), user("Still there?")]
    prompt = await OpenAIChatFormatter(Tally(), 105).format(history)
    check_openai(prompt)
    assert said(prompt)[-1] == "Still there?"


async def test_what_must_stay_and_does_not_fit_is_an_error_with_the_counts() -> None:
    with pytest.raises(PromptTooLong, match="25 tokens, but max_tokens is 24") as error:
        await OpenAIChatFormatter(Tally(), 24).format(talk(10))
    assert isinstance(error.value, ValueError)
    assert "question" not in str(error.value)


async def test_without_a_user_the_newest_stays() -> None:
    history = [system("Be brief."), *[assistant(f"step {number}") for number in range(9)]]
    prompt = await OpenAIChatFormatter(Tally(), 25).format(history)
    assert said(prompt) == ["Be brief.", "step 8"]


async def test_a_lost_result_is_not_taken_for_the_user() -> None:
    history = [user("Go."), *[assistant(f"step {number}") for number in range(9)]]
    history.append(system([result("lost")]))
    prompt = await OpenAIChatFormatter(Tally(), 35).format(history)
    assert said(prompt)[:2] == ["Go.", "step 8"]


async def test_a_limit_without_a_counter_is_estimated() -> None:
    prompt = await OpenAIChatFormatter(max_tokens=60).format(talk(100))
    assert 3 < len(prompt) < 15
    assert await EstimatedTokenCounter().count(prompt) <= 60


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_more_than_nothing(limit: int) -> None:
    with pytest.raises(InvalidInput, match="max_tokens"):
        OpenAIChatFormatter(max_tokens=limit)


async def test_a_history_of_many_speakers_fits_closely() -> None:
    history = [system("You are Ann."), *[user(f"word {number}") for number in range(500)]]
    counter = CharTokenCounter()
    prompt = await OpenAIMultiAgentFormatter(token_counter=counter, max_tokens=4000).format(history)
    assert 3800 < await counter.count(prompt) <= 4000
    assert "word 499" in prompt[-1]["content"][0]["text"]


@settings(max_examples=60)
@given(histories.filter(bool), st.integers(1, 2000), st.sampled_from([CharTokenCounter, Squares]))
def test_any_history_at_any_limit_is_valid_and_fits_or_says_why_not(
    history: list[Msg], limit: int, counter: type[TokenCounterBase]
) -> None:
    async def walk() -> None:
        for name in FORMATTERS:
            own = formatter(name, token_counter=counter(), max_tokens=limit)
            try:
                prompt = await own.format(history)
            except PromptTooLong:
                continue
            check_of(name)(prompt)
            assert await counter().count(prompt) <= limit

    asyncio.run(walk())


def test_real_runs_fit_every_limit() -> None:
    async def walk() -> int:
        done = 0
        for number, history in enumerate(trajectories()):
            name = FORMATTERS[number % len(FORMATTERS)]
            limit = 4000 * (1 + number % 5)
            own = formatter(name, token_counter=EstimatedTokenCounter(), max_tokens=limit)
            try:
                prompt = await own.format(history)
            except PromptTooLong:
                continue
            check_of(name)(prompt)
            assert await EstimatedTokenCounter().count(prompt) <= limit
            done += 1
        return done

    assert asyncio.run(walk()) > 100


@pytest.mark.parametrize("limit", [0, -1, "5", 1.5])
def test_a_limit_that_is_no_number_of_tokens_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidInput, match="max_tokens must be an integer"):
        OpenAIChatFormatter(max_tokens=limit)
