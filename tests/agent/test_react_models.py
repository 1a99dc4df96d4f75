"""An agent over real HTTP, with the official SDKs: what it sends is valid, whatever broke off."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryspace.agent import ReActAgent
from memoryspace.errors import ModelFailed
from memoryspace.formatter import AnthropicChatFormatter, OpenAIChatFormatter
from memoryspace.model import AnthropicChatModel, OpenAIChatModel
from memoryspace.testing.providers import check_anthropic, check_openai
from react_parts import add, history, toolkit_of, unanswered, user

from model_server import (
    Provider,
    Reply,
    anthropic_events,
    call_delta,
    openai_events,
    provider,
)

EXAMPLES = Path(__file__).parents[2] / "examples"


def openai_agent(server: Provider) -> ReActAgent:
    model = OpenAIChatModel("m", "key", client_kwargs={"base_url": server.url, "max_retries": 0})
    agent = ReActAgent("Friday", "You help.", model, OpenAIChatFormatter(), toolkit_of(add))
    agent.set_console_output_enabled(False)
    return agent


def anthropic_agent(server: Provider) -> ReActAgent:
    options = {"base_url": server.url, "max_retries": 0}
    model = AnthropicChatModel("m", "key", client_kwargs=options)
    agent = ReActAgent("Friday", "You help.", model, AnthropicChatFormatter(), toolkit_of(add))
    agent.set_console_output_enabled(False)
    return agent


def openai_call(arguments: str, **options: Any) -> Reply:
    events = openai_events(call_delta(0, "call_1", "add", arguments), finish="tool_calls")
    return Reply(events=events[: options.pop("events", None)], **options)


def anthropic_call(arguments: str, **options: Any) -> Reply:
    start = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    events = anthropic_events([start, delta])
    return Reply(events=events[: options.pop("events", None)], **options)


def openai_words(words: str) -> Reply:
    return Reply(events=openai_events({"content": words}))


def anthropic_words(words: str) -> Reply:
    block = [{"type": "text", "text": ""}, {"type": "text_delta", "text": words}]
    return Reply(events=anthropic_events(block))


PROVIDERS = [
    pytest.param(openai_agent, openai_call, openai_words, check_openai, id="openai"),
    pytest.param(anthropic_agent, anthropic_call, anthropic_words, check_anthropic, id="anthropic"),
]


def sent(server: Provider) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.asked["messages"]
    return found


@pytest.mark.parametrize(("agent_of", "call", "words", "check"), PROVIDERS)
async def test_a_tool_is_called_over_http(agent_of: Any, call: Any, words: Any, check: Any) -> None:
    with provider(call('{"a": 1, "b": 2}'), words("It is 3.")) as server:
        agent = agent_of(server)
        reply = await agent(user("1 + 2?"))
        assert reply.get_text_content() == "It is 3."
        assert '"3"' in str(sent(server)).replace("'", '"')
        check(sent(server))


@pytest.mark.parametrize(("agent_of", "call", "words", "check"), PROVIDERS)
@pytest.mark.parametrize("ending", ["cut", "whole"])
async def test_a_stream_that_ends_within_a_call_is_gone_on_from(
    agent_of: Any, call: Any, words: Any, check: Any, ending: Any
) -> None:
    with provider(call('{"a": 1, ', events=-2, ending=ending), words("Again, then.")) as server:
        agent = agent_of(server)
        with pytest.raises(ModelFailed):
            await agent(user("1 + 2?"))
        assert await unanswered(agent.memory) == []
        assert (await agent()).get_text_content() == "Again, then."
        check(sent(server))
        assert await history(agent) == [
            *("user: 1 + 2?", "assistant: add?", "system: add!", "assistant: Again, then.")
        ]


@pytest.mark.parametrize(("agent_of", "call", "words", "check"), PROVIDERS)
async def test_an_interrupt_within_a_stream_is_gone_on_from(
    agent_of: Any, call: Any, words: Any, check: Any
) -> None:
    with provider(call('{"a": 1, ', events=-2, ending="hang"), words("Yes?")) as server:
        agent = agent_of(server)
        reached = asyncio.Event()
        agent.register_instance_hook("pre_print", "reached", lambda *_: reached.set())
        task = asyncio.create_task(agent(user("1 + 2?")))
        await reached.wait()
        await agent.interrupt()
        assert (await task).metadata == {"_is_interrupted": True}
        assert await asyncio.to_thread(server.client_left.wait, 20)
        assert await unanswered(agent.memory) == []
        agent.clear_instance_hooks()
        await agent(user("Go on."))
        check(sent(server))


def test_an_example_takes_a_real_model() -> None:
    said = [Reply(events=openai_events({"content": f"Line {number}."})) for number in range(6)]
    with provider(*said) as server:
        environment = {"MEMORYSPACE_MODEL_URL": server.url, "MEMORYSPACE_MODEL": "m"}
        shown = subprocess.run(
            [sys.executable, str(EXAMPLES / "multi_agent_conversation.py")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert "Bob: Line 1." in shown
    assert "Bob remembers 5 messages" in shown
    assert len(server.heard) == 6


def test_an_example_survives_a_real_model_that_does_not_do_what_it_should() -> None:
    said = [Reply(events=openai_events({"content": f"Line {number}."})) for number in range(2)]
    with provider(*said) as server:
        environment = {"MEMORYSPACE_MODEL_URL": server.url, "MEMORYSPACE_MODEL": "m"}
        shown = subprocess.run(
            [sys.executable, str(EXAMPLES / "long_tool_task.py")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert "Agent: Line 0." in shown
    assert "Nothing had to leave." in shown
    assert "Agent: Line 1." in shown


def test_a_task_is_gone_on_with_by_a_real_model_after_a_restart() -> None:
    def survey(number: int, field: str) -> Reply:
        arguments = json.dumps({"field": field})
        deltas = call_delta(0, f"call_{number}", "survey", arguments)
        return Reply(events=openai_events(deltas, finish="tool_calls"))

    steps = [survey(1, "north"), survey(2, "south"), survey(3, "south"), openai_words("All done.")]
    with provider(*steps) as server:
        environment = {"MEMORYSPACE_MODEL_URL": server.url, "MEMORYSPACE_MODEL": "m"}
        shown = subprocess.run(
            [sys.executable, str(EXAMPLES / "restart_mid_task.py")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        check_openai(sent(server))
    assert "it is gone, with exit code 70" in shown
    assert "Agent: All done." in shown
    assert "There is no result" in str(sent(server))
