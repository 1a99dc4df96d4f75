"""``WrappedChatModel``: any ``ChatModel`` as an agent's model, with tools described in text."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..message import new_id
from .base import ChatModelBase, ChatResponse, ChatUsage, StructuredModel, ToolChoice
from .builder import Block
from .contract import ChatModel, Completion
from .dialects import as_openai
from .forms import ModelRequest, structured_answer
from .parsing import documents_in
from .structured import json_schema_of

_TOOLS = """\
You may call tools. Always answer with one JSON document: {{"text": what you say, "calls": [...]}}.
Each call is {{"name": the tool's name, "arguments": an object}}. {rule}
The results come back to you before you say more. These are the tools:
{tools}"""
_FREE = "Leave calls empty when no tool is needed."
_FORCED = "There must be at least one call."


class WrappedChatModel(ChatModelBase):
    """Adapts a ``ChatModel`` to agents. It takes prompts in OpenAI's format.

    The model sees text only: media are named, not shown. Tool calls are read from the JSON that the
    model is asked for; an answer without JSON is text.

    Args:
        model: The model; it is never closed here.
    """

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model.name, stream=False)
        self.model = model

    async def __call__(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        structured_model: StructuredModel | None = None,
    ) -> ChatResponse:
        """Answer formatted messages; see ``ChatModelBase``."""
        request = ModelRequest(messages, tools, tool_choice, structured_model)
        began = time.perf_counter()
        prompt, schema = _put(request)
        completion = await self.model.complete(prompt, schema=schema)
        blocks = _read(completion.text, request)
        found = ChatResponse(blocks, usage=_usage(completion, time.perf_counter() - began))
        if structured_model is not None:
            found.metadata = structured_answer(structured_model, found.content)
        return found

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Answer messages of ``role`` and ``content``; see ``ChatModel``."""
        return await self.model.complete(messages, schema=schema)

    def __repr__(self) -> str:
        return f"WrappedChatModel({self.model!r})"


def _put(request: ModelRequest) -> tuple[list[Mapping[str, str]], dict[str, Any] | None]:
    """Return the conversation as text, and the JSON schema of the answer."""
    said = [_as_text(each) for each in as_openai(request.messages)]
    if request.structured_model is not None:
        return said, json_schema_of(request.structured_model)
    tools = _offered(request)
    if not tools:
        return said, None
    rule = _FORCED if request.is_forced else _FREE
    told = _TOOLS.format(rule=rule, tools=json.dumps(tools, ensure_ascii=False))
    return _headed(told, said), _calls_schema(tools, request.is_forced)


def _headed(told: str, said: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Put ``told`` into the one system message: many chat templates accept no second one."""
    if said and said[0]["role"] == "system":
        return [{"role": "system", "content": f"{said[0]['content']}\n\n{told}"}, *said[1:]]
    return [{"role": "system", "content": told}, *said]


def _offered(request: ModelRequest) -> list[Mapping[str, Any]]:
    if request.tool_choice == "none" or request.structured_model is not None:
        return []
    tools = [each["function"] for each in request.tools or ()]
    named = [each for each in tools if each["name"] == request.tool_choice]
    return named if named else tools


def _calls_schema(tools: Sequence[Mapping[str, Any]], is_forced: bool) -> dict[str, Any]:
    calls = {"type": "array", "items": {"anyOf": [_call_schema(each) for each in tools]}}
    return {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "calls": {**calls, "minItems": 1} if is_forced else calls,
        },
        "required": ["text", "calls"],
        "additionalProperties": False,
    }


def _call_schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    arguments = tool.get("parameters") or {"type": "object", "properties": {}}
    return {
        "type": "object",
        "properties": {"name": {"const": tool["name"]}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _read(text: str, request: ModelRequest) -> list[Block]:
    if _offered(request):
        for document in documents_in(text):
            if isinstance(document, dict) and document.keys() & {"text", "calls"}:
                return _blocks(document)
    return [{"type": "text", "text": text}] if text else []


def _blocks(document: Mapping[str, Any]) -> list[Block]:
    text, calls = document.get("text"), document.get("calls")
    blocks: list[Block] = []
    if isinstance(text, str) and text:
        blocks.append({"type": "text", "text": text})
    blocks.extend(
        _call(call["name"], call.get("arguments"))
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and isinstance(call.get("name"), str)
    )
    return blocks


def _call(name: str, arguments: Any) -> Block:
    given = arguments if isinstance(arguments, dict) else {}
    return {
        "type": "tool_use",
        "id": f"call_{new_id()}",
        "name": name,
        "input": given,
        "raw_input": json.dumps(given, ensure_ascii=False),
    }


def _as_text(message: Mapping[str, Any]) -> Mapping[str, str]:
    role, text = str(message["role"]), _text_of(message.get("content"))
    if role == "tool":
        name = message.get("name") or message.get("tool_call_id", "")
        return {"role": "user", "content": f"The result of {name}:\n{text}"}
    if message.get("tool_calls"):
        calls = [_told(call["function"]) for call in message["tool_calls"]]
        text = json.dumps({"text": text, "calls": calls}, ensure_ascii=False)
    return {"role": role, "content": text}


def _told(function: Mapping[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {}
    return {"name": function["name"], "arguments": arguments}


def _text_of(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(
        str(part["text"]) if "text" in part else f"[{part.get('type', 'something')}]"
        for part in content
    )


def _usage(completion: Completion, seconds: float) -> ChatUsage | None:
    if completion.input_tokens is None and completion.output_tokens is None:
        return None
    return ChatUsage(completion.input_tokens or 0, completion.output_tokens or 0, seconds)
