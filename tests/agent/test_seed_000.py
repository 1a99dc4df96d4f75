"""What the description of AgentScope's memory management promises, with the import root changed."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import inspect
import json
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.agent import AgentBase, ReActAgent
from memoryspace.embedding import EmbeddingCacheBase, FileEmbeddingCache
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.memory import (
    InMemoryMemory,
    InMemoryMessageStorage,
    MemoryBase,
    MemoryWithCompress,
    ReMePersonalLongTermMemory,
    ReMeShortTermMemory,
)
from memoryspace.message import Msg
from memoryspace.module import StateModule
from memoryspace.pipeline import MsgHub
from memoryspace.testing import ScriptedModel


class Friday(AgentBase):
    """An agent as users write it: a memory, and a reply that takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = InMemoryMemory()
        self.began = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def reply(self, msg: Msg | None = None) -> Msg:
        await self.memory.add(msg)
        self.began.set()
        await self.may_answer.wait()
        return Msg("Friday", "Here.", "assistant")

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        await self.memory.add(msg)

    async def handle_interrupt(self, msg: Msg | None = None) -> Msg:
        return Msg("Friday", "Interrupted.", "assistant")


def says(text: str) -> Msg:
    return Msg("Ann", text, "user")


def count_of(kind: type) -> int:
    """As the description has it: count with ``gc``."""
    return sum(isinstance(each, kind) for each in gc.get_objects())


def texts_in(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def test_agents_are_modules_with_an_id_of_their_own() -> None:
    ids = [Friday().id for _ in range(100)]
    assert issubclass(AgentBase, StateModule)
    assert len(set(ids)) == 100
    assert {len(each) for each in ids} == {22}


async def test_an_agent_that_is_cleaned_up_and_dropped_is_gone() -> None:
    agents, memories = count_of(AgentBase), count_of(MemoryBase)
    agent, listener = Friday(), Friday()
    agent.reset_subscribers("hub", [listener])
    agent.register_instance_hook("pre_reply", "own", lambda self, kwargs, agent=agent: None)
    await agent(says("Hello."))
    seen = weakref.ref(agent)
    agent.clear_instance_hooks()
    agent.remove_subscribers("hub")
    del agent, listener
    assert seen() is None  # by counting references alone
    assert (count_of(AgentBase), count_of(MemoryBase)) == (agents, memories)


async def test_an_interrupt_ends_the_reply_task_safely() -> None:
    agent = Friday()
    agent.may_answer.clear()
    call = asyncio.create_task(agent(says("Wait.")))
    await agent.began.wait()
    assert agent._reply_task is call
    await agent.interrupt()
    assert (await call).content == "Interrupted."
    assert agent._reply_task is None
    assert not call.cancelled()


@pytest.mark.parametrize(
    "identifier",
    ["text", ["one", "二"], {"model": "m", "input": ["a"], "dimensions": 3}, 7, None],
)
async def test_a_vector_is_in_a_file_named_by_the_hash_of_its_identifier(
    identifier: Any, tmp_path: Path
) -> None:
    cache = FileEmbeddingCache(cache_dir=str(tmp_path))
    await cache.store([[0.5, 1.0], [2.0, -1.0]], identifier)
    written = json.dumps(identifier, ensure_ascii=False, sort_keys=True)
    name = hashlib.sha256(written.encode()).hexdigest() + ".npy"
    assert os.listdir(tmp_path) == [name]
    assert np.load(tmp_path / name).tolist() == [[0.5, 1.0], [2.0, -1.0]]
    assert await cache.retrieve(identifier) == [[0.5, 1.0], [2.0, -1.0]]


async def test_the_caches_settings_have_their_names_and_defaults() -> None:
    found = inspect.signature(FileEmbeddingCache).parameters
    given = {
        "cache_dir": "./.cache/embeddings",
        "max_file_number": None,
        "max_cache_size": None,
    }
    assert {name: found[name].default for name in given} == given
    assert list(found)[:3] == list(given)
    assert issubclass(FileEmbeddingCache, EmbeddingCacheBase)


async def test_over_its_limits_a_cache_drops_the_oldest_files(tmp_path: Path) -> None:
    few = FileEmbeddingCache(str(tmp_path / "few"), max_file_number=2)
    for name in "abc":
        await few.store([[1.0]], name)
    assert [await few.retrieve(name) for name in "abc"] == [None, [[1.0]], [[1.0]]]
    small = FileEmbeddingCache(str(tmp_path / "small"), max_cache_size=1)  # megabyte
    half = [[float(number) for number in range(60_000)]]  # of 8 bytes each
    for name in "abc":
        await small.store(half, name)
    assert [await small.retrieve(name) is not None for name in "abc"] == [False, True, True]
    files = list((tmp_path / "small").iterdir())
    assert sum(file.stat().st_size for file in files) <= 1024 * 1024


@pytest.mark.parametrize("kind", [InMemoryMemory, ReMeShortTermMemory, MemoryWithCompress])
async def test_every_memory_can_be_put_away_and_taken_up_again(kind: type[MemoryBase]) -> None:
    assert issubclass(kind, StateModule)
    memory = kind()
    await memory.add([says("one"), says("two")])
    state = json.loads(json.dumps(memory.state_dict()))
    again = kind()
    again.load_state_dict(state, strict=True)
    assert [msg.content for msg in await again.get_memory()] == ["one", "two"]


async def test_a_compressed_memory_keeps_the_originals_beside_what_is_read() -> None:
    everything, short = InMemoryMessageStorage(), InMemoryMessageStorage()
    memory = MemoryWithCompress(
        None, None, max_token=500, chat_history_storage=everything, memory_storage=short
    )
    await memory.add([says(f"{number}: " + "word " * 20) for number in range(20)])
    shown = await memory.get_memory()
    assert len(shown) < 20
    assert [msg.id for msg in await short.get()] == [msg.id for msg in shown]
    assert len(await everything.get()) == 20


async def test_big_results_go_to_files_and_old_messages_into_a_models_summary(
    tmp_path: Path,
) -> None:
    call: Any = {"type": "tool_use", "id": "1", "name": "search", "input": {}}
    result: Any = {"type": "tool_result", "id": "1", "name": "search", "output": "page " * 3000}
    model = ScriptedModel('{"task_overview": "Ann looked for a project."}')
    async with ReMeShortTermMemory(
        model,
        max_total_tokens=600,
        max_tool_message_tokens=100,
        keep_recent_count=1,
        store_dir=tmp_path,
    ) as memory:
        await memory.add([Msg("a", [call], "assistant"), Msg("system", [result], "system")])
        (_, stub) = await memory.get_memory()
        assert "page page" in str(stub.content)  # a preview
        assert len(str(stub.content)) < 1000
        await memory.add([says(f"{number}: " + "it rains " * 30) for number in range(20)])
        shown = await memory.get_memory()
    assert "Ann looked for a project" in str(shown[0].content)
    assert len(shown) < 10
    assert "page " * 3000 in texts_in(tmp_path)


@pytest.mark.parametrize("kind", [ReMeShortTermMemory, ReMePersonalLongTermMemory])
async def test_what_async_with_opened_is_closed_whatever_happens(kind: type[Any]) -> None:
    memory = kind()

    async def use() -> None:
        async with memory as opened:
            assert opened is memory
            assert memory._app_started
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await use()
    assert not memory._app_started


async def test_agents_share_what_is_said_and_each_has_a_copy_of_its_own() -> None:
    ann, bob = Friday(), Friday()
    said = Msg("host", [{"type": "text", "text": "Hello."}], "user")
    async with MsgHub([ann, bob], announcement=said):
        await ann()
    assert [msg.get_text_content() for msg in await bob.memory.get_memory()] == ["Hello.", "Here."]
    said.content[0]["text"] = "changed"  # type: ignore[index,typeddict-unknown-key]  # it is a list
    for msg in await ann.memory.get_memory():
        msg.content = "changed, too"
    await ann.memory.clear()
    assert [msg.get_text_content() for msg in await bob.memory.get_memory()] == ["Hello.", "Here."]
    assert await ann.memory.size() == 0


async def test_many_agents_that_came_and_went_need_no_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        before = count_of(AgentBase), count_of(MemoryBase)
        for _ in range(200):
            model = ScriptedModel("Here.")
            agent = ReActAgent("Friday", "You help.", model, OpenAIChatFormatter())
            agent.set_console_output_enabled(False)
            await agent(says("Hello."))
        del agent
        assert (count_of(AgentBase), count_of(MemoryBase)) == before
    finally:
        gc.enable()
