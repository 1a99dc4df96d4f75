"""Copies of JSON types only, so that every backend returns exactly what was added.

A tuple becomes a list, and subclasses of numbers and str become plain ones, here and not in one
backend or another. Any other value is an error that says where it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import NotSerializable
from ...store.codec import MAX_DEPTH

# Leaves depth for what a service and a backend put around a body.
_MAX_DEPTH = MAX_DEPTH - 20

_SCALARS = frozenset({str, int, float, bool, type(None)})


class _Place(NamedTuple):
    """The path to a value. It becomes text only in errors."""

    above: _Place | None
    name: object
    depth: int

    def __str__(self) -> str:
        return str(self.name) if self.above is None else f"{self.above}[{self.name!r:.40}]"


def plain(value: object, where: str) -> Any:
    """Return a deep copy of JSON types; ``where`` names the value in errors."""
    try:
        return _plain_copy(value, _MAX_DEPTH)
    except _NotPlainError:  # convert value by value
        return _copy(value, _Place(None, where, 0))


class _NotPlainError(Exception):
    """A value is not a plain JSON type, or is nested too deeply."""


def _plain_copy(value: object, depth: int) -> Any:
    """Copy values that need no conversion, which is the common case; faster than ``_copy``."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if depth and kind is dict:
        if any(type(key) is not str for key in value):  # type: ignore[attr-defined]  # a dict
            raise _NotPlainError
        return {key: _plain_copy(item, depth - 1) for key, item in value.items()}  # type: ignore[attr-defined]  # a dict
    if depth and kind is list:
        return [_plain_copy(item, depth - 1) for item in value]  # type: ignore[attr-defined]  # a list
    raise _NotPlainError


def _copy(value: object, place: _Place) -> Any:
    if type(value) in _SCALARS:
        return value
    depth = place.depth + 1
    if depth > _MAX_DEPTH:
        raise NotSerializable(f"{_top(place)} is nested deeper than {_MAX_DEPTH}; flatten it")
    if isinstance(value, dict):
        return {
            _key(key, place): _copy(item, _Place(place, key, depth)) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_copy(item, _Place(place, at, depth)) for at, item in enumerate(value)]
    return _as_plain(value, place)


def _key(key: object, place: _Place) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise NotSerializable(f"{place} has a key of type {type(key).__name__}; JSON keys must be str")


def _as_plain(value: object, place: _Place) -> Any:
    if isinstance(value, str):
        return str.__str__(value)  # a str Enum's value, not its name
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise NotSerializable(
        f"{place} is a {type(value).__name__}, which JSON cannot hold; "
        "use text, numbers, lists or dicts instead"
    )


def _top(place: _Place) -> object:
    while place.above is not None:
        place = place.above
    return place.name
