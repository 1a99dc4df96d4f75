"""Vectors in a memory space: objects beside the records they belong to.

A record's seq is the stamp of its object, which another write would change; so a vector is an
object of its own, of the same tenant, counted in the same quotas. It names its record by handle,
which is never given twice. Both are freed in one step. A vector whose record went for another
reason is stray: it is never read, and freed with the next change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from ...errors import CorruptData
from ...kernel import LivingObject, NewObject, ObjectHandles

TAG = "memoryspace:vector"  # of every vector; a record may carry it too, so it proves nothing
IMPORTANCE = 0.0  # the first to leave the hot tier


class _Vector(Struct, frozen=True, forbid_unknown_fields=True):
    """A vector as the payload of an object."""

    of: int
    space: str
    vector: bytes


class _Body(Struct, frozen=True, array_like=True):
    payload: _Vector


_decode = msgspec.msgpack.Decoder(_Body).decode


class SpaceVectors:
    """Which vector objects belong to which record. Used under the space's lock."""

    def __init__(self) -> None:
        self._of: dict[int, dict[str, int]] = {}  # a record's handle → space → the vector's
        self._whose: dict[int, tuple[int, str]] = {}  # a vector's handle → its record's, its space
        self._stray: set[int] = set()

    def __len__(self) -> int:
        return len(self._whose)

    def learn(self, space: ObjectHandles, found: LivingObject) -> bool:
        """Add an object if it is a vector; return whether it is one."""
        if TAG not in found.tags:
            return False
        try:
            vector = _decode(space.body(found.handle)).payload
        except (CorruptData, msgspec.DecodeError, UnicodeError):
            return False
        self.note(vector.of, vector.space, found.handle)
        return True

    def find(self, record: int, space: str) -> int | None:
        """Return the handle of a record's vector."""
        return self._of.get(record, {}).get(space)

    def spaces(self, record: int) -> dict[str, int]:
        """Return the handles of a record's vectors by space."""
        return self._of.get(record, {})

    def beside(self, records: Iterable[int]) -> list[int]:
        """Return the handles that are to be freed with those of records, strays among them."""
        own = [handle for record in records for handle in self._of.get(record, {}).values()]
        return [*own, *self._stray.difference(own)]

    def all(self) -> list[int]:
        """Return the handles of all vectors, strays among them."""
        return [*self._stray.union(self._whose)]

    def freed(self, handle: int) -> None:
        """Note that an object is gone, be it a record or a vector."""
        self._stray.discard(handle)
        self._stray.update(self._of.pop(handle, {}).values())
        record, space = self._whose.pop(handle, (0, ""))
        spaces = self._of.get(record, {})
        if spaces.get(space) == handle:
            del spaces[space]
            if not spaces:
                del self._of[record]

    def settle(self, records: Iterable[int]) -> None:
        """Note as strays what belongs to none of these records, which are all there are."""
        for record in self._of.keys() - set(records):
            self._stray.update(self._of.pop(record).values())

    def note(self, record: int, space: str, handle: int) -> None:
        """Note that a record has a vector; an older one that is still there is stray."""
        older = self._of.setdefault(record, {}).get(space)
        if older is not None and older in self._whose and older != handle:
            self._stray.add(older)
        self._of[record][space] = handle
        self._whose[handle] = (record, space)


def is_vector(body: bytes) -> bool:
    """Return whether the bytes of an object are a vector's."""
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def vector_object(
    user: str, record: int, space: str, vector: bytes, expires_at: float | None
) -> NewObject:
    """Return a vector as an object of the space."""
    return NewObject(
        {"of": record, "space": space, "vector": vector},
        tags=(TAG,),
        importance=IMPORTANCE,
        tenant=user,
        expires_at=expires_at,
    )


def vectors_in(space: ObjectHandles, handles: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yield those vectors of handles that can be read."""
    for handle in handles:
        try:
            yield handle, _decode(space.body(handle)).payload.vector
        except (CorruptData, msgspec.DecodeError, UnicodeError):
            continue
