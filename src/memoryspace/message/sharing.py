"""Copy-on-write messages: many readers share a stored message, and none can change it.

``FrozenMsg`` is the stored message: it cannot be changed and returns copies of its lists and dicts.
``LentMsg`` is what readers get: it shares the parts of the frozen message until the reader sets an
attribute or accesses a list or dict. At that moment it becomes an ordinary ``Msg`` with its own
parts, and its ``Loan`` is flagged so that the pool stops lending this object. So reading ten
thousand messages copies nothing, and changing one of them changes only that object.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ..errors import FrozenMessage
from .msg import Content, Msg, dict_of, peek_content, peek_metadata

# Shared by all frozen messages without metadata; readers get a copy.
_NO_METADATA: dict[str, Any] = {}


class Loan:
    """Shared by a pool and its lent messages: whether any of them was changed by a reader."""

    __slots__ = ("recalled",)

    def __init__(self) -> None:
        self.recalled = False


class _SharedMsg(Msg):
    """Base of both kinds: constructors, copies and dicts of them make a plain ``Msg``."""

    __slots__ = ()  # so that an object can change its class

    def __new__(cls, *args: Any, **kwargs: Any) -> Msg:  # type: ignore[misc]  # the point of it
        return Msg(*args, **kwargs)

    @classmethod
    def from_dict(cls, json_data: Mapping[str, Any]) -> Msg:
        """Build a plain message from its dict."""
        return Msg.from_dict(json_data)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as an independent dict; a loan continues."""
        content, metadata = peek_content(self), peek_metadata(self)
        return dict_of(self, copy_parts(content), copy_parts(metadata) if metadata else {})

    def __copy__(self) -> Msg:
        return thaw(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Msg:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Msg.from_dict, (self.to_dict(),))


class FrozenMsg(_SharedMsg):
    """A stored message. Attributes cannot be set; ``content`` and ``metadata`` return copies."""

    __slots__ = ()

    @property
    def content(self) -> Content:  # type: ignore[override]  # read-only on purpose
        """The content; a copy if it is a list."""
        return cast(Content, copy_parts(peek_content(self)))

    @property
    def metadata(self) -> dict[str, Any]:  # type: ignore[override]  # read-only on purpose
        """A copy of the metadata."""
        return cast(dict[str, Any], copy_parts(peek_metadata(self)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenMessage(
            f"message {self.id!r} is stored, so its {name} cannot be set; change a thaw() copy"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)


class LentMsg(_SharedMsg):
    """A message lent to a reader; it becomes a plain ``Msg`` on the first change."""

    __slots__ = ()

    @property
    def content(self) -> Content:  # type: ignore[override]  # keeps the loan for plain text
        """The content; accessing a list ends the loan."""
        content = peek_content(self)
        return content if type(content) is str else _keep(self).content

    @property
    def metadata(self) -> dict[str, Any]:  # type: ignore[override]  # ends the loan
        """The metadata; accessing it ends the loan."""
        return _keep(self).metadata

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_keep(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_keep(self), name)


def freeze(msg: Msg) -> FrozenMsg:
    """Return an immutable copy of ``msg`` that shares no mutable part with it."""
    if type(msg) is FrozenMsg:
        return msg
    return freeze_own(_clone(msg, peek_content(msg), peek_metadata(msg)))


def freeze_own(msg: Msg) -> FrozenMsg:
    """Freeze a plain message in place; the caller must be its only owner. Its parts are copied."""
    content, metadata = msg.content, msg.metadata
    if type(content) is not str:
        msg.content = copy_parts(content)
    msg.metadata = copy_parts(metadata) if metadata else _NO_METADATA
    msg.__class__ = FrozenMsg
    return msg  # type: ignore[return-value]  # as of the line above


def thaw(msg: Msg) -> Msg:
    """Return an ordinary, mutable ``Msg`` that shares no part with ``msg``."""
    return _clone(msg, copy_parts(peek_content(msg)), copy_parts(peek_metadata(msg)))


def lend(msg: FrozenMsg, loan: Loan) -> Msg:
    """Return a message that shares ``msg``'s parts until it is changed."""
    lent = _clone(msg, peek_content(msg), peek_metadata(msg))
    lent._loan = loan  # type: ignore[attr-defined]  # a slot of Msg that only this module knows
    lent.__class__ = LentMsg
    return lent


def is_on_loan(msg: Msg) -> bool:
    """Return whether ``msg`` still shares its parts with the stored message."""
    return type(msg) is LentMsg


def copy_parts(value: Any) -> Any:
    """Copy JSON-like data, several times faster than ``copy.deepcopy``, the fallback."""
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        return {key: copy_parts(item) for key, item in value.items()} if value else {}
    if kind is list:
        return [copy_parts(item) for item in value]
    if kind is int or kind is float or kind is bool:
        return value
    return copy.deepcopy(value)


def _clone(msg: Msg, content: Content, metadata: dict[str, Any]) -> Msg:
    clone = Msg.__new__(Msg)
    clone.name = msg.name
    clone.content = content
    clone.role = msg.role
    clone.metadata = metadata
    clone.id = msg.id
    clone.timestamp = msg.timestamp
    clone.invocation_id = msg.invocation_id
    return clone


def _keep(lent: Msg) -> Msg:
    """End the loan: the reader keeps this object, with its own parts."""
    if type(lent) is not LentMsg:
        return lent  # another thread has just ended the same loan
    content, metadata = copy_parts(peek_content(lent)), copy_parts(peek_metadata(lent))
    loan: Loan = lent._loan  # type: ignore[attr-defined]  # set when it was lent
    object.__setattr__(lent, "__class__", Msg)
    loan.recalled = True  # not earlier: a pool in another thread would see it still lent
    kept = cast(Msg, lent)
    kept.content, kept.metadata = content, metadata
    return kept
