"""``ReMeToolLongTermMemory``: compatibility with ReMe's tool memory, for its users in AgentScope.

It learns how to use tools from the calls an agent made, and runs on ``ToolMemoryService``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from ...errors import InvalidInput
from ...message import Msg
from ...model import ChatModel
from ...tool import ToolResponse, failed, told
from ..deriving.task.trajectory import answered_calls, is_failure
from ..deriving.tool.call import ToolCallResult, call_from
from ..settings import ServiceSettings
from ..tool import ToolMemoryService
from ..values.forms import text_of
from ..values.memory import MemoryItem
from .reme import ReMeLongTermMemoryBase
from .service_memory import ECHO, as_messages, as_texts


class ReMeToolLongTermMemory(ReMeLongTermMemoryBase[ToolMemoryService]):
    """Long-term memory of guidelines for tools, for users of ReMe and AgentScope.

    ``keywords`` are names of tools.
    """

    _about = "tool memory"

    def _make_service(
        self, model: ChatModel | None, settings: ServiceSettings
    ) -> ToolMemoryService:
        return ToolMemoryService(model=model, settings=settings)

    async def record(self, msgs: list[Msg | None]) -> list[str]:
        """Store the tool calls in messages, and results that are given as JSON text."""
        self._check_started()
        messages = [msg for msg in as_messages(msgs) if msg.name != ECHO]
        return await self._add_calls([*_calls_in(messages), *_calls_as_text(messages)])

    async def record_to_memory(self, thinking: str, content: list[str]) -> ToolResponse:
        """Remember how calls of tools went, so that they are used better the next time.

        Args:
            thinking (`str`):
                Why this is worth remembering, in your own words.
            content (`list[str]`):
                The results, each a JSON object with create_time, tool_name, input, output,
                token_cost, success and time_cost.
        """
        self._check_started()
        try:
            calls = _valid_calls(as_texts("content", content))
            if calls:
                await self._add_calls(calls)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"recording {self._about}", error)
        if not calls:
            return told("No valid tool call results to record.")
        return told(
            f"Successfully recorded {len(calls)} tool execution result(s) "
            "and generated usage guidelines."
        )

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return guidelines for the tools that the last message names, or else is about."""
        self._check_started()
        texts = [text_of(each) for each in as_messages(msg)[-1:]]
        named = await self._search_all(texts, limit)
        return self._rendered(named if named else await self._find(texts, limit))

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5) -> ToolResponse:
        """Look up how tools are best used. Use it before calling a tool that may be difficult.

        Args:
            keywords (`list[str]`):
                The names of the tools, exactly as they are called.
            limit (`int`, defaults to 5):
                For how many of them to return guidelines at most.
        """
        self._check_started()
        try:
            names = as_texts("keywords", keywords)
            found = await self._search_all(names, limit)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"retrieving {self._about}", error)
        if not found:
            return told(f"No tool guidelines found for: {','.join(names)}")
        return told(self._rendered(found))

    async def _search_all(self, texts: Sequence[str], limit: int) -> list[MemoryItem]:
        if type(limit) is not int or limit < 1:
            raise InvalidInput(f"limit must be a whole number of at least 1, got {limit!r}")
        names = [name for text in texts for name in (text, *re.split(r"[\s,;]+", text)) if name]
        return (await self.service.guidelines(self.user_id, list(dict.fromkeys(names))))[:limit]

    async def _add_calls(self, calls: Sequence[ToolCallResult]) -> list[str]:
        if not calls:
            return []
        return await self.service.add_tool_call_results(self.user_id, calls, self.session_id)


def _valid_calls(texts: Sequence[str]) -> list[ToolCallResult]:
    calls = []
    for number, text in enumerate(texts):
        try:
            calls.append(call_from(text))
        except InvalidInput as error:
            warnings.warn(f"content[{number}] was skipped: {error}", stacklevel=3)
    return calls


def _calls_in(messages: Sequence[Msg]) -> list[ToolCallResult]:
    """Return the answered calls, each with the time of its message."""
    return [
        ToolCallResult(
            tool_name=tool,
            input=arguments if isinstance(arguments, dict) else str(arguments),
            output=output,
            success=not is_failure(output),
            create_time=messages[number].timestamp,
        )
        for number, tool, arguments, output in answered_calls(list(messages))
        if output
    ]


def _calls_as_text(messages: Sequence[Msg]) -> list[ToolCallResult]:
    calls = []
    for msg in messages:
        text = msg.get_text_content()
        if text is not None and text.lstrip().startswith("{"):
            calls += _valid_calls([text])
    return calls
