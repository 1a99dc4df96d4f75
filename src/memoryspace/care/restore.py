"""``restore_backup``: make a folder, or a SQLite file, from a backup.

Everything is verified before it is used. The copy is made beside its place, opened, checked, rid of
what was erased since, and gets its name only then: a killed restore leaves nothing that could be
mistaken for a restored memory.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sqlite3
from collections.abc import Collection, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..errors import InvalidInput, StoreUnavailable
from ..files import sync_folder
from ..kernel import FolderInUse, FolderLock
from ..kernel.durable.lines import lay_out, lsn_at, time_at
from ..portable import Portable
from ..store import ErasureLedger, SpaceStore, Store
from ..store.erasures import FILE as LEDGER
from .errors import BackupDamaged
from .manifest import LINES, Line, Manifest, Progress, read_manifest, verify_line
from .replaying import Replayed, ledgers_beside, replay_erasures, users_of
from .sources import DATABASE, check_database

T = TypeVar("T")


class Lsn(int):
    """The number of a change, to tell it from a time."""


class RestoreReport(Portable, frozen=True):
    """What was restored.

    Attributes:
        path: The folder, or the SQLite file.
        kind: ``"space"`` or ``"sqlite"``.
        lsn: The last change in it; 0 for a database.
        time: The moment that it stands for, in seconds since the epoch.
        records: How many records it holds.
        users_erased: How many users were erased again, because they were erased after that moment.
        memories_erased: The same for memories of other users.
    """

    path: str
    kind: str
    lsn: int
    time: float
    records: int
    users_erased: int
    memories_erased: int


class _Moment(NamedTuple):
    line: Line
    lsn: int
    time: float


def restore_backup(
    backup: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    at: float | Lsn | None = None,
    erased: Collection[str] = (),
    ledgers: Iterable[str | os.PathLike[str]] = (),
    keep_erased: bool = False,
    progress: Progress | None = None,
) -> RestoreReport:
    """Make a copy of what was backed up.

    What was erased after the restored moment is erased again: the backup's folder knows of it. The
    files of the copy then hold no byte of it.

    Args:
        backup: A folder of backups.
        target: A new or empty folder; or a new file, if the backup is of a SQLite database.
        at: The moment to restore: a time in seconds since the epoch, or the ``Lsn`` of the last
            change. By default the newest.
        erased: Users to erase besides.
        ledgers: Further ledgers of erasures, such as that of the damaged folder.
        keep_erased: Bring back what was erased, for example after deleting by mistake.
        progress: Called with what is being done, how much of it is done, and of how much.

    Returns:
        What was restored.

    Raises:
        InvalidInput: The target is not empty, or the backup does not go back that far.
        BackupDamaged: A file of the backup is missing or altered.
        CorruptData: The same, found later; or a ledger of erasures is damaged.
        StoreUnavailable: The target cannot be written to.

    Example::

        report = restore_backup("/backups/memory", "memory", at=time.time() - 3600)
    """
    source, place = Path(backup).absolute(), Path(target).absolute()
    manifest = read_manifest(source)
    line = _line_for(manifest, source, at)
    _check_place(place, line)
    verify_line(source, line, progress)
    moment = _moment_of(source, line, at)
    known = [*ledgers_beside(source), *map(ErasureLedger, ledgers)]
    restore = _Restore(source, place, moment, [] if keep_erased else known, erased)
    try:
        return restore.run()
    except OSError as error:
        raise StoreUnavailable(
            f"{place} could not be restored ({error}); nothing was left there: free space or "
            "check the disk, then restore again"
        ) from error


class _Restore:
    """One restore, in a folder of its own until it is complete."""

    def __init__(
        self,
        backup: Path,
        place: Path,
        moment: _Moment,
        ledgers: list[ErasureLedger],
        users: Collection[str],
    ) -> None:
        self._backup = backup
        self._place = place
        self._moment = moment
        self._ledgers = ledgers
        self._users = users

    def run(self) -> RestoreReport:
        """Make the copy; on any error leave nothing behind."""
        place, moment = self._place, self._moment
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        workshop = place.parent / f".{place.name}.restoring-{secrets.token_hex(4)}"
        workshop.mkdir()
        with FolderLock(workshop):
            try:
                copy = workshop / "copy"
                records, replayed = self._make(copy)
                _move(copy, place)
            finally:
                shutil.rmtree(workshop, ignore_errors=True)
        sync_folder(place.parent)
        return RestoreReport(
            str(place), moment.line.kind, moment.lsn, moment.time, records, *replayed
        )

    def _make(self, copy: Path) -> tuple[int, Replayed]:
        line = self._backup / LINES / self._moment.line.name
        if self._moment.line.kind == "space":
            copy.mkdir()
            lay_out(line, self._moment.line.span, copy, self._moment.lsn)
            found = _in_thread(self._erase_in_space(copy))
            ledger = copy / LEDGER
        else:
            shutil.copyfile(line / DATABASE, copy)
            found = _in_thread(self._erase_in_database(copy))
            _finish_database(copy, self._backup)
            ledger = copy.with_name(f"{self._place.name}.{LEDGER}")
        if len(self._ledgers) == 1:  # its hashes go on; several cannot be one
            self._ledgers[0].hand_on(ledger)
        return found

    async def _erase_in_space(self, copy: Path) -> tuple[int, Replayed]:
        async with SpaceStore(copy) as store:
            await asyncio.to_thread(lambda: store.space.check())
            replayed = await self._replay(store)
            if any(replayed):
                await store.scrub()
            return await _count(store), replayed

    async def _erase_in_database(self, copy: Path) -> tuple[int, Replayed]:
        from ..store import SQLStore

        async with SQLStore(f"sqlite:///{copy}") as store:
            return await _count(store), await self._replay(store)

    async def _replay(self, store: Store) -> Replayed:
        return await replay_erasures(
            store, self._ledgers, since=self._moment.time, users=self._users
        )


def _line_for(manifest: Manifest, backup: Path, at: float | Lsn | None) -> Line:
    """Return the newest line that holds a moment."""
    if not manifest.lines:
        raise BackupDamaged(f"the backup in {backup} lists nothing to restore")
    if at is None:
        return manifest.lines[-1]
    for line in reversed(manifest.lines):
        span = line.span
        if isinstance(at, Lsn):
            if line.kind == "space" and span.base_lsn <= at <= span.last_lsn:
                return line
        elif span.base_time <= at and (at <= span.time or line.kind == "sqlite"):
            return line
    first, last = manifest.lines[0].span, manifest.lines[-1].span
    raise InvalidInput(
        f"the backup in {backup} does not hold the moment {at!r}: it goes from {first.base_time} "
        f"(change {first.base_lsn}) to {last.time} (change {last.last_lsn})"
    )


def _moment_of(backup: Path, line: Line, at: float | Lsn | None) -> _Moment:
    folder, span = backup / LINES / line.name, line.span
    if at is None or line.kind == "sqlite":
        return _Moment(line, span.last_lsn, span.time)
    if isinstance(at, Lsn):
        is_newest = at == span.last_lsn
        return _Moment(line, at, span.time if is_newest else time_at(folder, span, at))
    return _Moment(line, lsn_at(folder, span, at), at)


def _check_place(place: Path, line: Line) -> None:
    if line.kind == "space":
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InvalidInput(f"{place} is not empty; restore into a new folder")
    elif place.exists():
        raise InvalidInput(f"{place} exists; restore the database into a new file")


def _finish_database(copy: Path, backup: Path) -> None:
    """Rewrite a restored database, so that nothing erased is left in it, and check it."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
        problems = check_database(connection)
    if problems:
        raise BackupDamaged(f"the database in {backup} is damaged: {problems[0]}")


async def _count(store: Store) -> int:
    total = 0
    async for user in users_of(store):
        total += (await store.usage(user)).records
    return total


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own, since a loop may be running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _move(copy: Path, place: Path) -> None:
    ledger = copy.with_name(f"{place.name}.{LEDGER}")
    if ledger.exists():
        os.replace(ledger, place.with_name(ledger.name))
    if copy.is_dir() and place.exists():
        place.rmdir()  # empty; another program's files would make this fail
    os.rename(copy, place)


def _sweep(place: Path) -> None:
    """Remove what killed restores of the same place left behind."""
    for left in place.parent.glob(f".{place.name}.restoring-*"):
        with suppress(FolderInUse), FolderLock(left):
            shutil.rmtree(left, ignore_errors=True)
