"""A backup holds what was acknowledged; a restored copy is the store at a moment, or nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest

from memoryspace.care import (
    BackupDamaged,
    BackupReport,
    BackupTooNew,
    Lsn,
    back_up,
    read_manifest,
    restore_backup,
)
from memoryspace.care.manifest import FORMAT, MANIFEST, write_manifest
from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.kernel import Durability, FolderInUse, FolderLock, restore
from memoryspace.record import Record, Scope, Where
from memoryspace.store import MemoryStore, SpaceStore, SQLStore, Store

ANN = Scope("ann", "s1")
SMALL = 1 << 14  # bytes of RAM: most records are cold
OFTEN = Durability(sync="os", checkpoint_bytes=20_000, segment_bytes=4096)


class Ticking:
    """A clock on which every look is a millisecond after the one before."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1_000_000)

    def __call__(self) -> float:
        return next(self._ticks) / 1000


def note(number: int, size: int = 200) -> Record:
    return Record(f"n{number}", f"note {number} " + "x" * size, kind="note")


async def write(store: Store, numbers: range, scope: Scope = ANN) -> None:
    for number in numbers:
        await store.append(scope, [note(number)])


async def ids_in(path: Path, scope: Scope = ANN) -> set[str]:
    async with SpaceStore(path) as store:
        return {each.id for each in await store.select(scope)}


def ids(numbers: range) -> frozenset[str]:
    return frozenset(f"n{number}" for number in numbers)


@asynccontextmanager
async def space(folder: Path) -> AsyncIterator[SpaceStore]:
    async with SpaceStore(folder, hot_capacity=SMALL, durability=OFTEN, clock=Ticking()) as store:
        yield store


async def test_a_backup_made_during_writes_holds_what_was_acknowledged_and_no_gap(
    tmp_path: Path,
) -> None:
    async with space(tmp_path / "live") as store:
        await write(store, range(200))
        stop = asyncio.Event()
        written = 200

        async def go_on() -> None:
            nonlocal written
            while not stop.is_set():
                await write(store, range(written, written + 1))
                written += 1
                await asyncio.sleep(0)

        writing = asyncio.create_task(go_on())
        reports = []
        for _ in range(5):
            acknowledged = written
            reports.append((acknowledged, await back_up(store, tmp_path / "b")))
        stop.set()
        await writing
    for acknowledged, report in reports:
        target = tmp_path / f"restored-{acknowledged}"
        restored = restore_backup(tmp_path / "b", target, at=Lsn(report.lsn))
        assert restored.records >= acknowledged
        assert await ids_in(target) == ids(range(restored.records))


async def test_a_later_backup_adds_what_is_new_and_touches_nothing_else(tmp_path: Path) -> None:
    backup = tmp_path / "b"
    async with SpaceStore(tmp_path / "live") as store:
        await write(store, range(50))
        first = await back_up(store, backup)
        before = {path: path.read_bytes() for path in backup.glob("lines/**/*.*")}
        await write(store, range(50, 60))
        second = await back_up(store, backup)
        third = await back_up(store, backup)
    assert (first.kind, second.kind, third.kind) == ("full", "incremental", "incremental")
    assert third.bytes_written == 0 < second.bytes_written < first.bytes_written / 2
    assert before == {path: path.read_bytes() for path in before}
    restore_backup(backup, tmp_path / "r")
    assert await ids_in(tmp_path / "r") == ids(range(60))


async def test_every_moment_that_the_store_can_go_back_to_can_be_restored(tmp_path: Path) -> None:
    seen: dict[int, set[str]] = {}
    async with space(tmp_path / "live") as store:
        for number in range(150):
            await write(store, range(number, number + 1))
            if number % 10 == 9:
                await store.delete(ANN, Where(ids=ids(range(number - 5, number - 4))))
            if number % 40 == 39:
                store.space.checkpoint()
            seen[store.space.last_lsn] = {each.id for each in await store.select(ANN)}
        assert store.space.stats()["cold_items"] > 0
        report = await back_up(store, tmp_path / "b")
    span = read_manifest(tmp_path / "b").lines[0].span
    assert 0 < span.base_lsn < report.lsn - 20, "the journal goes back beyond an older checkpoint"
    wanted = [lsn for lsn in seen if lsn >= span.base_lsn]
    for lsn in [*wanted[::12], wanted[-1]]:
        restore_backup(tmp_path / "b", tmp_path / str(lsn), at=Lsn(lsn))
        assert await ids_in(tmp_path / str(lsn)) == seen[lsn]
    with pytest.raises(InvalidInput, match="does not hold the moment"):
        restore_backup(tmp_path / "b", tmp_path / "early", at=Lsn(span.base_lsn - 1))


async def test_a_moment_can_be_named_by_its_time(tmp_path: Path) -> None:
    clock = Ticking()
    async with SpaceStore(tmp_path / "live", clock=clock) as store:
        await write(store, range(20))
        between = clock()
        await write(store, range(20, 40))
        await back_up(store, tmp_path / "b")
        after = clock()
    report = restore_backup(tmp_path / "b", tmp_path / "r", at=between)
    assert (report.records, report.time) == (20, between)
    assert await ids_in(tmp_path / "r") == ids(range(20))
    for at in (0.5, after):
        with pytest.raises(InvalidInput, match="does not hold the moment"):
            restore_backup(tmp_path / "b", tmp_path / "r2", at=at)


async def test_a_store_that_went_back_in_time_is_backed_up_from_there(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path / "live") as store:
        await write(store, range(10))
        first = await back_up(store, tmp_path / "b")
        await write(store, range(10, 20))
        restore(store.space, lsn=first.lsn - 3)
        second = await back_up(store, tmp_path / "b")
        await write(store, range(30, 33))
        third = await back_up(store, tmp_path / "b", full=True)
    expected = {first.lsn: ids(range(10)), second.lsn: ids(range(7))}
    expected[third.lsn] = ids(range(7)) | ids(range(30, 33))
    for lsn, wanted in expected.items():
        restore_backup(tmp_path / "b", tmp_path / str(lsn), at=Lsn(lsn))
        assert await ids_in(tmp_path / str(lsn)) == wanted


async def test_another_store_never_continues_a_backup(tmp_path: Path) -> None:
    for name, numbers in (("one", range(10)), ("other", range(100, 120))):
        async with SpaceStore(tmp_path / name) as store:
            await write(store, numbers)
            report = await back_up(store, tmp_path / "b")
    assert (report.kind, report.lines) == ("full", 2)
    restore_backup(tmp_path / "b", tmp_path / "r")
    assert await ids_in(tmp_path / "r") == ids(range(100, 120))


async def test_old_lines_go_only_when_asked_and_after_the_new_one_is_safe(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path / "live") as store:
        for number in range(3):
            await write(store, range(number, number + 1))
            await store.scrub()
            assert (await back_up(store, tmp_path / "b")).lines == number + 1
        assert (await back_up(store, tmp_path / "b", full=True, keep=2)).lines == 2
    assert sorted(each.name for each in (tmp_path / "b/lines").iterdir()) == ["000003", "000004"]
    restore_backup(tmp_path / "b", tmp_path / "r")
    assert await ids_in(tmp_path / "r") == ids(range(3))


async def test_a_restored_store_goes_on_and_is_backed_up_in_its_turn(tmp_path: Path) -> None:
    async with space(tmp_path / "live") as store:
        await write(store, range(100))
        await back_up(store, tmp_path / "b")
    restore_backup(tmp_path / "b", tmp_path / "r", at=None)
    async with space(tmp_path / "r") as store:
        await write(store, range(100, 150))
        await back_up(store, tmp_path / "b2")
    restore_backup(tmp_path / "b2", tmp_path / "r2")
    assert await ids_in(tmp_path / "r2") == ids(range(150))


async def test_a_sqlite_file_is_backed_up_while_it_is_written_to(tmp_path: Path) -> None:
    clock = Ticking()
    async with SQLStore(f"sqlite:///{tmp_path / 'live.db'}", clock=clock) as store:
        await write(store, range(30))
        await back_up(store, tmp_path / "b")
        between = clock()
        writing = asyncio.create_task(write(store, range(30, 60)))
        await back_up(store, tmp_path / "b")
        await writing
    for name, at in (("early", between), ("late", None)):
        report = restore_backup(tmp_path / "b", tmp_path / f"{name}.db", at=at)
        async with SQLStore(f"sqlite:///{tmp_path / name}.db") as store:
            found = {each.id for each in await store.select(ANN)}
        assert found == ids(range(len(found)))
        assert report.records == len(found) >= 30
        assert at is None or len(found) == 30
    with pytest.raises(InvalidInput, match="exists"):
        restore_backup(tmp_path / "b", tmp_path / "late.db")


async def test_other_stores_say_what_to_use_instead(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pg_dump"):
        await back_up(MemoryStore(), tmp_path / "b")


async def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/letter.txt").write_text("Dear Ann")
    (tmp_path / "r").mkdir()
    (tmp_path / "r/letter.txt").write_text("Dear Ann")
    async with SpaceStore(tmp_path / "live") as store:
        await write(store, range(3))
        for target in (tmp_path / "b", tmp_path / "live/backup"):
            with pytest.raises(InvalidInput, match="choose"):
                await back_up(store, target)
        await back_up(store, tmp_path / "good")
    with pytest.raises(InvalidInput, match="not empty"):
        restore_backup(tmp_path / "good", tmp_path / "r")
    assert [each.name for each in (tmp_path / "r").iterdir()] == ["letter.txt"]


async def test_one_backup_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path / "live") as store:
        await write(store, range(3))
        with FolderLock(tmp_path / "b"), pytest.raises(FolderInUse):
            await back_up(store, tmp_path / "b")
        await back_up(store, tmp_path / "b")
    assert read_manifest(tmp_path / "b").lines


async def test_progress_is_told_and_ends_with_all_of_it(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    async with SpaceStore(tmp_path / "live") as store:
        await write(store, range(20))
        await store.scrub()
        await back_up(store, tmp_path / "b", progress=lambda *each: told.append(each))
    restore_backup(tmp_path / "b", tmp_path / "r", progress=lambda *each: told.append(each))
    assert {what for what, _, _ in told} == {"journal", "base", "verify"}
    last = {what: (done, total) for what, done, total in told}
    assert all(done == total for done, total in last.values())


async def test_checkpoints_during_a_backup_drop_nothing_that_it_still_copies(
    tmp_path: Path,
) -> None:
    async with space(tmp_path / "live") as store:
        for number in range(3):
            await write(store, range(10 * number, 10 * number + 10))
            store.space.checkpoint()
        assert store.space.checkpoint_manager is not None
        oldest = store.space.checkpoint_manager.lsns()[0]

        def interfere(what: str, done: int, total: int) -> None:
            if (what, done) == ("base", 0):
                for number in range(100, 103):
                    asyncio.run(write(store, range(number, number + 1)))
                    store.space.checkpoint()

        await back_up(store, tmp_path / "b", progress=interfere)
        store.space.checkpoint()
        assert store.space.checkpoint_manager.lsns()[0] > oldest, "afterwards they are dropped"
    assert read_manifest(tmp_path / "b").lines[0].span.base_lsn == oldest
    restore_backup(tmp_path / "b", tmp_path / "r")
    assert await ids_in(tmp_path / "r") == ids(range(30))


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    async def make() -> None:
        async with SpaceStore(tmp_path / "live") as store:
            await write(store, range(30))
            await store.scrub()
            await write(store, range(30, 40))
            await back_up(store, tmp_path / "b")

    asyncio.run(make())
    return tmp_path / "b"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def link(path: Path) -> None:
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def refused(backup: Path, kind: type[CorruptData] = BackupDamaged) -> str:
    target = backup.parent / "never"
    with pytest.raises(kind) as caught:
        restore_backup(backup, target)
    assert not target.exists()
    assert not list(backup.parent.glob(".never*"))
    return str(caught.value)


def test_a_backup_that_was_altered_is_refused(backup: Path) -> None:
    for name in (MANIFEST, "lines/000001/base/*", "lines/000001/journal/*"):
        for harm in (flip, cut, grow, Path.unlink, link, pipe):
            (path,) = backup.glob(name)
            spare = backup.parent / "spare"
            shutil.copy(path, spare)
            harm(path)
            assert path.name in refused(backup), f"{harm.__name__} {name}"
            path.unlink(missing_ok=True)
            spare.rename(path)
            path.with_name("elsewhere").unlink(missing_ok=True)
    assert restore_backup(backup, backup.parent / "r").records == 40


def test_a_manifest_cannot_name_files_elsewhere(backup: Path) -> None:
    manifest = read_manifest(backup)
    line = manifest.lines[0]
    note = next(iter(line.files.values()))
    names = ("../../outside", "/etc/passwd", "base/../../x", "journal/1.log", "C:\\x", "base/0")
    for name in names:
        for changed in (
            msgspec.structs.replace(line, files={**line.files, name: note}),
            msgspec.structs.replace(line, name=name),
        ):
            write_manifest(backup, msgspec.structs.replace(manifest, lines=(changed,)))
            assert "no name of a file" in refused(backup)


def test_a_manifest_that_is_something_else_is_refused(backup: Path) -> None:
    texts = (b"", b"{}", b"[" * 200_000, b'{"memoryspace":"letter"}', b"\xff\xfe", b"null")
    for text in texts:
        (backup / MANIFEST).write_bytes(text)
        assert MANIFEST in refused(backup)


def test_a_backup_of_a_later_version_says_to_upgrade(backup: Path) -> None:
    text = (backup / MANIFEST).read_text()
    (backup / MANIFEST).write_text(text.replace(f'"format":{FORMAT}', f'"format":{FORMAT + 1}'))
    assert "upgrade memoryspace" in refused(backup, BackupTooNew)


def test_a_line_that_does_not_hold_what_it_says_is_refused(backup: Path) -> None:
    manifest = read_manifest(backup)
    (line,) = manifest.lines
    more = msgspec.structs.replace(line.span, last_lsn=line.span.last_lsn + 5)
    write_manifest(
        backup,
        msgspec.structs.replace(manifest, lines=(msgspec.structs.replace(line, span=more),)),
    )
    assert "does not hold change" in refused(backup, CorruptData)


def test_a_backup_does_not_continue_a_line_that_lost_a_file(backup: Path) -> None:
    (path,) = backup.glob("lines/000001/journal/*")
    path.unlink()

    async def again() -> BackupReport:
        async with SpaceStore(backup.parent / "live") as store:
            return await back_up(store, backup)

    report = asyncio.run(again())
    assert (report.kind, report.lines) == ("full", 2)
    restore_backup(backup, backup.parent / "r")
    assert asyncio.run(ids_in(backup.parent / "r")) == ids(range(40))


def test_a_damaged_database_in_a_backup_is_refused(tmp_path: Path) -> None:
    async def make() -> None:
        async with SQLStore(f"sqlite:///{tmp_path / 'live.db'}") as store:
            await write(store, range(5))
            await back_up(store, tmp_path / "b")

    asyncio.run(make())
    (path,) = (tmp_path / "b").glob("lines/*/database.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    flip(path)
    refused(tmp_path / "b")
