"""``ColdStorage``: the interface of cold storage engines, which map numbers to immutable values.

The public methods are implemented here, with statistics and a checksum for every value; an engine
adds a few primitives. Keys are stamps of writes: unique, and mostly written in ascending order.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from struct import Struct as Layout
from typing import ClassVar, TypeVar, TypeVarTuple
from zlib import crc32

from msgspec import Struct

from ....errors import CorruptData, InvalidInput, MemorySpaceError, StoreError
from ....lifecycle import ClosingNow

MAX_KEY = 2**63 - 1
MAX_VALUE = 2**29  # bytes; every engine holds a value of this size

_PAGE = 1000  # keys read in one transaction
_HEAD = 4  # bytes of checksum
_checksum = Layout("<I").pack
_LOW_BITS = 2**32 - 1

_Given = TypeVarTuple("_Given")
_Answer = TypeVar("_Answer")


class ColdStats(Struct, frozen=True):
    """How many values, and bytes of values, a storage handled since it was opened."""

    writes: int = 0
    reads: int = 0
    deletes: int = 0
    bytes_written: int = 0
    bytes_read: int = 0


class ColdStorage(ClosingNow, ABC):
    """Immutable values by number. Safe to share between threads, but not across a fork.

    A write happens as a whole or not at all, and survives a power cut once it has returned. With
    ``durable=False`` it is faster and survives the process, but a power cut may cost the storage.
    A key keeps its value: saving the same value again is fine, saving another one is an error.
    """

    engine_errors: ClassVar[tuple[type[Exception], ...]] = ()  # translated by ``_explain``

    def __init__(self, place: str, *, durable: bool = True) -> None:
        self.place = place
        self.durable = durable
        self._closed = False
        self._counting = threading.Lock()
        self._writes = self._reads = self._deletes = 0
        self._bytes_written = self._bytes_read = 0

    @property
    def stats(self) -> ColdStats:
        """The counters so far."""
        with self._counting:
            return ColdStats(
                self._writes, self._reads, self._deletes, self._bytes_written, self._bytes_read
            )

    def save(self, key: int, value: bytes) -> None:
        """Save one value."""
        self.save_many([(key, value)])

    def save_many(self, pairs: Iterable[tuple[int, bytes]]) -> None:
        """Save several values, all or none."""
        frames = [(_checked(key), _framed(key, value)) for key, value in pairs]
        if not frames:
            return self._refuse_if_closed()
        self._ask(self._put, frames)
        with self._counting:
            self._writes += len(frames)
            self._bytes_written += sum(len(frame) for _, frame in frames) - _HEAD * len(frames)
        return None

    def load(self, key: int) -> bytes:
        """Return a value. ``KeyError`` if there is none, ``CorruptData`` if it is damaged."""
        frame = self._ask(self._get, _checked(key))
        if frame is None:
            raise KeyError(key)
        value = self._opened(key, frame)
        with self._counting:
            self._reads += 1
            self._bytes_read += len(value)
        return value

    def raw(self, key: int) -> bytes | None:
        """Return what is stored for a key, its checksum included, without verifying it."""
        return self._ask(self._get, _checked(key))

    def load_many(self, keys: Iterable[int]) -> dict[int, bytes]:
        """Return the values that exist, in the order of ``keys``."""
        wanted = [_checked(key) for key in keys]
        found = self._peek_many(wanted)
        with self._counting:
            self._reads += len(found)
            self._bytes_read += sum(map(len, found.values()))
        return found

    def delete(self, key: int) -> bool:
        """Delete a value; return whether it existed."""
        return self.delete_many([key]) == 1

    def delete_many(self, keys: Iterable[int]) -> int:
        """Delete several values in one step; return how many existed."""
        deleted = self._ask(self._remove, list({_checked(key) for key in keys}))
        with self._counting:
            self._deletes += deleted
        return deleted

    def contains(self, key: int) -> bool:
        """Return whether there is a value, without reading it."""
        return self._ask(self._has, _checked(key))

    def __contains__(self, key: object) -> bool:
        return type(key) is int and 0 <= key <= MAX_KEY and self._ask(self._has, key)

    def __len__(self) -> int:
        return self._ask(self._count)

    def __bool__(self) -> bool:
        return True  # an empty storage is a storage

    def keys(self, first: int = 0) -> Iterator[int]:
        """Yield the keys from ``first`` on in ascending order.

        Keys that are saved or deleted meanwhile may or may not appear.
        """
        self._refuse_if_closed()
        return self._walk(_checked(first))

    def sync(self) -> None:
        """Return when every value saved so far survives a power cut."""
        self._ask(self._flush)

    def scrub(self) -> None:
        """Rewrite the files so that no byte of a deleted value is left.

        Needs disk space for a copy. A crash leaves the old files or the new ones. Writers wait
        meanwhile, and readers too if the engine does not support them.
        """
        self._ask(self._rewrite)

    def check(self) -> None:
        """Read everything, without counting it; ``CorruptData`` names the first damage."""
        self._ask(self._verify)
        keys, seen, last = self.keys(), 0, -1
        while page := list(islice(keys, _PAGE)):
            if any(key <= before for before, key in pairwise([last, *page])):
                raise CorruptData(f"{self.place}: keys after {last} are out of order; restore it")
            if len(self._peek_many(page)) < len(page):
                raise CorruptData(f"{self.place}: keys after {last} have no value; restore it")
            seen, last = seen + len(page), page[-1]
        if seen != len(self):
            raise CorruptData(f"{self.place}: {seen} values, but {len(self)} are counted")

    def close(self) -> None:
        """Close the files. May be called more than once."""
        if not self._closed:
            self._closed = True
            self._shut()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.place}{' (closed)' if self._closed else ''}>"

    # The primitives of an engine. Frames and keys are validated; each call is atomic.

    @abstractmethod
    def _put(self, frames: Sequence[tuple[int, bytes]]) -> None:
        """Save all frames or none; raise ``refuse_other`` for a key with another frame."""

    @abstractmethod
    def _get(self, key: int) -> bytes | None:
        """Return a frame, or ``None``."""

    @abstractmethod
    def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
        """Return a frame, or ``None``, for each key."""

    @abstractmethod
    def _remove(self, keys: Sequence[int]) -> int:
        """Delete all frames or none; return how many existed."""

    @abstractmethod
    def _has(self, key: int) -> bool:
        """Return whether there is a frame."""

    @abstractmethod
    def _count(self) -> int:
        """Return how many frames there are."""

    @abstractmethod
    def _keys_from(self, first: int, limit: int) -> list[int]:
        """Return at most ``limit`` keys from ``first`` on in ascending order."""

    @abstractmethod
    def _flush(self) -> None:
        """Make every write durable."""

    @abstractmethod
    def _verify(self) -> None:
        """Verify the engine's own structure."""

    @abstractmethod
    def _shut(self) -> None:
        """Close the files."""

    def _rewrite(self) -> None:
        """Rewrite the files. An engine that cannot do this supports everything but scrubbing."""
        raise StoreError(
            f"{self.place}: this engine cannot erase deleted values from its files; "
            "move the values to another engine"
        )

    def _explain(self, error: Exception) -> MemorySpaceError:
        """Translate an error of the engine: what happened, where, and what to do."""
        return StoreError(f"{self.place}: {error}")

    # Shared by the public methods.

    def _ask(self, primitive: Callable[[*_Given], _Answer], *given: *_Given) -> _Answer:
        """Call the engine. Refuse if closed, and translate the engine's errors."""
        if self._closed:
            self._refuse_if_closed()
        try:
            return primitive(*given)
        except self.engine_errors as error:
            self._refuse_if_closed()  # by another thread, during the call
            raise self._explain(error) from error

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError(f"the cold storage {self.place} is closed; open it again to use it")

    def _opened(self, key: int, frame: bytes) -> bytes:
        """Return the value in a frame; ``CorruptData`` if it was not written under this key."""
        if not is_intact(key, frame):
            raise CorruptData(
                f"{self.place}: the value of key {key} is damaged; restore it from a backup, "
                f"or delete the key"
            )
        return frame[_HEAD:]

    def _peek_many(self, keys: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            for key, frame in zip(page, self._ask(self._get_many, page), strict=True):
                if frame is not None:
                    found[key] = self._opened(key, frame)
        if not keys:
            self._refuse_if_closed()
        return found

    def _walk(self, first: int = 0) -> Iterator[int]:
        # Page by page, so that no transaction stays open between two keys.
        page = self._ask(self._keys_from, first, _PAGE)
        while page:
            yield from page
            last = page[-1]
            page = [] if last == MAX_KEY else self._ask(self._keys_from, last + 1, _PAGE)


def is_intact(key: int, frame: bytes) -> bool:
    """Return whether a frame is intact and was written under this key."""
    return frame[:_HEAD] == _checksum(crc32(memoryview(frame)[_HEAD:], key & _LOW_BITS))


def refuse_other(key: int) -> InvalidInput:
    """Return the error for a key that already has another value."""
    return InvalidInput(
        f"key {key} already holds another value, and values never change; "
        f"use a new key, or delete the old one first"
    )


def _checked(key: int) -> int:
    if type(key) is not int:
        raise TypeError(f"a key must be an int, got {type(key).__name__}")
    if not 0 <= key <= MAX_KEY:
        raise InvalidInput(f"a key must be from 0 to 2**63 - 1, got {key}")
    return key


def _framed(key: int, value: bytes) -> bytes:
    if type(value) is not bytes:
        raise TypeError(f"the value of key {key} must be bytes, got {type(value).__name__}")
    if len(value) > MAX_VALUE:
        raise InvalidInput(
            f"the value of key {key} has {len(value)} bytes, at most {MAX_VALUE} fit; split it"
        )
    # The checksum starts from the key, so a value under a wrong key is noticed too.
    return _checksum(crc32(value, key & _LOW_BITS)) + value
