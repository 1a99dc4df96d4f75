"""``AnthropicChatModel``: Anthropic's Messages API through the official SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic

from .builder import ResponseBuilder
from .forms import ANSWER, Form, ModelRequest, answer_tool, in_words
from .sdk import SDKChatModel, call_options, client_options

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


class AnthropicChatModel(SDKChatModel):
    """A model behind Anthropic's API.

    Tools in OpenAI's format are converted to Anthropic's. Leading system messages become the
    ``system`` parameter.

    Args:
        model_name: The name of the model.
        api_key: The key; the SDK's default if None.
        max_tokens: The largest answer, in tokens.
        stream: Whether answers are streamed.
        thinking: Anthropic's option, such as ``{"type": "enabled", "budget_tokens": 1024}``.
        stream_tool_parsing: Whether the arguments of a call are parsed while it is streamed.
        client_kwargs: Options of the SDK's client.
        generate_kwargs: Options of every request.
        client_args: The older name of ``client_kwargs``.
        client: An ``AsyncAnthropic`` to use; it stays open.
    """

    sdk_error = anthropic.AnthropicError

    def __init__(
        self,
        model_name: str,
        api_key: str | None = None,
        max_tokens: int = 2048,
        stream: bool = True,
        thinking: Mapping[str, Any] | None = None,
        stream_tool_parsing: bool = True,
        client_kwargs: Mapping[str, Any] | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        *,
        client_args: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        options = client_options(client_kwargs, client_args)
        super().__init__(
            model_name,
            stream,
            api_key=api_key,
            client=client,
            make_client=lambda: anthropic.AsyncAnthropic(**{"api_key": api_key, **options}),
            stream_tool_parsing=stream_tool_parsing,
            generate_kwargs=generate_kwargs,
        )
        self.max_tokens = max_tokens
        self.thinking = dict(thinking) if thinking is not None else None

    async def _create(self, client: Any, body: dict[str, Any]) -> Any:
        create, defaults = client.messages.create, {"max_tokens": self.max_tokens}
        return await create(**call_options(create, {**defaults, **self.generate_kwargs, **body}))

    def _body(self, request: ModelRequest, form: Form) -> dict[str, Any]:
        system, messages = _parted(request.messages)
        if form is Form.WORDS:
            messages = [*messages, in_words(request.schema)]
        body = {
            "model": self.model_name,
            "system": system,
            "messages": messages,
            "thinking": self.thinking,
        }
        if form is Form.TOOL:
            tool = _tool(answer_tool(request.schema))
            return {**body, "tools": [tool], "tool_choice": {"type": "tool", "name": ANSWER}}
        return (
            body if form is Form.WORDS or not request.tools else {**body, **_tools(request, form)}
        )

    def _take_whole(self, answer: Any, builder: ResponseBuilder) -> None:
        builder.id = answer.id or ""
        for index, block in enumerate(answer.content):
            _begin(index, block, builder)
            if block.type == "tool_use":
                builder.add_call(index, block.id, block.name, _written(block.input))
        _count(answer.usage, builder)
        builder.is_complete = True

    def _take_event(self, event: Any, builder: ResponseBuilder) -> bool:
        if event.type == "content_block_start":
            return _begin(event.index, event.content_block, builder)
        if event.type == "content_block_delta":
            return _go_on(event.index, event.delta, builder)
        if event.type == "message_start":
            builder.id = event.message.id or ""
            _count(event.message.usage, builder)
        if event.type == "message_delta":
            _count(event.usage, builder)
        builder.is_complete = builder.is_complete or event.type == "message_stop"
        return False


def _parted(messages: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the system prompt, if there is one, and the other messages."""
    count = next(
        (at for at, each in enumerate(messages) if each.get("role") != "system"), len(messages)
    )
    blocks = [block for each in messages[:count] for block in _blocks(each["content"])]
    return (blocks if blocks else None), [dict(each) for each in messages[count:]]


def _blocks(content: Any) -> list[Any]:
    if not isinstance(content, str):
        return list(content)
    return [{"type": "text", "text": content}] if content else []  # the API refuses an empty block


def _tools(request: ModelRequest, form: Form) -> dict[str, Any]:
    choice = request.tool_choice
    if request.is_forced and form is Form.FREE:
        choice = "auto"
    told = {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}
    return {
        "tools": [_tool(each) for each in request.tools or ()],
        "tool_choice": told if choice is not None else None,
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    told = {"name": function["name"], "input_schema": schema}
    description = function.get("description")
    return {**told, "description": description} if description else told


def _begin(index: int, block: Any, builder: ResponseBuilder) -> bool:
    if block.type == "text":
        builder.add_text(block.text or "", index)
    elif block.type == "thinking":
        builder.add_thinking(block.thinking or "", index, block.signature or "")
    elif block.type == "tool_use":
        builder.add_call(index, block.id, block.name, None)
    return bool(block.type == "tool_use")  # other blocks start empty


def _go_on(index: int, delta: Any, builder: ResponseBuilder) -> bool:
    if delta.type == "text_delta":
        builder.add_text(delta.text, index)
    elif delta.type == "thinking_delta":
        builder.add_thinking(delta.thinking, index)
    elif delta.type == "signature_delta":
        builder.add_thinking("", index, delta.signature)
    elif delta.type == "input_json_delta":
        builder.add_call(index, "", "", delta.partial_json)
    return delta.type in ("text_delta", "thinking_delta", "input_json_delta")


def _written(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _count(usage: Any, builder: ResponseBuilder) -> None:
    """Count usage; tokens read from or written to a prompt cache count as input."""
    if usage is None:
        return
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counted = [getattr(usage, part, None) for part in parts]
    if any(counted):
        builder.input_tokens = sum(each for each in counted if each is not None)
    if usage.output_tokens is not None:
        builder.output_tokens = usage.output_tokens
