"""For any history and budget: providers accept the result, it fits or says why, nothing is lost."""

from __future__ import annotations

import asyncio
import re
from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from contexts import Session, as_text, heavier, said
from histories import histories, trajectories, whole_histories
from memoryspace.context import Compacted, Compactor, Limits, Meter
from memoryspace.formatter import (
    AnthropicChatFormatter,
    DashScopeChatFormatter,
    DeepSeekChatFormatter,
    FormatterBase,
    GeminiChatFormatter,
    OllamaChatFormatter,
    OpenAIChatFormatter,
    OpenAIMultiAgentFormatter,
)
from memoryspace.message import Msg
from memoryspace.testing.providers import (
    check_anthropic,
    check_dashscope,
    check_deepseek,
    check_gemini,
    check_ollama,
    check_openai,
)
from memoryspace.token import EstimatedTokenCounter

from length import at_length

PROVIDERS: list[tuple[FormatterBase, Any]] = [
    (OpenAIChatFormatter(), check_openai),
    (OpenAIMultiAgentFormatter(), check_openai),
    (AnthropicChatFormatter(), check_anthropic),
    (DashScopeChatFormatter(), check_dashscope),
    (GeminiChatFormatter(), check_gemini),
    (DeepSeekChatFormatter(), check_deepseek),
    (OllamaChatFormatter(), check_ollama),
]

budgets = st.integers(1, 400) | st.integers(1, 4000)
options = st.fixed_dictionaries(
    {
        "low_water": st.floats(0, 1),
        "keep_recent": st.integers(0, 6),
        "tool_result": st.integers(0, 50),
        "preview": st.integers(0, 40),
        "summary": st.integers(0, 200),
    }
)
weights = st.lists(st.sampled_from([1, 1, 30, 400]), min_size=1, max_size=8)


def made_heavier(history: list[Msg], times: list[int]) -> list[Msg]:
    return [heavier(msg, times[at % len(times)]) for at, msg in enumerate(history)]


any_history = st.builds(made_heavier, histories | whole_histories(), weights)


def some_ids(history: list[Msg]) -> st.SearchStrategy[list[str]]:
    ids = [msg.id for msg in history]
    return st.lists(st.sampled_from(ids), unique=True, max_size=3) if ids else st.just([])


async def check_providers(done: Compacted, history: list[Msg]) -> None:
    for formatter, check in PROVIDERS:
        if await formatter.format(list(history)):
            check(await formatter.format(done.messages))


def check_excess(done: Compacted) -> None:
    """Its parts add up to what is there, which is too much."""
    report = done.report
    if report.excess:
        parts = [int(tokens) for tokens in re.findall(r": (-?\d+)", report.excess)]
        assert sum(parts) == report.tokens_after > report.budget


@settings(max_examples=250)
@given(st.data(), any_history, budgets, options)
def test_nothing_is_lost_whatever_the_history_and_the_budget(
    data: st.DataObject, history: list[Msg], budget: int, options: dict[str, Any]
) -> None:
    pinned, hints = data.draw(some_ids(history)), data.draw(some_ids(history))
    session = Session(Compactor(Limits(budget=budget, **options)))

    async def run() -> None:
        done = await session.compact(history, pinned=pinned, hints=hints)
        await session.check(history, pinned, hints)
        check_excess(done)
        await check_providers(done, history)

    asyncio.run(run())


@settings(max_examples=60)
@given(any_history, budgets, st.sampled_from([formatter for formatter, _ in PROVIDERS[:5]]))
def test_what_is_said_to_fit_fits_when_it_is_formatted_and_counted(
    history: list[Msg], budget: int, formatter: FormatterBase
) -> None:
    counter = EstimatedTokenCounter()
    compactor = Compactor(Limits(budget=budget, keep_recent=2), meter=Meter(counter, formatter))

    async def run() -> None:
        done = await compactor.compact(without_media(history))
        if not done.report.excess:
            assert await counter.count(await formatter.format(done.messages)) <= budget

    asyncio.run(run())


def without_media(history: list[Msg]) -> list[Msg]:
    """Media count as pictures, not as the characters that this counter sees."""
    return [msg for msg in history if "source" not in str(msg.content)]


def test_every_prefix_of_real_runs_is_compacted_without_loss() -> None:
    async def run() -> None:
        for number, whole in enumerate(islice(trajectories(), None, None, at_length(3, 1))):
            budget = (120, 1500, 6000)[number % 3]
            limits = Limits(budget=budget, keep_recent=number % 8, tool_result=budget // 8)
            session = Session(Compactor(limits))
            before: list[dict[str, Any]] = []
            for end in range(1, len(whole) + 1):
                done = await session.compact(whole[:end])
                await session.check(whole[:end])
                check_excess(done)
                prompts = [await formatter.format(done.messages) for formatter, _ in PROVIDERS]
                for prompt, (_, check) in zip(prompts, PROVIDERS, strict=True):
                    check(prompt)
                prompt = prompts[0]
                if not done.report.losses:
                    assert prompt[: len(before)] == before
                before = prompt if not done.report.repairs else []

    asyncio.run(run())


class GrowingConversation(RuleBasedStateMachine):
    """A conversation that grows, is compacted, is pinned to, and is read back."""

    def __init__(self) -> None:
        super().__init__()
        limits = Limits(budget=300, keep_recent=3, tool_result=60, preview=40, summary=60)
        self.session = Session(Compactor(limits))
        self.history: list[Msg] = []
        self.pinned: list[str] = []
        self.hints: list[str] = []
        self.shown: list[str] = []  # the prompt as it was, message by message

    @rule(messages=any_history)
    def grow(self, messages: list[Msg]) -> None:
        self.history += messages

    @rule(text=st.text(min_size=1, max_size=50), times=st.integers(1, 20))
    def hint(self, text: str, times: int) -> None:
        msg = said(text * times)
        self.history.append(msg)
        self.hints.append(msg.id)

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        self.pinned = data.draw(some_ids(self.history))

    @rule(reserved=st.integers(0, 400), force=st.booleans())
    def compact(self, reserved: int, force: bool) -> None:
        options = {"pinned": self.pinned, "hints": self.hints, "reserved": reserved, "force": force}
        asyncio.run(self.session.compact(self.history, **options))
        asyncio.run(self.session.check(self.history, self.pinned, self.hints))
        assert self.session.done is not None
        check_excess(self.session.done)

    @rule()
    def compact_again(self) -> None:
        """What was just compacted stays as it is."""
        options = {"pinned": self.pinned, "hints": self.hints}
        first = asyncio.run(self.session.compact(self.history, **options))
        again = asyncio.run(self.session.compact(self.history, **options))
        assert again.report.losses == ()
        assert again.report.excess == first.report.excess
        assert again.pages == first.pages
        assert list(map(as_text, again.messages)) == list(map(as_text, first.messages))


GrowingConversation.TestCase.settings = settings(max_examples=40, stateful_step_count=15)
TestGrowingConversation = GrowingConversation.TestCase
