"""``FileArchive``: an archive in a folder, one per session.

Each content is one file, named by its handle and readable in any editor. A journal records the
holders. A content is on disk before its first holder is recorded, and its last holder is removed
before the file is: a crash leaves at most an extra file, which the next writer removes.
"""
# ruff: noqa: D102  # Archive documents these methods, and help() shows it

from __future__ import annotations

import builtins
import os
import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...errors import CorruptData, InvalidInput
from ...files import safe_name, write_atomic
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
from .holders import HolderJournal
from .locking import locked

_JOURNAL, _LOCK = "holders.jsonl", ".lock"
_SUFFIXES: dict[Kind, str] = {
    "text": ".txt",
    "blocks": ".blocks.json",
    "messages": ".messages.json",
}
_HALF_DONE = ".tmp"
_RECOVERED = "recovered"  # the holder of files found without a journal


class FileArchive(Archive):
    """Stores everything below ``folder``, in one sub-folder per user and session.

    Several processes may use the same archive at once.

    Args:
        folder: The parent folder; created when first written to.
        user_id: The user the session belongs to.
        session_id: The session.
        ttl: Seconds after which a content is removed, held or not, counted from when it last left
            the context. ``None`` keeps it.
        max_bytes: The size from which the oldest contents are removed, held or not. ``None`` sets
            no limit.
        clock: Returns the current time in seconds.

    Raises:
        InvalidInput: ``user_id`` or ``session_id`` is not a non-empty string.

    Example::

        archive = FileArchive("./archive", "alice", "garden", max_bytes=10_000_000)
        compactor = Compactor(Limits(budget=8000), archive=archive)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        user_id: str,
        session_id: str,
        *,
        ttl: float | None = None,
        max_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value in (("user_id", user_id), ("session_id", session_id)):
            if not isinstance(value, str) or not value:
                raise InvalidInput(f"{name} must be a non-empty str, got {value!r}")
        self.folder = Path(folder).absolute() / safe_name(user_id, session_id)
        self.ttl = ttl
        self.max_bytes = max_bytes
        self._clock = clock
        self._files = ContentFiles(self.folder)
        self._journal = HolderJournal(self.folder / _JOURNAL)
        self._lock = threading.RLock()
        self._is_tidy = False

    def __repr__(self) -> str:
        return f"FileArchive({str(self.folder)!r})"

    def put(self, parcels: Sequence[Parcel]) -> builtins.list[Kept]:
        if not parcels:
            return []
        with self._writing():
            contents: dict[tuple[Kind, str], Kept] = {}
            holders: dict[str, builtins.list[str]] = {}
            for parcel in parcels:
                content = parcel.kind, parcel.data
                if content not in contents:
                    contents[content] = self._store(*content, taken=holders)
                holders.setdefault(contents[content].handle, []).append(parcel.holder)
            self._journal.hold([(kept, holders[kept.handle]) for kept in contents.values()])
            self._shrink()
            return [contents[parcel.kind, parcel.data] for parcel in parcels]

    def get(self, handle: str) -> Parcel:
        checked_handle(handle)
        with self._lock:
            self._journal.catch_up()
            held = self._journal.held.get(handle)
            if held is None or self._is_over(held.kept):
                raise unknown(handle)
            kind, holder = held.kept.kind, next(iter(held.holders))
        data = self._files.read(handle, kind)
        if data is None:
            raise unknown(handle)
        if not self._is_digest(handle, kind, data):
            raise CorruptData(f"the file of {handle!r} in {self.folder} has changed")
        return Parcel(data, kind, holder)

    def release(self, holders: Sequence[str]) -> builtins.list[str]:
        if not self.folder.is_dir():
            return []
        with self._writing():
            kinds = {handle: held.kept.kind for handle, held in self._journal.held.items()}
            gone = self._journal.free(holders)
            for handle in gone:
                self._files.remove(handle, kinds[handle])
            self._journal.rewrite()
            return gone

    def holders(self) -> set[str]:
        with self._lock:
            self._journal.catch_up()
            held = self._journal.held.values()
            return {holder for each in held for holder in each.holders} - {_RECOVERED}

    def list(self) -> builtins.list[Kept]:
        with self._lock:
            self._journal.catch_up()
            return [held.kept for held in self._journal.held.values()]

    def holds(self, handle: str) -> bool:
        with self._lock:
            held = self._journal.held.get(handle)
        return held is not None and self._files.path(handle, held.kept.kind).is_file()

    def clear(self) -> None:
        if self.folder.is_dir():
            with self._writing():
                self._journal.clear()
                self._files.remove_others([])

    def check(self) -> None:
        if not self.folder.is_dir():
            return
        with self._lock, locked(self.folder / _LOCK):
            self._journal.catch_up()
            if self._journal.is_damaged:
                raise CorruptData(f"{self._journal.path} has lines that cannot be read")
            for handle, held in self._journal.held.items():
                kind, data = held.kept.kind, self._files.read(handle, held.kept.kind)
                is_whole = data is not None and self._is_digest(handle, kind, data)
                if data is None or not is_whole or described(kind, data, handle) != held.kept:
                    raise CorruptData(
                        f"the file of {handle!r} in {self.folder} is missing or has changed"
                    )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Every change goes through here: one process and one thread at a time, up to date."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock, locked(self.folder / _LOCK):
            self._journal.catch_up()
            if self._journal.is_new:
                self._adopt()
            if not self._is_tidy:
                self._tidy()
            yield

    def _adopt(self) -> None:
        """Hold files found without a journal, whose holders are unknown, until ``clear``."""
        found = [each for each in self._files.found() if self._is_digest(*each)]
        self._journal.hold(
            [(described(kind, data, handle), [_RECOVERED]) for handle, kind, data in found]
        )

    def _tidy(self) -> None:
        """Remove files left by a crash. The caller holds the lock, so none is being written.

        A journal with a lost line keeps every file: that line may have named its holder.
        """
        if not self._journal.is_damaged:
            self._files.remove_others([held.kept for held in self._journal.held.values()])
        self._is_tidy = True

    def _store(self, kind: Kind, data: str, taken: Container[str]) -> Kept:
        """Write a content unless it is on disk, under the shortest handle that is unique.

        ``taken`` are handles assigned in this call and not in the journal yet.
        """
        digest = self.digest(kind, data)
        for length in range(SHORTEST_HANDLE, len(digest) + 1):
            handle = digest[:length]
            if handle in taken:
                continue
            held = self._journal.held.get(handle)
            found = self._files.read(handle, held.kept.kind) if held is not None else None
            if held is None or found is None or not self._is_digest(handle, held.kept.kind, found):
                self._files.write(handle, kind, data)
                return described(kind, data, handle)
            if (held.kept.kind, found) == (kind, data):
                self._files.touch(handle, kind, self._clock())
                return held.kept
        raise CorruptData("two contents have the same digest; the second was not stored")

    def _is_digest(self, handle: str, kind: Kind, data: str) -> bool:
        """Return whether a content still matches its handle."""
        return self.digest(kind, data).startswith(handle)

    def _shrink(self) -> None:
        if self.ttl is None and self.max_bytes is None:
            return
        kept = sorted((held.kept for held in self._journal.held.values()), key=self._files.left_at)
        used = sum(map(self._files.size, kept))
        gone: builtins.list[Kept] = []
        for each in kept:
            if self._is_over(each) or (self.max_bytes is not None and used > self.max_bytes):
                gone.append(each)
                used -= self._files.size(each)
        self._journal.discard([each.handle for each in gone])
        for each in gone:
            self._files.remove(each.handle, each.kind)

    def _is_over(self, kept: Kept) -> bool:
        return self.ttl is not None and self._clock() - self._files.left_at(kept) > self.ttl


class ContentFiles:
    """The content files of a folder: one per content, complete or absent. Unaware of holders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, handle: str, kind: Kind) -> Path:
        """Return the path of a content, present or not."""
        return self.folder / f"{handle}{_SUFFIXES[kind]}"

    def write(self, handle: str, kind: Kind, data: str) -> None:
        """Write a content durably."""
        write_atomic(self.path(handle, kind), data.encode("utf-8", "surrogatepass"))

    def read(self, handle: str, kind: Kind) -> str | None:
        """Return a content, or None if it is missing or unreadable."""
        try:
            return self.path(handle, kind).read_bytes().decode("utf-8", "surrogatepass")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def remove(self, handle: str, kind: Kind) -> None:
        """Remove a content if present."""
        self.path(handle, kind).unlink(missing_ok=True)

    def touch(self, handle: str, kind: Kind, now: float) -> None:
        """Record ``now`` as the time the content left the context."""
        os.utime(self.path(handle, kind), times=(now, now))

    def left_at(self, kept: Kept) -> float:
        """Return when a content last left the context; 0 if it is missing."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def size(self, kept: Kept) -> int:
        """Return the size of a content in bytes."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_size
        except FileNotFoundError:
            return 0

    def found(self) -> Iterator[tuple[str, Kind, str]]:
        """Yield handle, kind and data of every readable content."""
        for path in sorted(self.folder.iterdir()):
            handle, _, suffix = path.name.partition(".")
            for kind, each in _SUFFIXES.items():
                data = self.read(handle, kind) if each == f".{suffix}" else None
                if data is not None:
                    yield handle, kind, data

    def remove_others(self, kept: Collection[Kept]) -> None:
        """Remove all other contents and unfinished files. Files that are not ours stay."""
        names = {self.path(each.handle, each.kind).name for each in kept}
        for path in self.folder.iterdir():
            is_ours = path.name.endswith((_HALF_DONE, *_SUFFIXES.values()))
            if is_ours and path.name not in names:
                path.unlink(missing_ok=True)
