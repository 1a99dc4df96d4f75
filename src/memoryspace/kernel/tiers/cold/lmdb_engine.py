"""``LMDBColdStorage``: the quick engine, a memory-mapped B+ tree. Needs the extra ``lmdb``.

Measured: handing out bytes beats buffers (the checksum needs the value anyway), and reading ahead
beats not doing so for scans tenfold and costs single reads nothing.
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

MAP_SIZE = 2**26  # bytes at first; it doubles when full

_LOCK = "-lock"  # behind the name of the file whose readers and writers it counts
_COPY = ".copy"  # behind the name of a file that is being rewritten

_Answer = TypeVar("_Answer")


class LMDBColdStorage(ColdStorage):
    """Values in one LMDB file (and its ``-lock``). Reading never waits for writing.

    A commit flushes the data before the page that points to it, and that page before it returns:
    without the second flush a power cut could undo the last batch.

    A file that lost pages is refused before it is mapped. With ``salvage`` it is set aside, as
    ``….damaged1``, and what is intact in it goes on in a new one. Cutting the file short while it
    is open kills the process: nothing can be done about that.
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
        # Many may use the map at a time; who moves it (to grow, to swap, to close) must be alone.
        self._map = ReadWriteLock()
        # Taken before the map's lock by whoever writes, and by who must not miss a write.
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
            Disk().unlink(self._copy)  # of a process that was killed
            if os.name == "posix":
                # Its name is safe before anything is written: that of a new file, or of one that
                # took another's place just before a crash.
                Disk().sync_folder(self.path.parent)
        except OSError as error:
            environment.close()
            raise self._refused(error) from error
        return environment

    def _look_first(self) -> None:
        """Refuse what LMDB would follow or map without a look."""
        lock = self.path.with_name(self.path.name + _LOCK)
        if lock.is_symlink():
            raise StoreUnavailable(
                f"{lock} is a link, and what it points to would be overwritten; remove it"
            )
        try:
            require_whole(self.path)
        except FileNotFoundError:
            return  # made by LMDB, or refused with a word of its own
        except OSError as error:
            raise self._refused(error) from error

    def _take(self) -> None:
        """Make the file ours, or refuse one that is not."""
        self._environment.reader_check()  # readers that were killed would keep old pages for ever
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
        """The one door for writes: all of the work is kept, or nothing of it.

        When the map is full the transaction is undone, the map grows, and the work starts anew.
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
            raise CorruptData(f"{self.place}: {name!r} is no key of ours; restore the file")
        return int(KEY.unpack(name)[0])

    def _flush(self) -> None:
        with self._map.read:
            self._environment.sync(True)

    def _rewrite(self) -> None:
        """Copy what is there into another file, which then takes the place of this one.

        Reading goes on all the while.
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
        """Give the copy its name and go on with it.

        From the rename on the old file is nobody's: what would be written to it, or to a file
        whose name a power cut may undo, would be lost. So if anything fails then, this closes.
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
            f"{self.place}: {error.strerror or error}; make room, make sure the folder is "
            "writable, and try again"
        )

    def _verify(self) -> None:
        """Reading everything is all that can be done: LMDB keeps no checksums of its pages."""

    def _shut(self) -> None:
        with self._map.write:
            self._environment.close()

    def _explain(self, error: Exception) -> MemorySpaceError:
        code = getattr(error, "code", 0)
        for kinds, codes, ours, advice in _MEANINGS:
            if isinstance(error, kinds) or code in codes:
                return ours(f"{self.place}: {error}; {advice}")
        if "already open" in str(error):
            return StoreBusy(f"{self.place} is open in this process already; share that storage")
        return StoreError(f"{self.place}: {error}; see the message of LMDB")


def _insert(transaction: lmdb.Transaction[bytes], pairs: list[tuple[bytes, bytes]]) -> None:
    """Put pairs in growing order. Behind the last key there is no need to search for the place."""
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
        "it is no LMDB file that can be read here; choose another path",
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
        "make room on the disk and try again",
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
        "another process uses it too; close that one, then open the storage anew",
    ),
    ((), (errno.EIO,), StoreUnavailable, "check the disk"),
]
