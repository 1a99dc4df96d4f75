"""``Event`` and the parts that a message's content is made of, told apart by their ``type``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias

from ...errors import InvalidMessage
from .constants import RunStatus
from .model import Model


class Error(Model, kw_only=True):
    """What went wrong with an event."""

    code: str
    message: str


class Event(Model, kw_only=True):
    """Something that comes about step by step. Each step returns the event itself."""

    sequence_number: int | None = None
    object: str
    status: str | None = None
    error: Error | None = None

    def __post_init__(self) -> None:
        if isinstance(self.error, dict):
            self.error = Error.model_validate(self.error)
        super().__post_init__()

    def created(self) -> Self:
        """Say that it is there."""
        return self._now(RunStatus.Created)

    def in_progress(self) -> Self:
        """Say that it has begun."""
        return self._now(RunStatus.InProgress)

    def completed(self) -> Self:
        """Say that it is done."""
        return self._now(RunStatus.Completed)

    def failed(self, error: Error) -> Self:
        """Say that it failed, and why."""
        self.error = Error.model_validate(error)
        return self._now(RunStatus.Failed)

    def rejected(self) -> Self:
        """Say that it was refused."""
        return self._now(RunStatus.Rejected)

    def canceled(self) -> Self:
        """Say that it was called off."""
        return self._now(RunStatus.Canceled)

    def _now(self, status: str) -> Self:
        self.status = status
        return self


class Content(Event, kw_only=True):
    """A part of a message. ``index`` is its place there; a ``delta`` is a piece of a part."""

    type: str
    object: str = "content"
    index: int | None = None
    delta: bool | None = False
    msg_id: str | None = None


class TextContent(Content, kw_only=True):
    """Words."""

    type: Literal["text"] = "text"
    text: str | None = None


class ImageContent(Content, kw_only=True):
    """A picture: its address, or itself as a data URL. Nothing here fetches it."""

    type: Literal["image"] = "image"
    image_url: str | None = None


class DataContent(Content, kw_only=True):
    """Data, such as a call of a tool or what it answered."""

    type: Literal["data"] = "data"
    data: dict[str, Any] | None = None


class AudioContent(Content, kw_only=True):
    """A sound."""

    type: Literal["audio"] = "audio"
    data: str | None = None
    format: str | None = None


class FileContent(Content, kw_only=True):
    """A file: where it is, or what is in it."""

    type: Literal["file"] = "file"
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    file_data: str | None = None


class RefusalContent(Content, kw_only=True):
    """Why the model would not answer."""

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
    """Return a part of a message, built from its dict if it is one; ``where`` is for errors."""
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
    """Add a piece to the part it belongs to: text and lists grow, all else is replaced."""
    if type(part) is not type(delta):
        raise InvalidMessage(
            f"a {type(delta).__name__} is no piece of content[{delta.index}], "
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
