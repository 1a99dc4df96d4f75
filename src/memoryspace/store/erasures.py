"""``ErasureLedger``: what was erased, so that a restored backup does not bring it back.

A backup is older than the erasures that follow it. So each erasure is noted outside of the records
before it happens: in a ledger beside the live data, and in a copy of it beside every backup that was
made there. Restoring reads the copy and erases again what was erased after the restored moment.

A ledger holds no names: users, sessions and memories are noted as keyed hashes. Whoever has the ledger
can test whether it names a user that they already know, so keep it where the backups are.

    <crc32> {"note": "ledger", "format": 1, "id": …, "key": …}           the first line, once
    <crc32> {"note": "begun", "id": …, "at": …, "what": …, "user": …}    it is about to happen
    <crc32> {"note": "done", "id": …, "at": …}                           it has happened
    <crc32> {"note": "backup", "folder": …}                              here are backups of this data

Lines are only appended. A line that a crash cut short does not count; the next one to append marks it.
"""  # noqa: E501  # a table

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ..errors import CorruptData, StoreUnavailable
from ..files import write_atomic

logger = logging.getLogger(__name__)

FORMAT = 1
FILE = "erasures.log"  # in the folder of a space
COPIES = "erasures"  # the folder of copies in a folder of backups

What = Literal["memories", "session", "conversation", "service", "user"]

_MOST_READ = 1 << 30  # bytes
_MOST_HEADER = 1000
_HASH = 16  # bytes
_TORN = b"\0torn"  # the end of a line that a crash cut short


class Erased(Struct, frozen=True, omit_defaults=True, tag_field="note", tag="begun"):
    """An erasure. ``what`` says how far it went, everything else is hashed.

    Attributes:
        id: The name of this erasure.
        at: When it began, by the store's clock.
        what: ``"memories"`` by id; a ``"session"`` of a service, or with its working memory a
            ``"conversation"``; all that a ``"service"`` keeps of a user, or everything of a
            ``"user"``.
        user: The user.
        session: The session, if it was limited to one.
        memories: The memories, if it was limited to some.
        done: When it had happened; ``None`` if that is not known.
    """

    id: str
    at: float
    what: What
    user: str
    session: str | None = None
    memories: tuple[str, ...] = ()
    done: float | None = None

    def is_after(self, moment: float) -> bool:
        """Return whether data of this moment may hold what was erased."""
        return (self.at if self.done is None else self.done) >= moment


class _Header(Struct, frozen=True, tag_field="note", tag="ledger"):
    format: int
    id: str
    key: str


class _Done(Struct, frozen=True, tag_field="note", tag="done"):
    id: str
    at: float


class _Backup(Struct, frozen=True, tag_field="note", tag="backup"):
    folder: str


_Note = _Header | Erased | _Done | _Backup
_decode = msgspec.json.Decoder(_Note).decode


class ErasureLedger:
    """The ledger in a file. Nothing is created before the first ``begin`` or ``add_backup``.

    Safe to share between threads; several processes of one machine can append to one ledger.

    Args:
        path: The file.
        is_synced: Whether a note survives a power cut before the erasure begins.
        only_if_there: Note nothing until the file exists. ``back_up`` creates it.

    Raises:
        CorruptData: On reading, a line is damaged, or the format is of a later version.
        StoreUnavailable: The file cannot be read or written.

    Example::

        store = open_store("postgresql://localhost/memory")
        store.erasures = ErasureLedger("/backups/erasures.log")
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        is_synced: bool = True,
        only_if_there: bool = False,
    ) -> None:
        self.path = Path(path).absolute()
        self._is_synced = is_synced
        self._only_if_there = only_if_there
        self._lock = threading.Lock()
        self._known_header: _Header | None = None
        self._known_size = -1
        self._known_backups: list[Path] = []

    def __repr__(self) -> str:
        return f"ErasureLedger({str(self.path)!r})"

    @property
    def is_begun(self) -> bool:
        """Whether anything was noted."""
        return self.path.exists()

    # -- writing -----------------------------------------------------------------------------------

    def begin(
        self,
        what: What,
        user: str,
        now: float,
        *,
        session: str | None = None,
        memories: Collection[str] = (),
    ) -> str:
        """Note that something is about to be erased; return the name of the erasure."""
        if self._only_if_there and not self.is_begun:
            return ""
        with self._lock:
            key = self._begun().key
            erased = Erased(
                secrets.token_hex(8),
                now,
                what,
                hashed(key, user),
                None if session is None else hashed(key, user, session),
                tuple(sorted(hashed(key, user, each) for each in memories)),
            )
            self._append([erased], synced=self._is_synced)
        return erased.id

    def end(self, name: str, now: float) -> None:
        """Note that an erasure has happened."""
        if name:
            with self._lock:
                self._append([_Done(name, now)], synced=False)

    def add_backup(self, folder: Path) -> None:
        """Note a folder of backups, whose copy of the ledger is kept up to date from now on."""
        with self._lock:
            self._begun()
            if folder not in self.backups():
                try:
                    _append_to(self.path, [_line(_Backup(str(folder)))], synced=True)
                except OSError as error:
                    raise _unavailable(self.path, error) from error
        self.copy_to(folder)

    def copy_to(self, folder: Path) -> None:
        """Bring the copy beside some backups up to date."""
        with self._lock:
            copy = self._copy_in(folder)
            try:
                copy.parent.mkdir(parents=True, exist_ok=True)
                there = _lines_of(copy)
                missing = self._missing(there)
                if not there:
                    write_atomic(copy, b"".join(missing))
                elif missing:
                    _append_to(copy, missing, synced=True)
            except OSError as error:
                raise _unavailable(copy, error) from error

    def hand_on(self, path: Path) -> None:
        """Write a ledger with the same erasures, for a restored copy, which has no backups yet."""
        write_atomic(path, b"".join(self._missing(())))

    # -- reading -----------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """The key of the hashes."""
        return self._header().key

    def erasures(self) -> list[Erased]:
        """Return every erasure, oldest first."""
        found: dict[str, Erased] = {}
        for note in map(self._note, _lines_of(self.path)):
            if isinstance(note, Erased):
                found[note.id] = note
            elif isinstance(note, _Done) and note.id in found:
                found[note.id] = msgspec.structs.replace(found[note.id], done=note.at)
        return list(found.values())

    def backups(self) -> list[Path]:
        """Return the folders with backups of this data."""
        lines = [each for each in _lines_of(self.path) if _is_backup(each)]
        notes = [note for note in map(self._note, lines) if isinstance(note, _Backup)]
        return [Path(each.folder) for each in notes]

    def behind(self, folder: Path) -> int:
        """Return how many lines the copy beside some backups lacks."""
        return len(self._missing(_lines_of(self._copy_in(folder))))

    # -- internals ---------------------------------------------------------------------------------

    def _missing(self, there: Collection[bytes]) -> list[bytes]:
        known = set(there)
        lines = _lines_of(self.path)
        return [each for each in lines if each not in known and not _is_backup(each)]

    def _copy_in(self, folder: Path) -> Path:
        return folder / COPIES / f"{self._header().id}.log"

    def _begun(self) -> _Header:
        """Return the header; create the file if there is none."""
        if not self.is_begun:
            header = _Header(FORMAT, secrets.token_hex(8), secrets.token_hex(16))
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(self.path, _line(header))
            except OSError as error:
                raise _unavailable(self.path, error) from error
        return self._header()

    def _header(self) -> _Header:
        if self._known_header is None:
            lines = _lines_of(self.path, most=_MOST_HEADER)
            first = self._note(lines[0]) if lines else None
            if not isinstance(first, _Header):
                raise CorruptData(f"{self.path} does not begin like a ledger of erasures")
            self._known_header = first
        return self._known_header

    def _append(self, notes: Sequence[Struct], *, synced: bool) -> None:
        """Append to the ledger, then to the copies beside backups that can be reached."""
        lines = [_line(each) for each in notes]
        try:
            if os.stat(self.path).st_size != self._known_size:  # another process has written too
                self._known_backups = self.backups()
            _append_to(self.path, lines, synced=synced)
            self._known_size = os.stat(self.path).st_size
        except OSError as error:
            raise _unavailable(self.path, error) from error
        for folder in self._known_backups:
            copy = self._copy_in(folder)
            try:
                if copy.exists():
                    _append_to(copy, lines, synced=synced)
            except OSError as error:  # a disk that is not there now; the next backup catches up
                logger.warning("an erasure is not noted beside backups in %s: %s", folder, error)

    def _note(self, line: bytes) -> _Note:
        checksum, text = line[:8], line[9:-1]
        if checksum != b"%08x" % zlib.crc32(text):
            raise CorruptData(
                f"the ledger of erasures {self.path} is damaged; restore it from a copy: without "
                "it, a restored backup could bring back what was erased"
            )
        try:
            note: _Note = _decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise CorruptData(f"the ledger of erasures {self.path}: {error}") from None
        if isinstance(note, _Header) and note.format > FORMAT:
            raise CorruptData(
                f"the ledger of erasures {self.path} has format {note.format}, this version of "
                f"memoryspace reads up to {FORMAT}; upgrade memoryspace"
            )
        return note


@asynccontextmanager
async def noted(
    ledger: ErasureLedger | None,
    what: What,
    user: str,
    clock: Callable[[], float],
    *,
    session: str | None = None,
    memories: Collection[str] = (),
) -> AsyncIterator[None]:
    """Note an erasure before it begins, and when it has happened."""
    if ledger is None:
        yield
        return
    name = await asyncio.to_thread(
        ledger.begin, what, user, clock(), session=session, memories=memories
    )
    yield
    await asyncio.to_thread(ledger.end, name, clock())


def hashed(key: str, *names: str) -> str:
    """Return the keyed hash of a user, or of something that a user has."""
    text = "".join(f"{len(name)}:{name}" for name in names).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_HASH, key=bytes.fromhex(key)).hexdigest()


def _line(note: Struct) -> bytes:
    text = msgspec.json.encode(note)
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _is_backup(line: bytes) -> bool:
    return line[9:].startswith(b'{"note":"backup"')


def _lines_of(path: Path, *, most: int = _MOST_READ) -> list[bytes]:
    """Return the whole lines of a file; a crash may have cut short some of them."""
    try:
        with open(path, "rb") as file:
            data = file.read(most)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unavailable(path, error) from error
    lines = data.split(b"\n")[:-1]
    return [line + b"\n" for line in lines if not line.endswith(_TORN)]


def _append_to(path: Path, lines: Iterable[bytes], *, synced: bool) -> None:
    """Append whole lines in one write, after a line that a crash cut short."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
    try:
        size = os.fstat(descriptor).st_size
        is_whole = not size or _last_byte(descriptor, size) == b"\n"
        data = (b"" if is_whole else _TORN + b"\n") + b"".join(lines)
        while data:
            data = data[os.write(descriptor, data) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"the ledger of erasures {path} cannot be used ({error.strerror or error}); nothing was "
        "erased: free space or check the disk, then erase again"
    )
