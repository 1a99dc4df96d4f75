"""``RamColdStorage``: the reference engine, in RAM, for tests and temporary spaces."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence

from .contract import ColdStorage, refuse_other


class RamColdStorage(ColdStorage):
    """Values in a dict. Nothing survives the process, and ``close`` drops everything."""

    def __init__(self) -> None:
        super().__init__("in RAM", durable=False)
        self._frames: dict[int, bytes] = {}
        self._sorted: list[int] | None = []  # None: sorted on the next use
        self._lock = threading.Lock()

    def _put(self, frames: Sequence[tuple[int, bytes]]) -> None:
        new: dict[int, bytes] = {}
        with self._lock:
            for key, frame in frames:
                if new.get(key, self._frames.get(key, frame)) != frame:
                    raise refuse_other(key)
                new[key] = frame
            self._frames.update(new)
            self._sorted = None

    def _get(self, key: int) -> bytes | None:
        with self._lock:
            return self._frames.get(key)

    def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
        with self._lock:
            return [self._frames.get(key) for key in keys]

    def _remove(self, keys: Sequence[int]) -> int:
        with self._lock:
            found = [key for key in keys if key in self._frames]
            for key in found:
                del self._frames[key]
            self._sorted = None
            return len(found)

    def _has(self, key: int) -> bool:
        with self._lock:
            return key in self._frames

    def _count(self) -> int:
        with self._lock:
            return len(self._frames)

    def _keys_from(self, first: int, limit: int) -> list[int]:
        with self._lock:
            if self._sorted is None:
                self._sorted = sorted(self._frames)
            start = bisect_left(self._sorted, first)
            return self._sorted[start : start + limit]

    def _flush(self) -> None:
        """Do nothing: there is no disk."""

    def _rewrite(self) -> None:
        """Do nothing: there are no files."""

    def _verify(self) -> None:
        with self._lock:
            assert self._sorted is None or self._sorted == sorted(self._frames)

    def _shut(self) -> None:
        with self._lock:
            self._frames, self._sorted = {}, []
