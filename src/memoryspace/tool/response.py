"""``ToolResponse``: what a tool function answers an agent. AgentScope v1's shape."""

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
    """Blocks for the model in ``content``; ``metadata`` is for the program alone."""

    content: list[OutputBlock]
    metadata: dict[str, Any] | None = None
    stream: bool = False
    is_last: bool = True
    is_interrupted: bool = False
    id: str = field(default_factory=new_id)

    @property
    def text(self) -> str:
        """All text blocks, one after another."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


def told(text: str, **metadata: Any) -> ToolResponse:
    """Return a response of one text. ``metadata`` are its items."""
    return ToolResponse([TextBlock(type="text", text=text)], metadata or None)


def failed(what: str, error: Exception) -> ToolResponse:
    """Return a response that says clearly that nothing was done, and never looks like a memory.

    The error's own words are left out: they may hold a user's.
    """
    kind = type(error).__name__
    logger.warning("%s failed: %s", what, kind)
    return told(
        f"Error {what}: {kind}. This is a failure, not a memory.", success=False, error=kind
    )


def as_response(value: Any) -> ToolResponse:
    """Return what a function gave as a response: text as it is, other data as JSON.

    Raises ``TypeError`` for what cannot be shown to a model.
    """
    if isinstance(value, ToolResponse):
        is_text = isinstance(value.content, str)  # as some write it
        return replace(value, content=told(str(value.content)).content) if is_text else value
    if isinstance(value, str):
        return told(value)
    try:
        return told("Done." if value is None else msgspec.json.encode(value).decode())
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise TypeError(f"a tool must return a ToolResponse, text or data, not {kind}") from error
