"""A lenient parser for JSON as models write it: in fences or prose, with extra commas, or cut off.

Of a truncated document, the complete items of arrays and members of objects are kept. A truncated
document without a single complete item is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_GAP = re.compile(r"(?:\s|//[^\n]*\n|,)*")  # extra commas are ignored
_SPACE = re.compile(r"\s*")
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|[A-Za-z]+")
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_STARTS = re.compile(r"[{\[]")
_DEEPEST = 60
_MOST_STARTS = 200  # brackets tried as the start of a document
_DECODER = json.JSONDecoder(strict=False)  # models put raw line breaks into strings


class _NotJSON(Exception):
    """The text is not JSON."""


class _Cut(NamedTuple):
    """A value that was cut off; ``value`` is its complete part."""

    value: Any


_NOTHING = _Cut(None)


class Document(NamedTuple):
    """A value found in a text, and the length of its source."""

    value: Any
    length: int


def documents_in(text: str) -> list[Any]:
    """Return the JSON objects and arrays in a model's answer, the longest first."""
    found = sorted(_found(_THOUGHTS.sub("", text)), key=lambda each: -each.length)
    return [each.value for each in found]


def arguments_of(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call; of truncated ones, the complete members.

    Returns {} if they are not an object.
    """
    value = _first_object(text)
    value = value.value if isinstance(value, _Cut) else value
    return value if isinstance(value, dict) else {}


def whole_arguments_of(text: str) -> dict[str, Any] | None:
    """Return the arguments of a tool call; None if they are truncated or not an object."""
    value = _first_object(text)
    return value if isinstance(value, dict) else None


def _first_object(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _Reader(text, max(text.find("{"), 0)).value(0)
    except _NotJSON:
        return None


def _found(text: str) -> Iterator[Document]:
    at = 0
    for _ in range(_MOST_STARTS):
        start = _STARTS.search(text, at)
        if start is None:
            return
        reader = _Reader(text, start.start())
        try:
            value = reader.value(0)
        except _NotJSON:
            at = start.end()
            continue
        if isinstance(value, _Cut):
            if _says_something(value.value):
                yield Document(value.value, len(text) - start.start())
                return
            at = start.end()
        else:
            yield Document(value, reader.at - start.start())
            at = reader.at


def _says_something(value: Any) -> bool:
    """Return whether a truncated document has anything complete in it."""
    if isinstance(value, dict):
        return any(map(_says_something, value.values()))
    return bool(value) if isinstance(value, list) else True


class _Reader:
    """Reads one value at position ``at``; raises ``_NotJSON`` if there is none."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def value(self, depth: int) -> Any:
        """Return a value, or a ``_Cut`` if the text ends within it."""
        self._skip(_SPACE)
        sign = self._peek()
        if depth > _DEEPEST:
            raise _NotJSON
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        return self._string() if sign == '"' else self._scalar()

    def _array(self, depth: int) -> Any:
        self.at += 1
        items: list[Any] = []
        while self._next() != "]":
            item = self.value(depth + 1) if self._peek() else _NOTHING
            if isinstance(item, _Cut):
                return _Cut(items)  # the item itself is incomplete
            items.append(item)
        self.at += 1
        return items

    def _object(self, depth: int) -> Any:
        self.at += 1
        members: dict[str, Any] = {}
        while self._next() != "}":
            key = self._key()
            if key is None:
                return _Cut(members)
            value = self.value(depth + 1)
            if isinstance(value, _Cut):
                if isinstance(value.value, dict | list):
                    members[key] = value.value
                return _Cut(members)
            members[key] = value
        self.at += 1
        return members

    def _key(self) -> str | None:
        """Return a member's name and move to its value; None if the text ends before it."""
        if self._peek() not in ('"', ""):
            raise _NotJSON
        key = self._string() if self._peek() else _NOTHING
        if isinstance(key, _Cut):
            return None
        self._skip(_SPACE)
        if self._peek() not in (":", ""):
            raise _NotJSON
        self.at += 1
        self._skip(_SPACE)
        return str(key) if self._peek() else None

    def _string(self) -> Any:
        try:
            text, self.at = _DECODER.raw_decode(self._text, self.at)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - 6
            if is_cut:  # 6: the text may end within \u12ab
                return _NOTHING
            raise _NotJSON from error
        return text

    def _scalar(self) -> Any:
        match = _SCALAR.match(self._text, self.at)
        if match is None:
            raise _NotJSON
        self.at = match.end()
        word = match.group()
        if self.at == len(self._text):
            return _NOTHING  # 12 may be the beginning of 123
        if word.lower() in _CONSTANTS:
            return _CONSTANTS[word.lower()]
        try:
            return json.loads(word)
        except ValueError as error:
            raise _NotJSON from error

    def _next(self) -> str:
        self._skip(_GAP)
        return self._peek()

    def _peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self.at)
        self.at = match.end() if match is not None else self.at
