"""``OpenAIChatModel``: OpenAI's chat completions through the official SDK.

Compatible servers work too: pass ``client_kwargs={"base_url": ...}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import openai

from .builder import ResponseBuilder
from .forms import FREE_CHOICES, Form, ModelRequest, answer_tool, in_words
from .schemas import closed, is_open
from .sdk import SDKChatModel, call_options, client_options

_THOUGHTS = ("reasoning_content", "reasoning")  # names on different servers


class OpenAIChatModel(SDKChatModel):
    """A model behind OpenAI's API or a compatible one.

    Args:
        model_name: The name of the model.
        api_key: The key; the SDK's default if None.
        stream: Whether answers are streamed.
        reasoning_effort: OpenAI's option.
        organization: OpenAI's option.
        stream_tool_parsing: Whether the arguments of a call are parsed while it is streamed;
            otherwise ``input`` is empty until the call is complete.
        client_type: ``"openai"`` or ``"azure"``.
        client_kwargs: Options of the SDK's client.
        generate_kwargs: Options of every request. An option of None is not sent, also if it is a
            default (``{"stream_options": None}`` for servers without that option).
        client_args: The older name of ``client_kwargs``.
        client: An ``AsyncOpenAI`` to use; it stays open.
    """

    structured_forms: ClassVar[tuple[Form, ...]] = (Form.SCHEMA, Form.TOOL, Form.WORDS)
    sdk_error = openai.OpenAIError

    def __init__(
        self,
        model_name: str,
        api_key: str | None = None,
        stream: bool = True,
        reasoning_effort: str | None = None,
        organization: str | None = None,
        stream_tool_parsing: bool = True,
        client_type: Literal["openai", "azure"] = "openai",
        client_kwargs: Mapping[str, Any] | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        *,
        client_args: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        kinds = {"openai": openai.AsyncOpenAI, "azure": openai.AsyncAzureOpenAI}
        if client_type not in kinds:
            raise ValueError(f"client_type must be 'openai' or 'azure', got {client_type!r}")
        options = client_options(client_kwargs, client_args)
        super().__init__(
            model_name,
            stream,
            api_key=api_key,
            client=client,
            make_client=lambda: kinds[client_type](
                **{"api_key": api_key, "organization": organization, **options}
            ),
            stream_tool_parsing=stream_tool_parsing,
            generate_kwargs=generate_kwargs,
        )
        self.reasoning_effort = reasoning_effort

    async def _create(self, client: Any, body: dict[str, Any]) -> Any:
        defaults = {"stream_options": {"include_usage": True}} if body["stream"] else {}
        create = client.chat.completions.create
        return await create(**call_options(create, {**defaults, **self.generate_kwargs, **body}))

    def _body(self, request: ModelRequest, form: Form) -> dict[str, Any]:
        messages = self._messages(request)
        body: dict[str, Any] = {
            "model": self.model_name,
            "messages": [*messages, in_words(request.schema)] if form is Form.WORDS else messages,
            "reasoning_effort": self.reasoning_effort,
        }
        if form is Form.SCHEMA:
            return {**body, "response_format": _response_format(request.schema)}
        if form is Form.TOOL:
            tool = answer_tool(request.schema)
            return {**body, "tools": [tool], "tool_choice": _named(tool["function"]["name"])}
        return (
            body if form is Form.WORDS or not request.tools else {**body, **_tools(request, form)}
        )

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        return [dict(each) for each in request.messages]

    def _take_whole(self, answer: Any, builder: ResponseBuilder) -> None:
        builder.id = answer.id or ""
        _count(answer.usage, builder)
        message = answer.choices[0].message
        _take_words(message, builder)
        for index, call in enumerate(message.tool_calls or ()):
            _take_call(call, index, builder)
        builder.is_complete = True

    def _take_event(self, event: Any, builder: ResponseBuilder) -> bool:
        builder.id = builder.id or event.id or ""
        _count(event.usage, builder)
        if not event.choices:  # the last event, or an empty one
            builder.is_complete = builder.is_complete or event.usage is not None
            return False
        choice = event.choices[0]
        builder.is_complete = builder.is_complete or choice.finish_reason is not None
        return choice.delta is not None and _take_delta(choice.delta, builder)


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Request a schema strictly if it names all members; others cannot be guaranteed."""
    is_strict = not is_open(schema)
    form = closed(schema) if is_strict else schema
    named = {"name": "answer", "strict": is_strict, "schema": form}
    return {"type": "json_schema", "json_schema": named}


def _tools(request: ModelRequest, form: Form) -> dict[str, Any]:
    choice = request.tool_choice
    if request.is_forced and form is Form.FREE:
        choice = "auto"
    is_name = choice not in (None, *FREE_CHOICES, "required")
    return {
        "tools": list(request.tools or ()),
        "tool_choice": _named(str(choice)) if is_name else choice,
    }


def _named(tool: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": tool}}


def _take_words(said: Any, builder: ResponseBuilder) -> bool:
    thoughts = next((found for name in _THOUGHTS if (found := getattr(said, name, None))), "")
    text = said.content or getattr(said, "refusal", None) or ""
    if isinstance(thoughts, str) and thoughts:
        builder.add_thinking(thoughts)
    if isinstance(text, list):  # some servers send it in parts
        text = "".join(part["text"] for part in text if part.get("type") == "text")
    if text:
        builder.add_text(text)
    return bool(text or thoughts)


def _take_delta(delta: Any, builder: ResponseBuilder) -> bool:
    is_news = _take_words(delta, builder)
    for call in delta.tool_calls or ():
        _take_call(call, call.index, builder)
        is_news = True
    return is_news


def _take_call(call: Any, index: int | None, builder: ResponseBuilder) -> None:
    function = call.function
    name, arguments = (function.name, function.arguments) if function is not None else ("", None)
    builder.add_call(index, call.id or "", name or "", arguments)


def _count(usage: Any, builder: ResponseBuilder) -> None:
    if usage is not None:
        builder.input_tokens = usage.prompt_tokens
        builder.output_tokens = usage.completion_tokens
