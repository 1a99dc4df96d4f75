"""``RAMArchive``: an archive that lives as long as the process."""
# ruff: noqa: D102  # Archive documents these methods, and help() shows it

from __future__ import annotations

import builtins
import threading
from collections.abc import Sequence

from ...errors import CorruptData
from ..rendering import Kind
from .base import (
    SHORTEST_HANDLE,
    Archive,
    Kept,
    Parcel,
    checked_handle,
    described,
    unknown,
)


class _StoredContent:
    """One content and its holders, in the order they arrived."""

    __slots__ = ("data", "holders", "kept")

    def __init__(self, kept: Kept, data: str) -> None:
        self.kept, self.data = kept, data
        self.holders: dict[str, None] = {}


class RAMArchive(Archive):
    """Stores everything in this process. Thread-safe."""

    def __init__(self) -> None:
        self._contents: dict[str, _StoredContent] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"RAMArchive(contents={len(self._contents)})"

    def put(self, parcels: Sequence[Parcel]) -> builtins.list[Kept]:
        with self._lock:
            known: dict[tuple[Kind, str], _StoredContent] = {}
            return [self._hold(parcel, known) for parcel in parcels]

    def get(self, handle: str) -> Parcel:
        with self._lock:
            content = self._contents.get(checked_handle(handle))
            if content is None:
                raise unknown(handle)
            return Parcel(content.data, content.kept.kind, next(iter(content.holders)))

    def release(self, holders: Sequence[str]) -> builtins.list[str]:
        with self._lock:
            for content in self._contents.values():
                for holder in holders:
                    content.holders.pop(holder, None)
            gone = [handle for handle, content in self._contents.items() if not content.holders]
            for handle in gone:
                del self._contents[handle]
            return gone

    def holders(self) -> set[str]:
        with self._lock:
            return {holder for content in self._contents.values() for holder in content.holders}

    def list(self) -> builtins.list[Kept]:
        with self._lock:
            return [content.kept for content in self._contents.values()]

    def holds(self, handle: str) -> bool:
        return handle in self._contents

    def clear(self) -> None:
        with self._lock:
            self._contents.clear()

    def check(self) -> None:
        with self._lock:
            for handle, content in self._contents.items():
                digest = self.digest(content.kept.kind, content.data)
                if not (content.holders and digest.startswith(handle)):
                    raise CorruptData(f"the content of {handle!r} has changed or has no holder")

    def _hold(self, parcel: Parcel, known: dict[tuple[Kind, str], _StoredContent]) -> Kept:
        """Record a holder. ``known`` avoids hashing one text again for each of its holders."""
        content = known.get((parcel.kind, parcel.data))
        if content is None:
            content = known[parcel.kind, parcel.data] = self._content(parcel)
        content.holders[parcel.holder] = None
        return content.kept

    def _content(self, parcel: Parcel) -> _StoredContent:
        digest = self.digest(parcel.kind, parcel.data)
        for length in range(SHORTEST_HANDLE, len(digest) + 1):
            handle = digest[:length]
            content = self._contents.get(handle)
            if content is None:
                kept = described(parcel.kind, parcel.data, handle)
                content = self._contents[handle] = _StoredContent(kept, parcel.data)
            if (content.kept.kind, content.data) == (parcel.kind, parcel.data):
                return content
        raise CorruptData("two contents have the same digest; the second was not stored")
