"""Drafts: new objects, validated and encoded before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import InvalidInput
from ...record import as_marks, check_id, is_number
from .heap import Heap
from .object import ID_PREFIX, encode_body
from .ops import StoreOp
from .table import FOREVER, NAMED, PINNED, ROOT

_REMEMBERED_TAGS = 1000


class NewObject(NamedTuple):
    """An object to store, for ``store_many``. The fields are the parameters of ``store``.

    ``expires_at`` sets the expiry as a time, instead of ``ttl``. ``created_at`` keeps the age of a
    copy; a time in the future counts as now.
    """

    payload: Mapping[str, Any]
    size: int | None = None
    tags: Iterable[str] = ()
    importance: float = 0.5
    ttl: float | None = None
    embedding: Sequence[float] | None = None
    pin: bool = False
    root: bool = False
    tenant: str = ""
    id: str | None = None
    created_at: float | None = None
    expires_at: float | None = None


class Drafts:
    """Turns new objects into bodies and ops. Remembers recent tags."""

    def __init__(self) -> None:
        self._known_tags: dict[tuple[str, ...], tuple[str, ...]] = {}

    def encode(self, new: NewObject, heap: Heap) -> bytes:
        """Validate a new object and return its body."""
        payload, size, _, importance, ttl, embedding, _, _, tenant, object_id, *times = new
        if not isinstance(payload, Mapping):
            raise TypeError(f"a payload must be a dict, got {type(payload).__name__}")
        if object_id is not None:
            _check_own_id(object_id)
        if tenant != "" and heap.tenants.names.find(tenant) is None:  # else validated before
            check_id("tenant", tenant)
        if type(importance) is not float or ttl is not None or importance - importance:
            if importance is None:
                raise InvalidInput("importance must be a finite number, got None")
            check_numbers(importance=importance, ttl=ttl)
        if times != _NO_TIMES:
            _check_times(times)
        if size is not None and not (isinstance(size, int) and 0 <= size < 1 << 32):
            raise InvalidInput(f"size must be a whole number from 0 to 2**32 - 1, got {size!r}")
        return encode_body(payload, embedding, object_id)

    def op(self, new: NewObject, body: bytes, handle: int, now: float) -> StoreOp:
        """Return the op that stores a validated object."""
        _, size, tags, importance, ttl, _, pin, root, tenant, name, created, expires = new
        created = now if created is None else min(created, now)
        if expires is None:
            expires = FOREVER if ttl is None else created + ttl
        return StoreOp(
            handle,
            body,
            len(body) if size is None else size,
            created,
            expires,
            importance,
            (ROOT if root else 0) | (PINNED if pin else 0) | (NAMED if name is not None else 0),
            tenant,
            self._tags(tags) if tags else (),
        )

    def _tags(self, tags: Iterable[str]) -> tuple[str, ...]:
        if type(tags) is not tuple:
            return checked_tags(tags)
        known = self._known_tags.get(tags)
        if known is None:
            known = checked_tags(tags)
            if len(self._known_tags) >= _REMEMBERED_TAGS:
                self._known_tags.clear()
            self._known_tags[tags] = known
        return known


_NO_TIMES = [None, None]


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return validated tags, sorted and without duplicates."""
    return tuple(sorted(as_marks(tags if isinstance(tags, str) else list(tags))))


def check_numbers(*, importance: float | None, ttl: float | None) -> None:
    """Raise ``InvalidInput`` unless these are finite numbers or ``None``."""
    for name, number in (("importance", importance), ("ttl", ttl)):
        if number is not None and not is_number(number):
            raise InvalidInput(f"{name} must be a finite number, got {number!r}")


def _check_times(times: Sequence[float | None]) -> None:
    for time in times:
        if time is not None and time != FOREVER and not is_number(time):
            raise InvalidInput(f"a time must be a number of seconds, got {time!r}")


def _check_own_id(object_id: str) -> None:
    check_id("object id", object_id)
    if object_id.startswith(ID_PREFIX):
        raise InvalidInput(f"object id {object_id!r} is reserved: it starts with {ID_PREFIX!r}")
