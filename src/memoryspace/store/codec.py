"""JSON encoding of records, for the backends that serialise them.

Only JSON types are encoded (a tuple becomes a list). Anything else, such as a date, raises before
anything is stored. Decoding builds a ``Msg`` or plain data, never an object named by the data.
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
    """Return JSON text that every backend and every UTF-8 connection can carry."""
    try:
        _check(data)
        text = _encode(data)
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: only its escaped form can be sent
        text = _encode_escaped(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerializable(
            f"a value cannot be written as JSON ({error}); store plain data instead"
        ) from error
    return text


def _check(data: Any, depth: int = 0) -> None:
    """Raise ``TypeError`` for keys that are not strings and for nesting too deep to decode.

    JSON would turn the key 1 into "1", and so two keys into one.
    """
    if type(data) in _PLAIN:
        return
    if depth > MAX_DEPTH:
        raise TypeError(f"it is nested deeper than {MAX_DEPTH}")
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a str")
            if type(value) not in _PLAIN:
                _check(value, depth + 1)
    elif isinstance(data, list | tuple):
        for value in data:
            _check(value, depth + 1)


def parse(text: str | bytes) -> Any:
    """Decode JSON text. Errors describe the problem without showing the text."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        pass  # only the standard library accepts NaN, Infinity and lone surrogates
    except RecursionError as error:
        raise CorruptData(f"{len(text)} characters nested too deep") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise CorruptData(f"{len(text)} characters that are not JSON{where}") from error


def dump_value(record: Record) -> str:
    """Encode a record's value as JSON text; a message as ``Msg.to_dict`` gives it."""
    value = record.value
    try:
        return dump(value.to_dict() if isinstance(value, Msg) else value)
    except NotSerializable as error:
        raise NotSerializable(f"record {record.id!r}: {error}") from error


def size_of(record: Record) -> int:
    """Return the size of a record in bytes: its value, and its text and origin if stored."""
    try:
        value = dump_value(record)
    except NotSerializable:  # a store in RAM may hold it anyway
        value = repr(record.value)
    own = "" if record.text == text_of(record.value) else record.text
    origin = dump_origin(record.origin) or ""
    return sum(len(each.encode("utf-8", "replace")) for each in (value, own, origin))


def parse_value(kind: str, text: str | bytes) -> Value:
    """Decode what ``dump_value`` returned for a record of this kind."""
    if kind == MESSAGE:
        try:
            return _message(_decode_said(text))
        except (msgspec.DecodeError, UnicodeError):
            pass  # unusual or broken: the slower path decides
    return value_from(kind, parse(text))


class _Said(Struct, gc=False):
    """A message in its usual form, which msgspec decodes without an intermediate dict."""

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
    """Build a record's value from decoded JSON."""
    if kind != MESSAGE:
        return data  # type: ignore[no-any-return]  # values other than messages are JSON
    if not isinstance(data, dict):
        raise CorruptData(f"a message must be an object, got {type(data).__name__}")
    try:
        return Msg.from_dict(data)
    except InvalidMessage as error:
        raise CorruptData(str(error)) from error


def dump_origin(origin: Origin | None) -> str | None:
    """Encode an origin as JSON text; return ``None`` for ``None``."""
    if origin is None:
        return None
    return dump({"author": origin.author, "derived_from": list(origin.derived_from)})


def parse_origin(text: str | None) -> Origin | None:
    """Decode what ``dump_origin`` returned."""
    return None if text is None else origin_from(parse(text))


def origin_from(data: Any) -> Origin | None:
    """Build a record's origin from decoded JSON; return ``None`` for ``None``."""
    if data is None:
        return None
    try:
        return msgspec.convert(data, Origin)
    except msgspec.ValidationError as error:
        raise CorruptData("its origin cannot be decoded") from error


def pack_marks(marks: frozenset[str]) -> str:
    """Join sorted marks with a separator around each; return an empty string for no marks."""
    if not marks:
        return ""
    return MARK_SEPARATOR + MARK_SEPARATOR.join(sorted(marks)) + MARK_SEPARATOR


def unpack_marks(packed: str) -> frozenset[str]:
    """Split what ``pack_marks`` joined."""
    if not packed:
        return _NO_MARKS
    return frozenset(packed.strip(MARK_SEPARATOR).split(MARK_SEPARATOR))


def clean_text(text: str) -> str:
    """Return text without null characters and lone surrogates, which some databases reject."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
