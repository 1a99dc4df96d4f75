"""The face for asyncio: durable when awaited, and the loop never waits for the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryspace.errors import InvalidInput, OutOfSpace, StoreUnavailable, UnknownObject
from memoryspace.kernel import (
    ALWAYS,
    AsyncMemoryManager,
    Durability,
    MemoryManager,
    NewObject,
    RamColdStorage,
    TieredMemoryManager,
    WriteAheadLog,
)
from memoryspace.kernel.durable.disk import Disk

from faulty_disk import FaultyDisk

CAPACITY = 1 << 20
PATIENCE = 60  # seconds until a test that hangs is called failed


class GatedDisk(Disk):
    """A disk whose syncs take as long as the test wants."""

    def __init__(self) -> None:
        self.open_gate = threading.Event()
        self.open_gate.set()
        self.syncing = threading.Event()
        self.syncs = 0

    def fdatasync(self, fd: int) -> None:
        self.syncing.set()
        assert self.open_gate.wait(PATIENCE)
        super().fdatasync(fd)
        self.syncs += 1


@asynccontextmanager
async def gated(folder: Path) -> AsyncIterator[tuple[AsyncMemoryManager[MemoryManager], GatedDisk]]:
    disk = GatedDisk()
    wal = WriteAheadLog(folder, sync=ALWAYS, disk=disk)
    async with AsyncMemoryManager(MemoryManager(CAPACITY, wal=wal)) as space:
        await space.store({"text": "warm"})  # the files are there
        disk.syncing.clear()
        disk.open_gate.clear()
        try:
            yield space, disk
        finally:
            disk.open_gate.set()
    wal.close()


def syncing(disk: GatedDisk) -> Callable[[], bool]:
    return disk.syncing.is_set


async def until(happened: Callable[[], bool]) -> None:
    """Let the other tasks run until something has happened."""
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110  # threads make it happen, which set no asyncio.Event
            await asyncio.sleep(0)


async def test_what_was_awaited_is_durable(tmp_path: Path) -> None:
    disk = FaultyDisk()
    wal = WriteAheadLog(tmp_path / "journal", sync=ALWAYS, disk=disk)
    space = AsyncMemoryManager(MemoryManager(CAPACITY, wal=wal))
    kept = await space.store({"n": 1}, root=True)
    many = await space.store_many([NewObject({"n": 2}), NewObject({"n": 3})])
    await space.add_reference(kept.id, many[0].id)
    await space.update(kept.id, payload={"n": "new"}, tags=["t"])
    await space.pin(many[1].id)
    gone = await space.store({"n": 4})
    await space.free_object(gone.id)
    disk.power_cut(tmp_path / "journal", tmp_path / "left")
    await space.close()
    wal.close()
    with WriteAheadLog(tmp_path / "left") as left, MemoryManager(CAPACITY, wal=left) as found:
        found.check()
        assert set(found.ids()) == {kept.id, many[0].id, many[1].id}
        assert found.peek(kept.id).payload == {"n": "new"}
        assert found.peek(kept.id).tags == frozenset({"t"})
        assert found.is_root(kept.id)
        assert found.is_pinned(many[1].id)
        assert found.references(kept.id) == [many[0].id]


async def test_a_store_is_not_done_before_the_disk_is(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        storing = asyncio.create_task(space.store({"n": 1}))
        await until(syncing(disk))
        assert not storing.done()
        disk.open_gate.set()
        stored = await storing
        assert space.manager.wal is not None
        assert space.manager.wal.durable_lsn == space.manager.last_lsn
        assert (await space.load(stored.id)).payload == {"n": 1}


async def test_the_loop_runs_while_the_disk_syncs(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        storing = asyncio.create_task(space.store({"text": "slow disk"}))
        await until(syncing(disk))
        other = (await space.retrieve("warm"))[0].object  # reads need no disk
        assert other.payload == {"text": "warm"}
        (found,) = await space.retrieve("slow")  # it is there, though not safe yet
        assert found.object.payload == {"text": "slow disk"}
        assert not storing.done()
        assert not disk.open_gate.is_set()  # all this happened during one sync
        disk.open_gate.set()
        assert (await storing).id == found.object.id


async def test_those_who_come_during_a_sync_share_the_next(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        first = asyncio.create_task(space.store({"n": "first"}))
        await until(syncing(disk))
        before = disk.syncs
        others = [asyncio.create_task(space.store({"n": n})) for n in range(100)]
        await until(lambda: len(space.manager) == 102)
        assert not any(task.done() for task in (first, *others))
        disk.open_gate.set()
        stored = await asyncio.gather(first, *others)
        assert len({each.id for each in stored}) == 101
        assert disk.syncs <= before + 3  # the one under way, theirs, and a straggler's


async def test_256_tasks_store_durably_with_few_syncs(tmp_path: Path) -> None:
    disk = GatedDisk()
    wal = WriteAheadLog(tmp_path, sync=ALWAYS, disk=disk)
    async with AsyncMemoryManager(MemoryManager(1 << 22, wal=wal)) as space:

        async def work(task: int) -> list[str]:
            ids = []
            for number in range(8):
                stored = await space.store({"task": task, "n": number}, root=True)
                assert wal.durable_lsn > 0
                await space.update(stored.id, importance=0.7)
                ids.append(stored.id)
            await space.free_object(ids[0])
            return ids[1:]

        found = await asyncio.gather(*(work(task) for task in range(256)))
        ids = [each for part in found for each in part]
        assert len(set(ids)) == 256 * 7 == len(space.manager)
        assert wal.durable_lsn == wal.last_lsn == 256 * 17
        assert disk.syncs < 256 * 17 / 8  # shared, not one each
        space.manager.check()
    wal.close()
    with WriteAheadLog(tmp_path) as again, MemoryManager(1 << 22, wal=again) as recovered:
        assert set(recovered.ids()) == set(ids)
        recovered.check()


async def test_cancellation_while_waiting_leaves_a_consistent_space(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        tasks = [asyncio.create_task(space.store({"n": n}, id=f"id {n}")) for n in range(10)]
        await until(lambda: len(space.manager) == 11 and disk.syncing.is_set())
        for task in tasks[:5]:
            task.cancel()
        results = asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: all(task.done() for task in tasks[:5]))
        disk.open_gate.set()
        outcomes = await results
        assert all(isinstance(each, asyncio.CancelledError) for each in outcomes[:5])
        assert [each.id for each in outcomes[5:]] == [f"id {n}" for n in range(5, 10)]
        space.manager.check()
        # The change was made before the wait: a cancelled one happened, as after a lost answer.
        assert {f"id {n}" for n in range(10)} <= set(space.manager.ids())
        await space.free_many([f"id {n}" for n in range(10)])
        assert len(space.manager) == 1
        space.manager.check()


async def test_a_task_that_is_cancelled_before_it_starts_changes_nothing(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        task = asyncio.create_task(space.store({"n": 1}))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(space.manager) == 1
        assert not disk.syncing.is_set()


async def test_everybody_who_waits_hears_of_a_failed_sync(tmp_path: Path) -> None:
    disk = FaultyDisk()
    wal = WriteAheadLog(tmp_path, sync=ALWAYS, disk=disk)
    async with AsyncMemoryManager(MemoryManager(CAPACITY, wal=wal)) as space:
        await space.store({"n": "safe"})
        disk.fail("fdatasync")
        tasks = [space.store({"n": n}) for n in range(5)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in outcomes)
        space.manager.check()
        await space.store({"n": "after"})  # repaired, and with it all before
        assert wal.durable_lsn == wal.last_lsn
    wal.close()


async def test_a_refused_change_raises_at_once_and_changes_nothing(tmp_path: Path) -> None:
    async with gated(tmp_path) as (space, disk):
        with pytest.raises(UnknownObject):
            await space.free_object("nobody")
        with pytest.raises(UnknownObject):
            await space.load("nobody")
        with pytest.raises(OutOfSpace):
            await space.store({"x": "y" * (CAPACITY + 1)})
        with pytest.raises(InvalidInput):
            await space.store({"n": 1}, importance=float("nan"))
        assert await space.free_many(["nobody"]) == 0  # nothing changed: nothing to wait for
        assert not disk.syncing.is_set()
        assert len(space.manager) == 1


async def test_the_awaitable_verbs_are_those_of_the_manager() -> None:
    async with AsyncMemoryManager(MemoryManager(CAPACITY)) as space:
        first = await space.store({"text": "one apple"}, root=True)
        second = await space.store({"text": "two apples"})
        other = MemoryManager(CAPACITY)
        copied = await space.store_existing(other.store({"text": "copied"}, id="copy"))
        assert copied.id == "copy"
        await space.add_reference(first.id, second.id)
        assert space.manager.references(first.id) == [second.id]
        await space.remove_reference(first.id, second.id)
        assert space.manager.references(first.id) == []
        await space.add_root(second.id)
        await space.remove_root(first.id)
        await space.pin("copy")
        await space.unpin("copy")
        while not await space.gc_step():
            pass
        assert space.manager.ids() == [second.id]
        assert (await space.load(second.id)).access_count == 1
        assert [hit.object.id for hit in await space.retrieve("apples", tenant="")] == [second.id]
        assert AsyncMemoryManager.store.__doc__ == MemoryManager.store.__doc__
        space.manager.check()


async def test_a_tiered_space_has_the_same_face(tmp_path: Path) -> None:
    manager = TieredMemoryManager(
        1 << 13, folder=tmp_path, cold_store=RamColdStorage(), durability=Durability(sync="always")
    )
    async with AsyncMemoryManager(manager) as space:
        tasks = [space.store({"n": n, "x": "x" * 100}) for n in range(200)]
        stored = await asyncio.gather(*tasks)
        assert manager.stats()["cold_items"] > 0
        loaded = await asyncio.gather(*(space.load(each.id) for each in stored))
        assert [each.payload["n"] for each in loaded] == list(range(200))
        manager.check()
    with pytest.raises(InvalidInput, match="closed"):
        await space.store({"n": 1})
