"""A memory that compresses itself: originals stay, the memory shrinks, failures are harmless."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput, ModelFailed, ModelUnavailable
from memoryspace.memory import (
    InMemoryMessageStorage,
    MemoryWithCompress,
    MessageStorageBase,
)
from memoryspace.message import Msg, repair
from memoryspace.testing import MEMORY_CONTRACT, MemoryCheck, ScriptedModel
from memoryspace.token import CharTokenCounter, EstimatedTokenCounter

# Marks and the summary are the object's and its state's, not the storages': what another object
# on the same storages finds is the messages alone. Its restart is a state that is loaded, below.
NOT_ITS_OWN = {"check_a_restart_finds_everything"}
CONTRACT = [check for check in MEMORY_CONTRACT if check.__name__ not in NOT_ITS_OWN]


def says(text: str, role: Any = "user") -> Msg:
    return Msg("Ann", text, role)


def call(id: str, text: str = "") -> Msg:
    block: Any = {"type": "tool_use", "id": id, "name": "look", "input": {"at": text}}
    return Msg("bot", [block], "assistant")


def result(id: str, text: str = "seen") -> Msg:
    block: Any = {"type": "tool_result", "id": id, "name": "look", "output": text}
    return Msg("system", [block], "system")


def long_talk(turns: int, words: int = 40) -> list[Msg]:
    talk: list[Msg] = []
    for turn in range(turns):
        talk += [says(f"Question {turn}: " + "why " * words)]
        talk += [call(f"c{turn}"), result(f"c{turn}", "because " * words)]
        talk += [says(f"Answer {turn}.", "assistant")]
    return talk


def ids(messages: list[Msg]) -> list[str]:
    return [msg.id for msg in messages]


def text_of(msg: Msg) -> str:
    return msg.get_text_content() or ""


async def only_the_last(messages: list[Msg]) -> list[Msg]:
    return messages[-1:]


async def always(messages: list[Msg]) -> bool:
    return True


# -- as a memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__[6:])
async def test_the_contract_of_working_memory(check: MemoryCheck) -> None:
    places: dict[tuple[str, str], tuple[MessageStorageBase, MessageStorageBase]] = {}

    def make(user: str, session: str) -> MemoryWithCompress:
        storages = places.setdefault(
            (user, session), (InMemoryMessageStorage(), InMemoryMessageStorage())
        )
        return MemoryWithCompress(None, None, 10_000_000, *storages)

    await check(make)


async def test_instances_share_nothing() -> None:
    one, other = MemoryWithCompress(None, None), MemoryWithCompress(None, None)
    await one.add(says("Mine."))
    assert await other.get_memory() == []
    assert await other.size() == 0


async def test_a_deleted_message_stays_in_the_history() -> None:
    memory, messages = MemoryWithCompress(), [says("one"), says("two")]
    await memory.add(messages)
    assert await memory.delete(0) == 1
    assert await memory.delete(indices=[0]) == 1
    assert await memory.get_memory() == []
    assert await memory.size() == 2
    assert ids(await memory.chat_history_storage.get()) == ids(messages)


async def test_the_last_few_and_those_a_function_lets_through() -> None:
    memory, messages = MemoryWithCompress(), [says(str(n)) for n in range(6)]
    await memory.add(messages)
    assert ids(await memory.get_memory(recent_n=2)) == ids(messages[-2:])
    assert ids(await memory.get_memory(recent_n=0)) == ids(messages)
    assert ids(await memory.get_memory(recent_n=-3)) == ids(messages)
    even = await memory.get_memory(filter_func=lambda place, _: place % 2 == 0, recent_n=2)
    assert ids(even) == ids([messages[2], messages[4]])


async def test_marks_and_a_filter_narrow_together() -> None:
    memory, messages = MemoryWithCompress(), [says(str(n)) for n in range(4)]
    await memory.add(messages[:2], marks="hint")
    await memory.add(messages[2:])
    found = await memory.get_memory(exclude_mark="hint", filter_func=lambda place, _: place != 2)
    assert ids(found) == [messages[3].id]


async def test_a_limit_that_is_none_is_refused() -> None:
    for wrong in (0, -1, 1.5, True, "many"):
        with pytest.raises(InvalidInput, match="max_token"):
            MemoryWithCompress(None, None, wrong)  # type: ignore[arg-type]  # wrong on purpose


async def test_what_is_no_model_and_no_function_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="model must be a chat model"):
        MemoryWithCompress("gpt-4")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInput, match="compress_func must be a function"):
        MemoryWithCompress(compress_func=3)  # type: ignore[arg-type]  # wrong on purpose


async def test_plain_functions_compress_and_decide_too() -> None:
    memory = MemoryWithCompress(
        compress_func=lambda messages: messages[-1:],
        compression_trigger_func=lambda messages: len(messages) > 2,
    )
    await memory.add([says("one"), says("two")])
    assert len(await memory.get_memory()) == 2
    await memory.add(says("three"))
    assert [msg.content for msg in await memory.get_memory()] == ["three"]


# -- when it compresses ----------------------------------------------------------------------------


async def test_a_memory_that_is_too_long_is_compressed_when_read() -> None:
    memory, talk = MemoryWithCompress(None, None, 3000), long_talk(12)
    await memory.add(talk)
    assert len(await memory.memory_storage.get()) == len(talk)
    found = await memory.get_memory()
    assert len(json.dumps([[m.role, m.content] for m in found])) < 3000
    assert (found[0].role, found[0].name) == ("assistant", "assistant")
    assert text_of(found[0]).startswith("<compressed_memory>")
    assert text_of(found[0]).endswith("</compressed_memory>")
    assert ids(found[1:]) == ids(talk[-len(found) + 1 :])
    assert ids(await memory.chat_history_storage.get()) == ids(talk)
    assert await memory.size() == len(talk)


async def test_one_that_fits_is_left_alone() -> None:
    memory, talk = MemoryWithCompress(None, None, 1_000_000), long_talk(5)
    await memory.add(talk)
    assert ids(await memory.get_memory()) == ids(talk)


async def test_it_can_compress_on_add_and_not_on_get() -> None:
    on_add = MemoryWithCompress(None, None, 3000, compression_on_add=True, compression_on_get=False)
    await on_add.add(long_talk(12))
    assert len(await on_add.memory_storage.get()) < 48
    never = MemoryWithCompress(None, None, 3000, compression_on_get=False)
    await never.add(long_talk(12))
    assert len(await never.get_memory()) == 48


async def test_a_counter_measures_in_tokens() -> None:
    talk = long_talk(12)
    in_tokens = MemoryWithCompress(None, None, 3000, token_counter=EstimatedTokenCounter())
    in_signs = MemoryWithCompress(None, None, 3000, token_counter=CharTokenCounter())
    await in_tokens.add(talk)
    await in_signs.add(talk)
    assert len(await in_tokens.get_memory()) == len(talk)
    assert len(await in_signs.get_memory()) < len(talk)


async def test_a_trigger_compresses_what_is_short() -> None:
    memory = MemoryWithCompress(
        compress_func=only_the_last, compression_trigger_func=always, compression_on_get=True
    )
    await memory.add([says("one"), says("two")])
    assert [text_of(msg) for msg in await memory.get_memory()] == ["two"]


async def test_functions_of_a_call_come_before_those_of_the_memory() -> None:
    async def first(messages: list[Msg]) -> list[Msg]:
        return messages[:1]

    async def never(messages: list[Msg]) -> bool:
        return False

    memory = MemoryWithCompress(compress_func=only_the_last, compression_trigger_func=never)
    await memory.add([says("one"), says("two"), says("three")])
    assert len(await memory.get_memory()) == 3
    found = await memory.get_memory(compress_func=first, compression_trigger_func=always)
    assert [text_of(msg) for msg in found] == ["one"]
    memory.compression_on_add = True
    await memory.add(says("four"), compression_trigger_func=always)
    assert [text_of(msg) for msg in await memory.get_memory()] == ["four"]


async def test_checking_stores_nothing() -> None:
    memory = MemoryWithCompress(compress_func=only_the_last)
    await memory.add([says("one"), says("two")])
    assert (await memory.check_and_compress())[0] is False
    done, made = await memory.check_and_compress(compression_trigger_func=always)
    assert (done, [text_of(msg) for msg in made]) == (True, ["two"])
    assert len(await memory.get_memory()) == 2
    done, made = await memory.check_and_compress(only_the_last, always, [says("a"), says("b")])
    assert (done, [text_of(msg) for msg in made]) == (True, ["b"])


async def test_the_memory_can_be_replaced_directly() -> None:
    memory = MemoryWithCompress()
    await memory.add([says("one"), says("two")], marks="x")
    await memory.direct_update_memory(says("instead"))
    assert [text_of(msg) for msg in await memory.get_memory()] == ["instead"]
    assert await memory.get_memory(mark="x") == []
    assert await memory.size() == 2
    await memory.direct_update_memory(None)
    assert len(await memory.get_memory()) == 1
    with pytest.raises(TypeError):
        await memory.direct_update_memory(["text"])  # type: ignore[list-item]  # wrong on purpose


# -- what it keeps ---------------------------------------------------------------------------------


async def test_the_newest_user_message_stays_however_far_back_it_is() -> None:
    question = says("Which one is it?")
    memory = MemoryWithCompress(None, None, 2000)
    await memory.add([*long_talk(6), question])
    for step in range(12):
        await memory.add([call(f"s{step}"), result(f"s{step}", "much " * 60)])
        found = await memory.get_memory()
        assert question.id in ids(found)
        assert repair(found).repairs == ()
        assert ids(found)[-1] == ids(await memory.chat_history_storage.get())[-1]


async def test_system_messages_at_the_beginning_stay_in_front() -> None:
    rules, talk = says("Never guess.", "system"), long_talk(12)
    memory = MemoryWithCompress(None, None, 3000)
    await memory.add([rules, *talk])
    for _ in range(2):
        found = await memory.get_memory()
        assert found[0].id == rules.id
        assert text_of(found[1]).startswith("<compressed_memory>")
        await memory.add(long_talk(12))


async def test_a_newest_step_over_the_limit_does_not_keep_the_rest_from_being_compressed() -> None:
    step = [call("big"), result("big", "much " * 2000)]
    memory = MemoryWithCompress(None, None, 3000)
    await memory.add([*long_talk(12), *step])
    found = await memory.get_memory()
    assert text_of(found[0]).startswith("<compressed_memory>")
    assert ids(found[-2:]) == ids(step)
    assert len(found) < 6


async def test_what_was_compressed_before_is_merged_and_not_lost() -> None:
    model = ScriptedModel(
        '{"task_overview": "The first part."}',
        '{"task_overview": "The first part and the second."}',
    )
    memory = MemoryWithCompress(model, None, 3000)
    await memory.add(long_talk(12))
    await memory.get_memory()
    await memory.add(long_talk(12))
    found = await memory.get_memory()
    assert "The first part and the second." in text_of(found[0])
    assert sum("<compressed_memory>" in str(msg.content) for msg in found) == 1
    assert "The first part." in str(model.calls[-1].messages)


async def test_a_prompt_of_ones_own_is_filled_in() -> None:
    model = ScriptedModel('{"compressed_text": "In short."}')
    template = "At most {max_token} of {messages_list_json} as {schema_json}, not {other}."
    memory = MemoryWithCompress(model, None, 4000, customized_compression_prompt=template)
    await memory.add(long_talk(12))
    found = await memory.get_memory()
    assert text_of(found[0]) == "<compressed_memory>In short.</compressed_memory>"
    (asked,) = model.calls
    assert len(asked.messages) == 1
    prompt = asked.messages[0]["content"]
    assert all(part in prompt for part in ("Question 0", "compressed_text", "{other}"))
    assert not any(part in prompt for part in ("{max_token}", "{schema_json}"))


async def test_a_model_without_structure_is_taken_at_its_word() -> None:
    model = ScriptedModel("no JSON", "still none", "Plain words.")
    memory = MemoryWithCompress(model, None, 3000, customized_compression_prompt="Be short.")
    await memory.add(long_talk(12))
    assert "Plain words." in text_of((await memory.get_memory())[0])


# -- what goes wrong -------------------------------------------------------------------------------


async def _fails(messages: list[Msg]) -> list[Msg]:
    raise ValueError("secret words of a user")


async def _returns_none(messages: list[Msg]) -> Any:
    return None


async def _returns_text(messages: list[Msg]) -> Any:
    return ["text"]


@pytest.mark.parametrize("compress", [_fails, _returns_none, _returns_text])
async def test_a_failing_function_fails_nobody(
    compress: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory = MemoryWithCompress(
        compress_func=compress, compression_trigger_func=always, compression_on_add=True
    )
    with caplog.at_level(logging.WARNING):
        await memory.add([says("one"), says("two")])
        assert [text_of(msg) for msg in await memory.get_memory()] == ["one", "two"]
    assert "stays as it is" in caplog.text
    assert "secret" not in caplog.text


async def test_a_failing_trigger_fails_nobody() -> None:
    async def trigger(messages: list[Msg]) -> bool:
        raise RuntimeError

    memory = MemoryWithCompress(compression_trigger_func=trigger)
    await memory.add(says("one"))
    assert len(await memory.get_memory()) == 1


@pytest.mark.parametrize(
    "line",
    [ModelUnavailable("gone"), ModelFailed("no"), TimeoutError(), ValueError("x"), "", "   "],
    ids=repr,
)
async def test_a_failing_model_leaves_what_is_there(line: Any) -> None:
    model, talk = ScriptedModel(*[line] * 9), long_talk(12)
    memory = MemoryWithCompress(model, None, 3000)
    await memory.add(talk)
    assert ids(await memory.get_memory()) == ids(talk)
    assert ids(await memory.chat_history_storage.get()) == ids(talk)


async def test_a_cancelled_compression_leaves_what_is_there() -> None:
    started = asyncio.Event()

    async def forever(messages: list[Msg]) -> list[Msg]:
        started.set()
        await asyncio.Event().wait()
        return []

    memory = MemoryWithCompress(compress_func=forever, compression_trigger_func=always)
    await memory.add([says("one"), says("two")])
    reading = asyncio.create_task(memory.get_memory())
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    memory.compress_func = None
    assert len(await memory.get_memory(compression_trigger_func=_is_never)) == 2


async def _is_never(messages: list[Msg]) -> bool:
    return False


async def test_what_is_added_while_a_compressor_works_is_kept() -> None:
    memory, late = MemoryWithCompress(compression_trigger_func=always), says("late")

    async def slow(messages: list[Msg]) -> list[Msg]:
        if late.id not in ids(messages):
            await memory.add(late)
        return messages[-1:]

    memory.compress_func = slow
    await memory.add([says("one"), says("two")])
    assert [text_of(msg) for msg in await memory.get_memory()] == ["two", "late"]


async def test_what_is_deleted_while_a_compressor_works_does_not_come_back() -> None:
    memory, secret = MemoryWithCompress(compression_trigger_func=always), says("secret")

    async def slow(messages: list[Msg]) -> list[Msg]:
        await memory.delete([secret.id])
        return [says("all about the secret")]

    memory.compress_func = slow
    await memory.add([secret, says("two")])
    assert [text_of(msg) for msg in await memory.get_memory()] == ["two"]


async def test_readers_at_once_compress_once() -> None:
    model = ScriptedModel('{"next_steps": "Only once."}', '{"next_steps": "Twice."}')
    memory = MemoryWithCompress(model, None, 3000)
    await memory.add(long_talk(12))
    found = await asyncio.gather(*(memory.get_memory() for _ in range(5)))
    assert len(model.calls) == 1
    assert all(ids(each) == ids(found[0]) for each in found)


# -- state and storages ----------------------------------------------------------------------------


async def test_the_state_is_plain_data_and_comes_back_whole() -> None:
    memory = MemoryWithCompress(None, None, 3000)
    await memory.add(long_talk(12))
    await memory.add(says("marked"), marks=["x", "y"])
    await memory.update_compressed_summary("before all that")
    before = await memory.get_memory()
    state = json.loads(json.dumps(memory.state_dict()))
    assert state["max_token"] == 3000
    assert len(state["chat_history_storage"]) == 49

    again = MemoryWithCompress()
    again.load_state_dict(state)
    assert again.max_token == 3000
    assert [msg.to_dict() for msg in (await again.get_memory())[1:]] == [
        msg.to_dict() for msg in before[1:]
    ]
    assert text_of((await again.get_memory(mark="y"))[-1]) == "marked"
    assert await again.size() == 49


async def test_empty_lists_are_restored_too() -> None:
    empty, memory = MemoryWithCompress().state_dict(), MemoryWithCompress()
    await memory.add(says("one"))
    memory.load_state_dict(empty)
    assert (await memory.size(), await memory.get_memory()) == (0, [])


async def test_a_state_that_does_not_fit_changes_nothing() -> None:
    memory = MemoryWithCompress()
    await memory.add(says("one"))
    state = memory.state_dict()
    for broken in (
        {},
        {**state, "memory_storage": [{"name": "x"}]},
        {**state, "marks": {"a": 1}},
        {**state, "max_token": "many"},
    ):
        with pytest.raises((KeyError, TypeError, ValueError)):
            memory.load_state_dict(broken)
        assert await memory.size() == 1
    memory.load_state_dict({}, strict=False)
    assert await memory.size() == 1


def test_a_state_can_be_taken_without_a_loop() -> None:
    memory = MemoryWithCompress()
    asyncio.run(memory.add(says("one")))
    assert len(memory.state_dict()["memory_storage"]) == 1


class Elsewhere(MessageStorageBase):
    """A storage that is not in RAM, as far as the memory can tell."""

    def __init__(self) -> None:
        self.started = 0
        self._list = InMemoryMessageStorage()

    async def start(self) -> None:
        self.started += 1
        await self._list.start()

    async def health(self) -> bool:
        return await self._list.health()

    async def add(self, messages: list[Msg]) -> None:
        await self._list.add(messages)

    async def delete(self, indices: int | Iterable[int] | None = None) -> None:
        await self._list.delete(indices)

    async def clear(self) -> None:
        await self._list.clear()

    async def get(self, recent_n: int | None = None) -> list[Msg]:
        return await self._list.get(recent_n)

    async def replace(self, messages: list[Msg]) -> None:
        await self._list.replace(messages)


async def test_a_storage_of_ones_own_is_started_once_and_keeps_its_messages_itself() -> None:
    history, memory_list = Elsewhere(), Elsewhere()
    memory = MemoryWithCompress(None, None, 3000, history, memory_list)
    talk = long_talk(12)
    await memory.add(talk)
    await memory.add(talk[:3])
    assert len(await memory.get_memory()) < len(talk)
    assert await memory.size() == len(talk)
    assert (history.started, memory_list.started) == (1, 1)
    assert "memory_storage" not in memory.state_dict()
    memory.load_state_dict(memory.state_dict())
    async with memory:
        pass
    assert await memory.size() == len(talk)  # what was passed in is not stopped


async def test_a_list_in_ram_follows_its_contract() -> None:
    messages = [says(str(n)) for n in range(5)]
    async with InMemoryMessageStorage() as storage:
        assert await storage.health()
        await storage.add(messages)
        await storage.start()
        assert ids(await storage.get(2)) == ids(messages[-2:])
        await storage.delete([1, 3, 99, -1])
        await storage.delete(0)
        await storage.delete()
        assert ids(await storage.get()) == ids([messages[2], messages[4]])
        await storage.replace(messages[:1])
        assert await storage.known([messages[0].id, messages[1].id]) == {messages[0].id}
        assert await storage.size() == 1
    assert not await storage.health()
    assert await storage.get() == []


texts = st.text(alphabet="ab 词", max_size=30)
turns = st.one_of(
    st.builds(lambda text: [says(text)], texts),
    st.builds(lambda text: [says(text, "assistant")], texts),
    st.builds(lambda n, text: [call(f"t{n}"), result(f"t{n}", text)], st.integers(0, 9), texts),
)


@given(st.lists(turns, max_size=15), st.integers(1, 2000))
def test_any_history_under_any_limit_keeps_what_matters(parts: list[list[Msg]], limit: int) -> None:
    async def story() -> None:
        history = [msg for part in parts for msg in part]
        memory = MemoryWithCompress(None, None, limit)
        for part in parts:
            await memory.add(part)
            found = await memory.get_memory()
            known = set(ids(history))
            assert all(msg.id in known for msg in found[1:])
            troubles = {each.trouble for each in repair(found).repairs}
            assert troubles <= {"repeated_id"}
        asked = [msg.id for msg in history if msg.role == "user"]
        assert asked[-1:] == [id for id in ids(await memory.get_memory()) if id in asked][-1:]
        assert ids(await memory.chat_history_storage.get()) == ids(history)

    asyncio.run(story())
