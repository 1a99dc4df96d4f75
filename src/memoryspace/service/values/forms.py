"""Conversion of messages: four accepted forms, one stored form.

A ``Message``, ``Msg``, dict or str is read into a ``Draft``, which is a copy, and stored as a body
of JSON types with the name of its form. Reading a body builds one of these four types and nothing
else, whatever the stored data says. The result equals the message that was added.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...errors import CorruptData, InvalidInput, InvalidMessage, NotSerializable
from ...message import Msg
from ...message.msg import peek_content
from ...message.sharing import copy_parts
from ...record import RESERVED_PREFIX, Origin, check_id, could_be_id, is_number
from ..schema import Message
from ..schema.model import compact_dict
from ..schema.plain import plain
from ..schema.reading import joined, text_of_call, text_of_content, text_of_data
from .memory import Draft, Said

MESSAGE, MSG, DICT, TEXT = "message", "msg", "dict", "text"

_ACCEPTED = "pass a Message, a Msg, a dict with 'role' and 'content', or a str"
_SPOKEN = {"content", "tool_calls", "function_call"}  # a message dict has one of these
_TOOLS = ("tool", "function")  # the roles of tool results

# From here on a number is a time in milliseconds: in seconds it would be the year 5138.
_FIRST_MILLISECONDS = 1e11
_FIRST_TIME, _END_OF_TIME = -62_135_596_800.0, 253_402_300_800.0  # the years 1 and 9999


def draft_of(said: object) -> Draft:
    """Return a message of any form as a draft that shares nothing with it."""
    form, body = body_of(said)
    if isinstance(body, str):
        return Draft(value=body, text=body, role="user", origin=Origin())
    value = _built(form, body)
    if isinstance(value, dict):
        _check_dict(value)
    role, name, metadata = body.get("role"), body.get("name"), body.get("metadata")
    metadata = {} if metadata is None else metadata  # the value has its own copy
    return Draft(
        value=value,
        text=text_of(value),
        id=_id_in(form, body),
        role=role,
        name=name,
        title=title_in(metadata),
        metadata=metadata,
        created_at=_time_in(form, body),
        origin=Origin(author=name if name else role),
    )


def drafts_of(messages: object) -> list[Draft]:
    """Return one message or several as drafts. An error names the message at fault."""
    if not isinstance(messages, list | tuple):
        return [draft_of(messages)]
    drafts = []
    for number, said in enumerate(messages):
        try:
            drafts.append(draft_of(said))
        except (InvalidInput, NotSerializable, TypeError) as error:
            raise type(error)(f"messages[{number}]: {error}") from error
    return drafts


def body_of(said: object) -> tuple[str, dict[str, Any] | str]:
    """Return the name of a message's form and its body, a copy of JSON types only."""
    if isinstance(said, Message):
        return MESSAGE, plain(compact_dict(said), "message")
    if isinstance(said, Msg):
        return MSG, plain(said.to_dict(), "message")
    if isinstance(said, dict):
        return DICT, plain(said, "message")
    if isinstance(said, str):
        return TEXT, str.__str__(said)
    raise _refused(said)


def said_from(form: str, body: object, *, is_own: bool = False) -> Said:
    """Return the message of a body; raise ``CorruptData`` if it cannot be read.

    The body is copied, unless ``is_own`` says that the caller hands it over.
    """
    try:
        return _built(form, body, is_own=is_own)
    except InvalidMessage as error:
        raise CorruptData(f"a stored body of the form {form!r:.40}: {error}") from error


def text_of(said: object) -> str:
    """Return all readable text of a message, as searches see it."""
    if isinstance(said, str):
        return said
    if isinstance(said, Message):
        return said.get_all_text()
    if isinstance(said, Msg):
        return text_of_content(peek_content(said))
    if isinstance(said, dict):
        return _text_of_dict(said)
    raise _refused(said)


def query_text(messages: object) -> str:
    """Return the text of a query: of the last message, or of the only one."""
    if isinstance(messages, list | tuple):
        return text_of(messages[-1]) if messages else ""
    return "" if messages is None else text_of(messages)


class _MsgBody(Struct):
    """The fields of a ``Msg`` and their types."""

    id: str
    name: str | None
    role: Literal["user", "assistant", "system"]
    content: str | list[Any]
    metadata: dict[str, Any]
    timestamp: str
    invocation_id: str | None = None


class _DictBody(Struct):
    """The keys of a message dict that are checked; it may have any others."""

    role: str | None = None
    content: str | list[str | dict[str, Any]] | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    function_call: dict[str, Any] | None = None


def _built(form: str, body: object, *, is_own: bool = False) -> Said:
    if form == TEXT and isinstance(body, str):
        return body
    if form not in (MESSAGE, MSG, DICT) or not isinstance(body, dict):
        raise InvalidMessage(f"no form has this name and a body of type {type(body).__name__}")
    if form == MSG:
        _check(body, _MsgBody)
    own = body if is_own else copy_parts(body)
    if form == MESSAGE:
        return Message.model_validate(own)
    return Msg.from_dict(own) if form == MSG else own


def _check(body: dict[str, Any], shape: type[Struct]) -> None:
    try:
        msgspec.convert(body, shape)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"{error}, where $ is the message") from None


def _check_dict(said: dict[str, Any]) -> None:
    if _SPOKEN.isdisjoint(said):
        raise InvalidMessage("the dict has neither 'content' nor 'tool_calls'; " + _ACCEPTED)
    _check(said, _DictBody)


def _refused(said: object) -> TypeError:
    return TypeError(f"a {type(said).__name__} is not a message; {_ACCEPTED}")


def _text_of_dict(said: Mapping[str, Any]) -> str:
    content, calls = said.get("content"), said.get("tool_calls")
    is_data = said.get("role") in _TOOLS and isinstance(content, str)
    functions = [
        call.get("function")
        for call in (calls if isinstance(calls, list | tuple) else [])
        if isinstance(call, Mapping)
    ]
    return joined(
        [
            text_of_data(content) if is_data else text_of_content(content),
            *map(_text_of_function, [*functions, said.get("function_call")]),
        ]
    )


def _text_of_function(function: object) -> str:
    if not isinstance(function, Mapping):
        return ""
    return text_of_call(function.get("name"), function.get("arguments"))


def _id_in(form: str, body: Mapping[str, Any]) -> str | None:
    """Return the message's id for the memory; the id of a dict only if it can be one."""
    given: Any = body.get("id")
    if form == DICT and not (isinstance(given, str) and could_be_id(given)):
        return None
    if not check_id("message id", given).startswith(RESERVED_PREFIX):
        return str(given)
    if form == DICT:
        return None
    raise InvalidInput(f"message id {given!r} is reserved; use one without {RESERVED_PREFIX!r}")


def title_in(metadata: Mapping[str, Any]) -> str | None:
    """Return the title in a message's metadata."""
    title = metadata.get("title")
    return title if isinstance(title, str) else None


def _time_in(form: str, body: Mapping[str, Any]) -> float | None:
    """Return when a message was said. Without a zone, a ``Msg`` has local time and others UTC."""
    zone = None if form == MSG else UTC
    times = (_time_of(body.get(name), zone) for name in ("timestamp", "created_at"))
    return next((time for time in times if time is not None), None)


def _time_of(value: object, zone: tzinfo | None) -> float | None:
    """Return a time in seconds, from a number or ISO text (in ``zone`` if it names none)."""
    if isinstance(value, str):
        return _iso_time(value, zone)
    if not is_number(value):
        return None
    time = float(value)  # type: ignore[arg-type]  # is_number checked it
    time = time / 1000 if abs(time) >= _FIRST_MILLISECONDS else time
    return time if _FIRST_TIME <= time < _END_OF_TIME else None


def _iso_time(text: str, zone: tzinfo | None) -> float | None:
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (time if time.tzinfo is not None else time.replace(tzinfo=zone)).timestamp()


def rewritten(said: Said, memory_id: str, metadata: Mapping[str, Any]) -> Said:
    """Return a copy of a message with another id and other metadata."""
    form, body = body_of(said)
    if isinstance(body, str):
        return body
    named = {**body, "id": memory_id} if form != DICT or "id" in body else dict(body)
    if metadata or body.get("metadata"):
        named["metadata"] = plain(dict(metadata), "metadata")
    return said_from(form, named)
