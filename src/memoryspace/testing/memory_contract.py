"""The contract of working memory: coroutines that check memories made by a factory.

    for check in MEMORY_CONTRACT:
        await check(make_memory)

``make_memory(user_id, session_id)`` must return a memory on the same data each time: the checks
simulate a restart by calling it again with the same ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum

from ..memory import MemoryBase
from ..message import Msg, new_id
from ..record import RESERVED_PREFIX

MemoryMaker = Callable[[str, str], MemoryBase]
MemoryCheck = Callable[[MemoryMaker], Awaitable[None]]


class _Mark(str, Enum):  # noqa: UP042  # the kind that formats as its name
    HINT = "hint"
    COMPRESSED = "compressed"


def says(*texts: str) -> list[Msg]:
    """Return new messages with these texts."""
    return [Msg("Ann", text, "user") for text in texts]


def ids(messages: list[Msg]) -> list[str]:
    """Return the ids of messages in order."""
    return [msg.id for msg in messages]


def _fresh(make: MemoryMaker) -> MemoryBase:
    return make(f"user-{new_id()}", "session")


async def check_messages_come_back_as_they_were_said(make: MemoryMaker) -> None:
    memory = _fresh(make)
    call = Msg(
        "assistant",
        [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "1", "name": "search", "input": {"词": [1, None, True]}},
        ],
        "assistant",
        metadata={"tokens": 12},
        invocation_id="call-1",
    )
    answer = Msg(
        "system", [{"type": "tool_result", "id": "1", "name": "search", "output": "无"}], "system"
    )
    await memory.add([call, answer])
    assert [msg.to_dict() for msg in await memory.get_memory()] == [
        call.to_dict(),
        answer.to_dict(),
    ]
    assert repr((await memory.get_memory())[0]) == repr(call)


async def check_add_takes_one_several_or_none(make: MemoryMaker) -> None:
    memory, (one, two, three) = _fresh(make), says("1", "2", "3")
    assert await memory.add(None) is None  # type: ignore[func-returns-value]  # that is the point
    assert await memory.size() == 0
    await memory.add([])
    await memory.add(one)
    await memory.add([two, three])
    assert ids(await memory.get_memory()) == ids([one, two, three])
    assert await memory.size() == 3


async def check_wrong_types_are_refused(make: MemoryMaker) -> None:
    memory, (msg,) = _fresh(make), says("1")
    await _assert_raises(TypeError, memory.add("text"))  # type: ignore[arg-type]  # wrong on purpose
    await _assert_raises(TypeError, memory.add([msg, "text"]))  # type: ignore[list-item]  # the same
    await _assert_raises(TypeError, memory.add(msg, marks=1))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.add(msg, marks=["x", 1]))  # type: ignore[list-item]  # the same
    await _assert_raises(TypeError, memory.get_memory(mark=1))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.get_memory(exclude_mark=["x"]))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.delete_by_mark(None))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.delete([1.5]))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.delete())
    await _assert_raises(TypeError, memory.update_messages_mark(1))  # type: ignore[arg-type]  # the same
    await _assert_raises(TypeError, memory.update_messages_mark("x", msg_ids="abc"))
    await _assert_raises(TypeError, memory.update_compressed_summary(None))  # type: ignore[arg-type]  # the same
    assert await memory.size() == 0


async def check_unusable_ids_are_refused(make: MemoryMaker) -> None:
    memory = _fresh(make)
    for bad in ("", "a\0b", "x" * 256, RESERVED_PREFIX + "summary"):
        (msg,) = says("1")
        msg.id = bad
        await _assert_raises(ValueError, memory.add(msg))
        await _assert_raises(ValueError, memory.add(says("1"), marks=bad if bad[:1] != "m" else ""))
    assert await memory.size() == 0


async def check_a_repeated_message_is_kept_once(make: MemoryMaker) -> None:
    memory, messages = _fresh(make), says("1", "2")
    await memory.add([*messages, messages[0]])
    await memory.add(messages, skip_duplicated=True)
    await memory.add(messages, allow_duplicates=False, marks="late")
    assert ids(await memory.get_memory()) == ids(messages)
    assert ids(await memory.get_memory(mark="late")) == ids(messages)


async def check_duplicates_on_request_are_messages_of_their_own(make: MemoryMaker) -> None:
    memory, (one, two) = _fresh(make), says("1", "2")
    await memory.add([one, one], allow_duplicates=True)
    await memory.add([one, two], skip_duplicated=False)
    found = await memory.get_memory()
    assert [msg.content for msg in found] == ["1", "1", "1", "2"]
    assert len(set(ids(found))) == 4
    assert (found[0].id, found[3].id) == (one.id, two.id)
    await _assert_raises(ValueError, memory.add(one, allow_duplicates=True, skip_duplicated=True))
    assert await memory.size() == 4


async def check_marks_choose_messages(make: MemoryMaker) -> None:
    memory, (a, b, c, d) = _fresh(make), says("a", "b", "c", "d")
    await memory.add(a)
    await memory.add(b, marks="x")
    await memory.add(c, marks=["x", "y"])
    await memory.add(d, marks=["y"])
    assert ids(await memory.get_memory(mark="x")) == ids([b, c])
    assert ids(await memory.get_memory(exclude_mark="x")) == ids([a, d])
    assert ids(await memory.get_memory(mark="y", exclude_mark="x")) == [d.id]
    assert await memory.get_memory(mark="absent") == []
    assert await memory.delete_by_mark(["x", "y"]) == 3
    assert await memory.delete_by_mark("x") == 0
    assert ids(await memory.get_memory()) == [a.id]


async def check_an_enum_mark_is_its_value(make: MemoryMaker) -> None:
    memory, (a, b) = _fresh(make), says("a", "b")
    await memory.add(a, marks=_Mark.HINT)
    await memory.add(b, marks=[_Mark.HINT, "hint"])
    assert ids(await memory.get_memory(mark="hint")) == ids([a, b])
    assert await memory.update_messages_mark(_Mark.COMPRESSED, "hint") == 2
    assert ids(await memory.get_memory(mark="compressed")) == ids([a, b])
    assert await memory.get_memory(exclude_mark=_Mark.COMPRESSED) == []
    assert await memory.delete_by_mark(_Mark.COMPRESSED) == 2
    await memory.add([a, b])
    assert ids(await memory.get_memory(exclude_mark="compressed")) == ids([a, b])


async def check_marks_are_changed_in_one_way(make: MemoryMaker) -> None:
    memory, (a, b, c) = _fresh(make), says("a", "b", "c")
    await memory.add([a, b, c])
    assert await memory.update_messages_mark("x") == 3
    assert await memory.update_messages_mark("x") == 0
    assert await memory.update_messages_mark("y", msg_ids=[c.id, "absent"]) == 1
    assert await memory.update_messages_mark("y", old_mark="x") == 3
    assert ids(await memory.get_memory(mark="y")) == ids([a, b, c])
    assert await memory.get_memory(mark="x") == []
    assert await memory.update_messages_mark("y", old_mark="y") == 0
    assert await memory.update_messages_mark(None, old_mark="y", msg_ids=[b.id, a.id]) == 2
    assert await memory.update_messages_mark(None) == 0
    assert await memory.update_messages_mark("x", msg_ids=[]) == 0
    assert ids(await memory.get_memory(mark="y")) == [c.id]


async def check_delete_by_id_and_by_position(make: MemoryMaker) -> None:
    memory, messages = _fresh(make), says(*"abcdefg")
    await memory.add(messages)
    assert await memory.delete([messages[1].id, "absent", messages[1].id]) == 1
    assert await memory.delete([]) == 0
    assert await memory.delete(messages[2].id) == 1
    assert await memory.delete(0) == 1
    assert await memory.delete(index=[0, 2]) == 2
    await _assert_raises(IndexError, memory.delete([0, 2]))
    await _assert_raises(IndexError, memory.delete(index=-1))
    assert [msg.content for msg in await memory.get_memory()] == ["e", "g"]


async def check_everything_works_before_the_first_add(make: MemoryMaker) -> None:
    memory = _fresh(make)
    assert await memory.size() == 0
    assert await memory.get_memory(mark="x", exclude_mark="y") == []
    assert await memory.delete(["absent"]) == 0
    assert await memory.delete_by_mark("x") == 0
    assert await memory.update_messages_mark("x") == 0
    await memory.clear()
    assert await memory.get_memory() == []


async def check_the_summary_comes_first_and_is_no_message(make: MemoryMaker) -> None:
    memory, messages = _fresh(make), says("1", "2")
    await memory.add(messages, marks="x")
    await memory.update_compressed_summary("what was said before")
    for found in (await memory.get_memory(), await memory.get_memory(mark="x")):
        assert [msg.content for msg in found] == ["what was said before", "1", "2"]
        assert (found[0].name, found[0].role) == ("user", "user")
    only = await memory.get_memory(exclude_mark="x")
    assert [msg.content for msg in only] == ["what was said before"]
    assert ids(await memory.get_memory(prepend_summary=False)) == ids(messages)
    assert await memory.size() == 2
    assert await memory.update_messages_mark("y") == 2
    assert await memory.delete([msg.id for msg in await memory.get_memory()]) == 2
    await memory.update_compressed_summary("newer")
    assert [msg.content for msg in await memory.get_memory()] == ["newer"]
    await memory.update_compressed_summary("")
    assert await memory.get_memory() == []


async def check_clear_clears_the_summary_too(make: MemoryMaker) -> None:
    memory = _fresh(make)
    await memory.add(says("1"), marks="x")
    await memory.update_compressed_summary("before")
    await memory.clear()
    assert await memory.get_memory() == []
    assert memory.state_dict()["_compressed_summary"] == ""


async def check_a_restart_finds_everything(make: MemoryMaker) -> None:
    user, (a, b) = f"user-{new_id()}", says("a", "b")
    async with make(user, "session") as memory:
        await memory.add(a, marks="compressed")
        await memory.add(b)
        await memory.update_compressed_summary("a was said")
    async with make(user, "session") as again:
        found = await again.get_memory(exclude_mark="compressed")
        assert [msg.content for msg in found] == ["a was said", "b"]
        assert ids(await again.get_memory(mark="compressed", prepend_summary=False)) == [a.id]
        assert again.state_dict()["_compressed_summary"] == "a was said"
    await memory.add(says("c"))  # a closed memory opens again
    assert await memory.size() == 3


async def check_a_loaded_summary_fills_an_empty_place(make: MemoryMaker) -> None:
    memory = _fresh(make)
    state = {**memory.state_dict(), "_compressed_summary": "from a saved state"}
    memory.load_state_dict(state)
    assert [msg.content for msg in await memory.get_memory()] == ["from a saved state"]
    await memory.clear()
    assert await memory.get_memory() == []


async def check_users_and_sessions_are_apart(make: MemoryMaker) -> None:
    one, two = f"user-{new_id()}", f"user-{new_id()}"
    memories = [make(one, "s"), make(two, "s"), make(one, "t"), make(one + "-s", "t")]
    (msg,) = says("same message")
    for memory in memories:
        await memory.add(msg, marks="x")
        await memory.update_compressed_summary("summary")
    first, *others = memories
    assert await first.update_messages_mark("y", "x") == 1
    assert await first.delete_by_mark("y") == 1
    await first.clear()
    for memory in others:
        assert [m.content for m in await memory.get_memory("x")] == ["summary", "same message"]


async def check_what_is_handed_out_may_be_changed(make: MemoryMaker) -> None:
    memory = _fresh(make)
    block = Msg("Ann", [{"type": "text", "text": "as said"}], "user", {"k": [1]})
    await memory.add([block, *says("plain")])
    block.content[0]["text"] = "changed"  # type: ignore[index,typeddict-unknown-key]  # a block
    block.metadata["k"].append(2)

    async def read() -> list[object]:
        found = await memory.get_memory()
        return [(m.name, m.content, m.metadata) for m in found]

    as_said = await read()
    assert as_said == [
        ("Ann", [{"type": "text", "text": "as said"}], {"k": [1]}),
        ("Ann", "plain", {}),
    ]
    for msg in await memory.get_memory():
        msg.metadata["new"] = 1
    assert await read() == as_said
    for msg in await memory.get_memory():
        msg.get_content_blocks().append({"type": "text", "text": "new"})
    assert await read() == as_said
    for _ in range(2):
        first, second = await memory.get_memory()
        first.content[0]["text"] = "changed"  # type: ignore[index,typeddict-unknown-key]  # a block
        first.metadata["k"].append(2)
        second.content, second.name = "changed", "Bob"
        second.metadata["new"] = 1
        assert (second.content, second.name, second.metadata) == ("changed", "Bob", {"new": 1})
        assert await read() == as_said
    state = memory.state_dict()
    state.get("content", [[0, []]])[0][1].append("changed")
    assert await memory.get_memory(mark="changed") == []


async def check_two_readers_share_nothing(make: MemoryMaker) -> None:
    memory, twin = (make("Ann", session) for session in [f"session-{new_id()}"] * 2)
    await memory.add(says("earlier"), marks="x")
    await memory.add(Msg("Ann", [{"type": "text", "text": "as said"}], "user", {"k": [1]}))

    def seen(messages: list[Msg]) -> list[object]:
        return [(m.name, m.get_text_content(), m.to_dict()["metadata"]) for m in messages]

    as_said = seen(await memory.get_memory())
    readers = [await each.get_memory() for each in (memory, memory, twin, memory, memory)]
    (marked,) = await memory.get_memory(mark="x")
    for number, reader in enumerate(readers):
        plain, block = reader
        plain.content, plain.name = "changed", "Bob"
        block.content[0]["text"] = "changed"  # type: ignore[index,typeddict-unknown-key]  # a block
        block.metadata["k"].append(2)
        later = await memory.get_memory()
        assert all(seen(each) == as_said for each in [*readers[number + 1 :], later])
        assert seen([marked]) == as_said[:1]


async def check_concurrent_adds_keep_all_in_order(make: MemoryMaker) -> None:
    user, messages = f"user-{new_id()}", says(*(str(n) for n in range(200)))
    one = make(user, "one")
    await asyncio.gather(*(one.add(msg, marks="x") for msg in messages))
    assert sorted(ids(await one.get_memory(mark="x"))) == sorted(ids(messages))
    several = [make(user, "several") for _ in range(8)]
    await asyncio.gather(*(several[n % 8].add(msg) for n, msg in enumerate(messages)))
    orders = [ids(await memory.get_memory()) for memory in several]
    assert sorted(orders[0]) == sorted(ids(messages))
    assert all(order == orders[0] for order in orders)


async def check_writers_and_readers_at_once(make: MemoryMaker) -> None:
    memory, messages = _fresh(make), says(*(str(n) for n in range(40)))

    async def write(msg: Msg) -> None:
        await memory.add(msg, marks="new")
        await memory.update_messages_mark("old", "new", [msg.id])

    async def read() -> None:
        found = await memory.get_memory()
        assert len(set(ids(found))) == len(found)

    await asyncio.gather(*(write(msg) for msg in messages), *(read() for _ in range(20)))
    assert sorted(ids(await memory.get_memory(mark="old"))) == sorted(ids(messages))
    assert await memory.get_memory(mark="new") == []


async def check_retrieve_is_not_for_working_memory(make: MemoryMaker) -> None:
    await _assert_raises(NotImplementedError, _fresh(make).retrieve("query"))


async def _assert_raises(kind: type[Exception], call: Awaitable[object]) -> None:
    try:
        await call
    except kind:
        return
    raise AssertionError(f"the call must raise {kind.__name__}")


MEMORY_CONTRACT: list[MemoryCheck] = [
    check for name, check in list(globals().items()) if name.startswith("check_")
]
