"""Short-term memory: it compacts, measures, compresses, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace.errors import InvalidInput, ModelFailed, ModelUnavailable
from memoryspace.memory import (
    AsyncSQLAlchemyMemory,
    InMemoryMemory,
    ReMeShortTermMemory,
    repair_memory,
)
from memoryspace.message import Msg, new_id, repair
from memoryspace.testing import MEMORY_CONTRACT, MemoryCheck, ScriptedModel
from memoryspace.token import CharTokenCounter

from backends import STORE_BACKENDS, memory_maker

NOTES = '{"task_overview": "The user asks many things."}'
SMALL: dict[str, Any] = {
    "max_total_tokens": 1200,
    "max_tool_message_tokens": 150,
    "keep_recent_count": 4,
    "preview_char_length": 40,
}


def says(text: str, role: Any = "user") -> Msg:
    return Msg("Ann", text, role)


def call(id: str, **options: Any) -> Msg:
    block: Any = {"type": "tool_use", "id": id, "name": "look", "input": options}
    return Msg("bot", [block], "assistant")


def result(id: str, text: str = "seen") -> Msg:
    block: Any = {"type": "tool_result", "id": id, "name": "look", "output": text}
    return Msg("system", [block], "system")


def work(steps: int, words: int = 300) -> list[Msg]:
    """A question, and steps of work with big results."""
    done = [says("Find the one.")]
    for step in range(steps):
        done += [call(f"c{step}", at=step), result(f"c{step}", f"Result {step}. " + "so " * words)]
    return [*done, says("Well?")]


def talk(turns: int, words: int = 60) -> list[Msg]:
    """Talk without tools."""
    said: list[Msg] = []
    for turn in range(turns):
        said += [says(f"Question {turn}? " + "why " * words)]
        said += [says(f"Answer {turn}. " + "so " * words, "assistant")]
    return said


def ids(messages: Sequence[Msg]) -> list[str]:
    return [msg.id for msg in messages]


def text_of(messages: Sequence[Msg]) -> str:
    return json.dumps([msg.content for msg in messages])


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def folders_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def check_all_is_there(memory: ReMeShortTermMemory, said: Sequence[Msg]) -> None:
    """The memory has every message as it was said, and every handle that is shown leads there."""
    kept = await memory.memory.get_memory(prepend_summary=False)
    assert [msg.to_dict() for msg in kept] == [msg.to_dict() for msg in said]
    shown = await memory.get_memory()
    assert repair(shown).repairs == ()
    for handle in set(re.findall(r'read_memory\(\\"([0-9a-f]+)\\"', text_of(shown))):
        assert await memory.expand(handle)


# -- as a memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("check", MEMORY_CONTRACT, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_the_contract_of_working_memory(backend: str, check: MemoryCheck) -> None:
    async with memory_maker(backend) as make:
        await check(
            lambda user, session: ReMeShortTermMemory(
                max_total_tokens=1_000_000, memory=make(user, session)
            )
        )


async def test_it_works_with_and_without_starting() -> None:
    memory = ReMeShortTermMemory()
    await memory.add(says("Before."))
    async with memory as same:
        assert same is memory
        await memory.add(says("In between."))
        with pytest.raises(RuntimeError):
            async with memory:
                raise RuntimeError
    assert len(await memory.get_memory(exclude_mark="compressed")) == 2
    with pytest.raises(NotImplementedError):
        await memory.retrieve()


async def test_settings_that_cannot_be_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"reme_config_path": "reme.yaml"},
        {"model": "gpt"},
        {"working_summary_mode": "fast"},
        {"compact_ratio_threshold": -1},
        {"compact_ratio_threshold": "much"},
        {"max_total_tokens": 0},
        {"max_total_tokens": True},
        {"max_tool_message_tokens": 1.5},
        {"keep_recent_count": -1},
        {"group_token_threshold": -5},
        {"preview_char_length": None},
        {"memory": InMemoryMemory(), "session_id": "s"},
        {"session_id": ""},
        {"session_id": "a\0b"},
    ]
    for options in wrong:
        with pytest.raises(InvalidInput, match=r".{20}"):
            ReMeShortTermMemory(**options)
    with pytest.raises(TypeError, match="no_such_option"):
        ReMeShortTermMemory(no_such_option=1)  # type: ignore[call-arg]  # wrong on purpose


# -- what the modes do -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compact", "compress", "auto"])
async def test_what_fits_is_returned_as_it_is(mode: Any) -> None:
    memory, said = ReMeShortTermMemory(working_summary_mode=mode), work(3)
    await memory.add(said)
    assert [msg.to_dict() for msg in await memory.get_memory()] == [msg.to_dict() for msg in said]
    assert memory.report is None


async def test_compact_takes_out_big_results_and_nothing_else() -> None:
    model, said = ScriptedModel(NOTES), work(6)
    memory = ReMeShortTermMemory(model, working_summary_mode="compact", **SMALL)
    await memory.add(said)
    shown = await memory.get_memory()
    assert ids(shown) == ids(said)
    assert [msg.timestamp for msg in shown] == [msg.timestamp for msg in said]
    changed = [a.id for a, b in zip(said, shown, strict=True) if a.content != b.content]
    assert changed
    assert set(changed) < {msg.id for msg in said if msg.role == "system"}
    assert model.calls == []
    await check_all_is_there(memory, said)


async def test_compress_summarises_what_is_old() -> None:
    model, said = ScriptedModel(NOTES), talk(12)
    memory = ReMeShortTermMemory(model, working_summary_mode="compress", **SMALL)
    await memory.add(said)
    shown = await memory.get_memory()
    assert "The user asks many things." in text_of(shown[:1])
    assert ids(shown[1:]) == ids(said[-4:])
    assert len(model.calls) == 1
    await check_all_is_there(memory, said)


async def test_auto_stops_where_compacting_is_enough() -> None:
    model, said = ScriptedModel(NOTES), work(6)
    memory = ReMeShortTermMemory(model, **SMALL)
    await memory.add(said)
    assert ids(await memory.get_memory()) == ids(said)
    assert model.calls == []
    assert memory.report is not None
    assert memory.report.tokens_after <= 0.75 * memory.report.tokens_before


async def test_auto_compresses_the_compacted_text_if_too_much_is_left() -> None:
    secret = "The needle is in the haystack."
    big = result("c", f"{'hay ' * 300} {secret} {'hay ' * 300}")
    said = [says("Go."), call("c"), big, *talk(12)]
    model = ScriptedModel(NOTES)
    memory = ReMeShortTermMemory(model, **SMALL)
    await memory.add(said)
    shown = await memory.get_memory()
    assert "The user asks many things." in text_of(shown[:1])
    (asked,) = model.calls
    assert "left the context" in str(asked.messages)
    assert secret not in str(asked.messages)
    report = memory.report
    assert report is not None
    assert {loss.what for loss in report.losses} >= {"tool_result", "messages"}
    assert secret in str([str(await memory.expand(handle)) for handle in report.handles])
    await check_all_is_there(memory, said)


async def test_the_threshold_decides_even_where_it_fits() -> None:
    said = [*work(1, words=400), *talk(8)]
    for ratio, calls in ((0.99, 0), (0.01, 1)):
        model = ScriptedModel(NOTES)
        limits = {**SMALL, "max_total_tokens": 1500}
        memory = ReMeShortTermMemory(model, compact_ratio_threshold=ratio, **limits)
        await memory.add(said)
        await memory.get_memory()
        assert memory.report is not None
        assert memory.report.is_within_budget
        assert len(model.calls) == calls


async def test_a_model_is_shown_so_much_at_once() -> None:
    model = ScriptedModel(*[NOTES] * 20)
    memory = ReMeShortTermMemory(
        model, working_summary_mode="compress", group_token_threshold=300, **SMALL
    )
    await memory.add(talk(12))
    await memory.get_memory()
    assert len(model.calls) > 3
    assert "The user asks many things." in str(model.calls[-1].messages)


async def test_without_a_model_the_summary_is_of_what_was_said() -> None:
    memory, said = ReMeShortTermMemory(**SMALL), talk(12)
    await memory.add(said)
    shown = await memory.get_memory()
    assert memory.report is not None
    assert memory.report.is_within_budget
    assert memory.report.troubles == ()
    assert "Question" in text_of(shown[:1])
    await check_all_is_there(memory, said)


async def test_a_counter_of_ones_own_is_asked() -> None:
    memory = ReMeShortTermMemory(token_counter=CharTokenCounter(), **SMALL)
    said = talk(4)
    await memory.add(said)
    assert len(await memory.get_memory()) < len(said) + 1
    assert memory.report is not None


@pytest.mark.parametrize("mode", ["compact", "compress", "auto"])
async def test_thoughts_and_pictures_of_recent_messages_stay(mode: Any) -> None:
    picture: Any = {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}
    thought: Any = {"type": "thinking", "thinking": "Hm."}
    recent = Msg("bot", [thought, picture, {"type": "text", "text": "Look."}], "assistant")
    memory = ReMeShortTermMemory(working_summary_mode=mode, **{**SMALL, "max_total_tokens": 3000})
    await memory.add([*work(12), recent])
    shown = await memory.get_memory()
    assert memory.report is not None
    assert shown[-1].to_dict() == recent.to_dict()


@pytest.mark.parametrize("mode", ["compact", "compress", "auto"])
async def test_a_call_and_its_result_stay_together_at_every_step(mode: Any) -> None:
    memory = ReMeShortTermMemory(
        working_summary_mode=mode, **{**SMALL, "keep_recent_count": 3, "max_total_tokens": 600}
    )
    said: list[Msg] = []
    for msg in work(15, words=40):
        said.append(msg)
        await memory.add(msg)
        troubles = {each.trouble for each in repair(await memory.get_memory()).repairs}
        assert troubles == set()
    await check_all_is_there(memory, said)


@pytest.mark.parametrize(
    "line",
    [ModelUnavailable("gone"), ModelFailed("no"), TimeoutError(), ValueError("x"), "", "{", []],
    ids=lambda line: str(line) or type(line).__name__,
)
async def test_a_model_that_fails_leaves_the_compaction_standing(line: Any) -> None:
    memory = ReMeShortTermMemory(ScriptedModel(*[line] * 20), **SMALL)
    said = [*work(6), *talk(12)]
    await memory.add(said)
    await memory.get_memory()
    report = memory.report
    assert report is not None
    assert report.is_within_budget
    assert report.troubles
    assert "tool_result" in {loss.what for loss in report.losses}
    await check_all_is_there(memory, said)


async def test_messages_by_a_mark_are_whole_wherever_they_are() -> None:
    memory = ReMeShortTermMemory(**SMALL)
    await memory.add(talk(2), marks="first")
    await memory.add(talk(12))
    await memory.get_memory()
    found = await memory.get_memory(mark="first", prepend_summary=False)
    assert len(found) == 4
    assert len(await memory.get_memory(prepend_summary=False)) == len(await memory.get_memory()) - 1


async def test_an_open_history_can_be_repaired() -> None:
    memory = ReMeShortTermMemory(**SMALL)
    await memory.add([says("Go."), call("a")])
    assert len(await repair_memory(memory)) == 1
    assert repair(await memory.get_memory()).repairs == ()


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_over_a_memory_on_every_backend(backend: str, tmp_path: Path) -> None:
    async with memory_maker(backend) as make:
        user, said = f"user-{new_id()}", [*work(6), *talk(12)]
        inner = make(user, "session")
        memory = ReMeShortTermMemory(memory=inner, store_dir=tmp_path, **SMALL)
        await memory.add(said)
        shown = text_of(await memory.get_memory())
        await check_all_is_there(memory, said)
        again = ReMeShortTermMemory(memory=make(user, "session"), store_dir=tmp_path, **SMALL)
        assert text_of(await again.get_memory()) == shown
        await check_all_is_there(again, said)


# -- the store directory ---------------------------------------------------------------------------


async def test_what_leaves_is_in_files_of_the_session(tmp_path: Path) -> None:
    memory = ReMeShortTermMemory(store_dir=tmp_path, session_id="one", **SMALL)
    said = [*work(6), *talk(12)]
    await memory.add(said)
    await memory.get_memory()
    assert len(folders_in(tmp_path)) == 1
    assert len(files_in(tmp_path)) > 5
    await check_all_is_there(memory, said)
    await memory.clear()
    assert not [path for path in files_in(tmp_path) if path.suffix in (".txt", ".json")]
    assert await memory.get_memory() == []


async def test_in_memory_means_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memory = ReMeShortTermMemory(**SMALL)
    await memory.add(work(6))
    await memory.get_memory()
    assert memory.report is not None
    assert files_in(tmp_path) == []


async def test_a_state_finds_its_files_again(tmp_path: Path) -> None:
    memory, said = ReMeShortTermMemory(store_dir=tmp_path, **SMALL), [*work(6), *talk(12)]
    await memory.add(said)
    shown = text_of(await memory.get_memory())
    state = json.loads(json.dumps(memory.state_dict()))
    again = ReMeShortTermMemory(store_dir=tmp_path, **SMALL)
    await again.get_memory()  # an empty one must not tidy up what is another's
    again.load_state_dict(state)
    assert text_of(await again.get_memory()) == shown
    await check_all_is_there(again, said)


async def test_a_state_of_a_plain_memory_is_taken() -> None:
    plain = InMemoryMemory()
    await plain.add(says("Hello."))
    memory = ReMeShortTermMemory()
    memory.load_state_dict(plain.state_dict())
    assert len(await memory.get_memory()) == 1
    with pytest.raises(KeyError):
        memory.load_state_dict({})
    with pytest.raises(InvalidInput):
        memory.load_state_dict({**plain.state_dict(), "archive_session": "a\0b"})
    assert len(await memory.get_memory()) == 1


async def test_sessions_with_the_same_tool_call_ids_are_apart(tmp_path: Path) -> None:
    memories = [ReMeShortTermMemory(store_dir=tmp_path, **SMALL) for _ in range(2)]
    for number, memory in enumerate(memories):
        await memory.add([call("same"), result("same", f"of session {number} " * 400), *talk(2)])
        await memory.get_memory()
    handles = [memory.report.handles for memory in memories if memory.report is not None]
    assert len(handles) == 2
    for number, memory in enumerate(memories):
        (read, search) = memory.tools
        for handle in handles[number]:
            assert f"of session {number}" in str(await memory.expand(handle))
        for handle in handles[1 - number]:
            assert "Error" in (await read(handle)).text
        found = (await search("of session")).text
        assert f"of session {number}" in found
        assert f"of session {1 - number}" not in found


EVIL = [
    "../../evil",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "~",
    "CON",
    "x" * 5000,
    "\n",
    "%00",
]


@pytest.mark.parametrize("evil", EVIL, ids=lambda evil: repr(evil)[:12])
async def test_no_id_and_no_handle_leads_out_of_the_folder(evil: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "store", tmp_path / "passwd.txt"
    outside.write_text("secret")
    usable = evil if evil and "\n" not in evil and len(evil) < 200 else "s"
    memory = ReMeShortTermMemory(store_dir=folder, user_id=usable, session_id=usable, **SMALL)
    await memory.add([call(evil), result(evil, "big " * 2000), *talk(12)])
    await memory.get_memory()
    assert {path for path in files_in(tmp_path) if folder not in path.parents} == {outside}
    assert len(folders_in(folder)) == 1
    read, search = memory.tools
    for handle in (evil, "../passwd.txt", str(outside), "passwd"):
        answer = (await read(handle)).text
        assert "secret" not in answer
        assert answer.startswith("Error")
    assert "secret" not in (await search("secret")).text


async def test_users_with_one_session_name_are_apart(tmp_path: Path) -> None:
    names = [("a", "b"), ("a@b", "c"), ("a", "b@c"), ("A", "b")]
    for user, session in names:
        memory = ReMeShortTermMemory(store_dir=tmp_path, user_id=user, session_id=session, **SMALL)
        await memory.add(work(6))
        await memory.get_memory()
    assert len(folders_in(tmp_path)) == len(names)


async def test_a_second_compression_keeps_what_the_first_archived(tmp_path: Path) -> None:
    memory, seen = ReMeShortTermMemory(store_dir=tmp_path, **SMALL), dict[str, str]()
    for _ in range(6):
        await memory.add([*work(3), *talk(6)])
        await memory.get_memory()
        assert memory.report is not None
        for handle in memory.report.handles:
            seen[handle] = str([*map(str, await memory.expand(handle))])
    assert len(seen) > 8
    for handle, content in seen.items():
        assert str([*map(str, await memory.expand(handle))]) == content


WORKER = """
import asyncio, sys
from sqlalchemy.ext.asyncio import create_async_engine
from memoryspace.memory import AsyncSQLAlchemyMemory, ReMeShortTermMemory
from memoryspace.message import Msg

async def main(folder, name):
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/memory.db")
    inner = AsyncSQLAlchemyMemory(engine, "session", "user")
    memory = ReMeShortTermMemory(
        max_total_tokens=800, keep_recent_count=3, store_dir=f"{folder}/store", memory=inner
    )
    for number in range(25):
        text = f"{name} {number}: " + "word " * 40
        await memory.add(Msg(name, text, "user"))
        assert await memory.get_memory()
        said = await inner.get_memory(prepend_summary=False)  # the other may have said more since
        assert any(msg.content == text for msg in said)
    await engine.dispose()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_share_a_session_and_lose_nothing(tmp_path: Path) -> None:
    workers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, str(tmp_path), name)
        for name in ("Ann", "Bob")
    ]
    assert [await worker.wait() for worker in workers] == [0, 0]
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/memory.db")
    inner = AsyncSQLAlchemyMemory(engine, "session", "user")
    said = await inner.get_memory(prepend_summary=False)
    assert len(said) == 50
    memory = ReMeShortTermMemory(
        max_total_tokens=800, keep_recent_count=3, store_dir=tmp_path / "store", memory=inner
    )
    await check_all_is_there(memory, said)
    memory.window.compactor.archive.check()
    found = [(await memory.tools[1](f"{msg.name} {n}:")).text for n in (0, 9) for msg in said[:1]]
    assert not any(each.startswith("No line") for each in found)
    await engine.dispose()


# -- paging back in --------------------------------------------------------------------------------


async def test_a_model_reads_and_finds_what_left() -> None:
    memory = ReMeShortTermMemory(**SMALL)
    lines = "\n".join(f"row {n} holds {n * n}" for n in range(500))
    await memory.add([says("My name is Ada."), call("c"), result("c", lines), *talk(12)])
    await memory.get_memory()
    read, search = memory.tools
    assert [tool.__name__ for tool in memory.tools] == ["read_memory", "search_memory"]
    found = (await search("holds 1849")).text
    handle = found.split()[0]
    assert "43: row 42 holds 1764" in (await read(handle, 43, 44)).text
    assert "My name is Ada." in (await search("name is")).text
    assert "Error" in (await read("0123456789abcdef")).text


async def test_what_left_in_another_process_is_found_in_the_memory() -> None:
    memory = ReMeShortTermMemory(**SMALL)
    await memory.add([says("My name is Ada."), *talk(12)])
    await memory.get_memory()
    again = ReMeShortTermMemory(**SMALL)
    again.load_state_dict(memory.state_dict())
    read, search = again.tools
    found = (await search("name is")).text
    assert "My name is Ada." in found
    assert "My name is Ada." in (await read(found.split()[0])).text


# -- the way back from a formatter -----------------------------------------------------------------


def test_chat_messages_become_messages() -> None:
    made = ReMeShortTermMemory.list_to_msg(
        [
            {"role": "user", "content": "Hello.", "metadata": {"k": 1}},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "function": {"name": "look", "arguments": '{"at": [1, 2'}},
                    {"id": "2", "function": {"name": "look", "arguments": ""}},
                    {"id": "3", "function": {"name": "look", "arguments": "no JSON"}},
                    {"id": "4", "function": {"name": "look", "arguments": '{"a": 1,}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "1", "name": "look", "content": "Seen."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "This?"},
                    {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                    {"type": "input_audio", "input_audio": {}},
                ],
            },
            {"role": "developer", "content": "Be kind."},
        ]
    )
    assert [(msg.name, msg.role) for msg in made] == [
        ("user", "user"),
        ("assistant", "assistant"),
        ("system", "system"),
        ("user", "user"),
        ("system", "system"),
    ]
    assert made[0].metadata == {"k": 1}
    assert [block["input"] for block in made[1].get_content_blocks("tool_use")] == [  # type: ignore[typeddict-item]  # calls
        {"at": [1]},
        {},
        {},
        {"a": 1},
    ]
    assert made[2].content == [
        {
            "type": "tool_result",
            "id": "1",
            "name": "look",
            "output": [{"type": "text", "text": "Seen."}],
        }
    ]
    assert [block["type"] for block in made[3].get_content_blocks()] == ["text", "image", "text"]


# -- whatever is said ------------------------------------------------------------------------------

texts = st.text(alphabet="ab 词\n", max_size=200)
turns = st.one_of(
    st.builds(lambda text: [says(text)], texts),
    st.builds(lambda text: [says(text, "assistant")], texts),
    st.builds(lambda n, text: [call(f"t{n}"), result(f"t{n}", text)], st.integers(0, 9), texts),
    st.builds(lambda n: [call(f"t{n}")], st.integers(0, 9)),
    st.builds(lambda n, text: [result(f"t{n}", text)], st.integers(0, 9), texts),
)


@settings(max_examples=60)
@given(
    st.lists(turns, max_size=14),
    st.integers(1, 400),
    st.sampled_from(["compact", "compress", "auto"]),
    st.integers(0, 6),
)
def test_any_history_in_any_mode_stays_valid_and_whole(
    parts: list[list[Msg]], budget: int, mode: Any, recent: int
) -> None:
    async def story() -> None:
        memory = ReMeShortTermMemory(
            None, None, mode, 0.75, budget, 20, keep_recent_count=recent, preview_char_length=5
        )
        history: list[Msg] = []
        for part in parts:
            await memory.add(part)
            history += part
            shown = await memory.get_memory()
            assert repair(shown).repairs == ()
            asked = [msg.id for msg in history if msg.role == "user"][-1:]
            assert set(asked) <= set(ids(shown))
            report = memory.report
            assert report is None or report.is_within_budget or report.excess or report.repairs
        kept = await memory.memory.get_memory(prepend_summary=False)
        assert [msg.to_dict() for msg in kept] == [msg.to_dict() for msg in history]

    asyncio.run(story())
