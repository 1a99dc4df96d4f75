"""A reply that is interrupted or cancelled, wherever it is, leaves a history that can go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace.agent import CompressionConfig, ReActAgent
from memoryspace.context import ExtractiveSummary
from memoryspace.memory import AsyncSQLAlchemyMemory, SpaceMemory
from memoryspace.message import Msg
from memoryspace.service import InMemoryMemoryService, ServiceSettings
from memoryspace.service.long_term import ServiceLongTermMemory
from memoryspace.testing import ScriptedModel
from memoryspace.testing.providers import check_openai
from react_parts import (
    SlowMemory,
    SlowModel,
    agent_of,
    call,
    check_for_all_providers,
    look_up,
    text,
    toolkit_of,
    unanswered,
    user,
    watch,
)

from backends import sql_url

Act = Callable[[ReActAgent, "asyncio.Task[Any]"], Awaitable[None]]
MOST_STEPS = 500


class Found(msgspec.Struct):
    word: str


def lines(*, structured: bool = False) -> list[Any]:
    final: Any = [call("generate_response", "call-9", word="end")] if structured else "The end."
    return [
        [
            text("I will look."),
            call("look_up", "call-1", what="this"),
            call("watch", "call-2", what="that"),
        ],
        [call("watch", "call-1", what="again")],
        final,
    ]


def slow_agent(
    *, stream: bool, parallel: bool, structured: bool = False, **options: Any
) -> ReActAgent:
    model = SlowModel(*lines(structured=structured), stream=stream)
    toolkit = toolkit_of(look_up, watch)
    options.setdefault("memory", SlowMemory())
    return agent_of(model=model, toolkit=toolkit, parallel_tool_calls=parallel, **options)


async def interrupt(agent: ReActAgent, task: asyncio.Task[Any]) -> None:
    await agent.interrupt()


async def cancel(agent: ReActAgent, task: asyncio.Task[Any]) -> None:
    task.cancel()


async def turns_of_the_loop(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def stopped_after(
    turns: int, asked: Coroutine[Any, Any, Any], agent: ReActAgent, act: Act, *, again: int = 0
) -> asyncio.Task[Any] | None:
    """Ask, act after so many turns of the loop, and wait; None if the reply was there before."""
    task = asyncio.create_task(asked)
    await turns_of_the_loop(turns)
    if task.done():
        return None
    await act(agent, task)
    if again:
        await turns_of_the_loop(again)
        task.cancel()
    await asyncio.wait([task])
    return task


async def check_it_can_go_on(agent: ReActAgent) -> None:
    """Whatever happened: the history is valid as it is, and the next reply is an answer."""
    await check_for_all_providers(await agent.memory.get_memory())
    agent.model = ScriptedModel("Here I am.")
    reply = await agent(user("And now?"))
    assert reply.get_text_content() == "Here I am."
    check_openai(agent.model.calls[-1].messages)
    assert await unanswered(agent.memory) == []
    stored = await agent.memory.get_memory(prepend_summary=False)
    assert len({msg.id for msg in stored}) == len(stored)
    await check_for_all_providers(await agent.memory.get_memory())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "at once"])
@pytest.mark.parametrize("structured", [False, True], ids=["words", "structured"])
async def test_an_interrupt_at_every_turn_of_the_loop(
    stream: bool, parallel: bool, structured: bool
) -> None:
    for turns in range(MOST_STEPS):
        agent = slow_agent(stream=stream, parallel=parallel, structured=structured)
        form = {"structured_model": Found} if structured else {}
        question = user("Look!")
        task = await stopped_after(turns, agent(question, **form), agent, interrupt)
        if task is None:
            assert turns > 20
            return
        reply = task.result()
        assert reply.metadata == {"_is_interrupted": True}
        stored = await agent.memory.get_memory()
        assert stored[-1].id == reply.id
        assert question.id in [msg.id for msg in stored]
        assert await unanswered(agent.memory) == []
        await check_it_can_go_on(agent)
    raise AssertionError("the reply never ended")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "at once"])
async def test_a_cancellation_at_every_turn_of_the_loop(stream: bool, parallel: bool) -> None:
    for turns in range(1, MOST_STEPS):
        agent = slow_agent(stream=stream, parallel=parallel)
        task = await stopped_after(turns, agent(user("Look!")), agent, cancel)
        if task is None:
            assert turns > 20
            return
        assert task.cancelled()
        assert await unanswered(agent.memory) == []
        await check_it_can_go_on(agent)
    raise AssertionError("the reply never ended")


@pytest.mark.parametrize("first", [interrupt, cancel])
@pytest.mark.parametrize("between", [1, 2, 3, 5])
async def test_a_second_cancellation_while_the_first_is_cleaned_up(
    first: Act, between: int
) -> None:
    for turns in range(1, MOST_STEPS):
        agent = slow_agent(stream=True, parallel=True)
        task = await stopped_after(turns, agent(user("Look!")), agent, first, again=between)
        if task is None:
            return
        await check_it_can_go_on(agent)
    raise AssertionError("the reply never ended")


async def test_an_interrupt_with_a_window_and_a_long_term_memory() -> None:
    config = CompressionConfig(trigger_threshold=400, keep_recent=1, summariser=ExtractiveSummary())
    for turns in range(1, MOST_STEPS, 3):
        settings = ServiceSettings(embedder=None)
        async with InMemoryMemoryService(settings=settings) as service:
            agent = slow_agent(
                stream=True,
                parallel=True,
                compression_config=config,
                long_term_memory=ServiceLongTermMemory(service, "ann"),
            )
            for number in range(6):
                await agent.observe(Msg("bob", f"Earlier, {number}: {'so it was. ' * 20}", "user"))
            task = await stopped_after(turns, agent(user("Look!")), agent, interrupt)
            if task is None:
                return
            assert task.result().metadata == {"_is_interrupted": True}
            await check_it_can_go_on(agent)
            await agent.aclose()
    raise AssertionError("the reply never ended")


@pytest.mark.parametrize("backend", ["sqlite", "folder"])
@pytest.mark.parametrize("act", [interrupt, cancel])
async def test_a_memory_on_disk_can_be_gone_on_from(backend: str, act: Act, tmp_path: Path) -> None:
    engine = create_async_engine(sql_url("sqlite", tmp_path))
    done = 0
    for number, turns in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)):
        session = f"session-{number}"
        memory: Any = (
            AsyncSQLAlchemyMemory(engine, session_id=session)
            if backend == "sqlite"
            else SpaceMemory(tmp_path / "space", session)
        )
        async with memory:
            agent = slow_agent(stream=True, parallel=True, memory=memory)
            task = await stopped_after(turns, agent(user("Look!")), agent, act)
            done += task is not None
            assert await unanswered(memory) == []
            await check_it_can_go_on(agent)
    assert done >= 4
    await engine.dispose()


async def test_a_timeout_around_a_reply_is_a_timeout() -> None:
    async def sleeps() -> str:
        """Sleep."""
        await asyncio.Event().wait()
        return ""

    agent = agent_of([call("sleeps")], toolkit=toolkit_of(sleeps))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await agent(user("Sleep!"))
    assert await unanswered(agent.memory) == []
    await check_it_can_go_on(agent)


async def test_what_a_tool_had_told_before_the_interrupt_is_kept() -> None:
    reached = asyncio.Event()

    async def counts() -> Any:
        """Count."""
        yield "one"
        yield "one two"
        reached.set()
        await asyncio.Event().wait()

    agent = agent_of([call("counts", "c-1"), call("counts", "c-2")], toolkit=toolkit_of(counts))
    task = asyncio.create_task(agent(user("Count!")))
    await reached.wait()
    await agent.interrupt()
    await task
    stored = await agent.memory.get_memory()
    results = [block for msg in stored for block in msg.get_content_blocks("tool_result")]
    outputs = [str(block["output"]) for block in results]  # type: ignore[typeddict-item]
    assert "one two" in outputs[0]
    assert "interrupted" in outputs[0]
    assert "There is no result" in outputs[1]


async def test_an_interrupt_reaches_those_who_wait_for_their_turn() -> None:
    agent = slow_agent(stream=False, parallel=False)
    first, second = user("first"), user("second")
    tasks = [asyncio.create_task(agent(msg)) for msg in (first, second)]
    await turns_of_the_loop(8)
    await agent.interrupt()
    replies = await asyncio.gather(*tasks)
    assert [each.metadata for each in replies] == [{"_is_interrupted": True}] * 2
    stored = [msg.id for msg in await agent.memory.get_memory()]
    assert {first.id, second.id} <= set(stored)
    await check_it_can_go_on(agent)


async def stubborn_agent() -> tuple[ReActAgent, asyncio.Task[Msg]]:
    """An agent in a tool that answers when it is cancelled, as if nothing had been."""
    reached = asyncio.Event()

    async def dig() -> str:
        """Dig."""
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "I dig on."
        return "dug"

    agent = agent_of([call("dig")], "Not asked any more.", toolkit=toolkit_of(dig))
    task = asyncio.create_task(agent(user("Dig!")))
    await reached.wait()
    return agent, task


async def test_a_tool_that_swallows_an_interrupt_does_not_keep_the_reply_going() -> None:
    agent, task = await stubborn_agent()
    await agent.interrupt()
    assert (await task).metadata == {"_is_interrupted": True}
    assert len(agent.model.calls) == 1  # type: ignore[attr-defined]  # it is scripted
    assert "I dig on." in str([msg.content for msg in await agent.memory.get_memory()])
    await check_it_can_go_on(agent)


async def test_a_tool_that_swallows_a_cancellation_does_not_keep_the_reply_going() -> None:
    agent, task = await stubborn_agent()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await check_it_can_go_on(agent)
