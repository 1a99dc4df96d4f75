"""Records in a memory space: what outlives a restart, a kill, an expiry and a damaged value."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from memoryspace import Msg, Record, Scope, SpaceMemory, SpaceStore, Where
from memoryspace.errors import CorruptData, InvalidInput, StoreError
from memoryspace.kernel import (
    Durability,
    FolderInUse,
    GenerationalCollector,
    MemoryManager,
    RamColdStorage,
    Runtime,
    TieredMemoryManager,
    Tiering,
)
from memoryspace.testing import ManualClock, capture
from memoryspace.testing.store_tools import Mirror

QUICK = Durability(sync="os")
TINY = 1 << 13
ANN = Scope("Ann", "one")


def note(record_id: str, text: str = "text", **options: Any) -> Record:
    return Record(record_id, {"text": text}, text, kind="note", **options)


def notes(count: int, first: int = 0) -> list[Record]:
    return [note(str(number), f"note {number}") for number in range(first, first + count)]


def ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]


def seen(records: Sequence[Record]) -> list[dict[str, Any]]:
    """All of every record, in a form that can be compared."""
    rows = [asdict(record) for record in records]
    for row in rows:
        if isinstance(row["value"], Msg):
            row["value"] = row["value"].to_dict()
    return rows


def choose(*record_ids: str) -> Where:
    return Where(ids=frozenset(record_ids))


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[SpaceStore]:
    """A store with so small a heap that most of its values are cold."""
    store = SpaceStore(folder, hot_capacity=TINY, durability=QUICK, **options)
    try:
        yield store
        if store._manager is not None:
            store._manager.check()
    finally:
        await store.close()


# -- restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [False, True])
async def test_everything_comes_back_after_a_restart(checkpointed: bool, tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as store:
        await store.append(ANN, [Record("m", Msg("Ann", "hello", "user"), "hello")])
        await store.append(
            ANN,
            [
                note(
                    "full",
                    marks=frozenset({"x", "压缩"}),
                    importance=0.9,
                    pinned=True,
                    expires_at=clock.now + 100,
                    created_at=12.5,
                )
            ],
        )
        await store.append(Scope("Ann", "two"), notes(50))
        await store.append(Scope("Ben", "one"), notes(3))
        if checkpointed:
            store.space.checkpoint()
        await store.mark(ANN, choose("m"), add={"later"})
        await store.mark(ANN, choose("full"), remove={"x"})
        await store.delete(Scope("Ann", "two"), choose("7"))
        before = [seen(await store.select(Scope(user))) for user in ("Ann", "Ben")]
    async with opened(tmp_path, clock=clock) as store:
        after = [seen(await store.select(Scope(user))) for user in ("Ann", "Ben")]
        assert after == before
        assert await store.count(Scope("Ann")) == 51
        (full,) = await store.select(ANN, choose("full"))
        assert full.marks == {"压缩"}
        assert (full.importance, full.pinned, full.created_at) == (0.9, True, 12.5)
        assert [each.id for each in await store.select(ANN, Where(marks=frozenset({"later"})))] == [
            "m"
        ]
        assert await store.select(ANN, Where(marks=frozenset({"x"}))) == []


async def test_order_and_seq_go_on_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.append(ANN, notes(20))
        await store.delete(ANN, choose("3", "4"))  # their places are used again
        await store.append(ANN, notes(5, 20))
        order = [str(number) for number in range(25) if number not in (3, 4)]
        assert ids(await store.select(ANN)) == order
    async with opened(tmp_path) as store:
        assert ids(await store.select(ANN)) == order
        await store.append(ANN, [note("last")])
        found = await store.select(ANN)
        assert ids(found) == [*order, "last"]
        assert all(one.seq < next_one.seq for one, next_one in pairwise(found))
        newest = await store.select(ANN, Where(after=found[-3].seq))
        assert ids(newest) == ["24", "last"]


@pytest.mark.parametrize("checkpointed", [False, True])
async def test_seq_grows_though_the_newest_was_deleted_before_the_restart(
    checkpointed: bool, tmp_path: Path
) -> None:
    async with opened(tmp_path) as store:
        await store.append(ANN, notes(3))
        newest = (await store.select(ANN))[-1].seq
        await store.delete(ANN)
        if checkpointed:
            store.space.checkpoint()
    async with opened(tmp_path) as store:
        assert await store.select(ANN) == []
        await store.append(ANN, [note("0")])
        assert (await store.select(ANN))[0].seq > newest


async def test_a_replacement_is_whole_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.append(ANN, notes(5))
        await store.replace(ANN, choose("1", "2"), [note("9", "instead"), note("0", "ignored")])
    async with opened(tmp_path) as store:
        found = await store.select(ANN)
        assert [(each.id, each.text) for each in found] == [
            ("0", "note 0"),
            ("3", "note 3"),
            ("4", "note 4"),
            ("9", "instead"),
        ]


async def test_a_batch_larger_than_the_heap_is_stored_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        assert len(await store.append(ANN, notes(3000))) == 3000
        assert ids(await store.select(ANN, Where(limit=2, newest=True))) == ["2998", "2999"]
    async with opened(tmp_path) as store:
        assert ids(await store.select(ANN)) == [str(number) for number in range(3000)]


async def test_use_after_close_opens_the_folder_again(tmp_path: Path) -> None:
    store = SpaceStore(tmp_path, durability=QUICK)
    await store.append(ANN, notes(2))
    await store.close()
    await store.close()
    assert ids(await store.select(ANN)) == ["0", "1"]
    await store.close()
    with TieredMemoryManager(TINY, folder=tmp_path, retriever=None) as space:
        assert len(space) == 2


async def test_every_change_is_durable_when_it_is_awaited(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path) as store:
        wal = store.space.wal
        assert wal is not None
        changes = (
            lambda: store.append(ANN, notes(3)),
            lambda: store.replace(ANN, choose("0"), [note("4")]),
            lambda: store.mark(ANN, choose("1"), add={"x"}),
            lambda: store.delete(ANN, choose("2")),
        )
        for number, change in enumerate(changes, 1):
            await change()
            assert wal.durable_lsn == wal.last_lsn == number


# -- following -------------------------------------------------------------------------------------


async def test_a_state_of_before_the_restart_is_told_everything_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        mirror = Mirror()
        await store.append(ANN, notes(3))
        await store.append(Scope("Ann", "two"), notes(2))
        await mirror.catch_up(store, "Ann")
        await store.delete(Scope("Ann", "two"))
        await store.close()
        await store.delete(ANN, choose("1"))
        told = await mirror.catch_up(store, "Ann")
        assert told.gone == {"two"}
        assert [id_ for _, _, id_ in mirror.held()] == ["0", "2"]
        assert (await mirror.catch_up(store, "Ann")).records == []


async def test_records_that_the_space_collects_are_told_to_be_gone() -> None:
    clock = ManualClock()
    collector = GenerationalCollector(young_object_age=10)
    with MemoryManager(
        1 << 16, collectors=[collector], retriever=None, runtime=Runtime(clock=clock)
    ) as space:
        store, mirror = SpaceStore(manager=space, clock=clock), Mirror()
        await store.append(ANN, [note("dull", importance=0.0), note("dear", importance=1.0)])
        await store.append(Scope("Ann", "two"), [note("alone", importance=0.0)])
        await mirror.catch_up(store, "Ann")
        clock.advance(11)
        assert space.run_gc().freed == 2
        assert (await mirror.catch_up(store, "Ann")).gone == {"two"}
        assert [id_ for _, _, id_ in mirror.held()] == ["dear"]


async def test_a_damaged_value_is_reported_once_to_whoever_follows() -> None:
    cold = DamagedCold()
    with TieredMemoryManager(
        TINY, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
    ) as space:
        store, mirror = SpaceStore(manager=space), Mirror()
        await store.append(ANN, notes(3))
        space.demote_objects(space.ids())
        cold.damage(min(cold.keys()))
        with capture(store.events, "record_corrupt") as events:
            told = await mirror.catch_up(store, "Ann")
            assert ids(told.records) == ["1", "2"]
            await store.append(ANN, [note("later")])
            assert ids((await mirror.catch_up(store, "Ann")).records) == ["later"]
        assert [(each.name, each.data["id"]) for each in events if "corrupt" in each.name] == [
            ("record_corrupt", "0")
        ]


# -- expiry and collection -------------------------------------------------------------------------


async def test_expired_records_stay_gone_and_leave_the_space(tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as store:
        await store.append(ANN, [note("mortal", expires_at=clock.now + 5), note("kept")])
        clock.advance(5)
        assert ids(await store.select(ANN)) == ["kept"]
        assert len(store.space) == 2  # not looked for yet
    async with opened(tmp_path, clock=clock) as store:
        assert ids(await store.select(ANN)) == ["kept"]
        assert await store.count(ANN) == 1
        assert await store.delete(ANN, choose("mortal")) == []
        assert store.space.run_gc().freed == 1
        assert len(store.space) == 1
    async with opened(tmp_path, clock=clock) as store:
        assert len(store.space) == 1


async def test_records_are_purged_as_others_come(tmp_path: Path) -> None:
    clock = ManualClock()
    async with SpaceStore(tmp_path, durability=QUICK, clock=clock) as store:  # no lack of room
        await store.append(ANN, [note(f"m{n}", expires_at=clock.now + 5) for n in range(10)])
        clock.advance(5)
        for record in notes(300):
            await store.append(ANN, [record])
        assert len(store.space) == 300
        assert await store.count(ANN) == 300


async def test_an_id_that_expired_and_came_again_is_the_new_record_after_a_restart(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as store:
        await store.append(ANN, [note("first")])
        await store.append(ANN, [note("id", "old", expires_at=clock.now + 5)])
        await store.delete(ANN, choose("first"))
        clock.advance(5)
        await store.append(ANN, [note("id", "new")])  # in the row before the old one
        assert [each.text for each in await store.select(ANN)] == ["new"]
    async with opened(tmp_path, clock=clock) as store:
        assert [each.text for each in await store.select(ANN)] == ["new"]
        assert await store.count(ANN) == 1
        store.space.run_gc()
        assert [each.text for each in await store.select(ANN)] == ["new"]


async def test_an_expired_record_does_not_take_its_successor_along() -> None:
    clock = ManualClock()
    with TieredMemoryManager(
        TINY, retriever=None, runtime=Runtime(clock=clock), tiering=Tiering(flush_interval=None)
    ) as space:
        store = SpaceStore(manager=space, clock=clock)
        await store.append(ANN, [note("id", "old", expires_at=clock.now + 5)])
        clock.advance(5)
        await store.append(ANN, [note("id", "new")])
        assert space.run_gc().freed == 1
        assert [each.text for each in await store.select(ANN)] == ["new"]


async def test_records_that_the_space_collects_leave_the_index() -> None:
    clock = ManualClock()
    collector = GenerationalCollector(young_object_age=10)
    with MemoryManager(
        1 << 16, collectors=[collector], retriever=None, runtime=Runtime(clock=clock)
    ) as space:
        store = SpaceStore(manager=space, clock=clock)
        await store.append(ANN, [note("dull", importance=0.0), note("dear", importance=1.0)])
        await store.append(ANN, [note("held", importance=0.0, pinned=True)])
        await store.append(Scope("Ann", "two"), [note("alone", importance=0.0)])
        clock.advance(11)
        assert space.run_gc().freed == 2
        assert ids(await store.select(Scope("Ann"))) == ["dear", "held"]
        assert await store.count(ANN) == 2
        assert await store.append(ANN, [note("dull")]) == ["dull"]
        space.check()


async def test_records_that_others_free_leave_the_index() -> None:
    with MemoryManager(1 << 16, retriever=None) as space:
        store = SpaceStore(manager=space)
        await store.append(ANN, notes(3))
        space.free_object(space.ids()[1])
        assert ids(await store.select(ANN)) == ["0", "2"]


# -- damage ----------------------------------------------------------------------------------------


class DamagedCold(RamColdStorage):
    def damage(self, key: int) -> None:
        self._frames[key] = self._frames[key][:-1] + b"?"


async def test_a_damaged_cold_value_is_reported_and_skipped() -> None:
    cold = DamagedCold()
    with TieredMemoryManager(
        TINY, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
    ) as space:
        store = SpaceStore(manager=space)
        await store.append(ANN, notes(3))
        space.demote_objects(space.ids())
        first, second, _ = cold.keys()
        cold.damage(first)
        cold.delete(second)  # lost altogether
        with capture(store.events, "record_corrupt") as events:
            assert ids(await store.select(ANN)) == ["2"]
        told = [(event.name, event.data["scope"], event.data["id"]) for event in events]
        assert told == [("record_corrupt", ANN, "0"), ("record_corrupt", ANN, "1")]
        assert all(isinstance(event.data["error"], CorruptData) for event in events)
        assert await store.delete(ANN, choose("0", "1")) == ["0", "1"]  # which mends it
        with capture(store.events, "record_corrupt") as events:
            assert ids(await store.select(ANN)) == ["2"]
        assert events == []
        space.check()


async def test_a_damaged_value_does_not_keep_a_store_from_opening() -> None:
    cold = DamagedCold()
    with TieredMemoryManager(
        TINY, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
    ) as space:
        await SpaceStore(manager=space).append(ANN, notes(3))
        space.demote_objects(space.ids())
        cold.damage(min(cold.keys()))
        reopened = SpaceStore(manager=space)
        assert ids(await reopened.select(ANN)) == ["1", "2"]


async def test_a_cold_tier_that_cannot_be_read_is_an_error_and_not_an_empty_store() -> None:
    class Unreadable(RamColdStorage):
        broken = False

        def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
            if self.broken:
                raise StoreError("unplugged")
            return super()._get_many(keys)

    cold = Unreadable()
    with TieredMemoryManager(
        TINY, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
    ) as space:
        store = SpaceStore(manager=space)
        await store.append(ANN, notes(2))
        space.demote_objects(space.ids())
        cold.broken = True
        with pytest.raises(StoreError, match="unplugged"):
            await store.select(ANN)
        cold.broken = False
        assert ids(await store.select(ANN)) == ["0", "1"]


# -- whose space it is -----------------------------------------------------------------------------


async def test_a_store_does_not_close_a_manager_that_was_passed_in(tmp_path: Path) -> None:
    with TieredMemoryManager(TINY, folder=tmp_path, retriever=None, durability=QUICK) as space:
        async with SpaceStore(manager=space) as store:
            await store.append(ANN, notes(2))
        assert len(space) == 2
        space.store({"still": "open"})
        assert ids(await store.select(ANN)) == ["0", "1"]


async def test_two_stores_on_one_manager_see_what_was_there_before() -> None:
    with MemoryManager(1 << 16, retriever=None) as space:
        await SpaceStore(manager=space).append(ANN, notes(3))
        assert ids(await SpaceStore(manager=space).select(ANN)) == ["0", "1", "2"]


def test_a_store_needs_a_folder_or_a_manager(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        SpaceStore()
    with MemoryManager(1 << 12) as space, pytest.raises(InvalidInput):
        SpaceStore(tmp_path, manager=space)


HOLDER = """
import asyncio, sys
from memoryspace import Record, Scope, SpaceStore
async def main():
    store = SpaceStore(sys.argv[1])
    await store.append(Scope("Ann", "one"), [Record("0", {"a": 1}, "text", kind="note")])
    print("open", flush=True)
    sys.stdin.read()
    await store.close()
asyncio.run(main())
"""


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        store = SpaceStore(tmp_path)
        with pytest.raises(FolderInUse, match=f"process {holder.pid}") as caught:
            asyncio.run(store.select(ANN))
        assert caught.value.owner is not None
        assert caught.value.owner.pid == holder.pid
        holder.communicate("")
    assert ids(asyncio.run(store.select(ANN))) == ["0"]  # the same store, once the folder is free
    asyncio.run(store.close())


def test_the_first_use_by_many_threads_opens_once(tmp_path: Path) -> None:
    store = SpaceStore(tmp_path, durability=QUICK)
    together = threading.Barrier(8)
    failures: list[BaseException] = []

    def use(number: int) -> None:
        try:
            together.wait()
            asyncio.run(store.append(Scope("Ann", str(number)), notes(5)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert asyncio.run(store.count(Scope("Ann"))) == 40
    asyncio.run(store.close())


# -- working memory --------------------------------------------------------------------------------


def folder_is_free(folder: Path) -> bool:
    try:
        TieredMemoryManager(TINY, folder=folder, retriever=None, durability=QUICK).close()
    except FolderInUse:
        return False
    return True


async def test_memories_on_one_folder_share_a_store(tmp_path: Path) -> None:
    one = SpaceMemory(tmp_path, "s", "Ann", durability=QUICK)
    (tmp_path / "inner").mkdir()
    other = SpaceMemory(tmp_path / "inner" / "..", "s", "Ann", durability=QUICK)
    await one.add(Msg("Ann", "hello", "user"))
    assert await other.size() == 1
    elsewhere = SpaceMemory(tmp_path / "inner", "s", "Ann", durability=QUICK)
    assert await elsewhere.size() == 0
    for memory in (one, other, elsewhere):
        await memory.close()


async def test_the_last_to_close_gives_the_folder_back(tmp_path: Path) -> None:
    one, other = (SpaceMemory(tmp_path, session, durability=QUICK) for session in "ab")
    await one.add(Msg("Ann", "hello", "user"))
    await other.add(Msg("Ann", "hello", "user"))
    await one.close()
    await one.close()
    assert not folder_is_free(tmp_path)
    assert await other.size() == 1
    await other.close()
    assert folder_is_free(tmp_path)


async def test_a_closed_memory_can_be_used_again_and_shares_again(tmp_path: Path) -> None:
    one = SpaceMemory(tmp_path, durability=QUICK)
    await one.add(Msg("Ann", "hello", "user"))
    await one.close()
    assert await one.size() == 1
    other = SpaceMemory(tmp_path, durability=QUICK)
    assert await other.size() == 1  # not refused: both are one process
    await other.close()
    assert await one.size() == 1
    await one.close()
    assert folder_is_free(tmp_path)


async def test_a_memory_that_was_dropped_does_not_lock_out_the_next(tmp_path: Path) -> None:
    memory = SpaceMemory(tmp_path, durability=QUICK)
    await memory.add(Msg("Ann", "hello", "user"))
    del memory
    gc.collect()
    again = SpaceMemory(tmp_path, durability=QUICK)
    assert await again.size() == 1
    await again.close()
    assert folder_is_free(tmp_path)


async def test_a_store_that_is_handed_in_stays_open(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path, durability=QUICK) as store:
        async with SpaceMemory(store=store, session_id="s", user_id="Ann") as memory:
            await memory.add(Msg("Ann", "hello", "user"))
        assert not folder_is_free(tmp_path)
        assert await store.count(Scope("Ann", "s")) == 1


# -- kills -----------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from memoryspace import Record, Scope, SpaceStore, Where
from memoryspace.kernel import Durability
async def main(folder, first):
    store = SpaceStore(folder, hot_capacity=1 << 13,
                       durability=Durability(sync="os", checkpoint_bytes=1 << 14))
    scope, number = Scope("Ann", "one"), int(first)
    while True:
        value = {"n": number, "x": "x" * (number % 500)}
        await store.append(scope, [Record(str(number), value, f"note {number}", kind="note")])
        if number % 5 == 0:
            await store.mark(scope, Where(ids=frozenset({str(number)})), add={"five"})
        if number % 7 == 0:
            await store.delete(scope, Where(ids=frozenset({str(number - 1)})))
        print(number, flush=True)
        number += 1
asyncio.run(main(*sys.argv[1:]))
"""


def killed_after(lines: int, folder: Path, first: int) -> int:
    """Let a process write, kill it in the middle, and return the last number it acknowledged."""
    command = [sys.executable, "-c", WRITER, str(folder), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            assert writer.stdout.readline()
        writer.kill()
        rest = writer.stdout.read().split("\n")  # the last may be cut short
    said = [int(line) for line in rest[:-1] if line]
    return said[-1] if said else first + lines - 1


@pytest.mark.skipif(os.name != "posix", reason="kills")
async def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    first = 0
    for lines in (1, 150, 40, 300):
        last = killed_after(lines, tmp_path, first)
        async with opened(tmp_path) as store:
            found = {int(each.id): each for each in await store.select(ANN)}
            deleted = {number - 1 for number in range(7, last + 1, 7)}
            perhaps = {last} if (last + 1) % 7 == 0 else set()  # the next deletes it, then says so
            assert set(range(last + 1)) - deleted - perhaps <= set(found)
            assert not deleted & set(found)
            assert max(found) <= last + 1  # at most one that it had no time to acknowledge
            assert [*found] == sorted(found)
            for number, record in found.items():
                assert record.value == {"n": number, "x": "x" * (number % 500)}
                assert record.marks == ({"five"} if number % 5 == 0 else set()) or number > last
            first = last + 1  # what it did not acknowledge, it does again
