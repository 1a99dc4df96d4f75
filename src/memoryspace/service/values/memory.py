"""``MemoryItem``, a stored memory, and ``Draft``, one that is not stored yet.

Both are frozen copies: nothing done to them reaches the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import msgspec
from msgspec import Struct

from ...errors import CorruptData, InvalidInput
from ...message import Msg
from ...portable import Portable, portable, restored
from ...record import RESERVED_PREFIX, Origin
from ..schema import Message, TextContent

# The forms in which callers add messages and get them back, as equal copies.
Said: TypeAlias = Message | Msg | dict[str, Any] | str

_ROLES = ("assistant", "system", "user", "tool")

RAW = "memory"  # the kind of messages; derived memories have kinds of their own

QUARANTINED = "quarantined"  # the mark of a memory that is not recalled until it is released

# The mark of a derived memory that nothing uses until it is approved.
WAITING = RESERVED_PREFIX + "waiting"

SECRET = "secret"  # the mark of a memory with a secret: searches find it, contexts omit it


class Draft(Struct, frozen=True, kw_only=True):
    """A memory that is not stored yet. The fields are those of ``MemoryItem``."""

    value: Said
    text: str
    id: str | None = None  # None: the service chooses one
    kind: str = RAW
    role: str | None = None
    name: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    marks: frozenset[str] = frozenset()
    importance: float = 0.5
    created_at: float | None = None  # None: now
    expires_at: float | None = None
    valid_from: float | None = None
    valid_to: float | None = None
    origin: Origin | None = None


class MemoryItem(Portable, frozen=True, kw_only=True):
    """A stored memory.

    Attributes:
        id: The id of the message, or of the derived memory.
        user_id: The user it belongs to.
        session_id: The session it is in.
        value: The message as it was added, in its own form.
        text: The text that searches see.
        kind: ``"memory"`` for a message; ``"fact"``, ``"insight"``, ``"experience"``, ``"tool"`` or
            a deriver's own kind for a derived memory.
        role: The role of the message.
        name: The name of the speaker.
        title: What the message is about, from its metadata.
        metadata: The user's own data; filters can compare it.
        details: Data of its kind, such as a fact's subject or how often a lesson was used.
        marks: Labels, the user's and the service's own.
        importance: From 0 to 1; part of the ranking.
        created_at: When the message was said, in seconds.
        updated_at: When the memory was last changed.
        expires_at: When it expires; ``None`` for never.
        valid_from: From when a fact holds.
        valid_to: Until when a fact held; a superseded fact is kept.
        origin: Who said it, or what it was derived from.
        version: Counts changes, from 1.
        seq: Identifies this version in the store.
    """

    id: str
    user_id: str
    session_id: str
    value: Said
    text: str
    kind: str = RAW
    role: str | None = None
    name: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    marks: frozenset[str] = frozenset()
    importance: float = 0.5
    created_at: float
    updated_at: float
    expires_at: float | None = None
    valid_from: float | None = None
    valid_to: float | None = None
    origin: Origin | None = None
    version: int = 1
    seq: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types.

        ``form`` says what ``value`` is: a ``message``, ``msg``, ``dict`` or ``text``.
        """
        from .forms import body_of

        form, body = body_of(self.value)
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "value"}
        return {**portable(fields), "value": portable(body), "form": form}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the memory that ``to_dict`` wrote.

        Raises:
            InvalidInput: ``data`` is not a memory.
            TypeError: ``data`` is not a dict.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"a {cls.__name__} is read from a dict, got {type(data).__name__}")
        return cls.built({key: restored(value) for key, value in data.items()})

    @classmethod
    def built(cls, data: Mapping[str, Any]) -> Self:
        """Return a memory from its fields as restored plain data."""
        from .forms import said_from

        try:
            read = msgspec.convert(data, _MemoryFields)
            value = said_from(read.form, read.value)
        except (msgspec.ValidationError, CorruptData) as error:
            raise InvalidInput(f"this is no {cls.__name__}: {error}") from None
        fields = {name: getattr(read, name) for name in _FIELDS}
        return cls(value=value, **fields)

    def said(self) -> Said:
        """Return the message that was added; for a derived memory, a message with its text."""
        if self.kind == RAW:
            return self.value
        return Message(
            id=self.id,
            role=self.role if self.role in _ROLES else None,  # type: ignore[arg-type]  # checked
            content=[TextContent(text=self.text)],
            metadata={
                **self.metadata,
                "kind": self.kind,
                "derived_from": [] if self.origin is None else [*self.origin.derived_from],
            },
        )

    @property
    def is_quarantined(self) -> bool:
        """Whether it is kept out of searches until it is released."""
        return QUARANTINED in self.marks

    @property
    def is_waiting(self) -> bool:
        """Whether it was derived and waits to be approved or rejected."""
        return WAITING in self.marks

    @property
    def holds_secret(self) -> bool:
        """Whether it holds a password, a card number or the like, and is kept out of contexts."""
        return SECRET in self.marks


class _MemoryFields(Struct, kw_only=True):
    """A memory as ``to_dict`` writes it."""

    id: str
    user_id: str
    session_id: str
    value: Any
    form: str
    text: str
    kind: str = RAW
    role: str | None = None
    name: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    marks: frozenset[str] = frozenset()
    importance: float = 0.5
    created_at: float
    updated_at: float
    expires_at: float | None = None
    valid_from: float | None = None
    valid_to: float | None = None
    origin: Origin | None = None
    version: int = 1
    seq: int = 0


_FIELDS = tuple(name for name in MemoryItem.__struct_fields__ if name != "value")
