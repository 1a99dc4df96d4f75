"""Many threads on one space: nothing lost, nothing torn, nothing collected that is wanted.

Every payload carries the checksum of its text, so a torn read shows. Each thread is the only one to
free what it stored, so it knows what must be there; all of them read, link and search everything.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memoryspace.errors import UnknownObject
from memoryspace.kernel import (
    AsyncMemoryManager,
    Durability,
    MarkAndSweepCollector,
    MemoryManager,
    MemoryObject,
    NewObject,
    RamColdStorage,
    ReadWriteLock,
    Runtime,
    TieredMemoryManager,
    Tiering,
    TimeToLiveCollector,
)
from memoryspace.testing import ManualClock

from length import at_length

THREADS = 8
WORDS = ["alpha", "beta", "gamma", "delta"]


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Let threads interrupt each other a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all at once; return what they return, or raise what the first of them raised."""
    together = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            together.wait()
            results[number] = works[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def payload(random: Random, owner: int, number: int) -> dict[str, Any]:
    text = f"{random.choice(WORDS)} {owner}.{number} " + random.choice("xyz") * random.randrange(
        150
    )
    return {"owner": owner, "number": number, "text": text, "sum": zlib.crc32(text.encode())}


def intact(found: MemoryObject) -> dict[str, Any]:
    content = found.payload
    assert content["sum"] == zlib.crc32(content["text"].encode()), "a torn read"
    return content


class Worker:
    """One thread's random work, and what it knows must be there."""

    def __init__(self, space: MemoryManager, number: int, everybody: list[Worker]) -> None:
        self.space = space
        self.number = number
        self.random = Random(number)
        self.everybody = everybody
        self.kept: dict[str, dict[str, Any]] = {}  # held as roots or by a link from one
        self.children: dict[str, str] = {}  # child → the root that holds it
        self.serial = 0
        self.done = 0
        self.steps: list[Callable[[], None]] = (
            [self.store] * 4 + [self.load] * 6 + [self.load_other] * 4 + [self.update] * 2
            + [self.adopt] * 2 + [self.disown] * 2 + [self.free] * 3 + [self.litter] * 2
            + [self.link_other] * 2 + [self.search, self.collect, self.look]
        )  # fmt: skip

    def work(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(self.steps)()
            self.done += 1

    def new(self) -> dict[str, Any]:
        self.serial += 1
        return payload(self.random, self.number, self.serial)

    def some(self, ids: Sequence[str]) -> str | None:
        return self.random.choice(ids) if ids else None

    def store(self) -> None:
        if len(self.kept) > 150:
            return
        content = self.new()
        if self.random.random() < 0.2:
            other = self.new()
            pair = [NewObject(content, root=True), NewObject(other, root=True)]
            first, second = self.space.store_many(pair)
            self.kept[second.id] = other
        else:
            first = self.space.store(content, root=True)
        assert intact(first) == content
        self.kept[first.id] = content

    def load(self) -> None:
        object_id = self.some(list(self.kept))
        if object_id is not None:
            read = self.random.choice([self.space.load, self.space.peek])
            assert intact(read(object_id)) == self.kept[object_id]

    def load_other(self) -> None:
        other = self.random.choice(self.everybody)
        object_id = self.some(list(other.kept.copy()))
        if object_id is not None:
            try:
                assert intact(self.space.load(object_id))["owner"] == other.number
            except UnknownObject:
                assert object_id not in other.kept or other is not self

    def update(self) -> None:
        object_id = self.some(list(self.kept))
        if object_id is not None:
            content = self.new()
            assert intact(self.space.update(object_id, payload=content)) == content
            self.kept[object_id] = content

    def adopt(self) -> None:
        """Hold an object by a link from a root alone."""
        parent, child = self.some(self.roots()), self.some(self.roots())
        if parent is None or child is None or parent == child or child in self.children.values():
            return
        self.space.add_reference(parent, child)
        self.space.remove_root(child)
        self.children[child] = parent

    def disown(self) -> None:
        child = self.some(list(self.children))
        if child is not None:
            self.space.add_root(child)
            self.space.remove_reference(self.children.pop(child), child)

    def free(self) -> None:
        object_id = self.some([each for each in self.roots() if each not in self.holders()])
        if object_id is not None:
            del self.kept[object_id]
            self.space.free_object(object_id)

    def litter(self) -> None:
        """Store what nobody holds: it may go at any time."""
        self.space.store(self.new())

    def link_other(self) -> None:
        mine, other = self.some(self.roots()), self.random.choice(self.everybody)
        theirs = self.some(list(other.kept.copy()))
        if mine is None or theirs is None or theirs in self.kept:
            return
        try:
            self.space.add_reference(mine, theirs)
            self.space.remove_reference(mine, theirs)
        except UnknownObject:
            pass  # freed meanwhile

    def search(self) -> None:
        word = self.random.choice(WORDS)
        for hit in self.space.retrieve(word, top_k=5):
            assert intact(hit.object)["text"].startswith(word)

    def collect(self) -> None:
        if self.random.random() < 0.1:
            self.space.run_gc()
        else:
            self.space.gc_step(0.0001)

    def look(self) -> None:
        assert self.space.stats()["objects"] >= 0
        assert set(self.kept) <= set(self.space.ids())
        assert all(each in self.space for each in self.kept)

    def roots(self) -> list[str]:
        return [each for each in self.kept if each not in self.children]

    def holders(self) -> set[str]:
        return set(self.children.values())


def plain(folder: Path, **options: Any) -> MemoryManager:
    return MemoryManager(1 << 20, folder=folder, **options)


def tiered(folder: Path, **options: Any) -> MemoryManager:
    """A hot tier for a tenth of the objects, and a flusher that never rests."""
    return TieredMemoryManager(
        1 << 15,
        folder=folder,
        collectors=[TimeToLiveCollector(), MarkAndSweepCollector()],
        tiering=Tiering(max_dirty=64, flush_interval=0.0005),
        **options,
    )


@pytest.mark.parametrize(
    ("opened", "lock", "steps"),
    [
        pytest.param(plain, None, 1000, id="plain lock"),
        pytest.param(plain, ReadWriteLock, 1000, id="read-write lock"),
        pytest.param(tiered, None, 1000, id="tiers, plain lock"),
        pytest.param(tiered, ReadWriteLock, at_length(1000, 3500), id="tiers, read-write lock"),
    ],
)
def test_eight_threads_lose_nothing_and_tear_nothing(
    opened: Callable[..., MemoryManager],
    lock: type[ReadWriteLock] | None,
    steps: int,
    tmp_path: Path,
) -> None:
    durability = Durability(sync="os", checkpoint_bytes=1 << 18, segment_bytes=1 << 17)
    own = None if lock is None else lock()
    with opened(tmp_path, durability=durability, runtime=Runtime(lock=own)) as space:
        workers: list[Worker] = []
        workers += [Worker(space, number, workers) for number in range(THREADS)]
        in_threads([partial(each.work, steps) for each in workers])
        assert [worker.done for worker in workers] == [steps] * THREADS
        space.check()
        space.run_gc()
        kept = {object_id: content for each in workers for object_id, content in each.kept.items()}
        assert set(space.ids()) == set(kept)
        for object_id, content in kept.items():
            assert intact(space.peek(object_id)) == content
        if own is not None:
            own.check()
    with opened(tmp_path, durability=durability) as space:
        space.check()
        assert {each: space.peek(each).payload for each in space.ids()} == kept


def test_a_writer_that_is_read_all_the_time_is_never_seen_half_done(tmp_path: Path) -> None:
    """One object, rewritten with bodies of all sizes, while it is demoted and read."""
    with TieredMemoryManager(
        1 << 13, cold_store=RamColdStorage(), tiering=Tiering(flush_interval=0.0005), retriever=None
    ) as space:
        only = space.store(payload(Random(0), 0, 0)).id
        finished = threading.Event()

        def write() -> None:
            random = Random(1)
            for number in range(1500):
                space.update(only, payload=payload(random, 0, number))
            finished.set()

        def read() -> int:
            last = 0
            while not finished.is_set():
                number = intact(space.load(only))["number"]
                assert number >= last, "an older body came back"
                last = number
            return last

        def move() -> None:
            while not finished.is_set():
                space.demote_objects([only])
                space.flush_some()
                space.promote([only])

        in_threads([write, read, read, move])
        assert intact(space.load(only))["number"] == 1499
        space.check()


def test_a_flusher_at_work_keeps_up_with_changes_and_deaths() -> None:
    cold = RamColdStorage()
    with TieredMemoryManager(
        1 << 16, cold_store=cold, tiering=Tiering(flush_interval=None, max_dirty=32), retriever=None
    ) as space:
        finished = threading.Event()

        def churn(owner: int) -> set[str]:
            random, mine = Random(owner), list[str]()
            for number in range(600):
                mine.append(space.store(payload(random, owner, number)).id)
                if len(mine) > 20:
                    space.free_object(mine.pop(random.randrange(len(mine))))
                space.update(random.choice(mine), payload=payload(random, owner, number))
            return set(mine)

        def churn_all() -> set[str]:
            found = in_threads([partial(churn, owner) for owner in range(4)])
            finished.set()
            return set().union(*found)

        def flush() -> None:
            while not finished.is_set():
                space.flush_some()

        kept, *_ = in_threads([churn_all, flush, flush])
        assert set(space.ids()) == kept
        space.check()
        for object_id in kept:
            intact(space.peek(object_id))
    assert len(cold) == len(kept)  # each has one copy, and the dead have none


def test_checkpoints_by_several_threads_are_whole(tmp_path: Path) -> None:
    durability = Durability(sync="os", keep=3, segment_bytes=1 << 14)
    with MemoryManager(1 << 20, folder=tmp_path / "a", durability=durability) as space:

        def store(owner: int) -> None:
            random = Random(owner)
            for number in range(300):
                stored = space.store(payload(random, owner, number), root=True)
                if number % 3 == 0:
                    space.free_object(stored.id)

        def checkpoint() -> list[int]:
            return [space.checkpoint() for _ in range(15)]

        *_, first, second, third = in_threads(
            [partial(store, 0), partial(store, 1), checkpoint, checkpoint, checkpoint]
        )
        for lsns in (first, second, third):
            assert lsns == sorted(lsns)
        assert space.checkpoint() == space.last_lsn
        assert space.checkpoint_manager is not None
        kept = space.checkpoint_manager.lsns()
        assert kept[-1] == space.last_lsn
        assert len(kept) <= 3
        assert set(kept) <= {*first, *second, *third, space.last_lsn}
        space.check()
        expected = {each: space.peek(each).payload for each in space.ids()}
        assert len(expected) == 400
        shutil.copytree(tmp_path / "a", tmp_path / "b")
    for folder in ("a", "b"):
        with MemoryManager(1 << 20, folder=tmp_path / folder, durability=durability) as space:
            space.check()
            assert {each: space.peek(each).payload for each in space.ids()} == expected


def test_several_event_loops_share_one_space(tmp_path: Path) -> None:
    durability = Durability(sync="always", checkpoint_bytes=1 << 16)
    with TieredMemoryManager(
        1 << 15, folder=tmp_path, durability=durability, tiering=Tiering(flush_interval=0.001)
    ) as manager:
        space = AsyncMemoryManager(manager)

        async def task(owner: int, number: int) -> dict[str, dict[str, Any]]:
            random, kept = Random(owner * 100 + number), dict[str, dict[str, Any]]()
            for _ in range(10):
                content = payload(random, owner, number)
                stored = await space.store(content, root=True)
                assert manager.wal is not None
                assert manager.wal.durable_lsn > 0
                kept[stored.id] = content
                assert intact(await space.load(random.choice(list(kept))))["owner"] == owner
                for hit in await space.retrieve(random.choice(WORDS)):
                    intact(hit.object)
            gone = random.choice(list(kept))
            del kept[gone]
            await space.free_object(gone)
            return kept

        async def loop(owner: int) -> dict[str, dict[str, Any]]:
            found = await asyncio.gather(*(task(owner, number) for number in range(16)))
            return {object_id: content for part in found for object_id, content in part.items()}

        found = in_threads([partial(asyncio.run, loop(owner)) for owner in range(4)])
        kept = {object_id: content for part in found for object_id, content in part.items()}
        assert len(kept) == 4 * 16 * 9
        assert manager.wal is not None
        assert manager.wal.durable_lsn == manager.wal.last_lsn
        assert {each: intact(manager.peek(each)) for each in manager.ids()} == kept
        manager.check()
    with TieredMemoryManager(1 << 15, folder=tmp_path, durability=durability) as manager:
        assert {each: manager.peek(each).payload for each in manager.ids()} == kept


def test_blocking_and_awaiting_callers_share_syncs(tmp_path: Path) -> None:
    with MemoryManager(1 << 20, folder=tmp_path) as manager:
        space = AsyncMemoryManager(manager)

        async def awaiting(owner: int) -> None:
            await asyncio.gather(*(space.store({"owner": owner, "n": n}) for n in range(100)))

        def blocking(owner: int) -> None:
            for n in range(50):
                manager.store({"owner": owner, "n": n})

        assert manager.wal is not None
        blocking(0)
        assert manager.wal.durable_lsn == 50  # nobody else came to sync for it
        in_threads([*(partial(asyncio.run, awaiting(owner)) for owner in range(2)),
                    *(partial(blocking, owner) for owner in range(2, 4))])  # fmt: skip
        assert len(manager) == 350
        assert manager.wal.durable_lsn == manager.last_lsn == 350
        manager.check()


def test_objects_that_go_while_all_are_listed_are_passed_over() -> None:
    class Hasty(ManualClock):
        """Time passes between any two looks at it."""

        def __call__(self) -> float:
            self.now += 1
            return self.now

    for lifetime in range(1, 20):  # one of them ends between any two steps of the listing
        with MemoryManager(1 << 16, runtime=Runtime(clock=Hasty()), retriever=None) as space:
            for _ in range(3):
                space.store({"mortal": True}, ttl=lifetime)
            kept = space.store({"mortal": False})
            listed = list(space.objects())
            assert listed[-1].id == kept.id
