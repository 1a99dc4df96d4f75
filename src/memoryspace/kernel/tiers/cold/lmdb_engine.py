"""``LMDBColdStorage``: the fast engine, a memory-mapped B+ tree. Needs the extra ``lmdb``.

Measured: returning bytes is faster than buffers (the checksum reads the value anyway), and
read-ahead makes scans ten times faster and costs single reads nothing.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import lmdb

from ....errors import (
    CorruptData,
    InvalidInput,
    MemorySpaceError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from ...durable.disk import Disk
from ...locks import ReadWriteLock
from .contract import ColdStorage, refuse_other
from .lmdb_copy import write_copy
from .lmdb_form import FORMAT, KEY, MARK, MARK_KEY, OUR_MARK, as_key
from .lmdb_pages import require_whole
from .lmdb_salvage import salvage_file

MAP_SIZE = 2**26  # initial bytes; doubled when full

_LOCK = "-lock"  # suffix of LMDB's lock file
_COPY = ".copy"  # suffix of a copy in progress

_Answer = TypeVar("_Answer")


class LMDBColdStorage(ColdStorage):
    """Values in one LMDB file and its ``-lock``. Readers never wait for writers.

    A commit flushes the data before the page that points to it, and that page before it returns:
    without the second flush a power cut could undo the last batch. A file that lost pages is
    refused before it is mapped. Truncating the file while it is open kills the process; nothing can
    be done about that.

    Args:
        path: The file.
        map_size: The initial size of the memory map in bytes; it grows as needed.
        durable: Whether a write survives a power cut once it has returned.
        salvage: Set a damaged file aside as ``….damaged1`` and continue with its intact values in
            a new one.
    """

    engine_errors = (lmdb.Error,)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        map_size: int = MAP_SIZE,
        durable: bool = True,
        salvage: bool = False,
    ) -> None:
        if type(map_size) is not int or map_size <= 0:
            raise InvalidInput(f"map_size must be a number of bytes above 0, got {map_size!r}")
        self.path = Path(path).absolute()
        super().__init__(str(self.path), durable=durable)
        # Many threads may use the map; growing, swapping and closing it need exclusive access.
        self._map = ReadWriteLock()
        # Taken before the map's lock by writers, and by a rewrite, which must not miss a write.
        self._changing = threading.Lock()
        self._copy = self.path.with_name(self.path.name + _COPY)
        self._environment = self._open_or_salvage(map_size) if salvage else self._open(map_size)
        try:
            self._ask(self._take)
        except BaseException:
            self.close()
            raise

    def _open_or_salvage(self, map_size: int) -> lmdb.Environment:
        try:
            return self._open(map_size)
        except CorruptData:
            try:
                salvage_file(self.path, self._copy, Disk())
            except OSError as error:
                raise self._refused(error) from error
            return self._open(map_size)

    def _open(self, map_size: int) -> lmdb.Environment:
        self._look_first()
        try:
            environment = lmdb.open(
                str(self.path), map_size=map_size, subdir=False, sync=self.durable, max_spare_txns=4
            )
        except lmdb.Error as error:
            raise self._explain(error) from error
        try:
            Disk().unlink(self._copy)  # left by a killed process
            if os.name == "posix":
                # Make the name durable before anything is written: the file may be new, or may have
                # replaced another one just before a crash.
                Disk().sync_folder(self.path.parent)
        except OSError as error:
            environment.close()
            raise self._refused(error) from error
        return environment

    def _look_first(self) -> None:
        """Refuse a linked lock file and a truncated file, which LMDB would not check."""
        lock = self.path.with_name(self.path.name + _LOCK)
        if lock.is_symlink():
            raise StoreUnavailable(
                f"{lock} is a link, and its target would be overwritten; remove it"
            )
        try:
            require_whole(self.path)
        except FileNotFoundError:
            return  # LMDB creates it, or refuses with its own error
        except OSError as error:
            raise self._refused(error) from error

    def _take(self) -> None:
        """Mark a new file as ours, or refuse a foreign one."""
        self._environment.reader_check()  # killed readers would keep old pages for ever
        with self._environment.begin() as transaction:
            mark = transaction.get(MARK_KEY)
            entries = transaction.stat()["entries"]
        if mark is None and entries == 0:
            self._write(lambda transaction: transaction.put(MARK_KEY, OUR_MARK))
        else:
            self._refuse_foreign(mark)

    def _refuse_foreign(self, mark: bytes | None) -> None:
        version = b"" if mark is None else mark.removeprefix(MARK)
        if version == mark or not version.isdigit():
            raise StoreError(f"{self.place} is a database of another program; choose another path")
        if int(version) > FORMAT:
            raise StoreError(
                f"{self.place} has format {int(version)}, this version of memoryspace reads up to "
                f"{FORMAT}; upgrade memoryspace"
            )

    def _write(self, work: Callable[[lmdb.Transaction[bytes]], _Answer]) -> _Answer:
        """Run a write transaction. All writes go through here and happen as a whole or not at all.

        If the map is full, the transaction is undone, the map grows, and the work is repeated.
        """
        with self._changing:
            while True:
                try:
                    with self._map.read, self._environment.begin(write=True) as transaction:
                        return work(transaction)
                except lmdb.MapFullError:
                    self._grow()

    def _grow(self) -> None:
        with self._map.write:
            size = self._environment.info()["map_size"]
            self._environment.set_mapsize(2 * size)

    def _put(self, frames: Sequence[tuple[int, bytes]]) -> None:
        pairs = [(as_key(key), frame) for key, frame in sorted(frames)]
        self._write(lambda transaction: _insert(transaction, pairs))

    def _get(self, key: int) -> bytes | None:
        with self._map.read, self._environment.begin() as transaction:
            return transaction.get(as_key(key))

    def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
        with self._map.read, self._environment.begin() as transaction:
            get = transaction.get
            return [get(as_key(key)) for key in keys]

    def _remove(self, keys: Sequence[int]) -> int:
        names = [as_key(key) for key in sorted(keys)]
        return self._write(lambda transaction: sum(map(transaction.delete, names)))

    def _has(self, key: int) -> bool:
        with self._map.read, self._environment.begin() as transaction:
            return transaction.cursor().set_key(as_key(key))

    def _count(self) -> int:
        with self._map.read:
            return self._environment.stat()["entries"] - 1  # the mark

    def _keys_from(self, first: int, limit: int) -> list[int]:
        with self._map.read, self._environment.begin() as transaction:
            cursor = transaction.cursor()
            if not cursor.set_range(as_key(first)):
                return []
            names = zip(range(limit), cursor.iternext(values=False), strict=False)
            return [self._as_number(name) for _, name in names]

    def _as_number(self, name: bytes) -> int:
        if len(name) != KEY.size:
            raise CorruptData(f"{self.place}: {name!r} is not one of our keys; restore the file")
        return int(KEY.unpack(name)[0])

    def _flush(self) -> None:
        with self._map.read:
            self._environment.sync(True)

    def _rewrite(self) -> None:
        """Copy all values into another file, which then replaces this one.

        Readers can go on meanwhile.
        """
        disk = Disk()
        with self._changing:
            try:
                with self._map.read:
                    write_copy(self._environment, self.path, self._copy, disk)
                self._swap(disk)
            except OSError as error:
                raise self._refused(error) from error
            finally:
                with suppress(OSError):  # removed when the storage is next opened
                    disk.unlink(self._copy)

    def _swap(self, disk: Disk) -> None:
        """Rename the copy and continue with it.

        After the rename, writes to the old file would be lost, and so would writes to a file whose
        name a power cut may undo. So if anything fails then, the storage closes.
        """
        with self._map.write:
            self._refuse_if_closed()  # by another thread, while the copy was written
            map_size = self._environment.info()["map_size"]
            disk.replace(self._copy, self.path)
            self._environment.close()
            try:
                self._environment = self._open(map_size)
            except BaseException:
                self._closed = True
                raise

    def _refused(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.place}: {error.strerror or error}; free disk space, make sure the folder is "
            "writable, and try again"
        )

    def _verify(self) -> None:
        """Do nothing: LMDB keeps no checksums of its pages, so only reading values helps."""

    def _shut(self) -> None:
        with self._map.write:
            self._environment.close()

    def _explain(self, error: Exception) -> MemorySpaceError:
        code = getattr(error, "code", 0)
        for kinds, codes, ours, advice in _MEANINGS:
            if isinstance(error, kinds) or code in codes:
                return ours(f"{self.place}: {error}; {advice}")
        if "already open" in str(error):
            return StoreBusy(f"{self.place} is already open in this process; share that storage")
        return StoreError(f"{self.place}: {error}; see the message of LMDB")


def _insert(transaction: lmdb.Transaction[bytes], pairs: list[tuple[bytes, bytes]]) -> None:
    """Insert pairs in ascending order. Appending after the last key needs no search."""
    cursor = transaction.cursor()
    appending = not cursor.last() or cursor.key() < pairs[0][0]
    _, added = cursor.putmulti(pairs, overwrite=False, append=appending)
    if added < len(pairs):
        for name, frame in pairs:
            if transaction.get(name) != frame:
                raise refuse_other(int(KEY.unpack(name)[0]))


_MEANINGS: list[
    tuple[tuple[type[Exception], ...], tuple[int, ...], type[MemorySpaceError], str]
] = [
    (
        (lmdb.InvalidError, lmdb.VersionMismatchError),
        (),
        CorruptData,
        "it is not an LMDB file that can be read here; choose another path",
    ),
    (
        (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError),
        (),
        CorruptData,
        "restore it from a backup",
    ),
    (
        (lmdb.DiskError,),
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        StoreUnavailable,
        "free disk space and try again",
    ),
    (
        (),
        (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR),
        StoreUnavailable,
        "make sure the folder exists and is writable",
    ),
    (
        (lmdb.MapResizedError, lmdb.ReadersFullError),
        (errno.EAGAIN, errno.EBUSY),
        StoreBusy,
        "another process uses it too; close that one, then open the storage again",
    ),
    ((), (errno.EIO,), StoreUnavailable, "check the disk"),
]
