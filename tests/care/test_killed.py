"""Backups and restores that are killed at a call to the file system: whole, or not there at all."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from care_worker import End, Life
from memoryspace.care import BackupDamaged, back_up, read_manifest, restore_backup
from memoryspace.record import Record, Scope
from memoryspace.store import SpaceStore

from length import at_length

WORKER = Path(__file__).parents[1] / "support" / "care_worker.py"
ANN = Scope("ann", "s1")
KILLS = 6  # for each of the three


class Children:
    """Lives that end where they are told to."""

    def __init__(self, worker: subprocess.Popen[str]) -> None:
        self._worker = worker

    def run(self, life: Life) -> End:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(msgspec.json.encode(life).decode() + "\n")
        self._worker.stdin.flush()
        return msgspec.json.decode(self._worker.stdout.readline(), type=End)


@pytest.fixture(scope="module")
def worker() -> Iterator[Children]:
    with subprocess.Popen(
        [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        yield Children(worker)


@pytest.fixture
def ram() -> Iterator[Path]:
    """A folder in RAM where there is one: a killed process needs no real disk."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


def write(folder: Path, numbers: range, backup: Path | None = None, *, scrub: bool = False) -> None:
    async def work() -> None:
        async with SpaceStore(folder) as store:
            await store.append(ANN, [Record(f"n{n}", f"note {n}", kind="note") for n in numbers])
            if scrub:
                await store.scrub()
            if backup is not None:
                await back_up(store, backup)

    asyncio.run(work())


def count(folder: Path) -> int:
    async def work() -> int:
        async with SpaceStore(folder) as store:
            await asyncio.to_thread(lambda: store.space.check())
            return await store.count(ANN)

    return asyncio.run(work())


def stages(worker: Children, life: Life) -> list[int]:
    """Return calls to die at, spread over everything that a whole life does."""
    calls = worker.run(life).calls
    kills = at_length(KILLS, calls)
    return sorted({1 + (calls - 1) * each // max(1, kills - 1) for each in range(kills)})


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_a_killed_backup_leaves_the_earlier_ones_and_the_next_one_succeeds(
    ram: Path, worker: Children, is_first: bool
) -> None:
    write(ram / "live", range(20), None if is_first else ram / "earlier", scrub=True)
    write(ram / "live", range(20, 40))

    def prepared(number: int) -> Life:
        target, live = ram / f"b{number}", ram / f"live{number}"
        shutil.copytree(ram / "live", live)
        if not is_first:
            shutil.copytree(ram / "earlier", target)
        return Life("back up", str(live), str(target), "", number)

    for die_at in stages(worker, prepared(0)):
        life = prepared(die_at)
        assert worker.run(life).is_killed
        held = held_by(Path(life.backup), ram / f"r{die_at}")
        assert held in ({None, 40} if is_first else {20, 40}), die_at
        write(Path(life.live), range(40, 42), Path(life.backup))
        assert held_by(Path(life.backup), ram / f"again{die_at}") == 42


def test_a_killed_restore_leaves_nothing_or_everything_and_the_next_one_succeeds(
    ram: Path, worker: Children
) -> None:
    write(ram / "live", range(20), ram / "b", scrub=True)

    def to(number: int) -> Life:
        return Life("restore", "", str(ram / "b"), str(ram / f"r{number}"), number)

    for die_at in stages(worker, to(0)):
        life = to(die_at)
        assert worker.run(life).is_killed
        target = Path(life.target)
        if target.exists():
            assert count(target) == 20
            continue
        assert restore_backup(life.backup, target).records == 20
        assert not list(ram.glob(f".{target.name}.*")), "nothing is left beside it"


def held_by(backup: Path, target: Path) -> int | None:
    """Return how many records a backup restores, or None if it does not pass for one."""
    if not backup.exists():
        return None
    with suppress(BackupDamaged):
        read_manifest(backup)
        restore_backup(backup, target)
        return count(target)
    return None
