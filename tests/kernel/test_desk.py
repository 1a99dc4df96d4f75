"""A space on an event loop: what waits for the disk, or takes long, waits in a thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memoryspace import Scope, SpaceStore
from memoryspace.errors import InvalidInput
from memoryspace.kernel import (
    AsyncMemoryManager,
    MemoryManager,
    NewObject,
    RamColdStorage,
    TieredMemoryManager,
    Tiering,
)
from memoryspace.kernel.desk import Desk
from memoryspace.kernel.engine import QUICK_OBJECTS
from memoryspace.kernel.heap.lower_tier import WouldWait
from memoryspace.record import Record, Where

SCOPE = Scope("ann", "one")
HOT = 1 << 16
LONG = "tea " * 250
THREAD = "memoryspace-store"


class SlowDisk(RamColdStorage):
    """Reads and writes only once it is let; whoever holds up a loop meanwhile is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.may.set()
        self.asked = threading.Event()

    def save_many(self, items: Sequence[tuple[int, bytes]]) -> None:
        self._wait()
        super().save_many(items)

    def load_many(self, keys: Sequence[int]) -> Mapping[int, bytes]:
        self._wait()
        return super().load_many(keys)

    def _wait(self) -> None:
        self.asked.set()
        assert self.may.wait(10), "the loop waits for the disk"


def notes(count: int, text: str = "tea", start: int = 0) -> list[Record]:
    return [
        Record(f"n{number}", text, text, kind="note", created_at=1.0)
        for number in range(start, start + count)
    ]


def tiered(disk: RamColdStorage, **options: Any) -> TieredMemoryManager:
    tiering = Tiering(flush_interval=None)
    return TieredMemoryManager(HOT, cold_store=disk, tiering=tiering, retriever=None, **options)


async def test_the_loop_goes_on_while_a_write_makes_room_in_the_cold_tier() -> None:
    disk = SlowDisk()
    with tiered(disk) as manager:
        store = SpaceStore(manager=manager)
        await store.append(SCOPE, notes(50, LONG))
        disk.may.clear()
        adding = asyncio.create_task(store.append(SCOPE, notes(50, LONG, start=50)))
        await asyncio.to_thread(disk.asked.wait)
        assert not adding.done()
        counting = asyncio.create_task(store.count(SCOPE))
        await asyncio.sleep(0)
        assert not counting.done(), "it comes after the write"
        disk.may.set()
        assert len(await adding) == 50
        assert await counting == 100
        manager.check()


async def test_the_loop_goes_on_while_cold_records_are_read() -> None:
    disk = SlowDisk()
    with tiered(disk) as manager:
        store = SpaceStore(manager=manager)
        await store.append(SCOPE, notes(100, LONG))
        disk.may.clear()
        disk.asked.clear()
        first = asyncio.create_task(store.select(SCOPE, Where(ids=frozenset({"n0"}))))
        await asyncio.to_thread(disk.asked.wait)
        assert not first.done()
        disk.may.set()
        assert [record.id for record in await first] == ["n0"]
        assert manager.hit_rate.misses == 1


async def test_the_loop_goes_on_while_a_manager_demotes_and_promotes() -> None:
    disk = SlowDisk()
    async with AsyncMemoryManager(tiered(disk)) as space:
        held = [(await space.store({"text": LONG})).id for _ in range(40)]
        disk.may.clear()
        adding = asyncio.create_task(space.store_many([NewObject({"text": LONG})] * 40))
        await asyncio.to_thread(disk.asked.wait)
        disk.may.set()
        await adding
        cold = next(each for each in held if space.manager.tier_of(each) == "cold")
        disk.may.clear()
        disk.asked.clear()
        loading = asyncio.create_task(space.load(cold))
        await asyncio.to_thread(disk.asked.wait)
        disk.may.set()
        assert (await loading).payload == {"text": LONG}
        space.manager.check()


async def test_calls_happen_in_the_order_in_which_they_are_made() -> None:
    with MemoryManager(1 << 22, retriever=None) as manager:
        store = SpaceStore(manager=manager)
        many, few = notes(5 * QUICK_OBJECTS), notes(1, start=5 * QUICK_OBJECTS)
        await asyncio.gather(store.append(SCOPE, many), store.append(SCOPE, few))
        found = await store.select(SCOPE)
        assert [record.id for record in found] == [record.id for record in [*many, *few]]
        assert [record.seq for record in found] == sorted(record.seq for record in found)


async def test_what_a_cancelled_caller_has_begun_is_done_before_anything_else() -> None:
    disk = SlowDisk()
    with tiered(disk) as manager:
        store = SpaceStore(manager=manager)
        await store.append(SCOPE, notes(50, LONG))
        disk.may.clear()
        adding = asyncio.create_task(store.append(SCOPE, notes(50, LONG, start=50)))
        await asyncio.to_thread(disk.asked.wait)
        waiting = asyncio.create_task(store.append(SCOPE, notes(1, start=100)))
        await asyncio.sleep(0)
        waiting.cancel()
        adding.cancel()
        asyncio.get_running_loop().call_later(0.01, disk.may.set)
        done = await asyncio.gather(adding, waiting, return_exceptions=True)
        assert [type(each) for each in done] == [asyncio.CancelledError] * 2
        assert len(await store.delete(SCOPE)) == 100, "the one was begun, the other was not"
        assert await store.count(SCOPE) == 0


def names_of_threads(calls: list[str]) -> Callable[[], float]:
    """Return a clock that notes which thread asks for the time."""

    def clock() -> float:
        calls.append(threading.current_thread().name)
        return 1.0

    return clock


async def test_opening_reading_much_and_closing_are_done_in_the_thread(tmp_path: Path) -> None:
    seen, before = list[str](), set(threading.enumerate())
    store = SpaceStore(tmp_path, clock=names_of_threads(seen))
    await store.append(SCOPE, notes(2 * QUICK_OBJECTS))
    await store.close()
    seen.clear()
    assert len(await store.select(SCOPE)) == 2 * QUICK_OBJECTS
    assert await store.mark(SCOPE, Where(), add={"seen"}) == 2 * QUICK_OBJECTS
    assert len(await store.delete(SCOPE)) == 2 * QUICK_OBJECTS
    assert {name.rsplit("_", 1)[0] for name in seen} == {THREAD}
    await store.close()
    assert set(threading.enumerate()) <= before


async def test_a_store_that_is_being_opened_is_closed_after_that(tmp_path: Path) -> None:
    store = SpaceStore(tmp_path)
    opening = asyncio.create_task(store.append(SCOPE, notes(1)))
    await asyncio.sleep(0)
    await store.close()
    assert await opening == ["n0"]
    async with SpaceStore(tmp_path) as other:  # which one owner at a time can open
        assert await other.count(SCOPE) == 1


async def test_what_takes_no_time_needs_no_thread() -> None:
    seen: list[str] = []
    with MemoryManager(1 << 20, retriever=None) as manager:
        store = SpaceStore(manager=manager, clock=names_of_threads(seen))
        await store.append(SCOPE, notes(3))
        await store.mark(SCOPE, Where(), add={"seen"})
        assert len(await store.select(SCOPE)) == 3
        assert len(await store.delete(SCOPE)) == 3
    assert set(seen) == {threading.current_thread().name}


@pytest.fixture
def turns() -> Iterator[float]:
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


async def test_threads_hand_over_sooner_only_while_one_is_at_work(turns: float) -> None:
    desk = Desk()
    assert await desk.aside(sys.getswitchinterval) < turns
    assert sys.getswitchinterval() == turns
    await desk.aside(lambda: sys.setswitchinterval(2 * turns))
    assert sys.getswitchinterval() == pytest.approx(2 * turns), "somebody else's wish"


async def test_much_that_can_be_read_once_is_stored_whole() -> None:
    async with AsyncMemoryManager(MemoryManager(1 << 22, retriever=None)) as space:
        many = (NewObject({"number": number}) for number in range(2 * QUICK_OBJECTS))
        stored = await space.store_many(many)
        assert len(stored) == len(space.manager) == 2 * QUICK_OBJECTS
        assert await space.free_many(each.id for each in stored) == 2 * QUICK_OBJECTS


async def test_errors_of_work_in_the_thread_are_the_callers(tmp_path: Path) -> None:
    store = SpaceStore(tmp_path)
    with pytest.raises(InvalidInput):
        await store.append(SCOPE, [*notes(2 * QUICK_OBJECTS), Record("", "tea", kind="note")])
    assert await store.count(SCOPE) == 0
    await store.close()


def test_who_cannot_wait_changes_nothing() -> None:
    disk = SlowDisk()
    with tiered(disk) as manager:
        many = [NewObject({"text": LONG})] * 50
        stored = manager.store_many(many)
        before = (manager.last_lsn, manager.stats())
        more = [NewObject({"text": LONG})] * 20
        with manager.engine.writing, pytest.raises(WouldWait):
            manager.engine.at_once(lambda: manager.store_many(more))
        manager.demote_objects([stored[0].id])
        with manager.engine.writing, pytest.raises(WouldWait):
            manager.engine.at_once(lambda: manager.load(stored[0].id))
        assert manager.last_lsn == before[0]
        assert len(manager) == before[1]["objects"]
        assert manager.hit_rate.misses == 0
        manager.check()
