"""A window on any memory: what is resident fits, and nothing is ever lost."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.context import Compactor, FileArchive, Limits, Meter, ModelSummary, RAMArchive
from memoryspace.context.history import GroupedHistory
from memoryspace.context.summaries.summary import SummaryMessage
from memoryspace.errors import ModelFailed, ModelUnavailable, UnknownHandle
from memoryspace.formatter import (
    AnthropicChatFormatter,
    DashScopeChatFormatter,
    GeminiChatFormatter,
    OpenAIChatFormatter,
)
from memoryspace.memory import (
    ContextWindow,
    InMemoryMemory,
    MemoryBase,
    MemoryWithCompress,
    ReMeShortTermMemory,
)
from memoryspace.memory.pages import COMPRESSED, HINT, OFFLOADED, PINNED, MemoryPages
from memoryspace.message import Msg, groups_of, new_id, repair
from memoryspace.testing import ScriptedModel
from memoryspace.testing.providers import (
    check_anthropic,
    check_dashscope,
    check_gemini,
    check_openai,
)
from memoryspace.token import EstimatedTokenCounter

from backends import STORE_BACKENDS, memory_maker

SMALL = Limits(budget=600, keep_recent=4, tool_result=100, preview=40, summary=80)


def says(text: str, role: Any = "user") -> Msg:
    return Msg("Ann", text, role)


def call(id: str, **options: Any) -> Msg:
    block: Any = {"type": "tool_use", "id": id, "name": "look", "input": options}
    return Msg("bot", [block], "assistant")


def result(id: str, text: str = "seen") -> Msg:
    block: Any = {"type": "tool_result", "id": id, "name": "look", "output": text}
    return Msg("system", [block], "system")


def talk(turns: int, words: int = 30) -> list[Msg]:
    said: list[Msg] = []
    for turn in range(turns):
        said += [says(f"Question {turn}? " + "why " * words)]
        said += [
            call(f"c{turn}", at=turn),
            result(f"c{turn}", f"Found {turn}. " + "so " * words),
        ]
        said += [says(f"Answer {turn}.", "assistant")]
    return said


def ids(messages: Sequence[Msg]) -> list[str]:
    return [msg.id for msg in messages]


def bytes_of(messages: Sequence[Msg]) -> str:
    """What goes to a model: not ids and times, which are ours."""
    return json.dumps([[msg.name, msg.role, msg.content] for msg in messages])


def small_window(memory: MemoryBase, archive: RAMArchive | None = None, **options: Any) -> Any:
    return ContextWindow(memory, Compactor(SMALL, archive=archive, **options))


async def everything(memory: MemoryBase) -> list[str]:
    return ids(await memory.get_memory(prepend_summary=False))


async def left_of(window: ContextWindow) -> list[str]:
    """The ids of all messages that the handles in the summary lead to."""
    found: list[str] = []
    shown = await window.messages()
    handles = list(SummaryMessage.read(str(shown[0].content) if shown else "").handles)
    while handles:
        content = await window.expand(handles.pop())
        if isinstance(content, str):
            handles += re.findall(r"^[0-9a-f]{16,}$", content, re.M)
        else:
            found += [each.id for each in content if isinstance(each, Msg)]
    return found


async def check_nothing_is_lost(window: ContextWindow, said: Sequence[str]) -> None:
    """Every message is in the memory, and shown or led to, whole."""
    memory = window.memory
    assert await everything(memory) == list(said)
    shown = set(ids(await window.messages()))
    left = set(await left_of(window))
    compressed = set(ids(await memory.get_memory(COMPRESSED, prepend_summary=False)))
    hints = set(ids(await memory.get_memory(HINT, prepend_summary=False)))
    assert compressed - hints <= left
    assert set(said) - compressed <= shown
    for msg in await window.messages():
        for handle in re.findall(r'read_memory\("([0-9a-f]+)"', json.dumps(msg.content)):
            assert await window.expand(handle.strip("\\")) is not None


class Plain(MemoryBase):
    """A memory of somebody's own, with the four methods that it must have."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = InMemoryMemory()

    async def add(self, *args: Any, **options: Any) -> None:
        await self.inner.add(*args, **options)

    async def delete(self, *args: Any, **options: Any) -> int:
        return await self.inner.delete(*args, **options)

    async def get_memory(
        self, mark: Any = None, exclude_mark: Any = None, prepend_summary: bool = True
    ) -> list[Msg]:
        found = await self.inner.get_memory(mark, exclude_mark)
        summary = self._compressed_summary if prepend_summary else ""
        return [says(summary), *found] if summary else found

    async def update_messages_mark(self, *args: Any, **options: Any) -> int:
        return await self.inner.update_messages_mark(*args, **options)


# -- what is resident ------------------------------------------------------------------------------


async def test_what_fits_is_shown_as_it_is() -> None:
    memory, said = InMemoryMemory(), talk(2)
    await memory.add(said)
    await memory.update_compressed_summary("What went before.")
    window = ContextWindow(memory, Compactor(Limits(budget=10_000)))
    shown = await window.messages()
    assert [msg.content for msg in shown[:1]] == ["What went before."]
    assert [msg.to_dict() for msg in shown[1:]] == [msg.to_dict() for msg in said]
    assert window.report is None


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_a_window_on_every_backend_survives_a_restart(backend: str) -> None:
    async with memory_maker(backend) as make:
        user, archive, said = f"user-{new_id()}", RAMArchive(), talk(12)
        async with make(user, "session") as memory:
            await memory.add(said)
            window = small_window(memory, archive)
            shown = await window.messages()
            assert window.report.is_within_budget
            assert window.report.losses
            assert repair(shown).repairs == ()
            assert ids(shown)[-1] == said[-1].id
            await check_nothing_is_lost(window, ids(said))
        async with make(user, "session") as again:
            reopened = small_window(again, archive)
            assert bytes_of(await reopened.messages()) == bytes_of(shown)
            assert reopened.report is None
            await check_nothing_is_lost(reopened, ids(said))
            late = talk(1)
            await again.add(late)
            await check_nothing_is_lost(reopened, ids(said + late))


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_of_two_who_set_the_summary_one_is_told_that_it_was_late(backend: str) -> None:
    async with memory_maker(backend) as make:
        user = f"user-{new_id()}"
        one, two = make(user, "session"), make(user, "session")
        await one.add(says("Hello."))
        for text in ("the first", "the second"):
            seen, also_seen = await one.read_pages(), await two.read_pages()
            assert await one.swap_summary(seen, text) is True
            assert await two.swap_summary(also_seen, "late") is False
            assert [msg.content for msg in await two.get_memory()] == [text, "Hello."]
            assert (await two.read_pages()).summary == text


async def test_between_compactions_the_prompt_only_grows() -> None:
    memory = InMemoryMemory()
    window = small_window(memory)
    before, was, compactions = "", None, 0
    for group in groups_of(talk(30)):
        await memory.add(group)
        now = bytes_of(await window.messages())
        if window.report is was:
            assert now.startswith(before[:-1])
        else:
            compactions += 1
        before, was = now, window.report
    assert 2 <= compactions <= 30


async def test_pinned_messages_stay_and_hints_leave_first() -> None:
    memory, said = InMemoryMemory(), talk(12)
    goal, hint = says("The goal: be brief."), says("Use the tool.")
    await memory.add(goal, marks=PINNED)
    await memory.add(hint, marks=HINT)
    await memory.add(said)
    window = small_window(memory)
    shown = ids(await window.messages())
    assert goal.id in shown
    assert hint.id not in shown
    assert ids(await memory.get_memory(HINT, prepend_summary=False)) == [hint.id]


async def test_the_newest_user_message_stays_however_long_the_work_on_it() -> None:
    memory, question = InMemoryMemory(), says("Where is it?")
    await memory.add([*talk(3), question])
    window = small_window(memory)
    for step in range(20):
        await memory.add([call(f"s{step}"), result(f"s{step}", "much " * 80)])
        shown = await window.messages()
        assert question.id in ids(shown)
        assert repair(shown).repairs == ()


async def test_a_big_result_is_a_stub_until_its_mark_is_taken_off() -> None:
    memory, text = InMemoryMemory(), "\n".join(f"line {n}" for n in range(400))
    big = result("a", text)
    await memory.add([says("Look."), call("a"), big, *talk(1, words=2)])
    window = small_window(memory)
    stub = json.dumps((await window.messages())[2].content)
    assert "line 0" in stub
    assert "line 200" not in stub
    (handle,) = window.report.handles
    assert await window.expand(handle) == text
    assert ids(await memory.get_memory(OFFLOADED)) == [big.id]
    wide = ContextWindow(memory, Compactor(Limits(budget=100_000)))
    assert "line 200" not in bytes_of(await wide.messages())
    await memory.update_messages_mark(None, OFFLOADED)
    assert "line 200" in bytes_of(await wide.messages())


async def test_what_a_stub_stands_for_is_kept_again_after_a_restart_without_files() -> None:
    memory, text = InMemoryMemory(), "word " * 2000
    await memory.add([says("Look."), call("a"), result("a", text), *talk(1, words=2)])
    window = small_window(memory)
    shown = bytes_of(await window.messages())
    (handle,) = window.report.handles
    again = small_window(memory)
    assert bytes_of(await again.messages()) == shown
    assert await again.expand(handle) == text


@pytest.mark.parametrize("kind", [MemoryWithCompress, Plain])
async def test_a_window_on_a_memory_of_another_kind(kind: type[MemoryBase]) -> None:
    memory, said = kind(), talk(12)
    await memory.add(said)
    window = small_window(memory)
    await window.messages()
    assert window.report.is_within_budget
    await check_nothing_is_lost(window, ids(said))
    seen, also_seen = await memory.read_pages(), await memory.read_pages()
    assert await memory.swap_summary(seen, "another") is True
    assert await memory.swap_summary(also_seen, "late") is False


def test_a_repr_says_what_a_thing_is(tmp_path: Path) -> None:
    memory = InMemoryMemory(user_id="ann", session_id="s1")
    assert repr(memory) == "InMemoryMemory(user_id='ann', session_id='s1')"
    window = ContextWindow(memory, 1000)
    assert repr(window) == f"ContextWindow({memory!r}, budget=1000)"
    assert repr(window.compactor) == "Compactor(budget=1000, archive=RAMArchive(contents=0))"
    assert repr(MemoryWithCompress(max_token=50)) == "MemoryWithCompress(max_token=50)"
    assert repr(ReMeShortTermMemory(memory=memory)) == f"ReMeShortTermMemory({memory!r})"
    assert repr(FileArchive(tmp_path, "ann", "s1")).startswith("FileArchive(")
    (group,) = GroupedHistory([says("hello")]).groups
    assert repr(group) == f"Group({[group.id]}, cost=0, fate='resident')"


async def test_marks_choose_what_is_looked_at() -> None:
    memory = InMemoryMemory()
    a, b, c = says("a"), says("b"), says("c")
    await memory.add(a, marks="x")
    await memory.add(b, marks=["x", HINT])
    await memory.add(c, marks=COMPRESSED)
    window = ContextWindow(memory, Compactor(Limits(budget=1000)))
    assert ids(await window.messages()) == ids([a, b])
    assert ids(await window.messages("x")) == ids([a, b])
    assert ids(await window.messages("x", HINT)) == [a.id]
    assert ids(await window.messages(exclude_mark=COMPRESSED)) == ids([a, b])
    assert await window.messages(COMPRESSED) == []
    with pytest.raises(TypeError):
        await window.messages(1)  # type: ignore[arg-type]  # wrong on purpose


async def test_what_is_reserved_is_not_filled() -> None:
    memory = InMemoryMemory()
    await memory.add(talk(6))
    window = ContextWindow(memory, Compactor(Limits(budget=2000, keep_recent=2)))
    whole = await window.messages()
    assert window.report is None
    assert len(await window.messages(reserved=1500)) < len(whole)
    assert window.report is not None
    assert window.report.tokens_after <= 500


async def test_what_was_shown_beside_too_much_is_not_taken_for_what_fits() -> None:
    memory = InMemoryMemory()
    await memory.add(talk(1, words=200))
    window = ContextWindow(memory, Compactor(Limits(budget=100, keep_recent=9)))
    await window.messages(reserved=5000)
    await memory.add(says("word " * 300))
    await window.messages(reserved=0)
    assert "tokens of 100" in window.report.excess  # type: ignore[union-attr]  # there is one


async def test_it_compacts_on_demand() -> None:
    memory, said = InMemoryMemory(), talk(6)
    await memory.add(said)
    window = ContextWindow(memory, Compactor(Limits(budget=1200, low_water=0.3, keep_recent=2)))
    assert len(await window.messages()) == len(said)
    assert len(await window.messages(force=True)) < len(said)
    await check_nothing_is_lost(window, ids(said))


async def test_a_result_that_comes_after_its_call_has_left_is_seen() -> None:
    memory = InMemoryMemory()
    await memory.add([call("slow"), *talk(12)])
    window = small_window(memory)
    await window.messages()
    assert (await memory.get_memory(COMPRESSED))[1].content[0]["id"] == "slow"  # type: ignore[index,typeddict-item]  # the summary is first
    await memory.add(result("slow", "It came at last."))
    assert "It came at last." in bytes_of(await window.messages())


PROVIDERS = [
    (OpenAIChatFormatter(), check_openai),
    (AnthropicChatFormatter(), check_anthropic),
    (DashScopeChatFormatter(), check_dashscope),
    (GeminiChatFormatter(), check_gemini),
]


@pytest.mark.parametrize("budget", [1, 50, 200, 400, 800, 2000, 100_000])
async def test_what_is_shown_makes_a_valid_prompt_at_every_budget(budget: int) -> None:
    memory = InMemoryMemory()
    window = ContextWindow(memory, Compactor(Limits(budget=budget, keep_recent=3)))
    for msg in [*talk(6), call("open"), says("Still there?"), result("nobody", "An orphan.")]:
        await memory.add(msg)
        shown = await window.messages()
        for formatter, check in PROVIDERS:
            check(await formatter.format(shown))


# -- what it costs ---------------------------------------------------------------------------------


class Counting(EstimatedTokenCounter):
    """A counter that knows how often it was asked."""

    calls = 0

    async def count(self, messages: Any, tools: Any = None) -> int:
        self.calls += 1
        return await super().count(messages, tools)


class Watched(InMemoryMemory):
    """A memory that knows what was written to it."""

    writes = 0

    async def update_messages_mark(self, *args: Any, **kwargs: Any) -> int:
        self.writes += 1
        return await super().update_messages_mark(*args, **kwargs)

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        self.writes += 1
        return await super().swap_summary(seen, summary)


async def test_reading_what_fits_counts_and_writes_nothing() -> None:
    memory, counter = Watched(), Counting()
    await memory.add(talk(12))
    window = ContextWindow(memory, Compactor(SMALL, meter=Meter(counter)))
    shown = bytes_of(await window.messages())
    calls, writes = counter.calls, memory.writes
    assert writes > 0
    for _ in range(3):
        assert bytes_of(await window.messages()) == shown
    assert (counter.calls, memory.writes) == (calls, writes)


async def test_what_is_handed_out_may_be_changed() -> None:
    memory = InMemoryMemory()
    await memory.add(talk(12))
    window = small_window(memory)
    shown = bytes_of(await window.messages())
    for _ in range(2):
        for msg in await window.messages():
            if isinstance(msg.content, list):
                msg.content.clear()
            msg.content, msg.name = "changed", "Bob"
        assert bytes_of(await window.messages()) == shown


async def test_another_message_under_the_same_id_is_noticed() -> None:
    memory, first = InMemoryMemory(), says("one")
    await memory.add(first)
    window = small_window(memory)
    assert [msg.content for msg in await window.messages()] == ["one"]
    await memory.delete([first.id])
    second = says("two")
    second.id = first.id
    await memory.add(second)
    assert [msg.content for msg in await window.messages()] == ["two"]


# -- several at once, and in pieces ----------------------------------------------------------------


@pytest.mark.parametrize("backend", ["memory", "sqlite", "redis"])
async def test_windows_that_compact_at_once_lose_nothing(backend: str) -> None:
    async with memory_maker(backend) as make:
        user, archive, said = f"user-{new_id()}", RAMArchive(), talk(12)
        memories = [make(user, "session") for _ in range(4)]
        await memories[0].add(said)
        windows = [small_window(memory, archive) for memory in memories]
        await asyncio.gather(*(window.messages() for window in windows))
        for window in windows:
            await check_nothing_is_lost(window, ids(said))
        shown = {bytes_of(await window.messages()) for window in windows}
        assert len(shown) == 1


async def test_windows_on_one_memory_summarise_once() -> None:
    memory, model = InMemoryMemory(), ScriptedModel('{"next_steps": "Go on and on."}')
    await memory.add(talk(12))
    archive = RAMArchive()
    windows = [small_window(memory, archive, summariser=ModelSummary(model)) for _ in range(3)]
    await asyncio.gather(*(window.messages() for window in windows))
    assert len(model.calls) == 1


class Interrupted(InMemoryMemory):
    """A memory in which the reader is cancelled at one of the points where it waits."""

    at = -1
    task: asyncio.Task[Any] | None = None

    async def wait(self) -> None:
        if self.task is not None:
            self.at -= 1
            if self.at == 0:
                self.task.cancel()
        await asyncio.sleep(0)

    async def read_pages(self) -> MemoryPages:
        await self.wait()
        table = await super().read_pages()
        await self.wait()
        return table

    async def swap_summary(self, seen: MemoryPages, summary: str) -> bool:
        await self.wait()
        done = await super().swap_summary(seen, summary)
        await self.wait()
        return done

    async def update_messages_mark(self, *args: Any, **kwargs: Any) -> int:
        await self.wait()
        done = await super().update_messages_mark(*args, **kwargs)
        await self.wait()
        return done


async def test_a_reader_that_is_cancelled_anywhere_leaves_everything() -> None:
    said, stops = talk(12), 0
    for at in range(1, 40):
        memory = Interrupted()
        await memory.add(said)

        async def summarise(
            earlier: str, messages: Sequence[Msg], most: int, memory: Interrupted = memory
        ) -> str:
            await memory.wait()
            return "A summary."

        window = small_window(memory, summariser=summarise)
        memory.task, memory.at = asyncio.create_task(window.messages()), at
        try:
            await memory.task
        except asyncio.CancelledError:
            stops += 1
        memory.task = None
        await check_nothing_is_lost(window, ids(said))
        await check_nothing_is_lost(small_window(memory, window.compactor.archive), ids(said))
    assert 8 < stops < 39


class Dying(InMemoryMemory):
    """A memory whose process dies between the summary and the marks."""

    is_dying = False

    async def update_messages_mark(self, *args: Any, **kwargs: Any) -> int:
        if self.is_dying:
            raise ConnectionError
        return await super().update_messages_mark(*args, **kwargs)


async def test_a_crash_between_summary_and_marks_shows_twice_and_loses_nothing() -> None:
    memory, said = Dying(), talk(12)
    await memory.add(said)
    memory.is_dying = True
    window = small_window(memory)
    with pytest.raises(ConnectionError):
        await window.messages()
    assert (await memory.read_pages()).summary
    memory.is_dying = False
    again = small_window(memory, window.compactor.archive)
    await check_nothing_is_lost(again, ids(said))
    assert again.report.is_within_budget


# -- summaries that fail, and summaries of summaries -----------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        ModelUnavailable("gone"),
        ModelFailed("no"),
        TimeoutError(),
        ValueError("x"),
        "",
        "{",
        '{"task_overview": ',
        "word " * 100_000,
        [],
    ],
    ids=lambda line: str(line)[:20] or type(line).__name__,
)
async def test_a_model_that_fails_leaves_the_compaction_standing(line: Any) -> None:
    memory, said = InMemoryMemory(), talk(12)
    await memory.add(said)
    model = ScriptedModel(*[line] * 20)
    window = small_window(memory, summariser=ModelSummary(model))
    shown = await window.messages()
    assert model.calls
    assert window.report.is_within_budget
    assert repair(shown).repairs == ()
    await check_nothing_is_lost(window, ids(said))


async def test_later_compactions_never_destroy_what_earlier_ones_archived() -> None:
    memory, said = InMemoryMemory(), list[Msg]()
    window = small_window(memory)
    seen: dict[str, Any] = {}
    for group in groups_of(talk(60, words=20)):
        said += group
        await memory.add(group)
        await window.messages()
        for handle in window.report.handles if window.report is not None else []:
            seen.setdefault(handle, await window.expand(handle))
    assert len(seen) > 10
    for handle, content in seen.items():
        assert str(await window.expand(handle)) == str(content) or isinstance(content, list)
    await check_nothing_is_lost(window, ids(said))


# -- letting go ------------------------------------------------------------------------------------


async def test_what_is_deleted_leaves_the_archive() -> None:
    memory, archive, said = InMemoryMemory(), RAMArchive(), talk(12)
    secret = says("My number is 4711.")
    await memory.add([secret, *said])
    window = small_window(memory, archive)
    await window.messages()
    assert any("4711" in archive.get(kept.handle).data for kept in archive.list())
    await memory.delete([secret.id])
    assert await window.release() != []
    assert not any("4711" in archive.get(kept.handle).data for kept in archive.list()
                   if kept.kind == "messages")  # fmt: skip
    archive.check()
    await memory.clear()
    await window.release()
    assert archive.list() == []


async def test_a_compaction_lets_go_what_was_deleted_before() -> None:
    memory, archive = InMemoryMemory(), RAMArchive()
    await memory.add(talk(12))
    window = small_window(memory, archive)
    await window.messages()
    before = {kept.handle for kept in archive.list()}
    await memory.clear()
    await memory.add(talk(12))
    await window.messages()
    assert before.isdisjoint(kept.handle for kept in archive.list())


async def test_what_is_still_there_is_not_let_go() -> None:
    memory, archive, said = InMemoryMemory(), RAMArchive(), talk(12)
    await memory.add(said)
    window = small_window(memory, archive)
    await window.messages()
    assert await window.release() == []
    await check_nothing_is_lost(window, ids(said))


async def test_a_message_can_be_had_by_its_id_and_nothing_else_by_guessing() -> None:
    memory, said = InMemoryMemory(), talk(12)
    await memory.add(said)
    window = small_window(memory)
    await window.messages()
    (first,) = await window.expand(said[0].id)
    assert first.to_dict() == said[0].to_dict()
    for wrong in ("0" * 16, "", "../../etc/passwd", "a" * 5000):
        with pytest.raises(UnknownHandle):
            await window.expand(wrong)


# -- the tools -------------------------------------------------------------------------------------


async def test_a_model_reads_and_searches_what_left_and_what_is_not_resident() -> None:
    memory = InMemoryMemory()
    await memory.add([says("My name is Ada."), *talk(12)])
    window = small_window(memory)
    await window.messages()
    assert [tool.__name__ for tool in window.tools] == ["read_memory", "search_memory"]
    read, search = window.tools
    found = (await search("name is ada")).text
    assert "My name is Ada." in found
    assert "My name is Ada." in (await read(found.split()[0])).text
    fresh_read, fresh_search = small_window(memory).tools  # with an archive that is empty
    found = (await fresh_search("name is ada")).text
    assert "My name is Ada." in (await fresh_read(found.split()[0])).text
    assert (await fresh_search("no such words")).text.startswith("No line")


# -- whatever is done ------------------------------------------------------------------------------

texts = st.text(alphabet="ab 词\n", max_size=120)
turns = st.one_of(
    st.builds(lambda text: [says(text)], texts),
    st.builds(lambda text: [says(text, "assistant")], texts),
    st.builds(lambda n, text: [call(f"t{n}"), result(f"t{n}", text)], st.integers(0, 9), texts),
    st.builds(lambda n: [call(f"t{n}"), call(f"t{n}b")], st.integers(0, 9)),
    st.builds(lambda n, text: [result(f"t{n}", text)], st.integers(0, 9), texts),
)
acts = st.one_of(
    st.tuples(st.just("add"), turns),
    st.tuples(st.sampled_from([PINNED, HINT, "delete"]), st.integers(0, 30)),
    st.tuples(st.sampled_from(["reopen", "force", "release", "read"]), st.just(0)),
)


@settings(max_examples=60)
@given(st.lists(acts, max_size=25), st.integers(1, 300), st.integers(0, 5))
def test_whatever_is_done_the_window_is_valid_and_nothing_is_lost(
    doings: list[tuple[str, Any]], budget: int, recent: int
) -> None:
    async def story() -> None:
        limits = Limits(budget=budget, keep_recent=recent, tool_result=10, preview=5, summary=20)
        memory, archive, said = InMemoryMemory(), RAMArchive(), list[Msg]()
        pinned: set[str] = set()
        window = ContextWindow(memory, Compactor(limits, archive=archive))
        for act, what in doings:
            if act == "add":
                said += what
                await memory.add(what)
            elif act in (PINNED, HINT, "delete") and said:
                one = said[what % len(said)].id
                if act == "delete":
                    await memory.delete([one])
                    said = [msg for msg in said if msg.id != one]
                    pinned.discard(one)
                else:
                    await memory.update_messages_mark(act, msg_ids=[one])
                    if act == PINNED and one in ids(await window.messages()):
                        pinned.add(one)
            elif act == "reopen":
                shown = bytes_of(await window.messages())
                window = ContextWindow(memory, Compactor(limits, archive=archive))
                assert bytes_of(await window.messages()) == shown
            elif act == "release":
                await window.release()
            shown = await window.messages(force=act == "force")
            assert repair(shown).repairs == ()
            assert pinned <= set(ids(shown))
            assert await everything(memory) == ids(said)
            report = window.report
            assert report is None or report.is_within_budget or report.excess
            archive.check()

    asyncio.run(story())
