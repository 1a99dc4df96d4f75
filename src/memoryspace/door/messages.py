"""What callers may add: texts, dicts and messages, one or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from ..memory.chat_messages import from_chat_messages
from ..message import Msg
from ..service.reading.filters import moment
from ..service.schema import Message
from ..service.values.forms import draft_of
from ..service.values.memory import Said

# One message: a text said by the user, a dict with ``role`` and ``content``, or a message.
Addable: TypeAlias = str | Mapping[str, Any] | Msg | Message
Time: TypeAlias = float | str | datetime

_FORMS = (str, Mapping, Msg, Message)
_WANTED = "a text, a dict with 'role' and 'content', a Msg, or a list of them"


def as_said(messages: Addable | Sequence[Addable], when: Time | None = None) -> list[Said]:
    """Return messages in the forms of a service; a text or a dict without a role is the user's.

    Args:
        messages: One message or several.
        when: When those were said that do not say so themselves.
    """
    said = [_said(each) for each in as_list(messages)]
    return said if when is None else [_dated(each, moment("when", when)) for each in said]


def as_msgs(messages: Addable | Sequence[Addable]) -> list[Msg]:
    """Return messages as ``Msg``; a text or a dict without a role is the user's."""
    return [_msg(each) for each in as_list(messages)]


def as_list(messages: Addable | Sequence[Addable]) -> list[Addable]:
    """Return one message or several as a list.

    Raises:
        TypeError: Something is no message; the error names it.
    """
    if isinstance(messages, _FORMS):
        return [messages]
    if isinstance(messages, bytes | bytearray) or not isinstance(messages, Sequence):
        hint = "; make it a list" if isinstance(messages, Iterable) else ""
        raise TypeError(f"{type(messages).__name__} is not a message: pass {_WANTED}{hint}")
    for number, each in enumerate(messages):
        if not isinstance(each, _FORMS):
            raise TypeError(
                f"messages[{number}]: {type(each).__name__} is not a message: pass {_WANTED}"
            )
    return list(messages)


def _said(message: Addable) -> Said:
    if isinstance(message, Mapping):
        return {"role": "user", **message}
    return message


def _dated(said: Said, when: float) -> Said:
    if isinstance(said, str):
        said = {"role": "user", "content": said}
    if isinstance(said, dict) and draft_of(said).created_at is None:
        return {**said, "timestamp": datetime.fromtimestamp(when, UTC).isoformat()}
    return said


def _msg(message: Addable) -> Msg:
    if isinstance(message, Msg):
        return message
    if isinstance(message, str):
        return Msg("user", message, "user")
    if isinstance(message, Message):
        role = message.role if message.role in ("assistant", "system", "user") else "system"
        return Msg(message.role or "user", message.get_all_text(), role)
    draft_of({"role": "user", **message})  # checks the types
    [msg] = from_chat_messages([{"role": "user", **message}])
    if message.get("name"):
        msg.name = str(message["name"])
    return msg
