"""``Event`` and the parts of a message's content, distinguished by their ``type``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias

from ...errors import InvalidMessage
from .constants import RunStatus
from .model import Model


class Error(Model, kw_only=True):
    """The error of an event."""

    code: str
    message: str


class Event(Model, kw_only=True):
    """Something with a status. Each method that changes the status returns the event."""

    sequence_number: int | None = None
    object: str
    status: str | None = None
    error: Error | None = None

    def __post_init__(self) -> None:
        if isinstance(self.error, dict):
            self.error = Error.model_validate(self.error)
        super().__post_init__()

    def created(self) -> Self:
        """Set the status to created."""
        return self._now(RunStatus.Created)

    def in_progress(self) -> Self:
        """Set the status to in progress."""
        return self._now(RunStatus.InProgress)

    def completed(self) -> Self:
        """Set the status to completed."""
        return self._now(RunStatus.Completed)

    def failed(self, error: Error) -> Self:
        """Set the status to failed, with the error."""
        self.error = Error.model_validate(error)
        return self._now(RunStatus.Failed)

    def rejected(self) -> Self:
        """Set the status to rejected."""
        return self._now(RunStatus.Rejected)

    def canceled(self) -> Self:
        """Set the status to canceled."""
        return self._now(RunStatus.Canceled)

    def _now(self, status: str) -> Self:
        self.status = status
        return self


class Content(Event, kw_only=True):
    """A part of a message. ``index`` is its position; a ``delta`` is a piece of a part."""

    type: str
    object: str = "content"
    index: int | None = None
    delta: bool | None = False
    msg_id: str | None = None


class TextContent(Content, kw_only=True):
    """Text."""

    type: Literal["text"] = "text"
    text: str | None = None


class ImageContent(Content, kw_only=True):
    """An image, as an address or a data URL. It is never fetched."""

    type: Literal["image"] = "image"
    image_url: str | None = None


class DataContent(Content, kw_only=True):
    """Structured data, such as a tool call or its result."""

    type: Literal["data"] = "data"
    data: dict[str, Any] | None = None


class AudioContent(Content, kw_only=True):
    """Audio."""

    type: Literal["audio"] = "audio"
    data: str | None = None
    format: str | None = None


class FileContent(Content, kw_only=True):
    """A file, by address, by id or with its data."""

    type: Literal["file"] = "file"
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    file_data: str | None = None


class RefusalContent(Content, kw_only=True):
    """The model's reason for not answering."""

    type: Literal["refusal"] = "refusal"
    refusal: str | None = None


AgentContent: TypeAlias = (
    TextContent | ImageContent | DataContent | AudioContent | FileContent | RefusalContent
)

_PARTS: dict[str, type[AgentContent]] = {
    "text": TextContent,
    "image": ImageContent,
    "data": DataContent,
    "audio": AudioContent,
    "file": FileContent,
    "refusal": RefusalContent,
}


def content_from(part: object, where: str = "content") -> AgentContent:
    """Return a content part, built from a dict if needed; ``where`` names it in errors."""
    if type(part) is not dict and isinstance(part, AgentContent):
        return part
    if type(part) is not dict and not isinstance(part, Mapping):
        raise InvalidMessage(
            f"{where} must be a TextContent or another of the contents, got {type(part).__name__}"
        )
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise InvalidMessage(f"{where}.type must be one of {', '.join(_PARTS)}, got {kind!r:.40}")
    try:
        return _PARTS[kind].model_validate(part)
    except InvalidMessage as error:
        raise InvalidMessage(f"{where}: {error}") from None


def merge_delta(part: AgentContent, delta: Content) -> None:
    """Merge a delta into its part: text and lists grow, other values are replaced."""
    if type(part) is not type(delta):
        raise InvalidMessage(
            f"a {type(delta).__name__} cannot be merged into content[{delta.index}], "
            f"which is a {type(part).__name__}"
        )
    for name in set(part.__struct_fields__) - set(Content.__struct_fields__):
        setattr(part, name, _grown(getattr(part, name), getattr(delta, name)))


def _grown(old: Any, new: Any) -> Any:
    if new is None:
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _grown(old.get(key), value) for key, value in new.items()}
    both_grow = isinstance(old, str | list) and type(old) is type(new)
    return old + new if both_grow else new
