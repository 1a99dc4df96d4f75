"""Records as JSON text, for the shelves that write to a wire.

Only JSON types are written (a tuple as a list). Anything else is an error before anything is
stored, not a string that used to be a date. Reading builds a ``Msg`` or plain data, never an
object named by the data.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..errors import CorruptData, InvalidMessage, NotSerializable
from ..message import Msg
from ..record import MESSAGE, Origin, Record, Value, text_of

MAX_DEPTH = 200
MARK_SEPARATOR = "\x1f"  # no mark can hold a control character

_PLAIN = frozenset({str, int, float, bool, type(None)})
_NO_MARKS: frozenset[str] = frozenset()

_decode = msgspec.json.Decoder().decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_escaped = json.JSONEncoder(separators=(",", ":")).encode


def dump(data: Any) -> str:
    """Return JSON text that any shelf and any UTF-8 connection can carry."""
    try:
        _check(data)
        text = _encode(data)
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only the escaped form can be sent
        text = _encode_escaped(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerializable(
            f"a value cannot be written as JSON ({error}); store plain data instead"
        ) from error
    return text


def _check(data: Any, depth: int = 0) -> None:
    """JSON would turn the key 1 into "1", and two keys into one; depth may be too much to read."""
    if type(data) in _PLAIN:
        return
    if depth > MAX_DEPTH:
        raise TypeError(f"it is nested deeper than {MAX_DEPTH}")
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no str")
            if type(value) not in _PLAIN:
                _check(value, depth + 1)
    elif isinstance(data, list | tuple):
        for value in data:
            _check(value, depth + 1)


def parse(text: str | bytes) -> Any:
    """Return the data of JSON text. What is wrong with it is said without showing it."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        pass  # NaN, Infinity and lone surrogates are valid for the standard library alone
    except RecursionError as error:
        raise CorruptData(f"{len(text)} characters nested too deep") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise CorruptData(f"{len(text)} characters that are no JSON{where}") from error


def dump_value(record: Record) -> str:
    """Return a record's value as JSON text; a message in the form of ``Msg.to_dict``."""
    value = record.value
    try:
        return dump(value.to_dict() if isinstance(value, Msg) else value)
    except NotSerializable as error:
        raise NotSerializable(f"record {record.id!r}: {error}") from error


def size_of(record: Record) -> int:
    """Return how many bytes a record is as text: its value, and what does not follow from it."""
    try:
        value = dump_value(record)
    except NotSerializable:  # in RAM it may stand all the same
        value = repr(record.value)
    own = "" if record.text == text_of(record.value) else record.text
    origin = dump_origin(record.origin) or ""
    return sum(len(each.encode("utf-8", "replace")) for each in (value, own, origin))


def parse_value(kind: str, text: str | bytes) -> Value:
    """Return the value written by ``dump_value`` for a record of this kind."""
    if kind == MESSAGE:
        try:
            return _message(_decode_said(text))
        except (msgspec.DecodeError, UnicodeError):
            pass  # unusual or broken: the slower way knows which
    return value_from(kind, parse(text))


class _Said(Struct, gc=False):
    """A message as most are: decoded by msgspec alone, with no dict in between."""

    id: str
    name: str
    role: Literal["user", "assistant", "system"]
    content: str | list[Any]
    metadata: dict[str, Any]
    timestamp: str
    invocation_id: str | None = None


_decode_said = msgspec.json.Decoder(_Said).decode


def _message(said: _Said) -> Msg:
    msg = Msg.__new__(Msg)
    msg.id = said.id
    msg.name = said.name
    msg.role = said.role
    msg.content = said.content
    msg.metadata = said.metadata
    msg.timestamp = said.timestamp
    msg.invocation_id = said.invocation_id
    return msg


def value_from(kind: str, data: Any) -> Value:
    """Return a record's value from its parsed JSON."""
    if kind != MESSAGE:
        return data  # type: ignore[no-any-return]  # JSON is what non-messages are made of
    if not isinstance(data, dict):
        raise CorruptData(f"a message must be an object, got {type(data).__name__}")
    try:
        return Msg.from_dict(data)
    except InvalidMessage as error:
        raise CorruptData(str(error)) from error


def dump_origin(origin: Origin | None) -> str | None:
    """Return an origin as JSON text, or ``None``."""
    if origin is None:
        return None
    return dump({"author": origin.author, "derived_from": list(origin.derived_from)})


def parse_origin(text: str | None) -> Origin | None:
    """Return the origin written by ``dump_origin``."""
    return None if text is None else origin_from(parse(text))


def origin_from(data: Any) -> Origin | None:
    """Return a record's origin from its parsed JSON, or ``None``."""
    if data is None:
        return None
    try:
        return msgspec.convert(data, Origin)
    except msgspec.ValidationError as error:
        raise CorruptData("its origin does not read back") from error


def pack_marks(marks: frozenset[str]) -> str:
    """Return the marks in one order, each with a separator on both sides; nothing for none."""
    if not marks:
        return ""
    return MARK_SEPARATOR + MARK_SEPARATOR.join(sorted(marks)) + MARK_SEPARATOR


def unpack_marks(packed: str) -> frozenset[str]:
    """Return what ``pack_marks`` packed."""
    if not packed:
        return _NO_MARKS
    return frozenset(packed.strip(MARK_SEPARATOR).split(MARK_SEPARATOR))


def clean_text(text: str) -> str:
    """Return search text without the two things a database column may refuse."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
