"""``MemoryObject``: an object of a space, and the encoding of its body.

A ``MemoryObject`` is a copy taken at one moment: changing it changes nothing in the space. Its
payload is decoded on first access.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import CorruptData, NotSerializable

ID_PREFIX = "#"  # of ids that the space makes; ids that callers choose cannot start with it
MAX_DEPTH = 200

_IMPORTANCE_SHARE, _RECENCY_SHARE, _REFERENCE_SHARE = 0.7, 0.3, 0.1
_HEX_HANDLE = re.compile(r"[1-9a-f][0-9a-f]{8,15}").fullmatch  # a generation and a slot
_PLAIN = frozenset({str, int, float, bool, type(None), bytes})


class Body(Struct, frozen=True, array_like=True, gc=False):
    """An object's bytes in the arena, in the journal and in the cold tier."""

    payload: dict[str, Any]
    embedding: list[float] | None = None
    name: str | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Body).decode


class MemoryObject:
    """An object as it was when it was loaded.

    Attributes:
        id: Its id: the caller's, or one that the space made.
        payload: What was stored.
        tags: Its tags.
        embedding: The vector stored with it, if any.
        size: What it counts against ``Quotas.budget``.
        tenant: Its tenant, ``""`` if it has none.
        importance: Its importance.
        created_at: When it was stored.
        expires_at: When it expires; infinity if never.
        last_accessed_at: When it was last loaded or found.
        access_count: How often it was loaded or found.
        reference_count: How many objects refer to it.
        generation: How often a generational collector has promoted it.
        address: Where its body is in the heap, or -1 if it is only in the cold tier.
    """

    __slots__ = (
        "_body",
        "_content",
        "_tags",
        "access_count",
        "address",
        "created_at",
        "expires_at",
        "generation",
        "id",
        "importance",
        "last_accessed_at",
        "reference_count",
        "size",
        "tenant",
    )

    id: str
    size: int
    address: int
    created_at: float
    expires_at: float
    last_accessed_at: float
    importance: float
    access_count: int
    reference_count: int
    generation: int
    tenant: str

    @property
    def payload(self) -> dict[str, Any]:
        """What was stored."""
        return self._decoded().payload

    @property
    def tags(self) -> frozenset[str]:
        """Its tags."""
        return frozenset(self._tags)

    @property
    def embedding(self) -> list[float] | None:
        """The vector stored with it, if any."""
        return self._decoded().embedding

    @property
    def ttl(self) -> float | None:
        """Its lifetime in seconds from creation, or ``None`` if it never expires."""
        lifetime = self.expires_at - self.created_at
        return None if lifetime == float("inf") else lifetime

    def touch(self, now: float) -> None:
        """Count a use of this copy. ``MemoryManager.load`` counts uses of the object itself."""
        self.last_accessed_at = now
        self.access_count += 1

    def expired(self, now: float) -> bool:
        """Return whether it has expired at a moment."""
        return self.expires_at <= now

    def importance_score(self, now: float, decay_halflife: float = 3600.0) -> float:
        """Return a score of its importance, its recency and how many objects refer to it."""
        return importance_score(
            self.importance, now - self.last_accessed_at, self.reference_count, decay_halflife
        )

    def __repr__(self) -> str:
        return f"MemoryObject(id={self.id!r}, size={self.size}, tags={sorted(self.tags)})"

    def _decoded(self) -> Body:
        if self._content is None:
            self._content: Body | None = decode_body(self._body, self.id)
        return self._content

    _body: bytes
    _tags: tuple[str, ...]


def importance_score(
    importance: float, age: float, references: int, decay_halflife: float = 3600.0
) -> float:
    """Return 0.7 · importance + 0.3 · 0.5^(age / half-life) + 0.1 · references."""
    freshness: float = 0.5 ** (max(age, 0.0) / decay_halflife)
    return (
        _IMPORTANCE_SHARE * importance + _RECENCY_SHARE * freshness + _REFERENCE_SHARE * references
    )


def encode_body(
    payload: Mapping[str, Any], embedding: Sequence[float] | None, name: str | None
) -> bytes:
    """Return the bytes of an object; raise ``NotSerializable`` for anything but plain data."""
    try:
        for key, value in payload.items():
            if type(key) is not str or type(value) not in _PLAIN:
                _check(payload, 0)
                break
        vector = None if embedding is None else [float(number) for number in embedding]
        return _encode((payload if type(payload) is dict else dict(payload), vector, name))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotSerializable(f"the payload cannot be stored ({error}); use plain data") from error


def decode_body(body: bytes, object_id: str) -> Body:
    """Return what ``encode_body`` encoded."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CorruptData(f"the bytes of object {object_id!r} do not read back") from error


def id_of(handle: int) -> str:
    """Return the id of an object whose caller chose none."""
    return f"{ID_PREFIX}{handle:x}"


def handle_of(object_id: str) -> int:
    """Return the handle in an id made by ``id_of``, or 0."""
    digits = object_id[1:]
    if not _HEX_HANDLE(digits) or object_id[0] != ID_PREFIX:
        return 0
    return int(digits, 16)


def _check(data: Any, depth: int) -> None:
    """Refuse what would be decoded as something else: a set, a date, an object, a key 1."""
    if type(data) in _PLAIN:
        return
    if depth > MAX_DEPTH:
        raise TypeError(f"it is nested deeper than {MAX_DEPTH}")
    if isinstance(data, Mapping):
        for key, value in data.items():
            if type(key) is not str:
                raise TypeError(f"the key {key!r} is not a str")
            if type(value) not in _PLAIN:
                _check(value, depth + 1)
    elif isinstance(data, list | tuple):
        for value in data:
            if type(value) not in _PLAIN:
                _check(value, depth + 1)
    else:
        raise TypeError(f"a {type(data).__name__} is not plain data")
