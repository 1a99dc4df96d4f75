"""What only the memory in RAM does: its whole content is its state, in both old formats."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from memoryspace import InMemoryMemory, MemoryStore, Msg, Record, Scope
from memoryspace.message.sharing import is_on_loan

ANN = {
    "id": "1",
    "name": "Ann",
    "role": "user",
    "content": "早上好",
    "metadata": {},
    "timestamp": "2026-02-12 08:44:59.628",
}
BOB = {**ANN, "id": "2", "name": "Bob", "content": [{"type": "text", "text": "hi"}]}


async def test_the_state_is_summary_and_messages_with_their_marks() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg.from_dict(ANN))
    await memory.add(Msg.from_dict(BOB), marks=["y", "x"])
    await memory.update_compressed_summary("before")
    state = json.loads(json.dumps(memory.state_dict()))
    assert list(state) == ["_compressed_summary", "content"]
    assert state == {"_compressed_summary": "before", "content": [[ANN, []], [BOB, ["x", "y"]]]}
    other = InMemoryMemory()
    await other.add(Msg("Cid", "to be replaced", "user"))
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert [msg.content for msg in await other.get_memory(mark="x")][1:] == [BOB["content"]]


async def test_a_state_from_before_marks_loads() -> None:
    memory = InMemoryMemory()
    memory.load_state_dict({"content": [ANN, {**BOB, "type": "msg"}]})
    assert memory.state_dict() == {"_compressed_summary": "", "content": [[ANN, []], [BOB, []]]}


async def test_a_state_that_does_not_fit_changes_nothing() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg.from_dict(ANN), marks="x")
    before = memory.state_dict()
    with pytest.raises(KeyError, match="content"):
        memory.load_state_dict({})
    memory.load_state_dict({}, strict=False)
    for wrong in ("text", ["one"], [BOB, [], []], [{"name": "no content"}, []]):
        with pytest.raises(ValueError, match=r"\[message, marks\]|needs 'content'|role"):
            memory.load_state_dict({"content": [[BOB, []], wrong]})
    with pytest.raises(TypeError, match="mark"):
        memory.load_state_dict({"content": [[BOB, [1]]]})
    assert memory.state_dict() == before


async def test_content_is_a_copy_of_messages_and_marks() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg.from_dict(BOB), marks="x")
    ((msg, marks),) = memory.content
    msg.content[0]["text"] = "changed"  # type: ignore[index,typeddict-unknown-key]  # a block
    marks.append("changed")
    assert memory.state_dict()["content"] == [[BOB, ["x"]]]


async def test_values_that_are_no_json_stay_what_they_are() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg("Ann", "x", "user", {"tuple": (1, {2}), "bytes": b"raw"}))
    assert (await memory.get_memory())[0].metadata == {"tuple": (1, {2}), "bytes": b"raw"}


async def test_reading_again_lends_the_same_messages_again() -> None:
    memory = InMemoryMemory()
    await memory.add([Msg("Ann", str(n), "user") for n in range(100)])
    first, second = await memory.get_memory(), await memory.get_memory()
    assert first is not second
    assert all(one is other for one, other in zip(first, second, strict=True))
    first[3].content = "mine"
    first.clear()
    third = await memory.get_memory()
    assert len(third) == 100
    assert third[3] is not second[3]
    assert third[3].content == "3"
    assert third[4] is second[4]
    assert all(is_on_loan(msg) for msg in third)


async def test_every_change_is_seen_through_every_filter() -> None:
    store = MemoryStore()
    memory, twin = InMemoryMemory(store=store), InMemoryMemory(store=store)

    async def seen() -> tuple[str, str, str]:
        everything, marked, rest = [
            "".join(str(msg.content) for msg in await memory.get_memory(**filters))
            for filters in ({}, {"mark": "x"}, {"exclude_mark": "x"})
        ]
        return everything, marked, rest

    messages = [Msg("Ann", text, "user") for text in "abcd"]
    await memory.add(messages[:2])
    assert await seen() == ("ab", "", "ab")
    await twin.add(messages[2], marks="x")
    assert await seen() == ("abc", "c", "ab")
    await twin.update_messages_mark("x", msg_ids=[messages[0].id])
    assert await seen() == ("abc", "ac", "b")
    await twin.delete([messages[1].id])
    await twin.add(messages[3])
    assert await seen() == ("acd", "ac", "d")
    twin.load_state_dict({"content": [ANN]})
    assert await seen() == ("早上好", "", "早上好")
    await twin.clear()
    assert await seen() == ("", "", "")


async def test_more_filters_than_are_kept_ready_still_answer() -> None:
    memory = InMemoryMemory()
    for number in range(40):
        await memory.add(Msg("Ann", str(number), "user"), marks=f"mark {number}")
    for number in [*range(40), *range(40)]:
        (found,) = await memory.get_memory(mark=f"mark {number}")
        assert found.content == str(number)


def test_threads_may_share_a_store() -> None:
    store, scope = MemoryStore(), Scope("user", "session")

    def write(thread: int) -> None:
        for number in range(200):
            msg = Msg("Ann", f"{thread} {number}", "user")
            asyncio.run(store.append(scope, [Record(msg.id, msg, str(msg.content))]))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.select_now(scope)
    assert [record.seq for record in found] == list(range(1, 801))
    for thread_number in range(4):
        own = [r.text for r in found if r.text.startswith(f"{thread_number} ")]
        assert own == [f"{thread_number} {number}" for number in range(200)]


async def test_a_batch_that_cannot_be_copied_adds_nothing() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg.from_dict(ANN))
    bad = Msg("Bob", "x", "user", {"lock": threading.Lock()})
    with pytest.raises(TypeError):
        await memory.add([Msg("Cid", "y", "user"), bad])
    assert await memory.size() == 1


async def test_setting_the_content_replaces_the_messages() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg("Ann", "to be replaced", "user"))
    await memory.update_compressed_summary("stays")
    memory.content = [Msg.from_dict(ANN), (Msg.from_dict(BOB), ["x"])]
    assert memory.state_dict() == {
        "_compressed_summary": "stays",
        "content": [[ANN, []], [BOB, ["x"]]],
    }


async def test_a_state_with_one_id_twice_keeps_both_messages() -> None:
    memory = InMemoryMemory()
    memory.load_state_dict({"content": [ANN, {**ANN, "content": "again"}]})
    found = await memory.get_memory()
    assert [msg.content for msg in found] == ["早上好", "again"]
    assert len({msg.id for msg in found}) == 2
    with pytest.raises(ValueError, match="for our own"):
        memory.load_state_dict({"content": [{**ANN, "id": "memoryspace:summary"}]})
    assert await memory.size() == 2


async def test_a_subclass_may_have_more_state() -> None:
    class Counting(InMemoryMemory):
        def __init__(self) -> None:
            super().__init__()
            self.turns = 0
            self.register_state("turns")

    memory, other = Counting(), Counting()
    memory.turns = 3
    await memory.add(Msg.from_dict(ANN))
    other.load_state_dict(memory.state_dict())
    assert (other.turns, await other.size()) == (3, 1)


def test_reading_while_another_thread_writes_shows_every_message_once() -> None:
    store = MemoryStore()
    writer, reader = InMemoryMemory(store=store), InMemoryMemory(store=store)

    async def write() -> None:
        for number in range(3_000):
            await writer.add(Msg("Ann", str(number), "user"), marks="x" if number % 2 else None)

    thread = threading.Thread(target=lambda: asyncio.run(write()))
    thread.start()
    while thread.is_alive():
        for filters in ({}, {"mark": "x"}, {"exclude_mark": "x"}):
            said = [int(str(msg.content)) for msg in asyncio.run(reader.get_memory(**filters))]
            assert said == sorted(set(said))
    thread.join()
    assert len(asyncio.run(reader.get_memory())) == 3_000
