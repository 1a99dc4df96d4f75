"""``back_up``: copy a store to a folder of backups while it is written to.

A folder of backups holds lines (see ``manifest``). The first backup begins a line with everything,
for a space with its past. Each later one adds what was changed since. If the journal does not reach
back to the last backup any more, and always for a SQLite database, it begins another line.

Killed at any point, a backup leaves the earlier ones as they were: what the manifest does not list
does not count, and is removed by the next backup.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Literal

from msgspec.structs import replace as change

from ..errors import InvalidInput, StoreUnavailable
from ..files import sync_folder
from ..kernel import FolderLock
from ..loops import finish
from ..portable import Portable
from ..store import Store
from ..store.erasures import COPIES, ErasureLedger
from ..version import VERSION
from .manifest import (
    LINES,
    MANIFEST,
    Line,
    Manifest,
    Progress,
    is_listed,
    note_files,
    read_manifest,
    write_manifest,
)
from .sources import Source, source_of

_OURS = {"LOCK", LINES, COPIES, MANIFEST}


class BackupReport(Portable, frozen=True):
    """What a backup did.

    Attributes:
        folder: The folder of backups.
        kind: ``"full"`` if everything was copied, ``"incremental"`` if only what was new.
        bytes_written: How many bytes were copied.
        size: How many bytes all lines have.
        since: The earliest moment that this line can restore, in seconds since the epoch.
        until: The moment of this backup.
        lsn: The last change of a space that is in it; 0 for a database.
        lines: How many lines the folder holds.
    """

    folder: str
    kind: Literal["full", "incremental"]
    bytes_written: int
    size: int
    since: float
    until: float
    lsn: int
    lines: int


async def back_up(
    store: Store,
    target: str | os.PathLike[str],
    *,
    full: bool = False,
    keep: int | None = None,
    progress: Progress | None = None,
) -> BackupReport:
    """Copy a store to a folder of backups. It can be read and written meanwhile.

    The backup holds every change that was acknowledged before the call. What is erased later is
    noted in the folder too, so that restoring does not bring it back.

    Args:
        store: A store in a folder, or in a SQLite file. Other databases have tools of their own.
        target: The folder: a new one, or one with earlier backups of this store.
        full: Copy everything, even if it would do to add what is new.
        keep: How many lines to keep; older ones are removed when this backup is complete. By
            default none is removed.
        progress: Called with what is being done, how much of it is done, and of how much; in a
            thread.

    Raises:
        InvalidInput: This store cannot be backed up here, or ``target`` is something else.
        CorruptData: The store holds something that cannot be read, or the manifest in ``target``
            is damaged.
        FolderInUse: Another backup writes to ``target``.
        StoreUnavailable: ``target`` cannot be written to. Earlier backups are as they were.

    Example::

        report = await back_up(store, "/backups/memory")
        print(report.kind, report.bytes_written)
    """
    if keep is not None and keep < 1:
        raise InvalidInput(f"keep must be 1 or more, got {keep}")

    def work() -> BackupReport:
        folder = Path(target).absolute()
        source = source_of(store)
        _check_target(folder, source)
        tell: Progress = (lambda *_: None) if progress is None else progress
        with FolderLock(folder):
            return _Backup(folder, source, store.erasures, tell).run(full=full, keep=keep)

    try:
        return await finish(asyncio.to_thread(work))
    except OSError as error:
        raise StoreUnavailable(
            f"the backup to {target} failed ({error}); earlier backups there are as they were: "
            "free space or check the disk, then back up again"
        ) from error


class _Backup:
    """One backup into a folder that is locked for it."""

    def __init__(
        self, folder: Path, source: Source, ledger: ErasureLedger | None, tell: Progress
    ) -> None:
        self._folder = folder
        self._source = source
        self._ledger = ledger
        self._tell = tell

    def run(self, *, full: bool, keep: int | None) -> BackupReport:
        """Copy, then list what was copied, then remove what is no longer listed.

        From the beginning erasures are noted beside the backup: one that happens while it is made
        may be in it or not.
        """
        known = self._manifest()
        self._remove_unlisted(known)
        if self._ledger is not None:
            self._ledger.add_backup(self._folder)
        extended = None if full else self._extended(known)
        line = self._begun(known) if extended is None else extended
        _sync_tree(self._folder / LINES)
        before = known.lines if extended is None else known.lines[:-1]
        lines = (*before, line) if keep is None else (*before, line)[-keep:]
        manifest = Manifest(VERSION, lines)
        write_manifest(self._folder, manifest)
        if self._ledger is not None:
            self._ledger.copy_to(self._folder)
        self._remove_unlisted(manifest)
        written = line.size if extended is None else line.size - known.lines[-1].size
        return self._report(lines, "full" if extended is None else "incremental", written)

    def _report(
        self, lines: tuple[Line, ...], kind: Literal["full", "incremental"], written: int
    ) -> BackupReport:
        span = lines[-1].span
        return BackupReport(
            str(self._folder),
            kind,
            written,
            sum(each.size for each in lines),
            span.base_time,
            span.time,
            span.last_lsn,
            len(lines),
        )

    def _manifest(self) -> Manifest:
        if not (self._folder / MANIFEST).exists():
            return Manifest(VERSION)
        return read_manifest(self._folder)

    def _extended(self, known: Manifest) -> Line | None:
        """Return the newest line with what is new; ``None`` if another one has to begin."""
        if not known.lines or known.lines[-1].kind != self._source.kind:
            return None
        line = known.lines[-1]
        folder = self._folder / LINES / line.name
        if not _is_there(folder, line):
            return None
        span = self._source.extend(folder, line.span, self._tell)
        if span is None:
            return None
        return change(line, span=span, files=note_files(folder, line.files))

    def _begun(self, known: Manifest) -> Line:
        name = f"{1 + max((int(each.name) for each in known.lines), default=0):06}"
        folder = self._folder / LINES / name
        folder.mkdir(parents=True)
        span = self._source.begin(folder, self._tell)
        return Line(name, self._source.kind, span, note_files(folder, {}))

    def _remove_unlisted(self, manifest: Manifest) -> None:
        """Remove files of ours that no manifest lists: of a killed backup, or of an old line."""
        names = {line.name for line in manifest.lines}
        for folder in (self._folder / LINES).glob("*"):
            if folder.name not in names:
                shutil.rmtree(folder)
        for line in manifest.lines:
            folder = self._folder / LINES / line.name
            for path in folder.glob("**/*"):
                if path.is_file() and not is_listed(line, path.relative_to(folder)):
                    path.unlink()


def _check_target(target: Path, source: Source) -> None:
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; back up to a folder")
    if source.folder is not None and source.folder in (target, *target.parents):
        raise InvalidInput(f"{target} is in the folder that is backed up; choose another one")
    if target.is_dir() and not (target / MANIFEST).exists():
        names = {each.name for each in target.iterdir() if not each.name.startswith(".")}
        if names - _OURS:
            raise InvalidInput(
                f"{target} is no folder of backups, it holds {min(names - _OURS)!r}; "
                "choose an empty or a new folder"
            )


def _is_there(folder: Path, line: Line) -> bool:
    """Return whether the files of a line are there with their sizes, without reading them."""
    try:
        return all((folder / name).stat().st_size == note.size for name, note in line.files.items())
    except OSError:
        return False


def _sync_tree(folder: Path) -> None:
    for path in (folder, *folder.glob("**/*")):
        if path.is_dir():
            sync_folder(path)
    sync_folder(folder.parent)
