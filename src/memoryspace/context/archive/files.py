"""``FileArchive``: what left the context of one session, in a folder of its own.

One file a content, named by its handle, readable with any editor; and a journal of who holds what.
A content is on the disk before anybody is noted to hold it, and nobody is noted any more before it
is removed: a crash leaves at most a file too many, which the next user of the folder clears away.
"""
# ruff: noqa: D102  # Archive says it, and help() shows it

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
from .holders import Holding
from .locking import locked

_JOURNAL, _LOCK = "holders.jsonl", ".lock"
_SUFFIXES: dict[Kind, str] = {
    "text": ".txt",
    "blocks": ".blocks.json",
    "messages": ".messages.json",
}
_HALF_DONE = ".tmp"
_RECOVERED = "recovered"  # holds what is there when the journal is not


class FileArchive(Archive):
    """Keeps everything below ``folder``, in one folder for each user's session.

    Several processes may use it at once. ``ttl`` seconds after it last left, and over ``max_bytes``
    the oldest first, a content goes though it is held; neither is on unless asked for.
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
                raise InvalidInput(f"{name} must be a text that is not empty")
        self.folder = Path(folder).absolute() / safe_name(user_id, session_id)
        self.ttl = ttl
        self.max_bytes = max_bytes
        self._clock = clock
        self._files = ContentFiles(self.folder)
        self._holding = Holding(self.folder / _JOURNAL)
        self._lock = threading.RLock()
        self._is_tidy = False

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
            self._holding.hold([(kept, holders[kept.handle]) for kept in contents.values()])
            self._shrink()
            return [contents[parcel.kind, parcel.data] for parcel in parcels]

    def get(self, handle: str) -> Parcel:
        checked_handle(handle)
        with self._lock:
            self._holding.catch_up()
            held = self._holding.held.get(handle)
            if held is None or self._is_over(held.kept):
                raise unknown(handle)
            kind, holder = held.kept.kind, next(iter(held.holders))
        data = self._files.read(handle, kind)
        if data is None:
            raise unknown(handle)
        if not self._is_digest(handle, kind, data):
            raise CorruptData(f"the file of {handle!r} in {self.folder} is not what was put there")
        return Parcel(data, kind, holder)

    def release(self, holders: Sequence[str]) -> builtins.list[str]:
        if not self.folder.is_dir():
            return []
        with self._writing():
            kinds = {handle: held.kept.kind for handle, held in self._holding.held.items()}
            gone = self._holding.free(holders)
            for handle in gone:
                self._files.remove(handle, kinds[handle])
            self._holding.rewrite()
            return gone

    def holders(self) -> set[str]:
        with self._lock:
            self._holding.catch_up()
            held = self._holding.held.values()
            return {holder for each in held for holder in each.holders} - {_RECOVERED}

    def list(self) -> builtins.list[Kept]:
        with self._lock:
            self._holding.catch_up()
            return [held.kept for held in self._holding.held.values()]

    def holds(self, handle: str) -> bool:
        with self._lock:
            held = self._holding.held.get(handle)
        return held is not None and self._files.path(handle, held.kept.kind).is_file()

    def clear(self) -> None:
        if self.folder.is_dir():
            with self._writing():
                self._holding.clear()
                self._files.remove_others([])

    def check(self) -> None:
        if not self.folder.is_dir():
            return
        with self._lock, locked(self.folder / _LOCK):
            self._holding.catch_up()
            if self._holding.is_damaged:
                raise CorruptData(f"{self._holding.path} has lines that cannot be read")
            for handle, held in self._holding.held.items():
                kind, data = held.kept.kind, self._files.read(handle, held.kept.kind)
                is_whole = data is not None and self._is_digest(handle, kind, data)
                if data is None or not is_whole or described(kind, data, handle) != held.kept:
                    raise CorruptData(f"the file of {handle!r} in {self.folder} is lost or changed")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The one door for changes: one process and one thread at a time, up to date, tidy."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock, locked(self.folder / _LOCK):
            self._holding.catch_up()
            if self._holding.is_new:
                self._adopt()
            if not self._is_tidy:
                self._tidy()
            yield

    def _adopt(self) -> None:
        """Without a journal nobody knows who held what is there: it stays, until all is cleared."""
        found = [each for each in self._files.found() if self._is_digest(*each)]
        self._holding.hold(
            [(described(kind, data, handle), [_RECOVERED]) for handle, kind, data in found]
        )

    def _tidy(self) -> None:
        """Clear away what a crash left; with the lock, nobody is just writing it.

        Not if a line of the journal is lost: what seems to be held by nobody may be held by that.
        """
        if not self._holding.is_damaged:
            self._files.remove_others([held.kept for held in self._holding.held.values()])
        self._is_tidy = True

    def _store(self, kind: Kind, data: str, taken: Container[str]) -> Kept:
        """Return a content that is on the disk, under as much of its digest as tells it apart.

        ``taken`` are handles that were given a moment ago and are not noted yet.
        """
        digest = self.digest(kind, data)
        for length in range(SHORTEST_HANDLE, len(digest) + 1):
            handle = digest[:length]
            if handle in taken:
                continue
            held = self._holding.held.get(handle)
            found = self._files.read(handle, held.kept.kind) if held is not None else None
            if held is None or found is None or not self._is_digest(handle, held.kept.kind, found):
                self._files.write(handle, kind, data)
                return described(kind, data, handle)
            if (held.kept.kind, found) == (kind, data):
                self._files.touch(handle, kind, self._clock())
                return held.kept
        raise CorruptData("two contents have the same digest; neither is given up for the other")

    def _is_digest(self, handle: str, kind: Kind, data: str) -> bool:
        """Whether a content is what it was when it got its handle."""
        return self.digest(kind, data).startswith(handle)

    def _shrink(self) -> None:
        if self.ttl is None and self.max_bytes is None:
            return
        kept = sorted((held.kept for held in self._holding.held.values()), key=self._files.left_at)
        used = sum(map(self._files.size, kept))
        gone: builtins.list[Kept] = []
        for each in kept:
            if self._is_over(each) or (self.max_bytes is not None and used > self.max_bytes):
                gone.append(each)
                used -= self._files.size(each)
        self._holding.give_up([each.handle for each in gone])
        for each in gone:
            self._files.remove(each.handle, each.kind)

    def _is_over(self, kept: Kept) -> bool:
        return self.ttl is not None and self._clock() - self._files.left_at(kept) > self.ttl


class ContentFiles:
    """A folder of contents. Knows nothing of who holds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, handle: str, kind: Kind) -> Path:
        """Return where a content is, or would be."""
        return self.folder / f"{handle}{_SUFFIXES[kind]}"

    def write(self, handle: str, kind: Kind, data: str) -> None:
        """Put a content on the disk, to last."""
        write_atomic(self.path(handle, kind), data.encode("utf-8", "surrogatepass"))

    def read(self, handle: str, kind: Kind) -> str | None:
        """Return a content; None if there is none, or none that can be read."""
        try:
            return self.path(handle, kind).read_bytes().decode("utf-8", "surrogatepass")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def remove(self, handle: str, kind: Kind) -> None:
        """Remove a content, if it is there."""
        self.path(handle, kind).unlink(missing_ok=True)

    def touch(self, handle: str, kind: Kind, now: float) -> None:
        """Note that a content left the context now."""
        os.utime(self.path(handle, kind), times=(now, now))

    def left_at(self, kept: Kept) -> float:
        """Return when a content last left the context; for ever ago if it is not there."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def size(self, kept: Kept) -> int:
        """Return the bytes that a content takes."""
        try:
            return self.path(kept.handle, kept.kind).stat().st_size
        except FileNotFoundError:
            return 0

    def found(self) -> Iterator[tuple[str, Kind, str]]:
        """Yield handle, kind and data of every content that can be read."""
        for path in sorted(self.folder.iterdir()):
            handle, _, suffix = path.name.partition(".")
            for kind, each in _SUFFIXES.items():
                data = self.read(handle, kind) if each == f".{suffix}" else None
                if data is not None:
                    yield handle, kind, data

    def remove_others(self, kept: Collection[Kept]) -> None:
        """Remove every content but these, and what was never finished; leave other files alone."""
        names = {self.path(each.handle, each.kind).name for each in kept}
        for path in self.folder.iterdir():
            is_ours = path.name.endswith((_HALF_DONE, *_SUFFIXES.values()))
            if is_ours and path.name not in names:
                path.unlink(missing_ok=True)
