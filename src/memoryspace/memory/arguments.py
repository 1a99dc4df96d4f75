"""Validation and normalisation of the arguments of a memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput
from ..message import Msg, new_id, thaw
from ..record import RESERVED_PREFIX, Record, as_marks, text_of


def record_of(msg: Msg, marks: frozenset[str], now: float) -> Record:
    """Return a message as a record.

    It is pinned: garbage collection may remove long-term records, never working memory.
    """
    return Record(msg.id, msg, text_of(msg), marks, created_at=now, pinned=True)


def with_fresh_ids(messages: list[Msg], taken: set[str]) -> list[Msg]:
    """Return the messages; those with a taken or repeated id as copies with a fresh id."""
    taken, free = set(taken), []
    for msg in messages:
        if msg.id in taken:
            msg = thaw(msg)
            msg.id = new_id()
        taken.add(msg.id)
        free.append(msg)
    return free


def as_messages(memories: Msg | list[Msg] | None) -> list[Msg]:
    """Return the argument as a list of messages with usable ids."""
    if memories is None:
        return []
    messages = [memories] if isinstance(memories, Msg) else memories
    if not isinstance(messages, list | tuple):
        raise TypeError(
            f"memories must be a Msg, a list of Msg or None, got {type(messages).__name__}"
        )
    for msg in messages:
        if not isinstance(msg, Msg):
            given = f"{type(msg).__module__}.{type(msg).__name__}"
            raise TypeError(f"memories may hold only memoryspace.message.Msg, got {given}")
        if isinstance(msg.id, str) and msg.id.startswith(RESERVED_PREFIX):
            raise InvalidInput(
                f"message id {msg.id!r} is reserved: ids must not begin with {RESERVED_PREFIX!r}"
            )
    return list(messages)


def wants_duplicates(allow_duplicates: bool | None, skip_duplicated: bool | None) -> bool:
    """Return whether duplicates are wanted, from the two names of one option."""
    if allow_duplicates is not None and allow_duplicates is skip_duplicated:
        raise InvalidInput(
            "allow_duplicates and skip_duplicated contradict each other; pass only one"
        )
    return bool(allow_duplicates) or skip_duplicated is False


def ids_or_positions(
    msg_ids: str | Iterable[str] | int | Iterable[int] | None,
    index: int | Iterable[int] | None,
) -> tuple[list[str], list[int]]:
    """Return the ids to delete, or the positions, as AgentScope before 1.0.12 takes them."""
    if (msg_ids is None) == (index is None):
        raise TypeError("delete() takes either message ids or an index")
    if isinstance(msg_ids, str):
        return as_ids([msg_ids]), []
    given = msg_ids if index is None else index
    items: list[Any] = [given] if isinstance(given, int) else list(given)  # type: ignore[arg-type]  # not None
    if items and all(isinstance(item, int) for item in items):
        return [], items
    return (as_ids(items) if index is None else _no_positions(items)), []


def check_positions(positions: Iterable[int], size: int) -> None:
    """Raise ``IndexError`` if a position has no message."""
    wrong = [position for position in positions if not 0 <= position < size]
    if wrong:
        raise IndexError(f"no message at {wrong}: there are {size} messages; nothing was deleted")


def as_ids(items: Iterable[Any]) -> list[str]:
    """Return the argument as a list of ids."""
    if isinstance(items, str):
        raise TypeError("message ids must be a list of str, got a single str")
    ids = list(items)
    for item in ids:
        if not isinstance(item, str):
            raise TypeError(f"a message id must be a str, got {type(item).__name__}")
    return ids


def _no_positions(items: list[Any]) -> list[str]:
    if items:
        raise TypeError(f"index must be an int or several, got {items!r}")
    return []


def required_marks(marks: str | list[str]) -> frozenset[str]:
    """Return the marks; ``None`` is an error."""
    if marks is None:
        raise TypeError("mark must be a str or a list of str, got None")
    return as_marks(marks)


def optional_mark(name: str, mark: str | None) -> frozenset[str]:
    """Return a set of one mark, or of none."""
    if mark is not None and not isinstance(mark, str):
        raise TypeError(f"{name} must be a str or None, got {type(mark).__name__}")
    return as_marks(mark)


def checked_summary(summary: str) -> str:
    """Return the summary if it is a str."""
    if not isinstance(summary, str):
        raise TypeError(f"a summary must be a str, got {type(summary).__name__}")
    return summary


def check_callable(name: str, function: object) -> None:
    """Raise ``InvalidInput`` unless the argument is callable or None."""
    if function is not None and not callable(function):
        raise InvalidInput(f"{name} must be a function or None, got {type(function).__name__}")
