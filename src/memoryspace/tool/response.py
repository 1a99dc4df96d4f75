"""``ToolResponse``: the result of a tool function, in AgentScope v1's format."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from ..message import AudioBlock, ImageBlock, TextBlock, VideoBlock, new_id

logger = logging.getLogger(__name__)

OutputBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | VideoBlock


@dataclass(slots=True)
class ToolResponse:
    """The result of a tool call.

    Args:
        content: Blocks for the model.
        metadata: Data for the program; the model does not see it.
        stream: Whether more responses follow that extend this one.
        is_last: Whether this response is complete.
        is_interrupted: Whether the call was interrupted.
        id: A random id.
    """

    content: list[OutputBlock]
    metadata: dict[str, Any] | None = None
    stream: bool = False
    is_last: bool = True
    is_interrupted: bool = False
    id: str = field(default_factory=new_id)

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


def told(text: str, **metadata: Any) -> ToolResponse:
    """Return a response with one text block; the keywords become its metadata."""
    return ToolResponse([TextBlock(type="text", text=text)], metadata or None)


def failed(what: str, error: Exception) -> ToolResponse:
    """Return a response that reports a failure and cannot be mistaken for a memory.

    It contains the type of the error but not its message, which may quote a user.
    """
    kind = type(error).__name__
    logger.warning("%s failed: %s", what, kind)
    return told(
        f"Error {what}: {kind}. This is a failure, not a memory.", success=False, error=kind
    )


def as_response(value: Any) -> ToolResponse:
    """Return a function's return value as a response: text unchanged, other data as JSON.

    Raises:
        TypeError: If the value cannot be written as JSON.
    """
    if isinstance(value, ToolResponse):
        is_text = isinstance(value.content, str)  # not valid, but common
        return replace(value, content=told(str(value.content)).content) if is_text else value
    if isinstance(value, str):
        return told(value)
    try:
        return told("Done." if value is None else msgspec.json.encode(value).decode())
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise TypeError(f"a tool must return a ToolResponse, text or data, not {kind}") from error
