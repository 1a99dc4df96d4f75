"""The parts a message's content may be made of: plain dicts, told apart by their ``type``."""

from __future__ import annotations

from typing import Any, Literal, Required, TypeAlias, TypedDict


class Base64Source(TypedDict, total=False):
    """Media carried inside the message."""

    type: Required[Literal["base64"]]
    media_type: Required[str]
    data: Required[str]


class URLSource(TypedDict, total=False):
    """Media that lives somewhere else. Nothing in this package fetches it."""

    type: Required[Literal["url"]]
    url: Required[str]


class TextBlock(TypedDict, total=False):
    """Words."""

    type: Required[Literal["text"]]
    text: str


class ThinkingBlock(TypedDict, total=False):
    """What the model thought before it spoke."""

    type: Required[Literal["thinking"]]
    thinking: str
    signature: str  # with which Anthropic knows its own thought again


class ToolUseBlock(TypedDict, total=False):
    """A call of a tool by the model."""

    type: Required[Literal["tool_use"]]
    id: Required[str]
    name: Required[str]
    input: Required[dict[str, Any]]
    raw_input: str


class ImageBlock(TypedDict, total=False):
    """A picture."""

    type: Required[Literal["image"]]
    source: Required[Base64Source | URLSource]


class AudioBlock(TypedDict, total=False):
    """A sound."""

    type: Required[Literal["audio"]]
    source: Required[Base64Source | URLSource]


class VideoBlock(TypedDict, total=False):
    """A film."""

    type: Required[Literal["video"]]
    source: Required[Base64Source | URLSource]


class ToolResultBlock(TypedDict, total=False):
    """What a tool answered; ``id`` is the call's."""

    type: Required[Literal["tool_result"]]
    id: Required[str]
    name: Required[str]
    output: Required[str | list[TextBlock | ImageBlock | AudioBlock | VideoBlock]]


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | AudioBlock
    | VideoBlock
)
BlockType: TypeAlias = Literal[
    "text", "thinking", "tool_use", "tool_result", "image", "audio", "video"
]
