"""Two tiers, one population: whatever fails, a body is in the heap or in the cold tier."""

from __future__ import annotations

import gc
import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memoryspace.errors import CorruptData, InvalidInput, OutOfSpace, StoreError, UnknownObject
from memoryspace.kernel import (
    CheckpointManager,
    Durability,
    GenerationalCollector,
    MarkAndSweepCollector,
    MemoryObject,
    MissRatioCurve,
    NewObject,
    Quotas,
    RamColdStorage,
    Runtime,
    TieredMemoryManager,
    Tiering,
    WriteAheadLog,
)
from memoryspace.kernel.tiers.cold import LMDB_FILE, SQLITE_FILE
from memoryspace.testing import ManualClock, capture

from faulty_disk import FaultyDisk

QUICK = Durability(sync="os")
VERBS = {
    "save": ("_put",),
    "load": ("_get", "_get_many"),
    "delete": ("_remove",),
    "sync": ("_flush",),
    "list": ("_keys_from",),
}


class FailingCold(RamColdStorage):
    """A cold tier that refuses the verbs it is told to, and counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.batches: list[int] = []  # the sizes of the writes

    def _ask(self, primitive: Any, *given: Any) -> Any:
        name = primitive.__name__
        if any(name in VERBS[verb] for verb in self.broken):
            raise StoreError(f"the cold tier fails at {name}")
        if name == "_put":
            self.batches.append(len(given[0]))
        return super()._ask(primitive, *given)

    @contextmanager
    def healed(self) -> Iterator[None]:
        """For looks that are not part of the test."""
        broken, self.broken = self.broken, set()
        yield
        self.broken = broken

    def copy(self) -> FailingCold:
        other = FailingCold()
        other._frames, other._sorted = dict(self._frames), None
        return other

    def damage(self, key: int) -> None:
        frame = bytearray(self._frames[key])
        frame[-1] ^= 0xFF
        self._frames[key] = bytes(frame)


def tiered(capacity: int = 1 << 12, **options: Any) -> TieredMemoryManager:
    """A small space whose cold tier is written when the test says so."""
    options.setdefault("cold_store", FailingCold())
    options.setdefault("tiering", Tiering(flush_interval=None))
    options.setdefault("retriever", None)
    return TieredMemoryManager(capacity, **options)


def cold_of(space: TieredMemoryManager) -> FailingCold:
    assert isinstance(space.cold, FailingCold)
    return space.cold


def fill(space: TieredMemoryManager, count: int, size: int = 100) -> list[str]:
    return [space.store({"n": number, "x": "x" * size}).id for number in range(count)]


def tiers(space: TieredMemoryManager, ids: list[str]) -> list[str]:
    return [space.tier_of(each) for each in ids]


# -- the machine -----------------------------------------------------------------------------------

WORDS = ["alpha", "beta", "gamma"]
SIZES = st.sampled_from([0, 1, 40, 130, 400, 900])
LENGTHS = st.one_of(SIZES, SIZES, SIZES, st.just(3000))  # the last is more than the heap
NUMBERS = st.integers(0, 1 << 30)


@dataclass
class Kept:
    payload: dict[str, Any]
    word: str
    pinned: bool


class TwoTiers(RuleBasedStateMachine):
    """A tiered space and a dict take the same steps; the cold tier or the journal may fail."""

    options: dict[str, Any]
    capacity = 2048

    def __init__(self) -> None:
        super().__init__()
        self.exit = TemporaryDirectory()
        self.folder = Path(self.exit.name)
        self.cold = FailingCold()
        self.disk = FaultyDisk()
        self.kept: dict[str, Kept] = {}
        self.links: set[tuple[str, str]] = set()
        self.serial = 0
        self.was_broken = False  # limits are kept again with the next write that goes well
        self.space = self.opened(self.folder, self.cold, self.disk)

    def opened(self, folder: Path, cold: FailingCold, disk: FaultyDisk) -> TieredMemoryManager:
        return TieredMemoryManager(
            self.capacity,
            cold_store=cold,
            wal=WriteAheadLog(folder / "journal", sync="os", disk=disk),
            checkpoint_manager=CheckpointManager(folder / "checkpoints", keep=2),
            tiering=Tiering(flush_interval=None, max_dirty=4),
            runtime=Runtime(clock=ManualClock()),
            **self.options,
        )

    def closed(self, space: TieredMemoryManager) -> None:
        assert space.wal is not None
        space.close()
        space.wal.close()

    def teardown(self) -> None:
        self.cold.broken.clear()
        self.disk.heal()
        self.closed(self.space)
        self.exit.cleanup()

    @contextmanager
    def may_fail(self) -> Iterator[None]:
        """Only what was told to fail may, and then the step did not happen."""
        try:
            yield
        except StoreError:
            assert self.cold.broken or self.disk.failed["pwrite"]
        self.disk.heal()

    def some_id(self, number: int) -> str:
        return list(self.kept)[number % len(self.kept)]

    def new_payload(self, word: str, length: int) -> dict[str, Any]:
        self.serial += 1
        return {"text": f"{word} number {self.serial}", "filler": ["x" * length]}

    def wrote(self) -> None:
        self.was_broken = bool(self.cold.broken)

    @rule(word=st.sampled_from(WORDS), length=LENGTHS, pinned=st.booleans(), named=st.booleans())
    def store(self, word: str, length: int, pinned: bool, named: bool) -> None:
        payload = self.new_payload(word, length)
        with self.may_fail():
            name = f"name {self.serial}" if named else None
            found = self.space.store(payload, pin=pinned, id=name)
            self.kept[found.id] = Kept(payload, word, pinned)
            assert found.payload == payload
            self.wrote()

    @rule(word=st.sampled_from(WORDS), lengths=st.lists(SIZES, max_size=6))
    def store_many(self, word: str, lengths: list[int]) -> None:
        payloads = [self.new_payload(word, length) for length in lengths]
        with self.may_fail():
            found = self.space.store_many([NewObject(payload) for payload in payloads])
            for obj, payload in zip(found, payloads, strict=True):
                self.kept[obj.id] = Kept(payload, word, False)
            self.wrote()

    @precondition(lambda self: self.kept)
    @rule(number=NUMBERS)
    def load(self, number: int) -> None:
        object_id = self.some_id(number)
        hot = self.space.tier_of(object_id) == "hot"
        try:
            assert self.space.load(object_id).payload == self.kept[object_id].payload
        except StoreError:
            assert not hot, "a hot object needs no cold tier"
            assert "load" in self.cold.broken

    @precondition(lambda self: self.kept)
    @rule(number=NUMBERS, word=st.sampled_from(WORDS), length=LENGTHS)
    def update(self, number: int, word: str, length: int) -> None:
        object_id = self.some_id(number)
        payload = self.new_payload(word, length)
        with self.may_fail():
            assert self.space.update(object_id, payload=payload).payload == payload
            self.kept[object_id] = Kept(payload, word, self.kept[object_id].pinned)
            self.wrote()

    @precondition(lambda self: self.kept)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=3))
    def free(self, numbers: list[int]) -> None:
        ids = {self.some_id(number) for number in numbers}
        with self.may_fail():
            assert self.space.free_many(ids) == len(ids)
            for object_id in ids:
                del self.kept[object_id]
            self.links = {pair for pair in self.links if not ids.intersection(pair)}

    @precondition(lambda self: self.kept)
    @rule(one=NUMBERS, other=NUMBERS, on=st.booleans())
    def link(self, one: int, other: int, on: bool) -> None:
        pair = self.some_id(one), self.some_id(other)
        with self.may_fail():
            if on:
                self.space.add_reference(*pair)
                self.links.add(pair)
            else:
                self.space.remove_reference(*pair)
                self.links.discard(pair)

    @rule(word=st.sampled_from(WORDS))
    def retrieve(self, word: str) -> None:
        with self.may_fail():
            hits = self.space.retrieve(word, top_k=1000)
            assert {hit.object.id for hit in hits} == {
                object_id for object_id, kept in self.kept.items() if kept.word == word
            }
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            for hit in hits:
                assert hit.object.payload == self.kept[hit.object.id].payload

    @precondition(lambda self: self.kept)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4))
    def promote(self, numbers: list[int]) -> None:
        ids = [self.some_id(number) for number in numbers]
        with self.may_fail():
            before = tiers(self.space, ids).count("hot")
            assert 0 <= self.space.promote(ids) <= len(ids) - before

    @precondition(lambda self: self.kept)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4))
    def demote(self, numbers: list[int]) -> None:
        ids = [self.some_id(number) for number in numbers]
        with self.may_fail():
            self.space.demote_objects(ids)
            assert set(tiers(self.space, ids)) == {"cold"}

    @rule()
    def flush_dirty(self) -> None:
        with self.may_fail():
            self.space.flush_dirty()
            assert not self.space.stats()["dirty"]

    @rule()
    def flush_some(self) -> None:
        with self.may_fail():
            self.space.flush_some()
            assert not self.space.stats()["dirty"]  # so few are one batch

    @rule()
    def checkpoint(self) -> None:
        with self.may_fail():
            assert self.space.checkpoint() == self.space.last_lsn

    @rule()
    def reopen(self) -> None:
        self.closed(self.space)
        self.cold.broken.clear()
        self.space = self.opened(self.folder, self.cold, self.disk)
        self.was_broken = True  # what was journalled comes back dirty

    @rule(synced=st.booleans())
    def crash(self, synced: bool) -> None:
        """What a killed process leaves is whole. Another one finds it, and this one goes on."""
        with TemporaryDirectory() as name, self.cold.healed():
            copy, cold = Path(name) / "copy", self.cold.copy()
            shutil.copytree(self.folder, copy)
            found = self.opened(copy, cold, FaultyDisk())
            self.same_as_model(found)
            if synced:
                found.flush_dirty()
                found.checkpoint()
                found.check()
            self.closed(found)

    @rule(verbs=st.sets(st.sampled_from(sorted(VERBS)), min_size=1))
    def break_cold(self, verbs: set[str]) -> None:
        self.cold.broken = verbs
        self.was_broken = True

    @rule()
    def heal_cold(self) -> None:
        self.cold.broken = set()

    @rule()
    def break_journal(self) -> None:
        """The next append fails, or, if a step has none, nothing does."""
        self.disk.fail("pwrite")

    @invariant()
    def nothing_is_lost(self) -> None:
        with self.cold.healed():
            self.same_as_model(self.space)

    def same_as_model(self, space: TieredMemoryManager) -> None:
        space.check()
        assert set(space.ids()) == set(self.kept)
        for object_id, kept in self.kept.items():
            assert space.peek(object_id).payload == kept.payload
            assert space.is_pinned(object_id) == kept.pinned
            targets = {target for source, target in self.links if source == object_id}
            assert set(space.references(object_id)) == targets

    @invariant()
    def limits_are_kept(self) -> None:
        if self.was_broken:
            return
        stats = self.space.stats()
        assert stats["dirty"] <= (4 if self.space.write_policy == "write_back" else 0)
        if self.space.max_hot_objects is not None:
            assert stats["hot_objects"] <= self.space.max_hot_objects
        assert not self.space.pager.over()
        assert stats["hot_objects"] + stats["cold_items"] == len(self.kept)


@pytest.mark.parametrize(
    "options",
    [
        {"write_policy": "write_back", "paging_strategy": "arc"},
        {"write_policy": "write_through", "paging_strategy": "sieve", "hot_reserve_ratio": 0.0},
        {"write_policy": "write_back", "paging_strategy": "s3fifo", "max_hot_objects": 3},
        {"write_policy": "write_through", "paging_strategy": "lru", "promotion_batch_size": 3},
        {
            "write_policy": "write_back",
            "paging_strategy": "clock",
            "page_size": 64,
            "max_pages": 12,
            "hot_reserve_ratio": 0.6,
        },
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_whatever_fails_no_object_is_in_neither_tier(options: dict[str, Any]) -> None:
    machine = type("TwoTiersOf", (TwoTiers,), {"options": options})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=40, stateful_step_count=30, derandomize=True)
    )


# -- failures, one at a time -----------------------------------------------------------------------


def test_a_failed_demotion_keeps_the_object_hot() -> None:
    with tiered() as space:
        ids = fill(space, 3)
        cold_of(space).broken = {"save"}
        with pytest.raises(StoreError, match="fails at _put"):
            space.demote_objects(ids)
        assert tiers(space, ids) == ["hot"] * 3
        assert [space.load(each).payload["n"] for each in ids] == [0, 1, 2]
        cold_of(space).broken.clear()
        space.demote_objects(ids)
        assert tiers(space, ids) == ["cold"] * 3
        space.check()


def test_a_store_that_finds_no_room_because_the_cold_tier_fails_changes_nothing() -> None:
    with tiered() as space:
        ids = fill(space, 20)
        cold_of(space).broken = {"save"}
        before = space.stats()
        with pytest.raises(StoreError):
            fill(space, 30)
        space.check()
        assert space.stats()["demotion_failures"] > before["demotion_failures"]
        assert set(ids) <= set(space.ids())
        assert tiers(space, ids) == ["hot"] * 20
        cold_of(space).broken.clear()
        more = fill(space, 30)
        assert {*ids, *more} <= set(space.ids())
        space.check()


def test_a_failed_write_through_keeps_the_object_dirty_and_is_tried_again() -> None:
    with tiered(write_policy="write_through") as space, capture(space.events) as events:
        cold_of(space).broken = {"save"}
        kept = space.store({"n": 1})
        assert space.stats()["dirty"] == 1
        assert [event.name for event in events].count("demotion_failed") == 1
        cold_of(space).broken.clear()
        other = space.store({"n": 2})
        assert space.stats()["dirty"] == 0
        space.demote_objects([kept.id, other.id])
        assert space.load(kept.id).payload == {"n": 1}
        space.check()


def test_a_failed_promotion_still_answers() -> None:
    with tiered(1 << 10, hot_reserve_ratio=0.0) as space:
        first, *_ = fill(space, 20)
        assert space.tier_of(first) == "cold"
        space.flush_dirty()
        space.store({"n": "dirty"})
        cold_of(space).broken = {"save"}
        while space.stats()["promotion_failures"] == 0:  # clean ones go first, then it fails
            cold = [each for each in space.ids() if space.tier_of(each) == "cold"]
            assert space.load(cold[0]).payload["x"] == "x" * 100
            space.update(space.ids()[-1], payload={"n": "dirty again"})
        cold_of(space).broken.clear()
        space.check()


def test_a_cold_read_that_fails_is_told_and_counts_no_use() -> None:
    with tiered() as space:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        cold_of(space).broken = {"load"}
        with pytest.raises(StoreError, match="fails at"):
            space.load(only)
        cold_of(space).broken.clear()
        assert space.peek(only).access_count == 0
        assert space.load(only).access_count == 1


def test_what_is_stored_is_returned_though_the_cold_tier_cannot_be_read() -> None:
    with tiered(max_hot_objects=1) as space:
        cold_of(space).broken = {"load"}
        big = space.store({"x": "y" * 9000})
        assert big.payload == {"x": "y" * 9000}
        assert space.tier_of(big.id) == "cold"
        with pytest.raises(StoreError):
            space.update(big.id, tags=["big"])
        both = space.store_many([NewObject({"n": 1}), NewObject({"n": 2})])
        assert [each.payload["n"] for each in both] == [1, 2]
        cold_of(space).broken.clear()
        assert space.load(big.id).payload == {"x": "y" * 9000}
        assert space.load(big.id).tags == frozenset()  # what raised did not happen
        space.check()


def test_a_lost_cold_value_is_damage_and_not_a_missing_key() -> None:
    with tiered() as space:
        lost, kept = fill(space, 2)
        space.demote_objects([lost, kept])
        space.cold.delete(min(space.cold.keys()))
        for read in (space.load, space.peek, lambda each: space.promote([each])):
            with pytest.raises(CorruptData, match="lost its bytes"):
                read(lost)
        assert space.load(kept).payload["n"] == 1
        space.free_object(lost)
        space.check()


def test_a_damaged_cold_value_is_told() -> None:
    with tiered() as space:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        cold_of(space).damage(min(space.cold.keys()))
        with pytest.raises(CorruptData, match="is damaged"):
            space.load(only)
        assert only in space


def test_a_cold_copy_of_a_change_that_was_not_journalled_does_not_haunt_the_next_one(
    tmp_path: Path,
) -> None:
    """Its stamp comes again: with the copy in the way, the next object could never be demoted."""
    disk, cold = FaultyDisk(), FailingCold()
    wal = WriteAheadLog(tmp_path, sync="os", disk=disk)
    with wal, tiered(wal=wal, cold_store=cold) as space:
        cold.broken = {"delete"}
        disk.fail("pwrite")
        with pytest.raises(StoreError):
            space.store({"x": "y" * 9000})  # written cold, then refused by the journal
        assert len(cold) == 1
        with pytest.raises(StoreError, match="_remove"):
            space.store({"n": 1})
        assert len(space) == 0
        with pytest.raises(StoreError, match="_remove"):
            space.store({"x": "z" * 9000})
        cold.broken.clear()
        small = space.store({"n": 2})
        assert len(cold) == 0
        space.demote_objects([small.id])
        assert space.load(small.id).payload == {"n": 2}
        space.check()


def test_a_second_try_replaces_the_cold_copy_of_the_first(tmp_path: Path) -> None:
    disk, cold = FaultyDisk(), FailingCold()
    wal = WriteAheadLog(tmp_path, sync="os", disk=disk)
    with wal, tiered(wal=wal, cold_store=cold) as space:
        cold.broken = {"delete"}
        disk.fail("pwrite")
        with pytest.raises(StoreError):
            space.store({"x": "y" * 9000})
        cold.broken.clear()
        big = space.store({"x": "z" * 9000})
        assert len(cold) == 1
        assert space.load(big.id).payload == {"x": "z" * 9000}
        space.check()


@pytest.mark.parametrize("in_background", [False, True])
def test_changes_without_bodies_do_not_wait_for_the_cold_tier(
    in_background: bool, tmp_path: Path
) -> None:
    disk, cold = FaultyDisk(), FailingCold()
    wal = WriteAheadLog(tmp_path, sync="os", disk=disk)
    with wal, tiered(wal=wal, cold_store=cold) as space:
        (kept,) = fill(space, 1)
        cold.broken = {"delete"}
        disk.fail("pwrite")
        with pytest.raises(StoreError):
            space.store({"x": "y" * 9000})
        space.pin(kept)
        cold.broken.clear()
        if in_background:
            space.flush_some()
        else:
            space.flush_dirty()
        assert len(cold) == 1  # the copy that nobody owns went first
        space.demote_objects([kept])
        space.check()


def test_the_dead_wait_for_a_cold_tier_that_cannot_delete() -> None:
    with tiered(1 << 18, write_policy="write_through") as space:
        ids = fill(space, 300)
        cold_of(space).broken = {"delete"}
        space.free_many(ids[:280])
        more = fill(space, 40)  # stores go on
        assert len(space.cold) == 340
        cold_of(space).broken.clear()
        space.free_many(more)
        fill(space, 20)
        assert len(space.cold) == len(space)
        space.check()


def test_a_checkpoint_that_the_cold_tier_does_not_sync_for_is_none(tmp_path: Path) -> None:
    with tiered(folder=tmp_path, durability=QUICK) as space:
        ids = fill(space, 3)
        space.demote_objects(ids)
        cold_of(space).broken = {"sync"}
        with pytest.raises(StoreError):
            space.checkpoint()
        assert space.checkpoint_manager is not None
        assert space.checkpoint_manager.lsns() == []
        cold_of(space).broken.clear()
        fill(space, 1)
        assert space.checkpoint() == space.last_lsn
        assert space.checkpoint_manager.lsns() == [space.last_lsn]


def test_close_tells_if_dirty_objects_of_a_space_without_a_journal_are_lost() -> None:
    space = tiered()
    fill(space, 2)
    cold_of(space).broken = {"save"}
    with pytest.raises(StoreError):
        space.close()
    space.close()  # it is closed all the same


def test_close_of_a_journalled_space_survives_a_broken_cold_tier(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cold = FailingCold()
    with tiered(folder=tmp_path, durability=QUICK, cold_store=cold) as space:
        ids = fill(space, 2)
        cold.broken = {"save"}
    assert "not brought up to date" in caplog.text
    cold.broken.clear()
    with tiered(folder=tmp_path, durability=QUICK, cold_store=cold) as space:
        assert [space.load(each).payload["n"] for each in ids] == [0, 1]


def test_a_space_that_cannot_be_opened_lets_its_cold_tier_and_folder_go(tmp_path: Path) -> None:
    def opened(**options: Any) -> TieredMemoryManager:
        return TieredMemoryManager(1 << 16, folder=tmp_path, durability=QUICK, **options)

    class Refusing(GenerationalCollector):
        def attach(self, heap: object) -> None:
            raise RuntimeError("no")

    with opened() as space:
        kept = space.store({"n": 1}, root=True)
        space.demote_objects([kept.id])
    with pytest.raises(RuntimeError, match="no"):
        opened(collectors=[Refusing()])
    with opened() as space:
        assert space.load(kept.id).payload == {"n": 1}


# -- write policies --------------------------------------------------------------------------------


def test_write_back_writes_nothing_until_it_must() -> None:
    with tiered(1 << 16) as space:
        fill(space, 50)
        assert len(space.cold) == 0
        assert space.stats()["dirty"] == 50
        space.flush_dirty()
        assert len(space.cold) == 50
        assert space.stats()["dirty"] == 0
        assert space.stats()["page_writes"] == 50
        assert set(tiers(space, space.ids())) == {"hot"}


def test_the_dirty_set_is_bounded() -> None:
    with tiered(1 << 18, tiering=Tiering(max_dirty=10, flush_interval=None)) as space:
        for number in range(100):
            space.store({"n": number})
            assert space.stats()["dirty"] <= 10
        space.store_many([NewObject({"n": number}) for number in range(1000)])
        assert space.stats()["dirty"] <= 10
        space.flush_dirty()
        for object_id in space.ids()[:50]:
            space.update(object_id, payload={"n": "new"})
            assert space.stats()["dirty"] <= 10
        space.check()


def test_write_through_leaves_nothing_dirty() -> None:
    with tiered(1 << 16, write_policy="write_through") as space:
        ids = fill(space, 5)
        assert len(space.cold) == 5
        space.update(ids[0], payload={"n": "new"})
        assert space.stats()["dirty"] == 0
        written = space.cold.stats.writes
        space.demote_objects(ids)
        assert space.cold.stats.writes == written  # they were there already
        assert space.load(ids[0]).payload == {"n": "new"}


def test_close_flushes_what_is_dirty() -> None:
    cold = FailingCold()
    with tiered(1 << 16, cold_store=cold) as space:
        fill(space, 5)
        assert len(cold) == 0
    assert len(cold) == 5
    assert cold.stats.writes == 5


def test_some_are_flushed_at_a_time() -> None:
    with tiered(1 << 18) as space:
        fill(space, 300, size=10)
        space.flush_some()
        assert space.stats()["dirty"] == 300 - 256
        space.flush_some()
        assert space.stats()["dirty"] == 0
        space.check()


class GatedCold(FailingCold):
    """Lets a test do something while a write is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Any] = []

    def _put(self, frames: Any) -> None:
        super()._put(frames)
        while self.meanwhile:
            self.meanwhile.pop()()


def test_what_changes_while_it_is_flushed_stays_dirty() -> None:
    cold = GatedCold()
    with tiered(1 << 16, cold_store=cold) as space:
        freed, changed, kept = fill(space, 3)

        def change() -> None:
            space.free_object(freed)
            space.update(changed, payload={"n": "new"})

        cold.meanwhile.append(change)
        space.flush_some()
        assert space.stats()["dirty"] == 1
        space.check()
        space.demote_objects([changed, kept])
        assert space.load(changed).payload == {"n": "new"}
    assert len(cold) == 2  # the copies that came too late were deleted at the end


def test_a_background_thread_flushes() -> None:
    written = threading.Event()

    class Telling(RamColdStorage):
        def _put(self, frames: Any) -> None:
            super()._put(frames)
            written.set()

    with tiered(1 << 16, cold_store=Telling(), tiering=Tiering(flush_interval=0.001)) as space:
        fill(space, 3)
        assert written.wait(30)
    assert len(space.cold) == 3


def test_a_background_flush_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    failed, written = threading.Event(), threading.Event()

    class Recovering(RamColdStorage):
        def _put(self, frames: Any) -> None:
            if not failed.is_set():
                failed.set()
                raise StoreError("not yet")
            super()._put(frames)
            written.set()

    with (
        caplog.at_level(logging.WARNING),
        tiered(1 << 16, cold_store=Recovering(), tiering=Tiering(flush_interval=0.001)) as space,
    ):
        fill(space, 1)
        assert written.wait(30)
    assert "not yet" in caplog.text


def test_the_flusher_ends_with_a_space_that_is_forgotten() -> None:
    space = tiered(tiering=Tiering(flush_interval=0.001))
    assert space.engine.flusher is not None
    thread = space.engine.flusher._thread
    del space
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


# -- moving ----------------------------------------------------------------------------------------


def test_what_does_not_fit_is_demoted_and_nothing_is_lost() -> None:
    with tiered(1 << 12) as space:
        ids = fill(space, 200)
        assert [space.peek(each).payload["n"] for each in ids] == list(range(200))
        stats = space.stats()
        assert stats["hot_objects"] + stats["cold_items"] == 200 == len(space)
        assert stats["demotions"] >= stats["cold_items"] > 0
        space.check()


def test_a_promotion_keeps_the_cold_copy_so_the_next_demotion_writes_nothing() -> None:
    with tiered(1 << 16) as space:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        for _ in range(3):
            assert space.load(only).payload["n"] == 0
            assert space.tier_of(only) == "hot"
            space.demote_objects([only])
        assert cold_of(space).batches == [1]
        space.check()


def test_a_rewritten_object_is_written_cold_again() -> None:
    with tiered(1 << 16) as space:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        space.update(only, payload={"n": "new"})
        space.demote_objects([only])
        assert space.load(only).payload == {"n": "new"}
        assert cold_of(space).batches == [1, 1]


def test_tags_and_pins_change_nothing_in_the_cold_tier() -> None:
    with tiered(1 << 16) as space:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        space.update(only, tags=["x"], importance=0.9)
        space.pin(only)
        assert space.tier_of(only) == "cold"
        assert space.stats()["dirty"] == 0
        assert cold_of(space).batches == [1]
        space.check()


def test_several_are_promoted_at_once() -> None:
    with tiered(1 << 16) as space:
        ids = fill(space, 10)
        space.demote_objects(ids)
        assert space.promote([*ids[:6], ids[0]]) == 6
        assert tiers(space, ids) == ["hot"] * 6 + ["cold"] * 4
        stats = space.stats()
        assert (stats["promotions"], stats["page_faults"], stats["cold_hits"]) == (6, 0, 0)
        assert space.promote(ids[:6]) == 0
        with pytest.raises(UnknownObject):
            space.promote([ids[9], "nobody"])
        assert space.tier_of(ids[9]) == "cold"
        space.check()


@pytest.mark.parametrize("batch", [1, 3])
def test_a_search_promotes_as_many_as_the_batch_says(batch: int) -> None:
    with tiered(1 << 16, retriever="sparse", promotion_batch_size=batch) as space:
        ids = [space.store({"text": f"cat number {n} {'cat ' * n}"}).id for n in range(6)]
        space.demote_objects(ids)
        best = [hit.object.id for hit in space.retrieve("cat", top_k=6)]
        assert sorted(best) == sorted(ids)
        assert tiers(space, best) == ["hot"] * batch + ["cold"] * (6 - batch)
        space.check()


def test_an_object_bigger_than_the_heap_goes_cold_directly() -> None:
    with tiered(1 << 12) as space:
        hot = fill(space, 3)
        big = space.store({"x": "y" * 9000}, pin=True, tags=["big"])
        assert space.tier_of(big.id) == "cold"
        assert tiers(space, hot) == ["hot"] * 3  # nobody had to go for it
        for _ in range(2):
            assert space.load(big.id).payload == {"x": "y" * 9000}
            assert space.tier_of(big.id) == "cold"
        assert space.stats()["promotion_failures"] == 2
        assert space.stats()["page_faults"] == 2
        assert space.promote([big.id]) == 0
        assert space.stats()["page_faults"] == 2  # nobody asked for it
        space.check()


def test_an_object_may_outgrow_the_heap_and_shrink_again() -> None:
    with tiered(1 << 12) as space:
        (only,) = fill(space, 1)
        space.update(only, payload={"x": "y" * 9000})
        assert space.tier_of(only) == "cold"
        space.check()
        space.update(only, payload={"x": "small"})
        assert space.tier_of(only) == "hot"
        assert space.load(only).payload == {"x": "small"}
        space.check()


def test_a_batch_bigger_than_the_heap_goes_cold_in_one_write() -> None:
    with tiered(1 << 12) as space:
        hot = fill(space, 3)
        stored = space.store_many([NewObject({"n": n, "x": "x" * 100}) for n in range(100)])
        assert set(tiers(space, [each.id for each in stored])) == {"cold"}
        assert tiers(space, hot) == ["hot"] * 3
        assert cold_of(space).batches == [100]
        assert [space.peek(each.id).payload["n"] for each in stored] == list(range(100))
        space.check()


def test_making_room_frees_the_reserve_too() -> None:
    with tiered(1 << 14, hot_reserve_ratio=0.5) as space:
        while not space.stats()["demotions"]:
            fill(space, 1)
        assert space.engine.heap.space.available() >= (1 << 13) - 256  # the newest is in it
        space.check()


def test_without_a_reserve_only_as_many_go_as_must() -> None:
    with tiered(1 << 14, hot_reserve_ratio=0.0) as space:
        fill(space, 500)
        assert space.engine.heap.space.available() < 1 << 12
        space.check()


def test_so_many_objects_are_hot_and_no_more() -> None:
    with tiered(1 << 16, max_hot_objects=5) as space:
        ids = fill(space, 20)
        assert space.stats()["hot_objects"] == 5
        for object_id in ids:
            assert space.load(object_id).id == object_id
            assert space.stats()["hot_objects"] <= 5
        space.store_many([NewObject({"n": n}) for n in range(50)])
        assert space.stats()["hot_objects"] == 5
        space.check()


def test_those_too_many_are_written_together() -> None:
    with tiered(1 << 18, max_hot_objects=5) as space:
        space.store_many([NewObject({"n": n}) for n in range(500)])
        assert space.stats()["hot_objects"] == 5
        assert len(cold_of(space).batches) == 1


def test_so_many_pages_are_hot_and_no_more() -> None:
    with tiered(1 << 16, page_size=64, max_pages=10) as space:
        ids = fill(space, 20, size=100)
        assert 0 < space.pager.pages <= 10
        big = space.store({"x": "y" * 2000})
        assert space.tier_of(big.id) == "cold"
        assert space.load(big.id).payload == {"x": "y" * 2000}
        assert space.tier_of(big.id) == "cold"
        assert space.pager.pages <= 10
        for object_id in ids:
            space.load(object_id)
            assert space.pager.pages <= 10
        space.update(ids[-1], payload={"x": "y" * 2000})
        assert space.tier_of(ids[-1]) == "cold"
        assert space.pager.pages <= 10
        space.check()


def test_the_one_asked_for_stays_when_there_is_room_for_one() -> None:
    with tiered(1 << 16, max_hot_objects=1) as space:
        first, second = fill(space, 2)
        for object_id in (first, second, first):
            space.load(object_id)
            assert space.tier_of(object_id) == "hot"


@pytest.mark.parametrize("strategy", ["lru", "clock", "lfu", "sieve", "s3fifo", "arc"])
def test_what_is_used_all_the_time_stays_hot(strategy: str) -> None:
    with tiered(1 << 13, paging_strategy=strategy, hot_reserve_ratio=0.1) as space:
        busy = fill(space, 3)
        for _ in range(30):
            for object_id in busy * 2:
                space.load(object_id)
            fill(space, 5)
        assert tiers(space, busy) == ["hot"] * 3
        assert space.stats()["hit_rate"] == 1.0


def test_pinned_objects_are_demoted_but_not_collected() -> None:
    with tiered(1 << 12, collectors=[MarkAndSweepCollector()]) as space:
        pinned = [space.store({"n": n, "x": "x" * 100}, pin=True).id for n in range(60)]
        loose = space.store({"n": "loose"})
        assert "cold" in tiers(space, pinned)
        assert space.run_gc().freed_ids == [loose.id]
        assert [space.load(each).payload["n"] for each in pinned] == list(range(60))
        space.check()


def test_by_default_only_what_has_expired_is_collected() -> None:
    clock = ManualClock()
    with tiered(1 << 12, runtime=Runtime(clock=clock)) as space:
        ids = fill(space, 60)
        mortal = [space.store({"n": n}, ttl=5).id for n in range(5)]
        space.demote_objects(mortal[:2])
        clock.advance(5)
        assert set(space.run_gc().freed_ids) == set(mortal)
        assert set(space.ids()) == set(ids)
        space.check()


def test_collected_objects_leave_the_cold_tier_too() -> None:
    with tiered(1 << 16, collectors=[MarkAndSweepCollector()]) as space:
        ids = fill(space, 300)
        space.demote_objects(ids)
        assert space.run_gc().freed == 300
        assert len(space.cold) == 0  # there is no checkpoint that could ask for them
        space.check()


def test_the_dead_stay_cold_while_a_checkpoint_may_ask_for_them(tmp_path: Path) -> None:
    with tiered(folder=tmp_path, durability=Durability(sync="os", keep=1)) as space:
        ids = fill(space, 3)
        space.demote_objects(ids)
        space.checkpoint()
        space.free_object(ids[0])
        space.update(ids[1], payload={"n": "new"})
        assert len(space.cold) == 3
        space.checkpoint()
        assert len(space.cold) == 1
        space.check()


# -- searching -------------------------------------------------------------------------------------


def test_a_better_match_in_the_cold_tier_is_found_before_a_worse_hot_one() -> None:
    with tiered(1 << 16, retriever="sparse") as space:
        best = space.store({"text": "red apples and green apples"}).id
        worse = space.store({"text": "a bag of apples, pears, plums, nuts, figs and dates"}).id
        space.store({"text": "nothing of the kind"})
        space.demote_objects([best])
        hits = space.retrieve("green apples")
        assert [hit.object.id for hit in hits] == [best, worse]
        assert hits[0].score > hits[1].score
        assert hits[0].object.payload == {"text": "red apples and green apples"}


def test_the_ranking_does_not_depend_on_the_tier() -> None:
    with tiered(1 << 16, retriever="sparse") as space:
        ids = [space.store({"text": f"apple {'pie ' * n}"}).id for n in range(8)]
        hot = [(hit.object.id, hit.score) for hit in space.retrieve("apple pie", top_k=8)]
        space.demote_objects(ids[::2])
        assert [(hit.object.id, hit.score) for hit in space.retrieve("apple pie", 8)] == hot


def test_a_search_counts_as_a_use_of_what_it_finds_in_either_tier() -> None:
    clock = ManualClock()
    with tiered(1 << 16, retriever="sparse", runtime=Runtime(clock=clock)) as space:
        hot, cold = (space.store({"text": "apple"}).id for _ in range(2))
        unfound = space.store({"text": "pear"}).id
        space.demote_objects([cold])
        clock.advance(5)
        assert len(space.retrieve("apple")) == 2
        for object_id in (hot, cold):
            found = space.peek(object_id)
            assert (found.access_count, found.last_accessed_at) == (1, clock.now)
        assert space.peek(unfound).access_count == 0
        assert (space.pager.stats.hits, space.pager.stats.page_faults) == (1, 1)
        assert (space.hit_rate.hits, space.hit_rate.misses) == (1, 1)


def test_an_update_of_a_cold_object_is_searched_by_its_new_text() -> None:
    with tiered(1 << 16, retriever="sparse") as space:
        (only,) = (space.store({"text": "winter"}).id,)
        space.demote_objects([only])
        space.update(only, payload={"text": "summer"})
        assert space.retrieve("winter") == []
        assert [hit.object.id for hit in space.retrieve("summer")] == [only]


# -- restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [False, True])
def test_both_tiers_come_back(checkpointed: bool, tmp_path: Path) -> None:
    def opened() -> TieredMemoryManager:
        return TieredMemoryManager(1 << 13, folder=tmp_path, durability=QUICK)

    with opened() as space:
        ids = fill(space, 100)
        named = space.store({"text": "a name"}, id="Ann", pin=True)
        space.add_reference("Ann", ids[0])
        space.demote_objects([named.id])
        if checkpointed:
            space.checkpoint()
        assert space.stats()["cold_items"] > 0
    with opened() as space:
        space.check()
        assert [space.load(each).payload["n"] for each in ids] == list(range(100))
        assert space.load("Ann").payload == {"text": "a name"}
        assert space.is_pinned("Ann")
        assert space.references("Ann") == [ids[0]]
        assert [hit.object.id for hit in space.retrieve("name")] == ["Ann"]
        space.check()
    assert (tmp_path / "cold" / LMDB_FILE).exists() or (tmp_path / "cold" / SQLITE_FILE).exists()


def test_a_smaller_heap_takes_the_rest_into_the_cold_tier(tmp_path: Path) -> None:
    with tiered(1 << 16, folder=tmp_path, durability=QUICK, cold_store=None) as space:
        ids = fill(space, 100)
        space.checkpoint()
        ids += fill(space, 100)
    with tiered(1 << 12, folder=tmp_path, durability=QUICK, cold_store=None) as space:
        space.check()
        assert [space.load(each).payload["n"] for each in ids] == [*range(100)] * 2
        assert space.stats()["cold_items"] > 100
        space.check()


def test_cold_copies_of_changes_that_a_crash_took_back_are_deleted(tmp_path: Path) -> None:
    cold = FailingCold()
    with tiered(folder=tmp_path / "a", durability=QUICK, cold_store=cold) as space:
        fill(space, 2)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        space.demote_objects(fill(space, 2))
        ahead = cold.copy()
    assert len(ahead) == 2
    with tiered(folder=tmp_path / "b", durability=QUICK, cold_store=ahead) as space:
        assert len(ahead) == 0
        others = [space.store({"n": "another"}).id for _ in range(2)]  # with the same stamps
        space.demote_objects(others)
        assert space.load(others[0]).payload == {"n": "another"}
        space.check()


def test_copies_of_objects_that_died_before_a_restart_are_deleted_after_it(tmp_path: Path) -> None:
    durability = Durability(sync="os", keep=1)
    cold = FailingCold()
    with tiered(folder=tmp_path, durability=durability, cold_store=cold) as space:
        ids = fill(space, 4)
        space.demote_objects(ids[:3])
        space.checkpoint()
        space.free_object(ids[0])
        born, changed = fill(space, 2)  # neither is in the checkpoint, but both are cold
        space.demote_objects([born, changed])
        space.free_object(born)
        space.update(changed, payload={"n": "new"})
        space.free_object(changed)
    assert len(cold) == 6
    with tiered(folder=tmp_path, durability=durability, cold_store=cold) as space:
        space.free_object(ids[1])
        space.free_object(ids[3])
        space.checkpoint()
        assert len(cold) == 1
        assert space.load(ids[2]).payload["n"] == 2
        space.check()


# -- figures and settings --------------------------------------------------------------------------


def test_the_figures_of_both_tiers() -> None:
    with tiered(1 << 16) as space:
        ids = fill(space, 4)
        space.demote_objects(ids[:2])
        space.load(ids[0])
        space.load(ids[2])
        space.load(ids[3])
        told = space.stats()
        expected = {
            "objects": 4, "hot_objects": 3, "cold_items": 1, "hot_hits": 2, "cold_hits": 1,
            "hit_rate": 2 / 3, "promotions": 1, "demotions": 2, "promotion_failures": 0,
            "demotion_failures": 0, "page_faults": 1, "page_evictions": 0, "page_writes": 2,
            "dirty": 2, "write_policy": "write_back",
        }  # fmt: skip
        assert {name: told[name] for name in expected} == expected


def test_hits_and_misses_are_recorded_as_they_come() -> None:
    curve = MissRatioCurve(rate=1.0)
    with tiered(1 << 16, tiering=Tiering(curve=curve, flush_interval=None)) as space:
        ids = fill(space, 4)
        space.demote_objects(ids)
        for _ in range(2):
            for object_id in ids:
                space.load(object_id)
        for object_id in ids:
            space.peek(object_id)  # a scan is no use
        assert (space.hit_rate.hits, space.hit_rate.misses) == (4, 4)
        assert curve.accesses == 8
        size = sum(space.engine.heap.table.size[slot] for slot in space.engine.heap.table.living())
        assert curve.miss_ratio(size) == 0.5  # all but the first accesses
        assert curve.miss_ratio(size // 2) == 1.0
        space.free_many(ids)
        for object_id in fill(space, 4):  # in the places of the dead, but others
            space.load(object_id)
        assert curve.miss_ratio(size) == pytest.approx(8 / 12)
        curve.check()
        space.hit_rate.check()


def test_moves_are_told() -> None:
    with tiered(1 << 16) as space, capture(space.events) as events:
        (only,) = fill(space, 1)
        space.demote_objects([only])
        space.load(only)
        names = [event.name for event in events]
        assert names == ["allocation", "demotion", "promotion", "load"]


def test_an_empty_cold_store_that_is_passed_in_is_used_and_stays_open() -> None:
    cold = RamColdStorage()
    with tiered(cold_store=cold) as space:
        assert space.cold is cold
        space.demote_objects(fill(space, 1))
        assert len(cold) == 1
    assert len(cold) == 1


def test_without_a_folder_the_cold_tier_is_in_ram_and_closed_with_the_space() -> None:
    with TieredMemoryManager(1 << 12, retriever=None) as space:
        fill(space, 100)
        assert isinstance(space.cold, RamColdStorage)
        cold = space.cold
    with pytest.raises(StoreError, match="closed"):
        cold.load(1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hot_reserve_ratio": 1.0}, "hot_reserve_ratio"),
        ({"hot_reserve_ratio": -0.1}, "hot_reserve_ratio"),
        ({"write_policy": "write_never"}, "write_policy"),
        ({"promotion_batch_size": 0}, "promotion_batch_size"),
        ({"tiering": {"max_dirty": 0}}, "max_dirty"),
        ({"tiering": {"flush_interval": 0}}, "flush_interval"),
        ({"paging_strategy": "fifo"}, "fifo"),
        ({"page_size": 0}, "page_size"),
        ({"max_pages": 0}, "max_pages"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], told: str) -> None:
    def refused() -> TieredMemoryManager:
        if "tiering" in options:
            return tiered(tiering=Tiering(**options["tiering"]))
        return tiered(**options)

    with pytest.raises(InvalidInput, match=told):
        refused()


def test_a_keyword_takes_precedence_over_the_same_field_of_tiering() -> None:
    given = Tiering(paging_strategy="lru", page_size=512, max_dirty=7, flush_interval=None)
    with tiered(tiering=given, paging_strategy="sieve", hot_reserve_ratio=0.0) as space:
        assert space.tiering == replace(given, paging_strategy="sieve", hot_reserve_ratio=0.0)
        assert (space.max_dirty, space.hot_reserve_ratio) == (7, 0.0)


def test_a_journal_without_a_cold_store_is_refused(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as wal, pytest.raises(InvalidInput, match="cold_store"):
        TieredMemoryManager(1 << 12, wal=wal)


def test_quotas_count_both_tiers() -> None:
    with tiered(1 << 16, quotas=Quotas({"Ann": 500})) as space:
        stored: list[MemoryObject] = []
        with suppress(OutOfSpace):
            while True:
                stored.append(space.store({"x": "x" * 50}, tenant="Ann"))
                space.demote_objects([stored[-1].id])
        assert 5 <= len(stored) <= 9
        assert 0 < space.usage("Ann") <= 500
        space.check()
