"""An agent under a small window: prompts fit, nothing is lost, and no reply fails for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memoryspace.agent import CompressionConfig, ReActAgent
from memoryspace.context import ExtractiveSummary, FileArchive
from memoryspace.errors import InvalidInput, ModelUnavailable, UnknownHandle
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.memory import InMemoryMemory, ReMeShortTermMemory
from memoryspace.message import Msg
from memoryspace.service import InMemoryMemoryService
from memoryspace.service.long_term import ServiceLongTermMemory
from memoryspace.session import JSONSession
from memoryspace.store import MemoryStore
from memoryspace.testing import ScriptedModel
from memoryspace.testing.providers import check_openai
from memoryspace.token import CharTokenCounter, EstimatedTokenCounter, TokenCounterBase
from react_parts import agent_of, call, prompts_of, text, toolkit_of, unanswered, user

LONG = "\n".join(f"line {number}: the quick brown fox jumps over it" for number in range(400))


def read_log(day: int) -> str:
    """Read the log of a day."""
    return f"day {day}\n{LONG}"


def config_of(threshold: int = 1500, **options: Any) -> CompressionConfig:
    options.setdefault("summariser", ExtractiveSummary())
    return CompressionConfig(trigger_threshold=threshold, **options)


def steps(days: int) -> list[Any]:
    return [[text(f"Day {day}."), call("read_log", f"c-{day}", day=day)] for day in range(days)]


def reader(*lines: Any, config: CompressionConfig | None = None, **options: Any) -> ReActAgent:
    options.setdefault("compression_config", config if config is not None else config_of())
    return agent_of(*lines, toolkit=toolkit_of(read_log), max_iters=40, **options)


async def tokens_of_prompts(agent: ReActAgent, counter: TokenCounterBase) -> list[int]:
    calls = agent.model.calls  # type: ignore[attr-defined]
    return [await counter.count(each.messages, each.tools) for each in calls]


async def test_every_prompt_fits_however_long_the_task() -> None:
    agent = reader(*steps(20), "All days read.")
    reply = await agent(user("Read the logs of all days."))
    assert reply.get_text_content() == "All days read."
    tokens = await tokens_of_prompts(agent, EstimatedTokenCounter())
    assert len(tokens) == 21
    assert max(tokens) <= 1500
    for prompt in prompts_of(agent):
        check_openai(prompt)
        assert "Read the logs of all days." in str(prompt)
    assert agent.window is not None
    assert agent.window.report is not None
    assert agent.window.report.losses


async def test_the_memory_keeps_everything() -> None:
    agent = reader(*steps(8), "Done.")
    await agent(user("Read!"))
    stored = await agent.memory.get_memory(prepend_summary=False)
    assert len(stored) == 1 + 2 * 8 + 1
    assert sum(str(msg.to_dict()).count("line 399") for msg in stored) == 8
    assert await unanswered(agent.memory) == []


async def test_what_left_is_paged_in_again_by_the_model() -> None:
    def page_in(prompt: list[dict[str, Any]]) -> Any:
        handle = re.findall(r"[0-9a-f]{16,64}", str(prompt))[0]
        return [call("read_memory", "c-page", handle=handle, first_line=124, last_line=126)]

    def look_for(prompt: list[dict[str, Any]]) -> Any:
        return [call("search_memory", "c-search", pattern="line 77:")]

    agent = reader(*steps(6), page_in, look_for, "Found.", config=config_of(2500))
    await agent(user("Read!"))
    tools = agent.model.calls[0].tools  # type: ignore[attr-defined]
    assert {"read_memory", "search_memory"} <= {each["function"]["name"] for each in tools}
    after_page, after_search = prompts_of(agent)[-2:]
    assert "lines 124 to 126 of" in after_page[-1]["content"]
    assert after_page[-1]["content"].count("the quick brown fox jumps over it") == 3
    assert "line 77: the quick brown fox" in after_search[-1]["content"]


async def test_the_newest_question_stays_even_alone() -> None:
    agent = reader("I see.", config=config_of(700, keep_recent=5))
    question = "Please remember: " + "very important words, " * 20
    await agent(user(question))
    (prompt,) = prompts_of(agent)
    assert question in str(prompt)


async def test_one_huge_recent_result_does_not_burst_the_window() -> None:
    agent = reader([call("read_log", day=1)], "Read.", config=config_of(1000, keep_recent=10))
    await agent(user("Read!"))
    tokens = await tokens_of_prompts(agent, EstimatedTokenCounter())
    assert tokens[1] <= 1000
    assert "read_memory" in str(prompts_of(agent)[1][-1])


async def test_instructions_and_tools_count_too() -> None:
    counter = CharTokenCounter()
    agent = reader(*steps(5), "Done.", config=config_of(6000, agent_token_counter=counter))
    agent._sys_prompt = "Be kind. " * 100
    await agent(user("Read!"))
    assert max(await tokens_of_prompts(agent, counter)) <= 6000


async def test_the_agents_own_model_sums_up() -> None:
    notes = {"task_overview": "Read the logs.", "important_discoveries": "Foxes jump."}
    lines = [f"Word {number}. " + "and so on " * 60 for number in range(12)]

    def scripted(prompt: list[dict[str, Any]]) -> Any:
        is_summary = "notes of an agent" in str(prompt[0])
        return json.dumps(notes) if is_summary else lines.pop(0)

    config = CompressionConfig(trigger_threshold=1200, keep_recent=1)
    agent = reader(model=ScriptedModel(*[scripted] * 60), config=config)
    for number in range(12):
        await agent(user(f"Tell me more, {number}."))
    last = str(prompts_of(agent)[-1])
    assert "Foxes jump." in last
    assert "Tell me more, 11." in last


@pytest.mark.parametrize(
    "broken",
    [
        ScriptedModel(*[ModelUnavailable("down")] * 99),
        ScriptedModel(*["{"] * 99),
        ScriptedModel(*[""] * 99),
        ScriptedModel(*['{"task_overview": "only this"}'] * 99),
    ],
    ids=["raises", "truncated", "empty", "one field"],
)
async def test_a_summary_that_fails_fails_no_reply(broken: ScriptedModel) -> None:
    config = CompressionConfig(
        trigger_threshold=1200,
        keep_recent=1,
        compression_model=broken,
        compression_formatter=OpenAIChatFormatter(),
    )
    talk = [f"Word {number}. " + "and so on " * 60 for number in range(10)]
    agent = reader(*talk, config=config)
    for number in range(10):
        reply = await agent(user(f"Tell me more, {number}."))
        assert reply.get_text_content() == talk[number]
    assert broken.calls
    assert max(await tokens_of_prompts(agent, EstimatedTokenCounter())) <= 1200


async def test_a_counter_that_fails_fails_no_reply() -> None:
    class Broken(TokenCounterBase):
        async def count(self, messages: Any, tools: Any = None) -> int:
            raise OSError("no network")

    agent = reader("Hi.", config=config_of(agent_token_counter=Broken()))
    assert (await agent(user("Hello"))).get_text_content() == "Hi."


async def test_turned_off_there_is_no_window() -> None:
    agent = reader(*steps(2), "Done.", config=config_of(100, enable=False))
    await agent(user("Read!"))
    assert agent.window is None
    assert "line 399" in str(prompts_of(agent)[-1])
    tools = agent.model.calls[0].tools  # type: ignore[attr-defined]
    assert [each["function"]["name"] for each in tools] == ["read_log"]


async def test_what_left_is_there_after_a_restart(tmp_path: Path) -> None:
    session = JSONSession(tmp_path / "sessions")
    config = config_of(store_dir=tmp_path / "left")
    agent = reader(*steps(6), "Done.", config=config)
    await agent(user("Read the logs."))
    await session.save_session_state("s", agent=agent)
    handle = re.findall(r"[0-9a-f]{16,64}", str(prompts_of(agent)[-1]))[0]

    page = [call("read_memory", "c-page", handle=handle, first_line=1, last_line=2)]
    again = reader(page, "Read again.", config=config)
    await session.load_session_state("s", agent=again)
    await again(user("What was in it?"))
    first, second = prompts_of(again)
    assert await EstimatedTokenCounter().count(first) <= 1500
    assert "nothing is archived" not in second[-1]["content"]
    assert handle in str(second)


@pytest.mark.parametrize("name", ["Stranger", "Friday"], ids=["another agent", "another user's"])
async def test_agents_in_one_folder_do_not_read_each_other(tmp_path: Path, name: str) -> None:
    config = config_of(store_dir=tmp_path)
    agent = reader(*steps(4), "Done.", config=config)
    await agent(user("Read the logs."))
    handle = re.findall(r"[0-9a-f]{16,64}", str(prompts_of(agent)[-1]))[0]
    spy = [call("read_memory", "c-1", handle=handle), call("search_memory", "c-2", pattern="fox")]
    model, formatter = ScriptedModel(spy, "."), OpenAIChatFormatter()
    stranger = ReActAgent(name, "", model, formatter, compression_config=config)
    stranger.set_console_output_enabled(False)
    await stranger(user("Read what is not yours."))
    results = [str(each["content"]) for each in prompts_of(stranger)[-1] if each["role"] == "tool"]
    assert len(results) == 2
    assert not any("brown fox" in each for each in results)


async def test_names_with_a_stroke_in_them_do_not_lead_into_another_session(tmp_path: Path) -> None:
    config = config_of(store_dir=tmp_path)
    memory = InMemoryMemory(user_id="ann", session_id="trip")
    agent = reader(*steps(4), "Done.", config=config, memory=memory, name="rome/guide")
    await agent(user("Read the logs."))
    assert agent.window is not None
    assert agent.window.report is not None
    (handle, *_) = agent.window.report.handles
    other = InMemoryMemory(user_id="ann", session_id="trip/rome")
    stranger = reader(config=config, memory=other, name="guide")
    assert stranger.window is not None
    with pytest.raises(UnknownHandle):
        await stranger.window.expand(handle)


async def test_a_session_of_ones_own_finds_its_files_without_a_state(tmp_path: Path) -> None:
    config = config_of(store_dir=tmp_path)
    store = MemoryStore()
    memory = InMemoryMemory(store=store, user_id="ann", session_id="logs")
    agent = reader(*steps(4), "Done.", config=config, memory=memory)
    await agent(user("Read the logs."))
    handle = re.findall(r"[0-9a-f]{16,64}", str(prompts_of(agent)[-1]))[0]
    again = reader(
        [call("read_memory", "c-1", handle=handle)],
        "Read.",
        config=config,
        memory=InMemoryMemory(store=store, user_id="ann", session_id="logs"),
    )
    await again(user("Read again."))
    assert "brown fox" in prompts_of(again)[-1][-1]["content"]


async def test_a_memory_that_keeps_itself_short_brings_its_tools() -> None:
    def page_in(prompt: list[dict[str, Any]]) -> Any:
        handle = re.findall(r"[0-9a-f]{16,64}", str(prompt))[0]
        return [call("read_memory", "c-page", handle=handle, first_line=1, last_line=3)]

    memory = ReMeShortTermMemory(max_total_tokens=1500, keep_recent_count=1)
    async with InMemoryMemoryService() as service:
        agent = agent_of(
            *steps(6),
            page_in,
            "Done.",
            toolkit=toolkit_of(read_log),
            memory=memory,
            max_iters=40,
            long_term_memory=ServiceLongTermMemory(service, "ann"),
            long_term_memory_mode="static_control",
        )
        await agent(user("Read the logs."))
        await agent.aclose()
        assert "to read on: read_memory" in prompts_of(agent)[-1][-1]["content"]
        assert await EstimatedTokenCounter().count(prompts_of(agent)[-2]) <= 1700
        stored = await memory.memory.get_memory(prepend_summary=False)
        assert await service.count("ann") == len(stored) == 1 + 2 * 7 + 1


async def test_an_archive_of_ones_own(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path, "ann", "s")
    agent = reader(*steps(4), "Done.", config=config_of(archive=archive))
    await agent(user("Read the logs."))
    assert archive.list()
    archive.check()


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        config_of(store_dir=tmp_path, archive=FileArchive(tmp_path, "a", "b"))
    with pytest.raises(InvalidInput, match="compression_formatter"):
        config_of(compression_model=ScriptedModel())
    with pytest.raises(InvalidInput, match="budget"):
        reader(config=config_of(-1))
    with pytest.raises(TypeError):
        CompressionConfig(1000)  # type: ignore[misc]
    with pytest.raises(InvalidInput, match="whole number of tokens, got a str"):
        CompressionConfig(trigger_threshold="1000")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInput, match="TokenCounterBase, got a int"):
        config_of(agent_token_counter=3)


async def test_a_window_and_messages_of_others() -> None:
    agent = reader("Yes.", config=config_of(900))
    for number in range(20):
        await agent.observe(Msg("bob", f"{number}: " + "it rains " * 30, "assistant"))
    await agent(user("Does it rain?"))
    (prompt,) = prompts_of(agent)
    assert await EstimatedTokenCounter().count(prompt) <= 900
    assert "Does it rain?" in str(prompt)
