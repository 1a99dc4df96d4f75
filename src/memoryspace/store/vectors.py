"""Vectors stored beside records: an optional capability of backends.

A record's embedding is stored with it, so that no other process computes it again. To a store, a
vector is bytes under the name of a space (the embedder's name). It belongs to one version of a
record, identified by ``seq``, and is deleted in the same step as that version, by a deletion, a
replacement or expiry. So no vector can be written for a record that is gone.

Vectors are a cache: a lost one only has to be computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from ..errors import InvalidInput
from ..record import Record, check_id
from .contract import session_in

MAX_VECTOR_BYTES = 1 << 16


class Place(NamedTuple):
    """The location of one version of a user's record."""

    session: str
    id: str
    seq: int


class Kept(Struct, frozen=True):
    """The number of vectors in a space, and their total size in bytes."""

    count: int
    size: int


@runtime_checkable
class KeepsVectors(Protocol):
    """A store that can keep vectors. ``memoryspace.testing`` has its contract suite."""

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        """Return the stored vectors of the records that still exist, by seq."""
        ...

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        """Store or replace vectors of records that still exist; return how many were stored."""
        ...

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        """Return how many vectors a user has, by space."""
        ...

    async def drop_vectors(self, user: str, space: str) -> int:
        """Delete all vectors of a user in a space; return how many there were."""
        ...


def place_of(record: Record) -> Place:
    """Return the location of a stored record."""
    return Place(session_in(record), record.id, record.seq)


def check_space(user: str, space: str) -> None:
    """Raise ``InvalidInput`` unless the user id and the name of the space are valid."""
    check_id("user id", user)
    check_id("vector space", space)


def check_vectors(user: str, space: str, vectors: Mapping[Place, bytes]) -> None:
    """Raise unless all vectors can be stored. The store checks whether the records exist."""
    check_space(user, space)
    for place, vector in vectors.items():
        if not isinstance(vector, bytes):
            raise TypeError(f"a vector must be bytes, got {type(vector).__name__}")
        if not 0 < len(vector) <= MAX_VECTOR_BYTES:
            raise InvalidInput(
                f"the vector of record {place.id!r} has {len(vector)} bytes; "
                f"a vector must have 1 to {MAX_VECTOR_BYTES}"
            )
