"""Lossless conversion of values to JSON types that any encoder writes and any reader returns.

JSON has no NaN, infinity or lone surrogates, and many readers have no integers of more than 64
bits. These are written as a dict with one key that starts with ``$``; a dict that happens to look
like one is written as a list of its items. Everything else is unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Struct

from .errors import InvalidInput

T = TypeVar("T")

_TEXT, _NUMBER, _DICT = _OURS = ("$text", "$number", "$dict")
_MOST = 2**63


class Portable(Struct, frozen=True):
    """A value that can be sent to another process as JSON and read back there."""

    _also: ClassVar[tuple[str, ...]] = ()  # properties that are written but not read back

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain data that any JSON encoder can write."""
        names = (*self.__struct_fields__, *self._also)
        return {name: portable(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the value that ``to_dict`` wrote. Unknown keys are ignored."""
        return read_as(cls, data, cls.__name__)


def read_as(form: type[T], data: Mapping[str, Any], name: str) -> T:
    """Return plain data as a struct; errors never show the data."""
    if not isinstance(data, Mapping):
        raise TypeError(f"a {name} is read from a dict, got {type(data).__name__}")
    try:
        return msgspec.convert({key: restored(value) for key, value in data.items()}, form)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"not a valid {name}: {error}, where $ is the dict") from None


def portable(value: object) -> Any:
    """Return a value as plain data. ``restored`` reverses it; tuples and sets become lists."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _portable_text(str.__str__(value))
    if isinstance(value, int):
        return int(value) if -_MOST <= value < _MOST else {_NUMBER: hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_NUMBER: repr(float(value))}
    if isinstance(value, Portable):
        return value.to_dict()
    if isinstance(value, Struct):
        return {name: portable(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return _portable_dict(value)
    if isinstance(value, AbstractSet):
        return [portable(each) for each in sorted(value)]
    if isinstance(value, list | tuple):
        return [portable(each) for each in value]
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def restored(value: Any) -> Any:
    """Return the value that ``portable`` converted."""
    if isinstance(value, list):
        return [restored(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or next(iter(value)) not in _OURS:
        return {key: restored(each) for key, each in value.items()}
    [(name, held)] = value.items()
    try:
        return _READERS[name](held)
    except (AttributeError, TypeError, ValueError):
        raise InvalidInput(f"the value of {name!r} was not written by to_dict()") from None


def _portable_text(text: str) -> str | dict[str, str]:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return {_TEXT: text.encode("unicode_escape").decode("ascii")}
    return text


def _portable_dict(value: Mapping[Any, Any]) -> dict[str, Any]:
    items = [(portable(key), portable(each)) for key, each in value.items()]
    if all(type(key) is str for key, _ in items) and not (len(items) == 1 and items[0][0] in _OURS):
        return dict(items)
    return {_DICT: [list(item) for item in items]}


def _number(text: str) -> float:
    return int(text, 16) if "0x" in text else float(text)


_READERS: Mapping[str, Any] = {
    _TEXT: lambda text: text.encode("ascii").decode("unicode_escape"),
    _NUMBER: _number,
    _DICT: lambda items: {restored(key): restored(each) for key, each in items},
}
