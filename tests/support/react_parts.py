"""Parts of agents for tests: models, memories and tools that take their time, and calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from memoryspace.agent import ReActAgent
from memoryspace.formatter import (
    AnthropicChatFormatter,
    DashScopeChatFormatter,
    FormatterBase,
    GeminiChatFormatter,
    OpenAIChatFormatter,
)
from memoryspace.memory import InMemoryMemory, MemoryBase
from memoryspace.message import Msg, ToolUseBlock
from memoryspace.message.repairing import calls_in, results_in
from memoryspace.model import ChatResponse
from memoryspace.testing import ScriptedModel
from memoryspace.testing.providers import (
    check_anthropic,
    check_dashscope,
    check_gemini,
    check_openai,
)
from memoryspace.tool import Toolkit, ToolResponse, told

PROVIDERS: list[tuple[FormatterBase, Callable[[list[dict[str, Any]]], None]]] = [
    (OpenAIChatFormatter(), check_openai),
    (AnthropicChatFormatter(), check_anthropic),
    (DashScopeChatFormatter(), check_dashscope),
    (GeminiChatFormatter(), check_gemini),
]


def user(text: str) -> Msg:
    return Msg("user", text, "user")


def call(name: str, id: str = "call-1", /, **arguments: Any) -> ToolUseBlock:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def text(words: str) -> Any:
    return {"type": "text", "text": words}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def toolkit_of(*functions: Callable[..., Any]) -> Toolkit:
    toolkit = Toolkit()
    for function in functions:
        toolkit.register_tool_function(function)
    return toolkit


def agent_of(*lines: Any, stream: bool = False, **options: Any) -> ReActAgent:
    """Return a quiet agent whose model says these lines."""
    model = options.pop("model", None) or ScriptedModel(*lines, stream=stream)
    options.setdefault("toolkit", toolkit_of(add))
    formatter = options.pop("formatter", None) or OpenAIChatFormatter()
    name = options.pop("name", "Friday")
    agent = ReActAgent(name, "You help.", model, formatter, **options)
    agent.set_console_output_enabled(False)
    return agent


def prompts_of(agent: ReActAgent) -> list[list[dict[str, Any]]]:
    assert isinstance(agent.model, ScriptedModel)
    return [each.messages for each in agent.model.calls]


async def history(agent: ReActAgent) -> list[str]:
    """Return what is stored, each message in a word or two."""
    return [_shown(msg) for msg in await agent.memory.get_memory(prepend_summary=False)]


def _shown(msg: Msg) -> str:
    calls = [f"{each['name']}?" for each in calls_in(msg)]
    results = [f"{each['name']}!" for each in results_in(msg)]
    words = [msg.get_text_content()] if msg.get_text_content() else []
    return f"{msg.role}: {' '.join([*words, *calls, *results])}"


async def unanswered(memory: MemoryBase) -> list[str]:
    """Return the ids of stored calls that have no stored result."""
    messages = await memory.get_memory(prepend_summary=False)
    answered = [each["id"] for msg in messages for each in results_in(msg)]
    open_ids = []
    for msg in messages:
        for each in calls_in(msg):
            if each["id"] in answered:
                answered.remove(each["id"])
            else:
                open_ids.append(each["id"])
    return open_ids


async def check_for_all_providers(messages: list[Msg]) -> None:
    if not messages:
        return  # nothing would be sent
    for formatter, check in PROVIDERS:
        check(await formatter.format(messages))


class SlowMemory(InMemoryMemory):
    """A memory in RAM that waits like one on a server, before and after everything."""

    async def add(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        await super().add(*args, **kwargs)
        await asyncio.sleep(0)

    async def delete(self, *args: Any, **kwargs: Any) -> int:
        await asyncio.sleep(0)
        return await super().delete(*args, **kwargs)

    async def get_memory(self, *args: Any, **kwargs: Any) -> list[Msg]:
        await asyncio.sleep(0)
        return await super().get_memory(*args, **kwargs)

    async def update_messages_mark(self, *args: Any, **kwargs: Any) -> int:
        await asyncio.sleep(0)
        return await super().update_messages_mark(*args, **kwargs)


class SlowModel(ScriptedModel):
    """A scripted model that waits before it answers and between the pieces of its answer."""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        answer = await super().__call__(*args, **kwargs)
        return answer if isinstance(answer, ChatResponse) else _slowly(answer)


async def _slowly(answer: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    async for each in answer:
        await asyncio.sleep(0)
        yield each
        await asyncio.sleep(0)


async def look_up(what: str) -> str:
    """Look something up, after some time."""
    for _ in range(3):
        await asyncio.sleep(0)
    return f"found {what}"


async def watch(what: str) -> AsyncGenerator[ToolResponse, None]:
    """Watch something, and tell of it as it goes on."""
    seen = ""
    for number in range(3):
        await asyncio.sleep(0)
        seen += f"{what} {number}. "
        yield ToolResponse(told(seen).content, stream=True, is_last=number == 2)


def broken_stream(
    pieces: Iterable[list[Any]], error: BaseException
) -> Callable[..., AsyncGenerator[ChatResponse, None]]:
    """Return a model's answer that grows for a while and then fails."""

    async def answer() -> AsyncGenerator[ChatResponse, None]:
        for piece in pieces:
            yield ChatResponse(piece)
        raise error

    return answer


class AnyModel(ScriptedModel):
    """A model that answers with whatever it is given, answers of a model or not."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self._answers = list(answers)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer
