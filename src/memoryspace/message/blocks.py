"""Content blocks of a message: plain dicts, distinguished by their ``type``."""

from __future__ import annotations

from typing import Any, Literal, Required, TypeAlias, TypedDict


class Base64Source(TypedDict, total=False):
    """Media embedded in the message, in base64."""

    type: Required[Literal["base64"]]
    media_type: Required[str]
    data: Required[str]


class URLSource(TypedDict, total=False):
    """Media at an address. This package never fetches it."""

    type: Required[Literal["url"]]
    url: Required[str]


class TextBlock(TypedDict, total=False):
    """Text."""

    type: Required[Literal["text"]]
    text: str


class ThinkingBlock(TypedDict, total=False):
    """Reasoning that the model produced before its answer."""

    type: Required[Literal["thinking"]]
    thinking: str
    signature: str  # by which Anthropic verifies its own reasoning


class ToolUseBlock(TypedDict, total=False):
    """A tool call by the model."""

    type: Required[Literal["tool_use"]]
    id: Required[str]
    name: Required[str]
    input: Required[dict[str, Any]]
    raw_input: str


class ImageBlock(TypedDict, total=False):
    """An image."""

    type: Required[Literal["image"]]
    source: Required[Base64Source | URLSource]


class AudioBlock(TypedDict, total=False):
    """An audio clip."""

    type: Required[Literal["audio"]]
    source: Required[Base64Source | URLSource]


class VideoBlock(TypedDict, total=False):
    """A video."""

    type: Required[Literal["video"]]
    source: Required[Base64Source | URLSource]


class ToolResultBlock(TypedDict, total=False):
    """The output of a tool; ``id`` is the id of the call."""

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
