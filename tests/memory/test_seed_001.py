"""What the description of AgentScope's short-term memory promises, with the import root changed."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryspace.agent import ReActAgent
from memoryspace.formatter import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from memoryspace.memory import (
    InMemoryMemory,
    MemoryBase,
    MemoryWithCompress,
    ReMeShortTermMemory,
)
from memoryspace.message import Msg
from memoryspace.pipeline import MsgHub, sequential_pipeline
from memoryspace.testing import ScriptedModel
from memoryspace.tool import Toolkit

ASYNC = ["add", "delete", "retrieve", "size", "clear", "get_memory"]
SYNC = ["state_dict", "load_state_dict"]


def says(text: str, role: Any = "user") -> Msg:
    return Msg("Ann", text, role)


def call(id: str) -> Msg:
    block: Any = {"type": "tool_use", "id": id, "name": "web_search", "input": {"query": id}}
    return Msg("assistant", [block], "assistant")


def result(id: str, text: str) -> Msg:
    block: Any = {"type": "tool_result", "id": id, "name": "web_search", "output": text}
    return Msg("system", [block], "system")


@pytest.mark.parametrize("kind", [InMemoryMemory, ReMeShortTermMemory, MemoryWithCompress])
def test_every_memory_has_the_one_interface(kind: type[MemoryBase]) -> None:
    assert issubclass(kind, MemoryBase)
    assert all(inspect.iscoroutinefunction(getattr(kind, name)) for name in ASYNC)
    assert not any(inspect.iscoroutinefunction(getattr(kind, name)) for name in SYNC)


@pytest.mark.parametrize("kind", [InMemoryMemory, ReMeShortTermMemory, MemoryWithCompress])
async def test_a_light_memory_adds_deletes_and_is_saved(kind: type[MemoryBase]) -> None:
    memory, messages = kind(), [says("one"), says("two"), says("three")]
    await memory.add(messages[0])
    await memory.add(messages)
    assert await memory.size() == 3
    with pytest.raises(TypeError):
        await memory.add("text")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(IndexError):
        await memory.delete([1, 7])  # type: ignore[arg-type]  # places
    assert await memory.delete(1) == 1
    with pytest.raises(NotImplementedError):
        await memory.retrieve("one")
    again = kind()
    again.load_state_dict(json.loads(json.dumps(memory.state_dict())))
    assert [msg.id for msg in await again.get_memory()] == [messages[0].id, messages[2].id]
    await memory.clear()
    assert await memory.get_memory() == []


def test_the_settings_have_their_names_and_defaults() -> None:
    found = inspect.signature(ReMeShortTermMemory).parameters
    given = {
        "model": None,
        "reme_config_path": None,
        "working_summary_mode": "auto",
        "compact_ratio_threshold": 0.75,
        "max_total_tokens": 20000,
        "max_tool_message_tokens": 2000,
        "group_token_threshold": None,
        "keep_recent_count": 10,
        "store_dir": "inmemory",
    }
    assert {name: found[name].default for name in given} == given
    assert list(found)[: len(given)] == list(given)


def test_the_settings_of_the_memory_with_compression_have_theirs() -> None:
    found = inspect.signature(MemoryWithCompress).parameters
    assert list(found) == [
        "model",
        "formatter",
        "max_token",
        "chat_history_storage",
        "memory_storage",
        "token_counter",
        "compress_func",
        "compression_trigger_func",
        "compression_on_add",
        "compression_on_get",
        "customized_compression_prompt",
    ]
    assert found["max_token"].default == 28000
    assert (found["compression_on_add"].default, found["compression_on_get"].default) == (
        False,
        True,
    )


def test_nothing_of_reme_needs_to_be_installed() -> None:
    code = (
        "import sys; sys.modules['reme_ai'] = None\n"
        "from memoryspace.memory import ReMeShortTermMemory\n"
        "print(ReMeShortTermMemory().settings.working_summary_mode)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "auto"


async def test_the_example_a_big_answer_of_a_tool_leaves_and_the_agent_goes_on(
    tmp_path: Path,
) -> None:
    model = ScriptedModel("It is in the third one.")
    short_term_memory = ReMeShortTermMemory(
        model=None,
        working_summary_mode="auto",
        compact_ratio_threshold=0.75,
        max_total_tokens=1000,
        max_tool_message_tokens=200,
        group_token_threshold=None,
        keep_recent_count=1,
        store_dir=str(tmp_path / "working_memory"),
    )
    async with short_term_memory:
        await short_term_memory.add([says("Look for the project."), call("call_1")])
        await short_term_memory.add(result("call_1", "A very long page. " * 500))
        agent = ReActAgent(
            name="react",
            sys_prompt="You are helpful.",
            model=model,
            formatter=OpenAIChatFormatter(),
            toolkit=Toolkit(),
            memory=short_term_memory,
            max_iters=20,
        )
        answer = await agent(says("Which one is it?"))
    assert answer.get_text_content() == "It is in the third one."
    prompt = json.dumps(model.calls[0].messages)
    assert len(prompt) < 4000
    assert "Which one is it?" in prompt
    assert "left the context" in prompt
    assert list((tmp_path / "working_memory").rglob("*.txt"))
    assert short_term_memory.report is not None
    (handle,) = short_term_memory.report.handles
    assert "A very long page." in str(await short_term_memory.expand(handle))


async def test_the_content_of_a_message_may_be_a_list_and_is_not_emptied() -> None:
    picture: Any = {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}
    said = Msg("Ann", [{"type": "text", "text": "This one."}, picture], "user")
    memory = ReMeShortTermMemory()
    await memory.add(said)
    (found,) = await memory.get_memory()
    assert found.to_dict() == said.to_dict()


@pytest.mark.parametrize(("keep", "most"), [(10, 11), (4, 5), (1, 2)])
async def test_what_is_still_too_long_gets_shorter_by_keeping_less(keep: int, most: int) -> None:
    memory = ReMeShortTermMemory(
        working_summary_mode="compress", max_total_tokens=900, keep_recent_count=keep
    )
    await memory.add([says(f"{n}: " + "word " * 30) for n in range(40)])
    assert len(await memory.get_memory()) == most


async def test_agents_in_a_hub_share_what_is_said_and_not_their_memories() -> None:
    def agent(name: str) -> ReActAgent:
        return ReActAgent(
            name=name,
            sys_prompt=f"You are {name}.",
            model=ScriptedModel(f"I am {name}."),
            formatter=OpenAIMultiAgentFormatter(),
            memory=ReMeShortTermMemory(),
        )

    agents = [agent("Alice"), agent("Bob"), agent("Charlie")]
    async with MsgHub(agents, announcement=Msg("system", "Introduce yourselves.", "system")):
        await sequential_pipeline(agents)
    for each in agents:
        heard = [msg.get_text_content() for msg in await each.memory.get_memory()]
        assert sorted(map(str, heard)) == sorted(
            ["Introduce yourselves.", "I am Alice.", "I am Bob.", "I am Charlie."]
        )
    await agents[0].memory.clear()
    assert len(await agents[1].memory.get_memory()) == 4
