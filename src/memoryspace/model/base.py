"""``ChatModelBase``: the chat model of agents, with tools, streaming and usage.

The interface is that of AgentScope v1. Every such model is also a ``ChatModel``, so it can be used
wherever the package needs one, for example for summaries and for extracting facts.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ..message import TextBlock, ThinkingBlock, ToolUseBlock, new_id
from .calling import reported
from .contract import Completion

ToolChoice: TypeAlias = str  # "auto", "none", "required", or the name of one tool
# The type of a structured answer: a pydantic model, a msgspec Struct, or a JSON schema.
StructuredModel: TypeAlias = type[Any] | Mapping[str, Any]


@dataclass(slots=True)
class ChatUsage:
    """The tokens and seconds of an answer."""

    input_tokens: int
    output_tokens: int
    time: float
    type: Literal["chat"] = "chat"


@dataclass(slots=True)
class ChatResponse:
    """An answer of a model. When streamed, each response contains everything so far.

    ``metadata`` is the structured answer, if one was requested and given.
    """

    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=lambda: datetime.now().isoformat(" ", "milliseconds"))
    type: Literal["chat"] = "chat"
    usage: ChatUsage | None = None
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")


Answer: TypeAlias = ChatResponse | AsyncGenerator[ChatResponse, None]


class ChatModelBase(ABC):
    """Base class of chat models. They take the dicts that the provider's formatter makes.

    Each call is reported as the operation ``model.call``. No error contains text of the
    conversation.

    Args:
        model_name: The name of the model.
        stream: Whether answers are streamed.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls):
            setattr(cls, "__call__", reported(cls.__call__))  # noqa: B010  # wrapped in an operation

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
        """Answer formatted messages.

        Args:
            messages: The prompt, as the provider's formatter makes it.
            tools: JSON schemas of the tools, in OpenAI's format.
            tool_choice: ``"auto"``, ``"none"``, ``"required"`` or the name of a tool.
            structured_model: The type of a structured answer.

        Returns:
            A response, or with ``stream`` a generator of responses.

        Raises:
            ModelUnavailable: For a failure that may pass.
            ModelFailed: For any other failure.
        """

    @property
    def name(self) -> str:
        """The name of the model."""
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
    """Return the complete answer, streamed or not; empty if it has no content."""
    if isinstance(answer, ChatResponse):
        return answer
    whole = ChatResponse([])
    async for so_far in answer:
        whole = so_far
    return whole
