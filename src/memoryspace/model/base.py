"""``ChatModelBase``: a chat model as agents call it, with tools, streaming and usage.

AgentScope v1's shape. Every such model is also a ``ChatModel``, so it serves wherever the package
asks for one: for summaries, for deriving facts.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ..message import TextBlock, ThinkingBlock, ToolUseBlock, new_id
from .calling import told
from .contract import Completion

ToolChoice: TypeAlias = str  # "auto", "none", "required", or the name of one tool
# What an answer is to be: a pydantic model, a msgspec Struct, or a JSON schema.
StructuredModel: TypeAlias = type[Any] | Mapping[str, Any]


@dataclass(slots=True)
class ChatUsage:
    """What an answer took."""

    input_tokens: int
    output_tokens: int
    time: float
    type: Literal["chat"] = "chat"


@dataclass(slots=True)
class ChatResponse:
    """An answer. While it is streamed, each response holds everything said so far.

    ``metadata`` is the structured answer where one was asked for and given.
    """

    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=lambda: datetime.now().isoformat(" ", "milliseconds"))
    type: Literal["chat"] = "chat"
    usage: ChatUsage | None = None
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text blocks, one after another."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")


Answer: TypeAlias = ChatResponse | AsyncGenerator[ChatResponse, None]


class ChatModelBase(ABC):
    """A chat model that takes the dicts its provider's formatter makes.

    Raises ``ModelUnavailable`` for what may pass and ``ModelFailed`` for what will not; no error
    holds what was said. Each call is an operation, ``model.call``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls):
            setattr(cls, "__call__", told(cls.__call__))  # noqa: B010  # the same, and heard

    def __init__(self, model_name: str, stream: bool) -> None:
        self.model_name = model_name
        self.stream = stream

    @abstractmethod
    async def __call__(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Answer:
        """Answer formatted messages: a response, or with ``stream`` a generator of them."""

    @property
    def name(self) -> str:
        """Which model it is."""
        return self.model_name

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Answer messages of ``role`` and ``content``; see ``ChatModel``."""
        answer = await self([dict(each) for each in messages], structured_model=schema)
        response = await collected(answer)
        usage = response.usage
        text = response.text if response.metadata is None else json.dumps(response.metadata)
        if usage is None:
            return Completion(text)
        return Completion(text, usage.input_tokens, usage.output_tokens)


async def collected(answer: Answer) -> ChatResponse:
    """Return the whole of an answer, streamed or not; one without any content is empty."""
    if isinstance(answer, ChatResponse):
        return answer
    whole = ChatResponse([])
    async for so_far in answer:
        whole = so_far
    return whole
