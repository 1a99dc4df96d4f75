"""``ScriptedModel``: a chat model that returns prepared answers and records its calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ModelFailed
from ..message import ContentBlock
from ..model import Answer, ChatModelBase, ChatResponse, ToolChoice
from ..model.base import StructuredModel

# A text, blocks, a whole response, an error to raise, or a function of the prompt that returns one.
Line: TypeAlias = (
    str
    | list[ContentBlock]
    | ChatResponse
    | BaseException
    | Callable[[list[dict[str, Any]]], "Line"]
)


@dataclass(frozen=True)
class ScriptedCall:
    """The arguments of one call to a ``ScriptedModel``."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    tool_choice: ToolChoice | None
    structured_model: StructuredModel | None


class ScriptedModel(ChatModelBase):
    """A chat model that returns one prepared answer after another.

    ``calls`` records what it was asked.

    Args:
        *lines: The answers: texts, blocks, whole responses, errors to raise, or functions of the
            prompt that return one of these.
        stream: Stream each answer block by block, each text in two chunks.
        model_name: The name of the model.

    Raises:
        ModelFailed: On a call, if there are no lines left.

    Example::

        model = ScriptedModel("Hello!", ModelFailed("down"))
        response = await model([{"role": "user", "content": "Hi"}])
    """

    def __init__(self, *lines: Line, stream: bool = False, model_name: str = "scripted") -> None:
        super().__init__(model_name, stream)
        self.lines = list(lines)
        self.calls: list[ScriptedCall] = []

    async def __call__(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Answer:
        """Return the next answer."""
        self.calls.append(ScriptedCall(messages, tools, tool_choice, structured_model))
        if not self.lines:
            raise ModelFailed(f"the script of {self.name!r} has no lines left; add another")
        response = _response(self.lines.pop(0), messages)
        return _streamed(response) if self.stream else response


def _response(line: Line, messages: list[dict[str, Any]]) -> ChatResponse:
    if isinstance(line, BaseException):
        raise line
    if isinstance(line, ChatResponse):
        return line
    if isinstance(line, str):
        return ChatResponse([{"type": "text", "text": line}])
    if isinstance(line, list):
        return ChatResponse(line)  # type: ignore[arg-type]  # a script may hold any blocks
    return _response(line(messages), messages)


async def _streamed(response: ChatResponse) -> AsyncGenerator[ChatResponse, None]:
    so_far: list[Any] = []
    for block in response.content:
        if block["type"] == "text" and len(block["text"]) > 1:
            half = block["text"][: len(block["text"]) // 2]
            yield ChatResponse([*so_far, {"type": "text", "text": half}], id=response.id)
        so_far.append(block)
        yield ChatResponse([*so_far], id=response.id)
    yield response
