"""Vectors beside records: an optional power of stores.

What an embedder made of a record is kept with it, so that no other process has to make it again. A
vector is bytes to a store, under the name of the space it belongs to (the embedder's name), and
belongs to one version of a record: that of its ``seq``. It is kept only while that version is
there. Whatever removes the record, a deletion, a replacement or its expiry, removes its vectors in
the same step, so none can be written for a record that is gone.

Vectors are a cache: losing one costs the work of making it again, nothing else.
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
    """Where one version of a user's record stands."""

    session: str
    id: str
    seq: int


class Kept(Struct, frozen=True):
    """How many vectors of a space there are, and how many bytes they take together."""

    count: int
    size: int


@runtime_checkable
class KeepsVectors(Protocol):
    """The power of a store to keep vectors. ``memoryspace.testing`` checks one against this."""

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        """Return the vectors of those records that are there and have one, by their seq."""
        ...

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        """Keep vectors of records that are still there, in place of older ones; return how many."""
        ...

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        """Return what is kept of a user, by space."""
        ...

    async def drop_vectors(self, user: str, space: str) -> int:
        """Forget all vectors of a user in a space; return how many there were."""
        ...


def place_of(record: Record) -> Place:
    """Return where a stored record stands."""
    return Place(session_in(record), record.id, record.seq)


def check_space(user: str, space: str) -> None:
    """Refuse what no store could keep vectors under."""
    check_id("user id", user)
    check_id("vector space", space)


def check_vectors(user: str, space: str, vectors: Mapping[Place, bytes]) -> None:
    """Refuse what cannot be kept; that a record is there is for the store to see."""
    check_space(user, space)
    for place, vector in vectors.items():
        if not isinstance(vector, bytes):
            raise TypeError(f"a vector must be bytes, got {type(vector).__name__}")
        if not 0 < len(vector) <= MAX_VECTOR_BYTES:
            raise InvalidInput(
                f"the vector of record {place.id!r} has {len(vector)} bytes; "
                f"from 1 to {MAX_VECTOR_BYTES} can be kept"
            )
