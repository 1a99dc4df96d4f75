"""``AnthropicChatModel``: Anthropic's messages through its official SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic

from .forms import ANSWER, Form, Question, answer_tool, in_words
from .gathering import Gathering
from .sdk import SDKChatModel, call_options, client_options

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


class AnthropicChatModel(SDKChatModel):
    """A model behind Anthropic's API.

    Tools come as OpenAI describes them and are told in Anthropic's words; system messages at the
    beginning become its ``system``. ``thinking`` is Anthropic's own option, such as
    ``{"type": "enabled", "budget_tokens": 1024}``. ``client`` is an ``AsyncAnthropic`` of your own.
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

    def _body(self, question: Question, form: Form) -> dict[str, Any]:
        system, messages = _parted(question.messages)
        if form is Form.WORDS:
            messages = [*messages, in_words(question.schema)]
        body = {
            "model": self.model_name,
            "system": system,
            "messages": messages,
            "thinking": self.thinking,
        }
        if form is Form.TOOL:
            tool = _tool(answer_tool(question.schema))
            return {**body, "tools": [tool], "tool_choice": {"type": "tool", "name": ANSWER}}
        return (
            body if form is Form.WORDS or not question.tools else {**body, **_tools(question, form)}
        )

    def _take_whole(self, answer: Any, gathering: Gathering) -> None:
        gathering.id = answer.id or ""
        for index, block in enumerate(answer.content):
            _begin(index, block, gathering)
            if block.type == "tool_use":
                gathering.add_call(index, block.id, block.name, _written(block.input))
        _count(answer.usage, gathering)
        gathering.is_complete = True

    def _take_event(self, event: Any, gathering: Gathering) -> bool:
        if event.type == "content_block_start":
            return _begin(event.index, event.content_block, gathering)
        if event.type == "content_block_delta":
            return _go_on(event.index, event.delta, gathering)
        if event.type == "message_start":
            gathering.id = event.message.id or ""
            _count(event.message.usage, gathering)
        if event.type == "message_delta":
            _count(event.usage, gathering)
        gathering.is_complete = gathering.is_complete or event.type == "message_stop"
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
    return [{"type": "text", "text": content}] if content else []  # an empty one is refused


def _tools(question: Question, form: Form) -> dict[str, Any]:
    choice = question.tool_choice
    if question.is_forced and form is Form.FREE:
        choice = "auto"
    told = {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}
    return {
        "tools": [_tool(each) for each in question.tools or ()],
        "tool_choice": told if choice is not None else None,
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    told = {"name": function["name"], "input_schema": schema}
    description = function.get("description")
    return {**told, "description": description} if description else told


def _begin(index: int, block: Any, gathering: Gathering) -> bool:
    if block.type == "text":
        gathering.add_text(block.text or "", index)
    elif block.type == "thinking":
        gathering.add_thinking(block.thinking or "", index, block.signature or "")
    elif block.type == "tool_use":
        gathering.add_call(index, block.id, block.name, None)
    return bool(block.type == "tool_use")  # the others begin empty


def _go_on(index: int, delta: Any, gathering: Gathering) -> bool:
    if delta.type == "text_delta":
        gathering.add_text(delta.text, index)
    elif delta.type == "thinking_delta":
        gathering.add_thinking(delta.thinking, index)
    elif delta.type == "signature_delta":
        gathering.add_thinking("", index, delta.signature)
    elif delta.type == "input_json_delta":
        gathering.add_call(index, "", "", delta.partial_json)
    return delta.type in ("text_delta", "thinking_delta", "input_json_delta")


def _written(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _count(usage: Any, gathering: Gathering) -> None:
    """Tokens that were read from a prompt cache, or written to one, were read all the same."""
    if usage is None:
        return
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counted = [getattr(usage, part, None) for part in parts]
    if any(counted):
        gathering.input_tokens = sum(each for each in counted if each is not None)
    if usage.output_tokens is not None:
        gathering.output_tokens = usage.output_tokens
