"""What an importer yields, and how it reads without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any

from msgspec import Struct

from ...record import RESERVED_PREFIX, could_be_id
from ...service.base import DEFAULT_SESSION
from ...service.values.memory import Said

AT_ONCE = 200  # messages


class Foreign(Struct, frozen=True):
    """A message from another program.

    Attributes:
        message: The message, with an id that is the same each time it is read.
        user: Whose it is; ``None`` if the source does not say.
        session: The conversation it belongs to.
        marks: The labels it had.
    """

    message: Said
    user: str | None = None
    session: str = DEFAULT_SESSION
    marks: frozenset[str] = frozenset()


Batches = AsyncIterator[list[Foreign]]


class Importer(Struct, frozen=True):
    """An importer.

    Attributes:
        name: What it is called.
        about: What it reads, in one line.
        names_users: Whether the source says whose the memories are.
        read: Reads a source, given as text: a path or an address.
    """

    name: str
    about: str
    names_users: bool
    read: Callable[[str], Batches]


async def in_batches(messages: Iterator[Foreign]) -> Batches:
    """Read messages in a thread, some at a time."""
    while batch := await asyncio.to_thread(lambda: list(islice(messages, AT_ONCE))):
        yield batch


def said(
    role: str,
    content: Any,
    *,
    key: str,
    at: object = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a message as a dict, with other keys ``beside``.

    ``key`` identifies it in its source and becomes its id.
    """
    message = {"role": role, "content": content, "id": own_id(key), **(beside or {})}
    if at is not None:
        message["created_at"] = at
    if name:
        message["name"] = name
    held = {name: each for name, each in (metadata or {}).items() if each not in (None, "", [], {})}
    if held:
        message["metadata"] = held
    return message


def own_id(key: str) -> str:
    """Return the id of a message: its key if that can be one, else a digest of it."""
    if could_be_id(key) and not key.startswith(RESERVED_PREFIX) and len(key) <= 64:
        return key
    return blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest()


def session_named(name: object) -> str:
    """Return a session for a name from outside, which may not be usable as it is."""
    if not isinstance(name, str) or not name:
        return DEFAULT_SESSION
    if could_be_id(name) and not name.startswith(RESERVED_PREFIX):
        return name
    return blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()


def user_named(name: object) -> str | None:
    """Return a user for a name from outside; ``None`` if it cannot be one."""
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if isinstance(name, str) and could_be_id(name) and not name.startswith(RESERVED_PREFIX):
        return name
    return None


def marks_named(names: object) -> frozenset[str]:
    """Return the usable ones of some labels from outside."""
    if not isinstance(names, list | tuple | set | frozenset):
        return frozenset()
    return frozenset(each for each in names if user_named(each) == each)


def text_in(value: object) -> str | None:
    """Return a text from outside, if it is one and says anything."""
    return value if isinstance(value, str) and value.strip() else None
