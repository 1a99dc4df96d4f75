"""Agents leave nothing behind, and what does is found, named and told what keeps it."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryspace.agent import AgentBase, CompressionConfig
from memoryspace.agent.leaks import Growth, LeakCheck, LeakFound, LeakReport, leaks_of
from memoryspace.context import ExtractiveSummary
from memoryspace.memory import InMemoryMemory, MemoryBase, SpaceMemory
from memoryspace.message import Msg
from memoryspace.pipeline import MsgHub, fanout_pipeline, stream_printing_messages
from memoryspace.plan import PlanNotebook
from memoryspace.service import InMemoryMemoryService, ServiceSettings
from memoryspace.service.long_term import ServiceLongTermMemory
from react_parts import agent_of, call, toolkit_of, user

from length import at_length

AGENTS = at_length(2_400, 10_000)
TRACED = at_length(600, 2_000)  # byte by byte, which is slow


class Worker(AgentBase):
    """Thinks, speaks, remembers; may wait until it is interrupted."""

    def __init__(self, name: str = "Ann", memory: MemoryBase | None = None) -> None:
        super().__init__()
        self.name = name
        self.memory = InMemoryMemory() if memory is None else memory
        self.waits = False
        self.set_console_output_enabled(False)

    async def reply(self, msg: Msg | None = None) -> Msg:
        await self.memory.add(msg)
        said = Msg(self.name, [{"type": "text", "text": "yes"}], "assistant")
        await self.print(said, last=False)
        if self.waits:
            await asyncio.Event().wait()
        await self.memory.add(said)
        await self.print(said)
        return said

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        await self.memory.add(msg)

    async def handle_interrupt(self, msg: Msg | None = None) -> Msg:
        said = Msg(self.name, "interrupted", "assistant")
        await self.memory.add(said)
        return said

    def note(self, agent: AgentBase, arguments: dict[str, Any]) -> None:
        self.noted = True


def hello() -> Msg:
    return Msg("user", "hello", "user")


async def conversation() -> int:
    """Let two agents speak, be heard, be read as a stream, and one of them be interrupted."""
    ann, bob = Worker("Ann"), Worker("Bob")
    ann.register_instance_hook("pre_reply", "note", ann.note)
    bob.register_instance_hook("post_observe", "nothing", lambda agent, arguments, output: None)
    async with MsgHub([ann, bob], announcement=hello()):
        async for _ in stream_printing_messages([ann], ann(hello())):
            pass
        bob.waits = True
        async for _ in stream_printing_messages([bob], bob(hello())):
            await bob.interrupt()
    return await ann.memory.size() + await bob.memory.size()


@contextmanager
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# -- the proof -------------------------------------------------------------------------------------


async def test_thousands_of_agents_leave_nothing_behind_even_without_the_collector() -> None:
    assert await conversation() == 8
    with no_collector():
        async with LeakCheck() as check:
            for _ in range((AGENTS - TRACED) // 2):
                await conversation()
            traced = await leaks_of(conversation, times=TRACED // 2, tolerance=0)
    for report in (check.report(), traced):
        report.check()
        assert report.cycles == ()


async def plain_question() -> None:
    agent = agent_of([call("add", a=1, b=2)], "three", stream=True, parallel_tool_calls=True)
    agent.register_instance_hook("post_acting", "nothing", lambda agent, arguments, output: None)
    assert (await agent(user("what?"))).get_text_content() == "three"


async def question_interrupted() -> None:
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    agent = agent_of([call("wait", "1"), call("wait", "2")], toolkit=toolkit_of(wait))
    async for _ in stream_printing_messages([agent], agent(user("what?"))):
        await agent.interrupt()


async def question_for_a_form() -> None:
    agent = agent_of([call("generate_response", age=5)], plan_notebook=PlanNotebook())
    form = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    assert (await agent(user("how old?"), structured_model=form)).metadata == {"age": 5}


async def questions_beyond_the_window() -> None:
    config = CompressionConfig(trigger_threshold=400, summariser=ExtractiveSummary())
    agent = agent_of("word " * 300, "word " * 300, "done", compression_config=config)
    for number in range(3):
        await agent(user(f"question {number}"))


async def question_to_be_remembered_for_long() -> None:
    async with InMemoryMemoryService(settings=ServiceSettings(embedder=None)) as service:
        recalling = ServiceLongTermMemory(service, "ann")
        async with agent_of("yes", long_term_memory=recalling) as agent:
            await agent(user("I live in Rome"))


@pytest.mark.parametrize(
    ("ask", "times"),
    [
        (plain_question, 500),
        (question_interrupted, 500),
        (question_for_a_form, 200),
        (questions_beyond_the_window, 100),
    ],
)
async def test_agents_that_reason_leave_nothing_behind_even_without_the_collector(
    ask: Any, times: int
) -> None:
    await ask()
    with no_collector():
        async with LeakCheck() as check:
            for _ in range(times):
                await ask()
    check.report().check()
    assert check.report().cycles == ()


async def test_agents_with_a_long_term_memory_leave_nothing_behind() -> None:
    report = await leaks_of(question_to_be_remembered_for_long, times=20, tolerance=1000)
    report.check()


async def test_agents_that_time_out_or_fail_or_are_left_leave_nothing_behind() -> None:
    class Failing(Worker):
        async def reply(self, msg: Msg | None = None) -> Msg:
            raise ValueError("no")

    async def troubles() -> None:
        slow, failing = Worker(), Failing()
        slow.waits = True
        for trouble in (
            asyncio.wait_for(slow(hello()), 0),
            failing(hello()),
            fanout_pipeline([slow, failing], hello()),
        ):
            with pytest.raises((TimeoutError, ValueError)):
                await trouble
        async for _ in stream_printing_messages([slow], slow(hello())):
            break
        await slow.aclose()

    report = await leaks_of(troubles, times=50)
    report.check()


async def test_agents_with_a_folder_leave_no_open_file_behind(tmp_path: Path) -> None:
    async def remember() -> None:
        async with SpaceMemory(tmp_path / "space") as memory:
            await Worker(memory=memory)(hello())

    report = await leaks_of(remember, times=10, tolerance=20_000)
    assert (report.kept, report.files, report.threads, report.tasks) == ((), (), (), ())


# -- what is found ---------------------------------------------------------------------------------

left: list[Any] = []


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    yield
    left.clear()
    AgentBase.clear_class_hooks()


async def found(make_and_use: Any, times: int = 4) -> LeakReport:
    report = await leaks_of(make_and_use, times=times)
    assert not report.is_clean
    with pytest.raises(LeakFound, match="left behind"):
        report.check()
    return report


async def test_an_agent_in_a_global_list_is_found() -> None:
    async def keep() -> None:
        left.append(Worker())

    report = await found(keep)
    counts = {kept.kind.rpartition(".")[2]: kept for kept in report.kept}
    assert counts["Worker"].count == counts["InMemoryMemory"].count == 4
    assert "list in 'left' of module test_leaks" in counts["Worker"].kept_by
    assert "'memory' of test_leaks.Worker" in counts["InMemoryMemory"].kept_by
    assert "4 × test_leaks.Worker, kept by" in str(report)


async def test_an_agent_in_a_closure_is_found() -> None:
    async def keep() -> None:
        agent = Worker()

        def later() -> str:
            return agent.name

        left.append(later)

    report = await found(keep)
    kept_by = next(kept.kept_by for kept in report.kept if kept.kind.endswith("Worker"))
    assert any(each.startswith("closure in tuple in function") for each in kept_by)
    assert any("later" in each for each in kept_by)


async def test_an_agent_in_a_class_or_an_object_is_found() -> None:
    class Registry:
        newest: Any = None

    registry = Registry()

    async def keep() -> None:
        Registry.newest = Worker()
        registry.mine = Worker()  # type: ignore[attr-defined]  # that is what leaks do

    await keep()
    async with LeakCheck() as check:
        await keep()
    kept = next(kept for kept in check.report().kept if kept.kind.endswith("Worker"))
    assert kept.count == 2
    assert any(each.startswith("'newest' of class") for each in kept.kept_by)
    assert any(each.startswith("'mine' of test_leaks") for each in kept.kept_by)


async def test_an_agent_in_a_variable_of_the_block_is_found() -> None:
    async with LeakCheck() as check:
        agent = Worker()
        assert agent.name == "Ann"
    kept = next(kept for kept in check.report().kept if kept.kind.endswith("Worker"))
    assert any(each.startswith("variable 'agent' of test_an_agent") for each in kept.kept_by)


async def test_agents_that_only_the_collector_frees_are_told_but_are_no_leak() -> None:
    async def cycle() -> None:
        agent = Worker()
        agent.register_instance_hook("pre_reply", "me", lambda _, arguments: agent.name and None)
        await agent(hello())

    with no_collector():
        async with LeakCheck() as check:
            await cycle()
    report = check.report()
    assert report.is_clean
    assert {kept.kind.rpartition(".")[2]: kept.count for kept in report.cycles}["Worker"] == 1
    assert "freed by the collector alone" in str(report)


async def test_hooks_hubs_and_queues_left_on_what_lives_on_are_found() -> None:
    agent, other = Worker(), Worker()
    names = iter(range(100))

    async def tie() -> None:
        name = str(next(names))
        Worker.register_class_hook("pre_reply", name, lambda *anything: None)
        agent.register_instance_hook("pre_reply", name, lambda *anything: None)
        agent.reset_subscribers(name, [other])
        agent.set_msg_queue_enabled(True)

    async with LeakCheck() as check:
        await tie()
    Worker.clear_class_hooks()
    assert check.report().ties == (
        "pre_reply hook '0' of agent test_leaks.Worker",
        "pre_reply hook '0' of class test_leaks.Worker",
        "queue of agent test_leaks.Worker",
        "subscribers of hub '0' of agent test_leaks.Worker",
    )


async def test_a_task_left_running_is_found() -> None:
    never = asyncio.Event()

    async def forget() -> None:
        left.append(asyncio.create_task(never.wait(), name="forgotten"))

    report = await found(forget)
    assert report.tasks == ("forgotten running Event.wait",) * 4
    never.set()


async def test_a_task_that_is_ending_is_no_leak() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        task.cancel()

    (await leaks_of(cancel, times=4)).check()


async def test_a_file_left_open_is_found(tmp_path: Path) -> None:
    path = tmp_path / "notes"

    async def forget() -> None:
        left.append(path.open("w"))

    report = await found(forget)
    for file in left:
        file.close()
    assert report.files == (str(path),) * 4


async def test_a_thread_left_running_is_found() -> None:
    end = threading.Event()

    async def forget() -> None:
        thread = threading.Thread(target=end.wait, name="forgotten")
        thread.start()
        left.append(thread)

    report = await found(forget, times=2)
    end.set()
    for thread in left:
        thread.join()
    assert report.threads == ("forgotten",) * 2


async def test_memory_that_grows_is_found_with_its_place() -> None:
    async def keep() -> None:
        left.append(bytearray(1000))

    report = await found(keep, times=40)
    assert report.growth.per_round >= 8 * 1000
    assert any("test_leaks.py" in place for place in report.growth.places)
    assert "bytes a round" in str(report)


async def test_what_is_filled_once_is_no_leak() -> None:
    cache: dict[int, bytearray] = {}
    numbers = iter(range(10_000))

    async def fill() -> None:
        cache[next(numbers) % 8] = bytearray(1000)

    (await leaks_of(fill, times=200)).check()


def test_growth_is_what_every_round_shows() -> None:
    assert Growth((10, 20, 30, 50)).per_round == 10
    assert Growth((10, 90, 90, 90)).per_round == 0
    assert Growth((10, 20, 30, 5)).per_round == 0
    assert Growth((10,)).per_round == Growth().per_round == 0


# -- manners ---------------------------------------------------------------------------------------


async def test_a_check_has_no_report_before_its_end() -> None:
    check = LeakCheck()
    with pytest.raises(RuntimeError, match="after its block"):
        check.report()
    async with check:
        check.round()
    assert str(check.report()) == "nothing was left behind"


async def test_the_blocks_error_goes_on() -> None:
    async def fail() -> None:
        async with LeakCheck():
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fail()


async def test_a_trace_of_the_users_own_goes_on() -> None:
    tracemalloc.start()
    try:
        async with LeakCheck(trace_memory=True):
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


async def test_other_kinds_may_be_counted() -> None:
    class Thing:
        pass

    async with LeakCheck(kinds=(Thing,)) as check:
        left.append(Thing())
        left.append(Worker())
    assert [(kept.kind.rpartition(".")[2], kept.count) for kept in check.report().kept] == [
        ("Thing", 1)
    ]
