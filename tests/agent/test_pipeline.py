"""Agents in a row, side by side, and what they print as a stream; no task is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.agent import AgentBase
from memoryspace.message import Msg
from memoryspace.pipeline import (
    FanoutPipeline,
    SequentialPipeline,
    fanout_pipeline,
    sequential_pipeline,
    stream_printing_messages,
)


class Counting(AgentBase):
    """Does something to the number in a message's metadata, in place."""

    def __init__(self, count: Callable[[int], int]) -> None:
        super().__init__()
        self._count = count

    async def reply(self, msg: Msg | None, times: int = 1) -> Msg | None:
        if msg is not None:
            for _ in range(times):
                msg.metadata["result"] = self._count(msg.metadata["result"])
        return msg


class Printing(AgentBase):
    """Prints its words, one at a time, and may fail afterwards."""

    def __init__(self, *words: str, fails: bool = False) -> None:
        super().__init__()
        self.words = words
        self._fails = fails
        self.set_console_output_enabled(False)

    async def reply(self) -> Msg:
        msg = Msg("Ann", "", "assistant")
        for number, word in enumerate(self.words, 1):
            assert isinstance(msg.content, str)
            msg.content += word
            await self.print(msg, last=number == len(self.words))
        if self._fails:
            raise ValueError("no")
        return msg


class Waiting(AgentBase):
    """Waits for ever, and knows what ended it."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.ended_by: list[type[BaseException]] = []
        self.set_console_output_enabled(False)

    async def reply(self, *args: Any) -> None:
        try:
            await self.print(Msg("Ann", "hm", "assistant"), last=False)
            self.began.set()
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended_by.append(type(error))
            raise

    async def handle_interrupt(self, *args: Any) -> str:
        return "interrupted"


def add(number: int) -> Counting:
    return Counting(lambda value: value + number)


def times(number: int) -> Counting:
    return Counting(lambda value: value * number)


def start(value: int = 0) -> Msg:
    return Msg("user", "", "user", metadata={"result": value})


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


# -- in a row --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agents", "result"),
    [
        ([add(1), add(2), times(3)], 9),
        ([add(1), times(3), add(2)], 5),
        ([times(3), add(1), add(2)], 3),
    ],
)
async def test_each_output_is_the_next_input(agents: list[Counting], result: int) -> None:
    for run in (SequentialPipeline(agents), lambda msg: sequential_pipeline(agents, msg)):
        msg = await run(start())
        assert isinstance(msg, Msg)
        assert msg.metadata["result"] == result


async def test_no_agents_give_back_the_same_message() -> None:
    msg = start()
    assert await sequential_pipeline([], msg) is msg
    assert await SequentialPipeline([])() is None


# -- side by side ----------------------------------------------------------------------------------


@pytest.mark.parametrize("enable_gather", [True, False])
async def test_each_gets_a_copy_of_its_own_and_replies_come_in_order(enable_gather: bool) -> None:
    agents, msg = [add(1), add(2), times(3)], start(5)
    for run in (
        FanoutPipeline(agents, enable_gather),
        lambda msg: fanout_pipeline(agents, msg, enable_gather),
    ):
        assert [each.metadata["result"] for each in await run(msg)] == [6, 7, 15]
    assert msg.metadata["result"] == 5


@pytest.mark.parametrize("enable_gather", [True, False])
async def test_nothing_may_be_asked_and_nobody(enable_gather: bool) -> None:
    assert await fanout_pipeline([add(1), add(2)], None, enable_gather) == [None, None]
    assert await fanout_pipeline([], start(), enable_gather) == []


async def test_further_arguments_reach_all_agents() -> None:
    replies = await FanoutPipeline([add(1), add(2)])(start(), times=3)
    assert [each.metadata["result"] for each in replies] == [3, 6]


async def test_one_that_fails_ends_the_others_first() -> None:
    waiting = Waiting()

    class Failing(AgentBase):
        async def reply(self, msg: Msg | None) -> None:
            await waiting.began.wait()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fanout_pipeline([waiting, Failing()], start())
    assert waiting.ended_by == [asyncio.CancelledError]
    assert others() == set()


async def test_a_timeout_ends_them_all() -> None:
    agents = [Waiting(), Waiting()]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fanout_pipeline(agents, start()), 0.01)
    assert [each.ended_by for each in agents] == [[asyncio.CancelledError]] * 2
    assert others() == set()


async def test_one_that_is_interrupted_leaves_the_others_alone() -> None:
    waiting = Waiting()

    class Interrupting(AgentBase):
        async def reply(self, msg: Msg | None) -> str:
            await waiting.began.wait()
            await waiting.interrupt()
            return "done"

    assert await fanout_pipeline([waiting, Interrupting()]) == ["interrupted", "done"]


# -- as a stream -----------------------------------------------------------------------------------


async def test_what_is_printed_comes_in_order_with_its_ends() -> None:
    agent = Printing("a", "b", "c")
    seen = [(msg.content, last) async for msg, last in stream_printing_messages([agent], agent())]
    assert seen == [("a", False), ("ab", False), ("abc", True)]
    assert agent.msg_queue is None
    assert others() == set()


async def test_speech_is_handed_on_where_wanted() -> None:
    speech: Any = {"type": "audio", "source": {"type": "url", "url": "x"}}

    class Speaking(Printing):
        async def reply(self) -> Any:
            await self.print(Msg("Ann", "a", "assistant"), True, speech)

    agent = Speaking()
    stream = stream_printing_messages([agent], agent(), yield_speech=True)
    assert [item[1:] async for item in stream] == [(True, speech)]


async def test_several_agents_print_into_one_stream() -> None:
    agents = [Printing("a"), Printing("b")]
    stream = stream_printing_messages(agents, fanout_pipeline_of(agents))
    assert sorted([msg.content async for msg, _ in stream]) == ["a", "b"]


async def fanout_pipeline_of(agents: list[Printing]) -> list[Any]:
    return await asyncio.gather(*(agent() for agent in agents))


async def test_the_tasks_error_comes_after_what_it_printed() -> None:
    agent, seen = Printing("a", "b", fails=True), []

    async def read() -> None:
        async for msg, _ in stream_printing_messages([agent], agent()):
            seen.append(msg.content)  # what was seen before the error counts

    with pytest.raises(ValueError, match="no"):
        await read()
    assert seen == ["a", "ab"]
    assert agent.msg_queue is None


@given(words=st.lists(st.text(), max_size=8), size=st.integers(0, 5), fails=st.booleans())
def test_a_queue_of_any_size_gives_all_and_never_hangs(
    words: list[str], size: int, fails: bool
) -> None:
    async def story() -> None:
        agent, seen = Printing(*words, fails=fails), []
        queue = asyncio.Queue[Any](maxsize=size)
        try:
            async for msg, last in stream_printing_messages([agent], agent(), queue):
                seen.append((msg.content, last))
        except ValueError:
            assert fails
        assert [each for each, _ in seen] == ["".join(words[:n]) for n in range(1, len(words) + 1)]
        assert [last for _, last in seen] == [n == len(words) for n in range(1, len(words) + 1)]
        assert agent.msg_queue is None
        assert others() == set()

    asyncio.run(story())


@pytest.mark.parametrize("size", [0, 1])
async def test_who_leaves_early_cancels_the_task(size: int) -> None:
    agent = Waiting()
    stream = stream_printing_messages([agent], agent(), asyncio.Queue(maxsize=size))
    async for msg, last in stream:
        assert (msg.content, last) == ("hm", False)
        await agent.began.wait()
        break
    await stream.aclose()
    assert agent.ended_by == [asyncio.CancelledError]
    assert agent.msg_queue is None
    assert others() == set()


async def test_a_stream_left_without_a_word_cancels_its_task_too() -> None:
    agent = Waiting()
    async for _ in stream_printing_messages([agent], agent()):
        await agent.began.wait()
        break
    while others():
        await asyncio.wait(others())
    assert agent.ended_by == [asyncio.CancelledError]
    assert agent.msg_queue is None


async def test_an_agent_that_waits_for_room_is_cancelled_with_its_reader() -> None:
    agent = Printing(*"abcdef")
    stream = stream_printing_messages([agent], agent(), asyncio.Queue(maxsize=1))
    assert (await anext(stream))[0].content == "a"
    await stream.aclose()
    assert agent.msg_queue is None
    assert others() == set()


async def test_a_cancelled_reader_cancels_the_task() -> None:
    agent = Waiting()

    async def read() -> None:
        async for _ in stream_printing_messages([agent], agent()):
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(), 0.01)
    while others():
        await asyncio.wait(others())
    assert agent.ended_by == [asyncio.CancelledError]
    assert agent.msg_queue is None


async def test_an_interrupt_ends_the_stream_in_order() -> None:
    agent = Waiting()
    async for _ in stream_printing_messages([agent], agent()):
        await agent.began.wait()
        await agent.interrupt()
    assert agent.ended_by == [asyncio.CancelledError]
    assert agent.msg_queue is None


async def test_an_end_signal_from_elsewhere_ends_the_stream() -> None:
    agent, queue = Waiting(), asyncio.Queue[Any]()
    seen = 0
    async for _ in stream_printing_messages([agent], agent(), queue, end_signal="stop"):
        seen += 1
        queue.put_nowait("stop")
    assert seen == 1
    assert others() == set()


async def test_an_agent_that_prints_elsewhere_by_now_keeps_its_queue() -> None:
    agent, other = Printing("a"), asyncio.Queue[Any]()
    async for _ in stream_printing_messages([agent], agent()):
        agent.set_msg_queue_enabled(True, other)
    assert agent.msg_queue is other
