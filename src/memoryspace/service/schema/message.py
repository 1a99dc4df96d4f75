"""``Message``, the message type of AgentScope's runtime, and ``Session``, a list of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4

from msgspec import field
from msgspec.structs import asdict

from ...errors import InvalidInput, InvalidMessage
from .constants import RunStatus
from .contents import (
    AgentContent,
    AudioContent,
    Content,
    Event,
    ImageContent,
    TextContent,
    content_from,
    merge_delta,
)
from .model import Model
from .openai import fields_from_openai
from .reading import text_of_content

AgentRole: TypeAlias = Literal["assistant", "system", "user", "tool"]

_Part = TypeVar("_Part", bound=Content)
_Event = TypeVar("_Event", bound=Event)


def _new_id() -> str:
    return f"msg_{uuid4()}"


class Message(Event, kw_only=True):
    """A message with a role and a list of content parts.

    Content parts may be passed as dicts. Every field is checked when the message is built.

    Raises:
        InvalidMessage: A field is unknown or has the wrong type.

    Examples:
        >>> message = Message(role="user", content=[TextContent(text="Hello")])
        >>> message.get_text_content()
        'Hello'
    """

    id: str = field(default_factory=_new_id)
    object: str = "message"
    type: str = "message"
    status: str = RunStatus.Created
    role: AgentRole | None = None
    content: list[AgentContent] | None = None
    code: str | None = None
    message: str | None = None
    usage: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.content, list | tuple):
            self.content = [
                content_from(part, f"Message.content[{number}]")
                for number, part in enumerate(self.content)
            ]
        super().__post_init__()

    @classmethod
    def from_openai_message(cls, message: Any) -> Message:
        """Build a message from a dict in OpenAI's chat format or in the format of this schema.

        Raises:
            InvalidMessage: ``message`` has neither format.
        """
        if isinstance(message, Message):
            return message
        if hasattr(message, "model_dump"):  # OpenAI's own objects
            message = message.model_dump(exclude_none=True)
        if not isinstance(message, Mapping):
            raise InvalidMessage(f"a message must be a dict, got {type(message).__name__}")
        return cls.model_validate(fields_from_openai(message))

    def get_text_content(self) -> str | None:
        """Return the first text part, or ``None``."""
        return next((part.text for part in self._parts() if isinstance(part, TextContent)), None)

    def get_image_content(self) -> list[str]:
        """Return the images, as addresses or data URLs."""
        images = [part.image_url for part in self._parts() if isinstance(part, ImageContent)]
        return [image for image in images if image is not None]

    def get_audio_content(self) -> list[str]:
        """Return the data of the audio parts."""
        sounds = [part.data for part in self._parts() if isinstance(part, AudioContent)]
        return [sound for sound in sounds if sound is not None]

    def get_all_text(self) -> str:
        """Return all readable text of the message in order, as searches see it.

        Unlike ``get_text_content``, this includes every text part, refusals, tool data and the
        names of files.
        """
        parts = self._parts()
        return text_of_content([asdict(p) if isinstance(p, Content) else p for p in parts])

    def add_content(self, new_content: _Part) -> _Part | None:
        """Append a complete part and return it as an event; ``None`` if it has an index.

        The message keeps a copy, so later changes of the event do not affect it.
        """
        if new_content.index is not None:
            return None
        return self._placed(new_content).completed()

    def add_delta_content(self, new_content: _Part) -> _Part | None:
        """Add a delta and return it as an event.

        Without ``index`` it starts a new part. With one it is merged into the part at that
        position, if it is a delta; otherwise nothing is added and ``None`` is returned.
        """
        if new_content.index is None:
            return self._placed(new_content).in_progress()
        if new_content.delta is not True:
            return None
        merge_delta(self._part_at(new_content.index), new_content)
        new_content.msg_id = self.id
        return new_content.in_progress()

    def content_completed(self, content_index: int) -> AgentContent | None:
        """Return the part at this index as a completed event, or ``None`` if there is none."""
        parts = self._parts()
        if not 0 <= content_index < len(parts):
            return None
        done = parts[content_index].model_copy(deep=True)
        done.delta, done.index, done.msg_id = False, content_index, self.id
        return done.completed()

    def _parts(self) -> list[AgentContent]:
        if self.content is None or isinstance(self.content, list):
            return [] if self.content is None else self.content
        given = type(self.content).__name__  # assigned after the check
        raise InvalidMessage(f"the content of message {self.id!r:.80} must be a list, got {given}")

    def _part_at(self, index: int) -> AgentContent:
        parts = self._parts()
        if not 0 <= index < len(parts):
            raise InvalidInput(
                f"message {self.id!r} has {len(parts)} parts and none at {index}; start a new part "
                "with a content that has no index"
            )
        return parts[index]

    def _placed(self, new_content: _Part) -> _Part:
        kept = content_from(new_content).model_copy(deep=True)
        kept.delta = False
        self.content = [*self._parts(), kept]
        new_content.index, new_content.msg_id = len(self.content) - 1, self.id
        return new_content


class Session(Model, kw_only=True):
    """The messages of one user in one conversation."""

    id: str
    user_id: str
    messages: list[Message | dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        for number, message in enumerate(self.messages):
            if not isinstance(message, Message | dict):
                raise InvalidMessage(
                    f"Session.messages[{number}] must be a Message or a dict, "
                    f"got {type(message).__name__}"
                )


class SequenceNumberGenerator:
    """Numbers the events of a stream."""

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def next(self) -> int:
        """Return the next number."""
        number = self._next
        self._next += 1
        return number

    def yield_with_sequence(self, event: _Event) -> _Event:
        """Set the event's sequence number to the next number and return the event."""
        event.sequence_number = self.next()
        return event
