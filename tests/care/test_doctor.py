"""The doctor finds what is wrong, says what to do, and repairs it without losing a byte."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryspace.care import Examination, back_up, examine, repair
from memoryspace.care.findings import Finding
from memoryspace.errors import InvalidInput
from memoryspace.kernel import Durability, FolderLock
from memoryspace.record import Record, Scope
from memoryspace.service import ServiceSettings
from memoryspace.service.deriving.contract import Decision, Job, Known
from memoryspace.service.stored import StoredMemoryService
from memoryspace.store import MemoryStore, RedisStore, SpaceStore, SQLStore

from backends import server_url

ANN = Scope("ann", "s1")
WORDS = ServiceSettings(embedder=None)


def levels(found: Examination, check: str) -> list[str]:
    return [each.level for each in found.findings if each.check == check]


def only(found: Examination, check: str) -> Finding:
    (each,) = [each for each in found.findings if each.check == check and each.level != "ok"]
    return each


async def fill(
    folder: Path, numbers: range, *, cold: bool = False, checkpoint: bool = False
) -> None:
    async with SpaceStore(
        folder, hot_capacity=1 << 14 if cold else 1 << 20, durability=Durability(sync="os")
    ) as store:
        for n in numbers:
            await store.append(ANN, [Record(f"n{n}", f"note {n} " + "x" * 300, kind="note")])
        if checkpoint:
            await asyncio.to_thread(store.space.checkpoint)


async def ids_in(folder: Path) -> set[str]:
    async with SpaceStore(folder) as store:
        return {each.id for each in await store.select(ANN)}


def ids(numbers: range) -> set[str]:
    return {f"n{number}" for number in numbers}


def flip_at(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "LOCK"
    }


async def test_a_healthy_folder_has_nothing_but_good_findings(tmp_path: Path) -> None:
    await fill(tmp_path / "live", range(60), cold=True, checkpoint=True)
    found = await examine(tmp_path / "live", embedder=None)
    assert found.is_healthy
    assert [each for each in found.warnings if each.check != "embedder"] == []
    checks = {each.check for each in found.findings}
    assert checks >= {"journal", "checkpoints", "cold tier", "disk", "records", "space", "vectors"}
    assert "60 of 1 users read" in str(found)


async def test_an_open_store_is_examined_in_its_process_and_its_folder_from_outside(
    tmp_path: Path,
) -> None:
    async with SpaceStore(tmp_path / "live") as store:
        await store.append(ANN, [Record("a", "tea", kind="note")])
        assert (await examine(store, embedder=None)).is_healthy
        outside = await examine(tmp_path / "live", embedder=None)
        assert "in use by" in only(outside, "owner").what
        assert "records" not in {each.check for each in outside.findings}


async def test_a_journal_with_a_hole_is_found_and_repaired_with_its_bytes_kept(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "live"
    await fill(folder, range(30))
    (segment,) = folder.glob("journal/*.log")
    flip_at(segment, len(segment.read_bytes().rstrip(b"\0")) // 2)
    before = files_in(folder / "journal")
    found = await examine(folder, embedder=None)
    finding = only(found, "journal")
    assert (finding.level, finding.remedy) == ("problem", "salvage")
    assert files_in(folder / "journal") == before, "an examination changes nothing"
    repaired = await repair(folder, embedder=None)
    assert repaired.after.is_healthy, str(repaired.after)
    assert len(await ids_in(folder)) == 29
    (kept,) = folder.glob("quarantine/*-files-*")
    assert files_in(kept / "journal") == before


async def test_records_that_cannot_be_read_are_set_aside_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "live"
    await fill(folder, range(100), cold=True)
    async with SpaceStore(folder, hot_capacity=1 << 14) as store:
        await store.scrub()
    (file,) = [*folder.glob("cold/cold.lmdb"), *folder.glob("cold/cold.sqlite")]
    flip_at(file, file.read_bytes().index(b"note 3 "))
    found = await examine(folder, embedder=None)
    finding = only(found, "records")
    assert (finding.level, finding.remedy) == ("problem", "quarantine")
    assert "ann" in finding.what
    repaired = await repair(folder, embedder=None)
    assert repaired.after.is_healthy, str(repaired.after)
    assert await ids_in(folder) == ids(range(100)) - {"n3"}
    (kept,) = folder.glob("quarantine/*/*.bytes")
    assert b"ote 3 " in kept.read_bytes()


async def test_a_damaged_checkpoint_is_set_aside_if_the_journal_reaches_further_back(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "live"
    await fill(folder, range(20), checkpoint=True)
    (image,) = folder.glob("checkpoints/*.image")
    flip_at(image, image.stat().st_size // 2)
    damaged = image.read_bytes()
    assert only(await examine(folder, embedder=None), "checkpoints").remedy == "set aside"
    repaired = await repair(folder, embedder=None)
    assert repaired.after.is_healthy, str(repaired.after)
    assert await ids_in(folder) == ids(range(20))
    (kept,) = folder.glob("quarantine/*/*.image")
    assert kept.read_bytes() == damaged


async def test_a_newer_format_is_named_and_nothing_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    await fill(folder, range(5), checkpoint=True)
    (image,) = folder.glob("checkpoints/*.image")
    data = bytearray(image.read_bytes())
    data[8:12] = (99).to_bytes(4, "little")
    image.write_bytes(data)
    found = await examine(folder, embedder=None)
    assert only(found, "checkpoints").advice == "upgrade memoryspace"
    assert "records" not in {each.check for each in found.findings}
    assert found.remedies == frozenset()


async def test_damaged_files_of_an_open_store_are_not_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    await fill(folder, range(20), checkpoint=True)
    async with SpaceStore(folder) as store:
        await store.users()
        (image,) = [*folder.glob("checkpoints/*.image")]
        flip_at(image, image.stat().st_size // 2)
        with pytest.raises(InvalidInput, match="close the store"):
            await repair(store, embedder=None)


async def test_backups_that_miss_erasures_or_are_gone_are_named(tmp_path: Path) -> None:
    folder, backup = tmp_path / "live", tmp_path / "b"
    async with SpaceStore(folder) as store, StoredMemoryService(store, settings=WORDS) as service:
        await service.add_memory("ann", ["tea"])
        await service.add_memory("bob", ["tea"])
        await back_up(store, backup)
        backup.rename(tmp_path / "away")
        await service.delete_memory("ann")
    gone = only(await examine(folder, embedder=None), "backups")
    assert gone.level == "warning"
    (tmp_path / "away").rename(backup)
    behind = only(await examine(folder, embedder=None), "backups")
    assert behind.remedy == "catch up"
    repaired = await repair(folder, embedder=None)
    assert levels(repaired.after, "backups") == ["ok"]


class Failing:
    """A deriver that never succeeds."""

    name, kinds, is_quick = "failing", ("fact",), True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        raise RuntimeError("the model is on strike")


async def test_failed_derivation_jobs_are_found_and_start_over(tmp_path: Path) -> None:
    store = MemoryStore()
    settings = ServiceSettings(embedder=None, max_attempts=1)
    async with StoredMemoryService(store, settings=settings, deriver=Failing()) as service:
        await service.add_memory("ann", ["tea"])
        await service.settled("ann")
    finding = only(await examine(store, embedder=None), "derivation")
    assert "ann: RuntimeError" in finding.what
    repaired = await repair(store, embedder=None)
    assert levels(repaired.after, "derivation") == ["ok"]


class Lengths:
    """An embedder that knows only how long a text is."""

    name, dimensions, scripts = "lengths-1", 2, None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.array([len(each) / 10 for each in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Others(Lengths):
    name = "others-1"


async def test_missing_vectors_are_counted_and_made(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path / "live") as store:
        async with StoredMemoryService(store, settings=WORDS) as service:
            await service.add_memory("ann", ["tea", "coffee"])
        missing = only(await examine(store, embedder=Lengths()), "vectors")
        assert "2 of 2 are missing" in missing.what
        repaired = await repair(store, embedder=Lengths())
        assert levels(repaired.after, "vectors") == ["ok"]
        foreign = await examine(store, embedder=Others())
        assert any("another embedder, lengths-1" in each.what for each in foreign.warnings)


async def test_a_sqlite_file_is_examined(tmp_path: Path) -> None:
    async with SQLStore(f"sqlite:///{tmp_path / 'm.db'}") as store:
        await store.append(ANN, [Record("a", "tea", kind="note")])
    found = await examine(f"sqlite:///{tmp_path / 'm.db'}", embedder=None)
    assert found.is_healthy
    assert "intact, journal mode wal" in str(found)


@pytest.mark.parametrize("name", ["redis", "postgres", "mariadb"])
async def test_a_server_is_examined(name: str) -> None:
    store = RedisStore(server_url(name)) if name == "redis" else SQLStore(server_url(name))
    async with store:
        user = Scope(f"doctor-{os.getpid()}", "s1")
        await store.append(user, [Record("a", "tea", kind="note")])
        found = await examine(store, embedder=None)
        await store.delete(user)
    assert levels(found, "server")
    assert levels(found, "records")[-1] == "ok"


async def test_a_server_that_cannot_be_reached_is_a_finding() -> None:
    found = await examine("redis://127.0.0.1:1/0", embedder=None)
    assert "does not answer" in only(found, "store").what


async def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    found = await examine(tmp_path / "nowhere", embedder=None)
    assert only(found, "folder").level == "warning"
    assert not (tmp_path / "nowhere").exists()  # a test's own folder


def test_findings_go_over_a_wire() -> None:
    finding = Finding("warning", "disk", "it is full", "make room")
    assert Finding.from_dict(finding.to_dict()) == finding
    assert str(finding) == "warning  disk: it is full -> make room"


async def test_a_repair_leaves_a_healthy_store_alone(tmp_path: Path) -> None:
    await fill(tmp_path / "live", range(10))
    shutil.copytree(tmp_path / "live", tmp_path / "before")
    repaired = await repair(tmp_path / "live", embedder=None)
    assert repaired.done == ()
    assert await ids_in(tmp_path / "live") == await ids_in(tmp_path / "before")
    with FolderLock(tmp_path / "live"):
        assert not (tmp_path / "live/quarantine").exists()  # as above
