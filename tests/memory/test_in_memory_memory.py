"""Behaviour of the memory in RAM alone: its state holds all of its content, in both old formats."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def pointers(messages: list[Msg]) -> list[int]:
    return [id(msg) for msg in messages]


async def test_what_nobody_holds_any_more_is_lent_again() -> None:
    memory = InMemoryMemory()
    await memory.add([Msg("Ann", str(n), "user") for n in range(100)])
    first = pointers(await memory.get_memory())
    assert pointers(await memory.get_memory()) == first
    await memory.add(Msg("system", "later", "system"), marks="hint")
    assert pointers(await memory.get_memory())[:100] == first
    await memory.delete_by_mark("hint")
    assert pointers(await memory.get_memory()) == first


async def test_a_reader_may_hold_what_it_read_before() -> None:
    memory = InMemoryMemory()
    await memory.add([Msg("Ann", str(n), "user") for n in range(100)])
    read, lent = await memory.get_memory(), set()
    for _ in range(6):
        held = pointers(read)
        read = await memory.get_memory()
        assert not {*held} & {*pointers(read)}
        lent.update(held)
    assert len(lent) == 200


async def test_what_is_held_or_changed_is_lent_anew() -> None:
    memory = InMemoryMemory()
    await memory.add([Msg("Ann", str(n), "user") for n in range(100)])
    read = await memory.get_memory()
    first, held = pointers(read), read[7]
    read[3].content = "mine"
    del read
    again = await memory.get_memory()
    assert again[7] is not held
    assert [msg.content for msg in again] == [str(n) for n in range(100)]
    assert sum(one != other for one, other in zip(pointers(again), first, strict=True)) <= 2
    assert all(is_on_loan(msg) for msg in again)


async def test_where_references_cannot_be_counted_everything_is_lent_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memoryspace.message.lending._FREE", -1)
    memory = InMemoryMemory()
    await memory.add([Msg("Ann", str(n), "user") for n in range(100)])
    kept = {id(msg): msg for _ in range(3) for msg in await memory.get_memory()}
    assert len(kept) == 300


@given(st.lists(st.tuples(st.sampled_from("aaarrrhhdmcx"), st.integers(0, 30)), max_size=60))
def test_any_reader_has_what_was_there_and_nobody_else_changes_it(
    deeds: list[tuple[str, int]],
) -> None:
    """Against a plain list: messages come, are read and held, dropped, changed, marked, go."""

    async def run() -> None:
        memory, said, held = InMemoryMemory(), [Msg("Ann", "0", "user")], []
        await memory.add(said)
        marked: set[str] = set()
        for deed, number in deeds:
            if deed == "a":
                said.append(Msg("Ann", str(len(said)), "user"))
                await memory.add(said[-1])
            elif deed in "rh":
                found = await memory.get_memory(exclude_mark="x" if number % 2 else None)
                left = [msg for msg in said if not number % 2 or msg.id not in marked]
                assert [msg.content for msg in found] == [msg.content for msg in left]
                held += [(found, [msg.content for msg in left])] if deed == "h" else []
            elif deed == "d" and said:
                gone = said.pop(number % len(said))
                await memory.delete(gone.id)
            elif deed == "m" and said:
                marked.add(said[number % len(said)].id)
                await memory.update_messages_mark("x", msg_ids=[said[number % len(said)].id])
            elif deed == "c" and held:
                found, contents = held[number % len(held)]
                for place, msg in enumerate(found):
                    msg.content = contents[place] = f"changed {number}"
            elif deed == "x" and held:
                held.pop(number % len(held))
            assert all([msg.content for msg in found] == contents for found, contents in held)

    asyncio.run(run())


async def test_a_memory_that_missed_many_changes_reads_everything_again() -> None:
    store = MemoryStore()
    memory, twin = InMemoryMemory(store=store), InMemoryMemory(store=store)
    messages = [Msg("Ann", str(n), "user") for n in range(1_000)]
    await memory.add(messages)
    await memory.get_memory()
    await twin.delete([msg.id for msg in messages[::2]])
    assert [msg.id for msg in await memory.get_memory()] == [msg.id for msg in messages[1::2]]


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
    with pytest.raises(ValueError, match="is reserved"):
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


async def test_neither_a_state_that_was_given_nor_one_that_was_taken_is_shared() -> None:
    memory = InMemoryMemory()
    block = {"type": "text", "text": "hello"}
    await memory.add(Msg("Ann", [block], "user", {"tags": ["a"]}), marks="kept")
    state = memory.state_dict()
    before = copy.deepcopy(state)
    other = InMemoryMemory()
    other.load_state_dict(state)
    for data, marks in state["content"]:
        data["content"][0]["text"] = "changed"
        data["metadata"]["tags"].append("b")
        marks.append("changed")
    assert memory.state_dict() == other.state_dict() == before


async def test_a_reader_sees_that_everything_went_and_came_again() -> None:
    memory, texts = InMemoryMemory(), ["a", "b", "c"]
    await memory.add([Msg("Ann", text, "user") for text in texts])
    assert [msg.content for msg in await memory.get_memory()] == texts
    await memory.clear()
    assert await memory.get_memory() == []
    await memory.add(Msg("Ann", "d", "user"))
    assert [msg.content for msg in await memory.get_memory()] == ["d"]
    memory.load_state_dict(memory.state_dict())
    assert [msg.content for msg in await memory.get_memory()] == ["d"]
    assert await memory.size() == 1


async def test_a_duplicate_leaves_the_first_one_and_its_marks_alone() -> None:
    memory, msg = InMemoryMemory(), Msg("Ann", "once", "user")
    await memory.add(msg, marks="first")
    await memory.add([msg, msg], marks="second", allow_duplicates=True)
    await memory.add([], allow_duplicates=True)
    (first,) = await memory.get_memory(mark="first")
    second = await memory.get_memory(mark="second")
    assert first.id == msg.id
    assert len({first.id, *(each.id for each in second)}) == 3
    assert {each.content for each in second} == {"once"}


async def test_the_collector_is_back_at_work_after_a_state() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg("Ann", "hello", "user"))
    memory.load_state_dict(memory.state_dict())
    with pytest.raises(ValueError, match="pairs"):
        memory.load_state_dict({"content": [7]})
    assert gc.isenabled()
