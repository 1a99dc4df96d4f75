"""``MemoryItem``: something a service remembers. ``Draft``: something to be remembered.

Both are frozen values and copies: nothing done to them reaches the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import msgspec
from msgspec import Struct

from ...errors import CorruptData, InvalidInput
from ...message import Msg
from ...portable import Portable, portable, restored
from ...record import Origin
from ..schema import Message, TextContent

# What users put in and get back: the same form, an equal copy.
Said: TypeAlias = Message | Msg | dict[str, Any] | str

_ROLES = ("assistant", "system", "user", "tool")

RAW = "memory"  # the kind of what was said; derived kinds have names of their own

QUARANTINED = "quarantined"  # the mark of what is kept but not recalled until it is released

SECRET = "secret"  # the mark of what holds a secret: searches find it, contexts do not show it


class Draft(Struct, frozen=True, kw_only=True):
    """Something to be remembered that is not stored yet; the fields are those of ``MemoryItem``."""

    value: Said
    text: str
    id: str | None = None  # given by the service if it is None
    kind: str = RAW
    role: str | None = None
    name: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    marks: frozenset[str] = frozenset()
    importance: float = 0.5
    created_at: float | None = None  # now, if it is None
    expires_at: float | None = None
    valid_from: float | None = None
    valid_to: float | None = None
    origin: Origin | None = None


class MemoryItem(Portable, frozen=True, kw_only=True):
    """Something remembered.

    ``value`` is what was put in, in its own form; ``text`` what a search sees of it. ``metadata``
    is the user's and can be asked for; ``details`` are those of its kind (a fact's subject, how
    often a lesson was of use). A fact holds from ``valid_from`` up to ``valid_to``, a superseded
    one is kept; ``created_at`` is when it was said, ``updated_at`` when it was last changed.
    ``version`` counts from 1; ``seq`` names this very version in the store.
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
        """Return it as plain data that any JSON encoder can write, whatever was said.

        ``form`` says what ``value`` is: a ``message``, ``msg``, ``dict`` or ``text``.
        """
        from .forms import body_of

        form, body = body_of(self.value)
        told = {name: getattr(self, name) for name in self.__struct_fields__ if name != "value"}
        return {**portable(told), "value": portable(body), "form": form}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the memory that ``to_dict`` told."""
        if not isinstance(data, Mapping):
            raise TypeError(f"a {cls.__name__} is read from a dict, got {type(data).__name__}")
        return cls.built({key: restored(value) for key, value in data.items()})

    @classmethod
    def built(cls, data: Mapping[str, Any]) -> Self:
        """Return a memory made of its fields, in plain data that was restored."""
        from .forms import said_from

        try:
            told = msgspec.convert(data, _Told)
            value = said_from(told.form, told.value)
        except (msgspec.ValidationError, CorruptData) as error:
            raise InvalidInput(f"this is no {cls.__name__}: {error}") from None
        fields = {name: getattr(told, name) for name in _FIELDS}
        return cls(value=value, **fields)

    def said(self) -> Said:
        """Return it as a message: what was put in, or for what was derived, a message about it."""
        if self.kind == RAW:
            return self.value
        return Message(
            id=self.id,
            role=self.role if self.role in _ROLES else None,  # type: ignore[arg-type]  # looked at
            content=[TextContent(text=self.text)],
            metadata={
                **self.metadata,
                "kind": self.kind,
                "derived_from": [] if self.origin is None else [*self.origin.derived_from],
            },
        )

    @property
    def is_quarantined(self) -> bool:
        """Whether it is kept out of recall until somebody has looked at it."""
        return QUARANTINED in self.marks

    @property
    def holds_secret(self) -> bool:
        """Whether it is kept out of contexts: it holds a password, a card number or the like."""
        return SECRET in self.marks


class _Told(Struct, kw_only=True):
    """A memory as ``to_dict`` tells it."""

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
