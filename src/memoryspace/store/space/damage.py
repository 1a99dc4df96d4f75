"""Which objects of a space do not read back as records or vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...errors import CorruptData
from ...kernel import LivingObject, MemoryManager, ObjectHandles
from .objects import entry_of, payload_of, record_of
from .vectors import TAG, is_vector

_AT_ONCE = 200  # objects read while others wait


class DamagedObject(NamedTuple):
    """An object that cannot be read: its handle, whose it is, where it was stored, and why."""

    handle: int
    id: str
    user: str
    seq: int
    error: str


def damaged_in(manager: MemoryManager) -> Iterator[DamagedObject]:
    """Read every record and vector; yield those that do not read back.

    Others may work on the space meanwhile.
    """
    space = ObjectHandles(manager)
    with space.lock:
        found = list(space.living())
    for start in range(0, len(found), _AT_ONCE):
        with space.lock:
            part = [
                each for each in found[start : start + _AT_ONCE] if space.is_living(each.handle)
            ]
            damaged = [(each, _error_in(space, each)) for each in part]
            told = [_told(space, each, error) for each, error in damaged if error is not None]
        yield from told


def _told(space: ObjectHandles, found: LivingObject, error: str) -> DamagedObject:
    return DamagedObject(found.handle, space.id(found.handle), found.tenant, found.stamp, error)


def _error_in(space: ObjectHandles, found: LivingObject) -> str | None:
    try:
        body = space.body(found.handle)
        if TAG in found.tags and is_vector(body):
            return None
        payload = payload_of(body)
        record_of(entry_of(found, payload), body, 0.0, False)
    except CorruptData as error:
        return str(error)
    return None
