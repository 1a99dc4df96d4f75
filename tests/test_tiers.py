"""Two tiers, one population: whatever fails, a body is in the heap, in the cold tier, or in both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

from faulty_disk import FaultyDisk
from memoryspace.errors import StoreError
from memoryspace.kernel import (
    CheckpointManager,
    Durability,
    NewObject,
    RamColdStorage,
    TieredMemoryManager,
    WriteAheadLog,
)
from memoryspace.testing import ManualClock

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
    options.setdefault("flush_interval", None)
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
            flush_interval=None,
            max_dirty=4,
            clock=ManualClock(),
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
        machine, settings=settings(max_examples=25, stateful_step_count=30, derandomize=True)
    )
