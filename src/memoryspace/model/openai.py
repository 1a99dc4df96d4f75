"""``OpenAIChatModel``: OpenAI's chat completions through its official SDK.

Every server that speaks the same way serves, too: give ``client_kwargs={"base_url": ...}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import openai

from .forms import FREE_CHOICES, Form, Question, answer_tool, in_words
from .gathering import Gathering
from .schemas import closed, is_open
from .sdk import SDKChatModel, call_options, client_options

_THOUGHTS = ("reasoning_content", "reasoning")  # as different servers call them


class OpenAIChatModel(SDKChatModel):
    """A model behind OpenAI's API, or behind one that is like it.

    ``generate_kwargs`` are sent with every request; one that is None is left out, the defaults too
    (``{"stream_options": None}`` for servers that do not know it). ``client`` is an ``AsyncOpenAI``
    of your own. ``stream_tool_parsing=False`` leaves ``input`` empty until a call is complete.
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

    def _body(self, question: Question, form: Form) -> dict[str, Any]:
        messages = self._messages(question)
        body: dict[str, Any] = {
            "model": self.model_name,
            "messages": [*messages, in_words(question.schema)] if form is Form.WORDS else messages,
            "reasoning_effort": self.reasoning_effort,
        }
        if form is Form.SCHEMA:
            return {**body, "response_format": _response_format(question.schema)}
        if form is Form.TOOL:
            tool = answer_tool(question.schema)
            return {**body, "tools": [tool], "tool_choice": _named(tool["function"]["name"])}
        return (
            body if form is Form.WORDS or not question.tools else {**body, **_tools(question, form)}
        )

    def _messages(self, question: Question) -> list[dict[str, Any]]:
        return [dict(each) for each in question.messages]

    def _take_whole(self, answer: Any, gathering: Gathering) -> None:
        gathering.id = answer.id or ""
        _count(answer.usage, gathering)
        message = answer.choices[0].message
        _take_words(message, gathering)
        for index, call in enumerate(message.tool_calls or ()):
            _take_call(call, index, gathering)
        gathering.is_complete = True

    def _take_event(self, event: Any, gathering: Gathering) -> bool:
        gathering.id = gathering.id or event.id or ""
        _count(event.usage, gathering)
        if not event.choices:  # the last event, or one that says nothing
            gathering.is_complete = gathering.is_complete or event.usage is not None
            return False
        choice = event.choices[0]
        gathering.is_complete = gathering.is_complete or choice.finish_reason is not None
        return choice.delta is not None and _take_delta(choice.delta, gathering)


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that names all members is guaranteed; one with others can only be asked for."""
    is_strict = not is_open(schema)
    form = closed(schema) if is_strict else schema
    named = {"name": "answer", "strict": is_strict, "schema": form}
    return {"type": "json_schema", "json_schema": named}


def _tools(question: Question, form: Form) -> dict[str, Any]:
    choice = question.tool_choice
    if question.is_forced and form is Form.FREE:
        choice = "auto"
    is_name = choice not in (None, *FREE_CHOICES, "required")
    return {
        "tools": list(question.tools or ()),
        "tool_choice": _named(str(choice)) if is_name else choice,
    }


def _named(tool: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": tool}}


def _take_words(said: Any, gathering: Gathering) -> bool:
    thoughts = next((found for name in _THOUGHTS if (found := getattr(said, name, None))), "")
    text = said.content or getattr(said, "refusal", None) or ""
    if isinstance(thoughts, str) and thoughts:
        gathering.add_thinking(thoughts)
    if isinstance(text, list):  # some servers give it in parts
        text = "".join(part["text"] for part in text if part.get("type") == "text")
    if text:
        gathering.add_text(text)
    return bool(text or thoughts)


def _take_delta(delta: Any, gathering: Gathering) -> bool:
    is_news = _take_words(delta, gathering)
    for call in delta.tool_calls or ():
        _take_call(call, call.index, gathering)
        is_news = True
    return is_news


def _take_call(call: Any, index: int | None, gathering: Gathering) -> None:
    function = call.function
    name, arguments = (function.name, function.arguments) if function is not None else ("", None)
    gathering.add_call(index, call.id or "", name or "", arguments)


def _count(usage: Any, gathering: Gathering) -> None:
    if usage is not None:
        gathering.input_tokens = usage.prompt_tokens
        gathering.output_tokens = usage.completion_tokens
