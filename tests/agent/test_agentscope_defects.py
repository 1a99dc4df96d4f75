"""What went wrong in AgentScope v1 around agents and compression, and goes right here.

Only what no other test shows: most defects have theirs beside the code they are about.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace.agent import CompressionConfig, ReActAgent
from memoryspace.context import ExtractiveSummary
from memoryspace.errors import ModelUnavailable
from memoryspace.memory import AsyncSQLAlchemyMemory, InMemoryMemory, MemoryBase
from memoryspace.message import Msg
from memoryspace.testing import ScriptedModel
from memoryspace.testing.providers import check_openai
from memoryspace.token import EstimatedTokenCounter
from react_parts import add, agent_of, call, prompts_of, toolkit_of, unanswered, user

from backends import sql_url

WINDOW = 900


def config_of(**options: Any) -> CompressionConfig:
    return CompressionConfig(
        trigger_threshold=WINDOW, summariser=ExtractiveSummary(), keep_recent=2, **options
    )


def remark(number: int) -> Msg:
    return Msg("bob", f"{number}: " + "it rains in the hills " * 30, "user")


async def tokens_of_last_prompt(agent: ReActAgent) -> int:
    assert isinstance(agent.model, ScriptedModel)
    last = agent.model.calls[-1]
    return await EstimatedTokenCounter().count(last.messages, last.tools)


async def test_a_result_without_its_call_does_not_take_the_newest_question_away() -> None:
    """There it was counted as an open pair, so that the whole history was compressed."""
    agent = agent_of("Yes.", compression_config=config_of())
    orphan: Any = {"type": "tool_result", "id": "gone", "name": "look", "output": "a cloud"}
    await agent.observe([remark(number) for number in range(6)])
    await agent.observe(Msg("system", [orphan], "system"))
    await agent(user("Does it rain?"))
    (prompt,) = prompts_of(agent)
    assert "Does it rain?" in str(prompt[-1])
    check_openai(prompt)
    assert await tokens_of_last_prompt(agent) <= WINDOW


async def test_parallel_tools_and_a_database_store_every_result_once(tmp_path: Path) -> None:
    """There the results met in one session of the database: duplicate keys, closed sessions."""
    engine = create_async_engine(sql_url("sqlite", tmp_path))
    calls = [call("add", f"c-{number}", a=number, b=1) for number in range(12)]
    async with AsyncSQLAlchemyMemory(engine, session_id="s") as memory:
        agent = agent_of(calls, "Done.", memory=memory, parallel_tool_calls=True)
        await agent(user("Add them all."))
        results = [
            block["id"]  # type: ignore[typeddict-item]  # chosen by its type
            for msg in await memory.get_memory()
            for block in msg.get_content_blocks("tool_result")
        ]
        assert sorted(results) == sorted(block["id"] for block in calls)
        assert await unanswered(memory) == []
    await engine.dispose()


async def test_what_was_compressed_is_not_sent_and_the_summary_is_in_the_state() -> None:
    """There messages marked as compressed went along, and a saved state forgot the summary."""
    agent = agent_of("One.", "Two.", compression_config=config_of())
    await agent.observe([remark(number) for number in range(6)])
    await agent(user("Does it rain?"))
    left = await agent.memory.get_memory("compressed", prepend_summary=False)
    assert left
    assert not any(str(msg.content) in str(prompts_of(agent)) for msg in left)
    again = agent_of("Yes.", compression_config=config_of())
    again.load_state_dict(agent.state_dict())
    await again(user("And now?"))
    assert "earlier messages left the context" in str(prompts_of(again)[0][1])
    assert not any(str(msg.content) in str(prompts_of(again)) for msg in left)


async def test_after_an_endless_question_and_a_timeout_the_next_one_is_answered() -> None:
    """There the session stayed in disorder."""
    agent = agent_of(ModelUnavailable("too long"), "Better.", compression_config=config_of())
    with pytest.raises(ModelUnavailable):
        await agent(user("word " * 50_000))
    assert agent.window is not None
    assert agent.window.report is not None
    assert "the newest user message" in agent.window.report.excess
    reply = await agent(user("In short: does it rain?"))
    assert reply.get_text_content() == "Better."
    assert await tokens_of_last_prompt(agent) <= WINDOW
    assert await agent.memory.size() == 3


class PlainMemory(MemoryBase):
    """A memory of somebody's own that has the four methods and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = InMemoryMemory()

    async def add(self, memories, marks=None, **options) -> None:  # type: ignore[no-untyped-def]  # as short as can be
        await self._kept.add(memories, marks, **options)

    async def delete(self, msg_ids) -> int:  # type: ignore[no-untyped-def,override]  # the same
        return await self._kept.delete(msg_ids)

    async def get_memory(self, mark=None, exclude_mark=None, prepend_summary=True) -> list[Msg]:  # type: ignore[no-untyped-def]  # the same
        found = await self._kept.get_memory(mark, exclude_mark, False)
        summary = self._compressed_summary if prepend_summary else ""
        return [Msg("user", summary, "user"), *found] if summary else found

    async def update_messages_mark(self, new_mark, old_mark=None, msg_ids=None) -> int:  # type: ignore[no-untyped-def]  # the same
        return await self._kept.update_messages_mark(new_mark, old_mark, msg_ids)


async def test_a_memory_of_ones_own_with_four_methods_serves_an_agent_in_everything() -> None:
    """There an agent called what such a memory did not have, and the reply failed."""
    memory = PlainMemory()
    agent = agent_of(
        [call("add", a=1, b=2)],
        "Three.",
        "Yes.",
        memory=memory,
        toolkit=toolkit_of(add),
        compression_config=config_of(),
    )
    await memory.add(Msg("user", "Be brief.", "user"), marks="hint")
    await agent(user("1 + 2?"))
    assert await memory.get_memory("hint") == []
    await memory.add([remark(number) for number in range(6)])
    await agent(user("Does it rain?"))
    assert await memory.get_memory("compressed", prepend_summary=False)
    assert await tokens_of_last_prompt(agent) <= WINDOW
    check_openai(prompts_of(agent)[-1])
