"""A space on a disk that fails: nothing acknowledged is lost, and it works when the disk does."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from memoryspace.errors import InvalidInput, StoreError
from memoryspace.kernel import (
    Durability,
    MemoryManager,
    Runtime,
    SQLiteColdStorage,
    TieredMemoryManager,
    Tiering,
    restore,
)
from memoryspace.kernel.durable.folder import SpaceFolder
from memoryspace.kernel.engine import NewObject
from memoryspace.testing import ManualClock

from faulty_disk import FaultyDisk
from spaces import Seen, contents

HOW = Durability(sync="always", segment_bytes=700, checkpoint_bytes=1500, keep=2)
KINDS = (
    "open", "pwrite", "fdatasync", "fsync", "sync_folder", "replace", "unlink", "mkdir", "listdir",
    "close",
)  # fmt: skip
FOREVER = 10**9


@pytest.fixture(scope="module")
def ram() -> Iterator[Path]:
    """A folder in RAM where there is one: the disk is made up in any case."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


class Opened:
    """A space on a faulty disk; everything is given back at the end."""

    def __init__(self, folder: Path, disk: FaultyDisk | None, *, cold: bool) -> None:
        self._exit = ExitStack()
        try:
            files = SpaceFolder(folder, HOW, disk=disk, clock=ManualClock())
            self._exit.callback(files.close)
            self.space = self._manager(files, cold)
        except BaseException:
            self.leave()
            raise

    def _manager(self, files: SpaceFolder, cold: bool) -> MemoryManager:
        if not cold:
            return MemoryManager(
                8192,
                wal=files.wal,
                checkpoint_manager=files.checkpoints,
                durability=HOW,
                retriever=None,
                runtime=Runtime(clock=ManualClock()),
            )
        return TieredMemoryManager(
            600,
            cold_store=self._exit.enter_context(SQLiteColdStorage(files.path / "cold.sqlite")),
            wal=files.wal,
            checkpoint_manager=files.checkpoints,
            durability=HOW,
            retriever=None,
            tiering=Tiering(flush_interval=None),
            runtime=Runtime(clock=ManualClock()),
        )

    def leave(self) -> None:
        """Close everything, whatever the disk says."""
        with suppress(StoreError):
            if hasattr(self, "space"):
                self.space.close()
        with suppress(StoreError):
            self._exit.close()


Step = Callable[[MemoryManager], Any]


def stored(name: str, **options: Any) -> Step:
    return lambda space: space.store({"text": f"{name} " * 12}, id=name, **options)


def if_there(act: Callable[..., Any], *names: str, **options: Any) -> Step:
    """Do something with objects that an earlier fault may have prevented."""

    def step(space: MemoryManager) -> None:
        if all(name in space for name in names):
            act(space, *names, **options)

    return step


def checkpoint(space: MemoryManager) -> None:
    if space.checkpoint_manager is not None:
        space.checkpoint()


SCRIPT: list[Step] = [
    stored("a", root=True),
    stored("b", tags=["x"], pin=True),
    if_there(MemoryManager.add_reference, "a", "b"),
    stored("c"),
    lambda space: space.tick(),
    lambda space: space.store_many([NewObject({"n": n}, id=f"m{n}") for n in range(3)]),
    if_there(MemoryManager.update, "c", payload={"text": "another"}, tags=["y"], importance=0.9),
    checkpoint,
    if_there(MemoryManager.free_object, "c"),
    stored("d", root=True),
    *(stored(f"e{n}", root=n % 2 == 0) for n in range(4)),
    if_there(MemoryManager.unpin, "b"),
    if_there(MemoryManager.remove_reference, "a", "b"),
    lambda space: space.tick(),
    checkpoint,
    if_there(MemoryManager.free_object, "e2"),
    stored("f", root=True),
    lambda space: space.tick(),
    lambda space: space.tick(),
    if_there(MemoryManager.update, "d", payload={"text": "d again " * 9}),
    *(stored(f"g{n}", root=True) for n in range(3)),
    checkpoint,
    if_there(MemoryManager.free_object, "g1"),
    lambda space: space.tick(),
]


def plain() -> MemoryManager:
    """What the same steps do where there is no disk."""
    return MemoryManager(8192, retriever=None, runtime=Runtime(clock=ManualClock()))


def play(opened: Opened, reference: MemoryManager) -> None:
    """Take all steps; one that fails must have happened whole, or not at all."""
    for number, step in enumerate(SCRIPT):
        before = contents(reference)
        try:
            step(opened.space)
        except StoreError:
            if contents(opened.space) == before:
                continue
        step(reference)
        assert contents(opened.space) == contents(reference), f"step {number}"


def try_to_open(folder: Path, disk: FaultyDisk, *, cold: bool) -> Opened:
    """Open; if the fault hits here, open again when it is gone."""
    try:
        return Opened(folder, disk, cold=cold)
    except StoreError:
        disk.heal()
        return Opened(folder, disk, cold=cold)


def run_with_fault(
    ram: Path, kind: str, nth: int, error: int, *, times: int, cold: bool
) -> tuple[bool, int]:
    """Run the script while a call fails; tell whether it did, and how many there were."""
    folder, cut = ram / "space", ram / "cut"
    for old in (folder, cut):
        shutil.rmtree(old, ignore_errors=True)
    disk, reference = FaultyDisk(), plain()
    disk.fail(kind, nth, times=times, error=error)
    opened = try_to_open(folder, disk, cold=cold)
    try:
        play(opened, reference)
        calls = disk.calls[kind]
        disk.heal()
        for step in (stored("after"), if_there(MemoryManager.add_reference, "after", "a"),
                     checkpoint, stored("and after")):  # fmt: skip
            step(opened.space)
            step(reference)
        expected = contents(reference)
        assert contents(opened.space) == expected
        if not cold:
            check_power_cut(disk, folder, cut, expected)
    finally:
        opened.leave()
    again = Opened(folder, None, cold=cold)
    try:
        assert contents(again.space) == expected, "after opening it again"
    finally:
        again.leave()
    return bool(disk.failed[kind]), calls


def check_power_cut(disk: FaultyDisk, folder: Path, cut: Path, expected: dict[str, Seen]) -> None:
    """What is really on the medium is enough."""
    cut.mkdir()
    for name in ("journal", "checkpoints"):
        disk.power_cut(folder / name, cut / name)
    after = Opened(cut, None, cold=False)
    try:
        assert contents(after.space) == expected, "after a power cut"
    finally:
        after.leave()


def calls_of_a_good_run(ram: Path, kind: str, *, cold: bool) -> int:
    """How many calls there are; what is done in the background may make it a few more or less."""
    hit, calls = run_with_fault(ram, kind, FOREVER, 0, times=1, cold=cold)
    assert not hit
    assert calls, f"the script never calls {kind}"
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_one_failed_call_of_the_disk_loses_nothing_and_harms_nothing(kind: str, ram: Path) -> None:
    calls, hits = calls_of_a_good_run(ram, kind, cold=False), 0
    for nth in range(1, calls + 1):
        error = errno.ENOSPC if nth % 2 else errno.EIO
        hits += run_with_fault(ram, kind, nth, error, times=1, cold=False)[0]
    assert hits >= calls / 2  # the background may have been quicker or slower


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_goes_on_failing_loses_nothing_and_is_forgiven(kind: str, ram: Path) -> None:
    calls, hits = calls_of_a_good_run(ram, kind, cold=False), 0
    tried = range(1, calls + 1, 5)
    for nth in tried:
        error = errno.EIO if nth % 2 else errno.ENOSPC
        hits += run_with_fault(ram, kind, nth, error, times=FOREVER, cold=False)[0]
    assert hits >= len(tried) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_space_with_a_cold_tier_takes_faults_of_the_disk_as_well(kind: str, ram: Path) -> None:
    calls, hits = calls_of_a_good_run(ram, kind, cold=True), 0
    tried = range(1, calls + 1, 6)
    for nth in tried:
        for times in (1, FOREVER):
            hits += run_with_fault(ram, kind, nth, errno.EIO, times=times, cold=True)[0]
    assert hits >= len(tried)


# -- restore ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, FOREVER])
@pytest.mark.parametrize("cold", [False, True])
def test_a_restore_that_fails_has_not_happened_or_has_and_nothing_is_lost_later(
    cold: bool, times: int, ram: Path
) -> None:
    outcomes = set()
    for kind in KINDS:
        nth, reached = 0, True
        while reached:
            nth += 1
            outcome, reached = restore_with_fault(ram, kind, nth, times, cold=cold)
            outcomes.add(outcome)
            assert nth < 60
    assert {"restored", "not restored"} <= outcomes


def restore_with_fault(
    ram: Path, kind: str, nth: int, times: int, *, cold: bool
) -> tuple[str, bool]:
    """Restore while a call fails; tell how it ended, and whether the call came at all."""
    folder = ram / "restored"
    shutil.rmtree(folder, ignore_errors=True)
    disk = FaultyDisk()
    opened = Opened(folder, disk, cold=cold)
    space = opened.space
    try:
        for step in SCRIPT[:4]:
            step(space)
        old, moment = contents(space), space.last_lsn
        for step in SCRIPT[5:12]:
            step(space)
        new = contents(space)
        disk.fail(kind, nth, times=times, error=errno.ENOSPC)
        failed = False
        try:
            restore(space, lsn=moment)
        except StoreError:
            failed = True
        hit = bool(disk.failed[kind])
        disk.heal()
        try:
            space.store({"text": "later"}, id="later")
        except InvalidInput:  # it could not go back nor forth
            assert failed
            outcome = "closed"
        else:
            now = contents(space)
            later = now.pop("later")
            assert now == (new if failed else old)
            outcome = "not restored" if failed else "restored"
            now["later"] = later
    finally:
        opened.leave()
    again = Opened(folder, None, cold=cold)
    try:
        found = contents(again.space)
        assert found in (old, new) if outcome == "closed" else found == now
        again.space.store({"text": "last"}, id="last")
        expected = contents(again.space)
    finally:
        again.leave()
    again = Opened(folder, None, cold=cold)
    try:
        assert contents(again.space) == expected
    finally:
        again.leave()
    return outcome, hit


# -- what is told ----------------------------------------------------------------------------------


class NoCheckpoints(FaultyDisk):
    """A disk with no room for a checkpoint: some call on its file fails."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._fds: set[int] = set()
        self.refused = 0

    def open(self, path: Path, *, create: bool = False) -> int:
        if path.suffix == ".tmp":
            self._refuse("open")
        fd = super().open(path, create=create)
        self._fds.discard(fd)
        if path.suffix == ".tmp":
            self._fds.add(fd)
        return fd

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        if fd in self._fds:
            self._refuse("first write" if not offset else "pwrite")
        super().pwrite(fd, data, offset)

    def fsync(self, fd: int) -> None:
        if fd in self._fds:
            self._refuse("fsync")
        super().fsync(fd)

    def replace(self, old: Path, new: Path) -> None:
        if old.suffix == ".tmp":
            self._refuse("replace")
        super().replace(old, new)

    def listdir(self, folder: Path) -> list[str]:
        if folder.name == "checkpoints":
            self._refuse("listdir")
        return super().listdir(folder)

    def heal(self) -> None:
        super().heal()
        self._kind = ""

    def _refuse(self, kind: str) -> None:
        if kind == self._kind:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("kind", ["open", "first write", "pwrite", "fsync", "replace"])
def test_a_checkpoint_that_fails_in_passing_does_not_fail_the_change(kind: str, ram: Path) -> None:
    """The store has happened: an error would make the caller do it twice."""
    folder, disk = ram / f"passing {kind}", NoCheckpoints(kind)
    opened = Opened(folder, disk, cold=False)
    try:
        space = opened.space
        for n in range(300):
            space.store({"n": n}, id=f"{n}")
            if n >= 40:
                space.free_object(f"{n - 40}")
        assert disk.refused, "no checkpoint was tried"
        assert space.checkpoint_manager is not None
        assert space.checkpoint_manager.lsns() == []
        with pytest.raises(StoreError, match="the journal holds everything"):
            space.checkpoint()
        disk.heal()
        assert space.checkpoint_manager.lsns() == []
        assert [space.checkpoint()] == space.checkpoint_manager.lsns() == [space.last_lsn]
        expected = contents(space)
        assert len(expected) == 40
    finally:
        opened.leave()
    again = Opened(folder, None, cold=False)
    try:
        assert contents(again.space) == expected
    finally:
        again.leave()


def test_a_failed_sync_of_a_checkpoint_is_never_believed_later(ram: Path) -> None:
    """The bytes are gone though the next sync of the same file would succeed."""
    folder, cut, disk = ram / "believed", ram / "believed cut", FaultyDisk()
    opened = Opened(folder, disk, cold=False)
    try:
        for n in range(30):
            opened.space.store({"n": n}, id=f"{n}", root=True)
        disk.fail("fsync")
        with pytest.raises(StoreError):
            opened.space.checkpoint()
        for _ in range(3):
            opened.space.checkpoint()
            opened.space.store({"n": 0}, root=True)
        check_power_cut(disk, folder, cut, contents(opened.space))
    finally:
        opened.leave()


@pytest.mark.parametrize("cold", [False, True])
def test_a_fault_while_a_space_is_opened_is_told_and_changes_nothing(cold: bool, ram: Path) -> None:
    folder = ram / f"reopened {cold}"
    opened = Opened(folder, None, cold=cold)
    try:
        for step in SCRIPT:
            step(opened.space)
        expected = contents(opened.space)
    finally:
        opened.leave()
    told: list[str] = []
    for kind in (*KINDS, "read", "truncate"):
        nth, reached = 0, True
        while reached:
            nth += 1
            disk = FaultyDisk()
            disk.fail(kind, nth)
            try:
                found = Opened(folder, disk, cold=cold)
            except StoreError as error:
                told.append(str(error))
            else:
                try:
                    assert contents(found.space) == expected
                finally:
                    found.leave()
            reached = bool(disk.failed[kind])
    assert len(told) >= 10
    assert all(str(folder) in each for each in told)
    found = Opened(folder, None, cold=cold)
    try:
        assert contents(found.space) == expected
    finally:
        found.leave()


def test_files_are_not_left_open_by_checkpoints_that_fail(ram: Path) -> None:
    disk = FaultyDisk()
    opened = Opened(ram / "descriptors", disk, cold=False)
    try:
        opened.space.store({"text": "a"}, root=True)
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for kind in ("pwrite", "fsync", "close", "replace", "sync_folder"):
            for nth in (1, 2, 3):
                disk.fail(kind, nth)
                with suppress(StoreError):
                    opened.space.checkpoint()
                disk.heal()
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        assert after == before
        assert sum(disk.failed.values()) >= 7
        assert not list((ram / "descriptors" / "checkpoints").glob("*.tmp"))
        opened.space.checkpoint()
        opened.space.check()
    finally:
        opened.leave()
