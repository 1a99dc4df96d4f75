"""Repair on write: every call gets a stored result, once, on every backend."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.memory import InMemoryMemory, MemoryBase, repair_memory
from memoryspace.message import Msg, new_id, repair
from memoryspace.message.repairing import NO_RESULT, results_in

from backends import STORE_BACKENDS, memory_maker


def call(*ids: str, text: str = "") -> Msg:
    content: list[Any] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ids]
    return Msg("Ann", content, "assistant")


def result(*ids: str) -> Msg:
    content: list[Any] = [
        {"type": "tool_result", "id": id, "name": "look", "output": "seen"} for id in ids
    ]
    return Msg("system", content, "system")


def says(text: str) -> Msg:
    return Msg("Bob", text, "user")


async def troubles_in(memory: MemoryBase) -> list[str]:
    found = repair(await memory.get_memory(prepend_summary=False)).repairs
    return [each.trouble for each in found]


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_a_call_without_a_result_gets_one_on_every_backend(backend: str) -> None:
    async with memory_maker(backend) as make:
        memory = make(f"user-{new_id()}", "session")
        asked = call("a", "b", text="Let me look.")
        await memory.add([says("Go."), asked, result("a")])
        repairs = await repair_memory(memory)
        assert [(each.trouble, each.message_id, each.tool_id) for each in repairs] == [
            ("unanswered_call", asked.id, "b")
        ]
        last = (await memory.get_memory())[-1]
        assert results_in(last)[0]["output"] == NO_RESULT
        assert await troubles_in(memory) == []
        assert await repair_memory(memory) == ()
        assert await memory.size() == 4


async def test_a_whole_history_is_left_alone() -> None:
    memory = InMemoryMemory()
    await memory.add([says("Go."), call("a"), result("a"), says("Thanks.")])
    assert await repair_memory(memory) == ()
    assert await memory.size() == 4


async def test_a_result_that_comes_late_stands_behind_its_call_for_readers() -> None:
    memory = InMemoryMemory()
    await memory.add([call("a"), says("Still there?")])
    assert len(await repair_memory(memory)) == 1
    read = repair(await memory.get_memory()).messages
    assert [bool(results_in(msg)) for msg in read] == [False, True, False]


async def test_two_who_repair_at_once_store_one_result() -> None:
    memory = InMemoryMemory()
    await memory.add(call("a"))
    await asyncio.gather(repair_memory(memory), repair_memory(memory))
    assert await memory.size() == 2


async def test_a_call_that_is_not_resident_is_left_alone() -> None:
    memory = InMemoryMemory()
    await memory.add(call("a"), marks="compressed")
    await memory.add([says("Go."), call("b")])
    assert [each.tool_id for each in await repair_memory(memory)] == ["b"]
    assert await repair_memory(memory) == ()
    assert len(await memory.get_memory(exclude_mark="compressed")) == 3


async def test_calls_with_one_id_are_all_answered() -> None:
    memory = InMemoryMemory()
    await memory.add([call("a"), call("a", "a")])
    assert len(await repair_memory(memory)) == 3
    assert await repair_memory(memory) == ()
    assert (await troubles_in(memory)).count("orphan_result") == 0


async def test_an_answered_call_whose_id_was_used_before_makes_no_orphan() -> None:
    memory = InMemoryMemory()
    await memory.add([call("a"), call("a"), result("a")])
    assert len(await repair_memory(memory)) == 1
    assert await repair_memory(memory) == ()
    assert (await troubles_in(memory)).count("orphan_result") == 0


async def test_tool_ids_no_backend_could_hold_as_ids_are_answered() -> None:
    memory = InMemoryMemory()
    strange = ["", "x" * 5000, "../../evil", "a\0b", "\ud800"]
    for id in strange:
        await memory.add(call(id))
    assert len(await repair_memory(memory)) == len(strange)
    assert await repair_memory(memory) == ()


pieces = st.one_of(
    st.builds(call, st.sampled_from("abc"), st.sampled_from("abc")),
    st.builds(call, st.sampled_from(["a", "b", "c", ""])),
    st.builds(result, st.sampled_from("abc")),
    st.builds(says, st.just("hello")),
)


@given(st.lists(pieces, max_size=12))
def test_repair_answers_what_adding_can_answer_and_breaks_nothing(history: list[Msg]) -> None:
    async def story() -> None:
        memory = InMemoryMemory()
        await memory.add(history)
        before = await troubles_in(memory)
        done = await repair_memory(memory)
        after = await troubles_in(memory)
        assert after.count("unanswered_call") == before.count("unanswered_call") - len(done)
        assert after.count("unanswered_call") <= after.count("repeated_id")
        assert after.count("orphan_result") == before.count("orphan_result")
        assert await repair_memory(memory) == ()
        stored = [msg.id for msg in await memory.get_memory()]
        assert stored[: len(history)] == [msg.id for msg in history]

    asyncio.run(story())
