"""Collectors: who goes, who stays, and what may happen while they are at work."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
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

from memoryspace.errors import InvalidInput, OutOfSpace, UnknownObject
from memoryspace.kernel import (
    GarbageCollector,
    GenerationalCollector,
    MarkAndSweepCollector,
    MemoryManager,
    NewObject,
    Runtime,
    TimeToLiveCollector,
)
from memoryspace.kernel.durable.journal import OS, JournalUnavailable, WriteAheadLog
from memoryspace.kernel.gc import collectors, cycles
from memoryspace.testing import ManualClock

from faulty_disk import FaultyDisk

CAPACITY = 1 << 20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def manager(clock: ManualClock) -> Iterator[MemoryManager]:
    with made(clock) as manager:
        yield manager
        manager.check()


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice of collection stop after every single object."""
    stop_everywhere(monkeypatch)


def stop_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectors, "_CHECK_EVERY", 1)
    monkeypatch.setattr(collectors, "_ROOT_WINDOW", 1)
    monkeypatch.setattr(cycles, "_BATCH", 1)


def made(
    clock: ManualClock, *chosen: GarbageCollector, wal: WriteAheadLog | None = None
) -> MemoryManager:
    return MemoryManager(
        CAPACITY, retriever=None, runtime=Runtime(clock=clock), collectors=chosen or None, wal=wal
    )


def stored(manager: MemoryManager, count: int, **options: Any) -> list[str]:
    return [manager.store({"n": number}, **options).id for number in range(count)]


def chain(manager: MemoryManager, *ids: str) -> None:
    for source, target in itertools.pairwise(ids):
        manager.add_reference(source, target)


def everything(manager: MemoryManager) -> set[str]:
    """Return the ids of all that was not freed yet, also of the expired."""
    return {manager.engine.heap.id_of(slot) for slot in manager.engine.heap.table.living()}


def explained(manager: MemoryManager) -> dict[str, str]:
    found = manager.explain_gc()
    assert len({each.id for each in found}) == len(found), "nobody goes twice"
    return {each.id: each.reason for each in found}


def step_until_done(manager: MemoryManager) -> int:
    """Go on with the cycle under way, as slowly as possible; return how many slices it took."""
    slices = 1
    while not manager.gc_step(0):
        slices += 1
    return slices


# -- time to live ----------------------------------------------------------------------------------


def test_objects_go_when_their_time_is_over_and_not_before(clock: ManualClock) -> None:
    manager = made(clock, TimeToLiveCollector())
    (soon,), (late,), (never,) = (stored(manager, 1, ttl=ttl) for ttl in (5, 50, None))
    clock.advance(4.999)
    assert manager.run_gc().freed_ids == []
    clock.advance(0.001)
    event = manager.run_gc()
    assert (event.freed_ids, event.reasons, event.collected) == ([soon], {"expired": 1}, {"ttl": 1})
    assert manager.ids() == [late, never]
    clock.advance(50)
    assert manager.run_gc().freed_ids == [late]
    manager.check()


def test_expired_objects_go_in_the_order_of_their_ends(clock: ManualClock) -> None:
    manager = made(clock, TimeToLiveCollector())
    ids = {ttl: stored(manager, 1, ttl=ttl)[0] for ttl in (30, 10, 20)}
    clock.advance(100)
    assert manager.run_gc().freed_ids == [ids[10], ids[20], ids[30]]


def test_expiry_looks_only_at_what_is_due(clock: ManualClock) -> None:
    """Everybody else is of no interest: their rows are not even read."""
    manager = made(clock, TimeToLiveCollector())
    stored(manager, 500, ttl=1000)
    due = stored(manager, 3, ttl=1)
    clock.advance(1)
    collector, heap = manager.engine.options.collectors[0], manager.engine.heap
    looked_at = 0

    class Watched(type(heap.table.expires)):  # type: ignore[misc]  # an array
        def __getitem__(self, place: Any) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(place)

    heap.table.expires = Watched("d", heap.table.expires)
    verdicts = [each for each in collector.condemn(heap, clock()) if each is not None]
    assert [heap.id_of(each.handle & 0xFFFFFFFF) for each in verdicts] == due
    assert looked_at <= 3 * len(due)


def test_the_last_ttl_given_counts(clock: ManualClock) -> None:
    manager = made(clock, TimeToLiveCollector())
    shortened, prolonged, reborn = stored(manager, 3, ttl=50)
    manager.update(shortened, ttl=10)
    manager.update(prolonged, ttl=90)
    manager.free_object(reborn)
    (successor,) = stored(manager, 1)
    clock.advance(50)
    assert manager.run_gc().freed_ids == [shortened]
    assert manager.ids() == [prolonged, successor]
    clock.advance(40)
    assert manager.run_gc().freed_ids == [prolonged]
    manager.check()


def test_an_end_that_was_given_twice_comes_once(clock: ManualClock) -> None:
    manager = made(clock, TimeToLiveCollector())
    (each,) = stored(manager, 1, ttl=10)
    for ttl in (20, 10, 20, 10):
        manager.update(each, ttl=ttl)
    clock.advance(10)
    assert list(explained(manager)) == [each]
    assert manager.run_gc().freed_ids == [each]
    manager.check()


def test_pins_and_roots_do_not_outlive_their_time(clock: ManualClock) -> None:
    manager = made(clock)
    ids = [*stored(manager, 1, ttl=5, pin=True), *stored(manager, 1, ttl=5, root=True)]
    clock.advance(5)
    assert sorted(manager.run_gc().freed_ids) == sorted(ids)
    assert manager.stats()["pinned"] == manager.stats()["roots"] == 0
    manager.check()


# -- reachability ----------------------------------------------------------------------------------


def test_what_no_root_leads_to_goes(manager: MemoryManager) -> None:
    root, kept, deep, lost, loop = stored(manager, 5)
    manager.add_root(root)
    chain(manager, root, kept, deep, root)
    chain(manager, lost, loop, lost)  # a ring that nobody holds
    chain(manager, lost, kept)
    event = manager.run_gc()
    assert event.reasons == {"unreachable": 2}
    assert sorted(event.freed_ids) == sorted([lost, loop])
    assert sorted(manager.ids()) == sorted([root, kept, deep])
    assert manager.reachable_ids() == {root, kept, deep}
    manager.remove_root(root)
    assert manager.run_gc().freed == 3


def test_a_pin_holds_what_it_leads_to_as_a_root_does(manager: MemoryManager) -> None:
    pinned, kept, lost = stored(manager, 3)
    manager.pin(pinned)
    chain(manager, pinned, kept)
    assert manager.run_gc().freed_ids == [lost]
    manager.remove_reference(pinned, kept)
    assert manager.run_gc().freed_ids == [kept]
    manager.unpin(pinned)
    assert manager.run_gc().freed_ids == [pinned]


def test_a_pinned_root_needs_both_to_end(manager: MemoryManager) -> None:
    (each,) = stored(manager, 1, pin=True, root=True)
    manager.unpin(each)
    assert manager.run_gc().freed == 0
    manager.pin(each)
    manager.remove_root(each)
    assert manager.run_gc().freed == 0
    manager.unpin(each)
    assert manager.run_gc().freed == 1


def test_a_long_chain_is_followed_to_its_end(manager: MemoryManager) -> None:
    ids = stored(manager, 5000)
    chain(manager, *ids)
    manager.add_root(ids[0])
    assert manager.run_gc().freed == 0
    manager.remove_reference(ids[2499], ids[2500])
    assert manager.run_gc().freed == 2500
    assert manager.ids() == ids[:2500]


def test_a_stale_reference_keeps_nobody_who_moved_in(manager: MemoryManager) -> None:
    root, target = stored(manager, 2)
    manager.add_root(root)
    chain(manager, root, target)
    manager.free_object(target)
    (successor,) = stored(manager, 1)
    assert manager.engine.heap.find(successor) == int(target[1:], 16) & 0xFFFFFFFF, "the same slot"
    assert manager.run_gc().freed_ids == [successor]


# -- generations -----------------------------------------------------------------------------------


def generational(clock: ManualClock, **options: Any) -> MemoryManager:
    return made(clock, GenerationalCollector(young_object_age=100, **options))


def use(manager: MemoryManager, object_id: str, times: int) -> None:
    for _ in range(times):
        manager.load(object_id)


def test_a_young_object_that_nobody_wants_goes_when_it_is_due(clock: ManualClock) -> None:
    manager = generational(clock)
    dull, dear = (*stored(manager, 1, importance=0.1), *stored(manager, 1, importance=0.9))
    clock.advance(100)
    assert manager.run_gc().freed == 0, "it is just as old as it may be"
    clock.advance(100_000)
    event = manager.run_gc()
    assert event.freed_ids == [dull]
    assert event.reasons == {"young and unwanted": 1}
    assert manager.ids() == [dear]
    manager.check()


def test_importance_below_is_the_line(clock: ManualClock) -> None:
    """After ages nothing is left of freshness: the score is 0.7 · importance."""
    manager = generational(clock, importance_below=0.35)
    (above,), (below,) = (stored(manager, 1, importance=each) for each in (0.51, 0.49))
    clock.advance(1e9)
    assert manager.run_gc().freed_ids == [below]
    assert manager.ids() == [above]


def test_roots_pins_and_targets_are_shielded(clock: ManualClock) -> None:
    manager = generational(clock)
    root, pinned, source, target = stored(manager, 4, importance=0)
    manager.add_root(root)
    manager.pin(pinned)
    use(manager, source, 6)
    chain(manager, source, target)
    clock.advance(1e6)
    assert manager.run_gc().freed == 0
    manager.remove_root(root)
    manager.unpin(pinned)
    manager.remove_reference(source, target)
    clock.advance(1e6)
    assert sorted(manager.run_gc().freed_ids) == sorted([root, pinned, target])


def test_an_object_is_promoted_as_often_as_it_was_used_enough(clock: ManualClock) -> None:
    manager = generational(clock, promotion_threshold=3, retention_generations=2)
    (each,) = stored(manager, 1, importance=0)
    ages = []
    for uses in (2, 1, 2, 1):
        use(manager, each, uses)
        clock.advance(100)
        manager.run_gc()
        ages.append(manager.peek(each).generation)
    assert ages == [0, 1, 1, 2]


def test_an_old_object_is_never_looked_at_again(clock: ManualClock) -> None:
    manager = generational(clock, promotion_threshold=1, retention_generations=2)
    old, young = stored(manager, 2, importance=0)
    use(manager, old, 2)
    use(manager, young, 1)
    for _ in range(3):
        clock.advance(1e6)
        manager.run_gc()
    assert manager.ids() == [old]
    assert manager.peek(old).generation == 2


def test_a_recent_use_saves_a_young_object(clock: ManualClock) -> None:
    manager = generational(clock)
    used, unused = stored(manager, 2, importance=0)
    clock.advance(1e6)
    use(manager, used, 1)
    assert manager.run_gc().freed_ids == [unused]
    clock.advance(1e6)
    assert manager.run_gc().freed_ids == [used]


def test_a_young_collection_does_not_look_at_the_rest(clock: ManualClock) -> None:
    collector = GenerationalCollector(young_object_age=100)
    manager = made(clock, collector)
    stored(manager, 400, importance=0)
    clock.advance(60)
    stored(manager, 400, importance=0)
    clock.advance(60)
    slices = [each for each in collector.condemn(manager.engine.heap, clock()) if each is None]
    assert len(slices) <= 400 / 64 + 1, "the 400 younger ones were not looked at"


def test_a_young_object_falls_with_its_only_referrer_however_they_are_batched(
    clock: ManualClock,
) -> None:
    """Whether the referrer was freed in an earlier batch or is still in this one is no matter."""
    manager = generational(clock)
    ids = stored(manager, 200, importance=0)
    for source, target in zip(ids[::2], ids[1::2], strict=True):
        manager.add_reference(source, target)
    manager.add_reference(ids[-1], ids[0])  # looked at before who refers to it falls: shielded
    clock.advance(1e6)
    expected = set(explained(manager))
    assert expected == set(ids[2:])
    assert set(manager.run_gc().freed_ids) == expected
    manager.check()


def test_objects_that_were_there_before_the_collector_are_young_too(
    clock: ManualClock, tmp_path: Path
) -> None:
    with MemoryManager(CAPACITY, folder=tmp_path, runtime=Runtime(clock=clock)) as manager:
        manager.store({}, importance=0, id="dull")
    chosen = [GenerationalCollector(young_object_age=100)]
    clock.advance(1e6)
    with MemoryManager(
        CAPACITY, folder=tmp_path, runtime=Runtime(clock=clock), collectors=chosen
    ) as manager:
        assert manager.run_gc().freed_ids == ["dull"]


@pytest.mark.parametrize(
    "options",
    [
        {"promotion_threshold": 0},
        {"retention_generations": 0},
        {"retention_generations": 256},
        {"young_object_age": -1},
        {"young_object_age": float("nan")},
    ],
)
def test_generations_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        GenerationalCollector(**options)


# -- dry run ---------------------------------------------------------------------------------------

PIPELINES: dict[str, Sequence[type[GarbageCollector]]] = {
    "default": (TimeToLiveCollector, MarkAndSweepCollector),
    "reversed": (MarkAndSweepCollector, TimeToLiveCollector),
    "generational": (TimeToLiveCollector, GenerationalCollector),
    "all": (TimeToLiveCollector, GenerationalCollector, MarkAndSweepCollector),
}
each_pipeline = pytest.mark.parametrize("pipeline", PIPELINES)


def busy(clock: ManualClock, pipeline: str) -> MemoryManager:
    """Return a space with something for every collector, and references between all kinds."""
    manager = made(clock, *[kind() for kind in PIPELINES[pipeline]])
    ids = stored(manager, 60, importance=0)
    ids += stored(manager, 30, importance=0, ttl=1000)
    ids += stored(manager, 10, importance=0.9)
    for number in range(0, 100, 7):
        manager.add_root(ids[number])
    for number in range(3, 100, 11):
        manager.pin(ids[number])
    for number in range(200):
        manager.add_reference(ids[number * 37 % 100], ids[(number * 53 + number // 9) % 100])
    for number in range(0, 100, 5):
        use(manager, ids[number], 4)
    clock.advance(1e6)
    return manager


@each_pipeline
def test_a_dry_run_tells_exactly_who_goes(clock: ManualClock, pipeline: str) -> None:
    manager = busy(clock, pipeline)
    told, before = manager.explain_gc(), manager.debug_snapshot()
    assert told
    assert manager.explain_gc() == told, "telling changes nothing"
    assert manager.debug_snapshot() == before
    event = manager.run_gc()
    assert {each.id for each in told} == set(event.freed_ids)
    assert sum(each.size for each in told) == event.freed_bytes
    for name, count in event.collected.items():
        assert count == sum(each.collector == name for each in told)
    for reason, count in event.reasons.items():
        assert count == sum(each.reason == reason for each in told)
    manager.check()


@pytest.mark.parametrize("pipeline", [each for each in PIPELINES if each != "reversed"])
@pytest.mark.parametrize("steps", [1, 5, 40, 80, 120])
@pytest.mark.usefixtures("small_steps")
def test_a_dry_run_tells_who_goes_while_a_cycle_is_under_way(
    clock: ManualClock, pipeline: str, steps: int
) -> None:
    manager = busy(clock, pipeline)
    for _ in range(steps):
        if manager.gc_step(0):
            break
    manager.remove_root(next(each for each in manager.ids() if manager.is_root(each)))
    before = everything(manager)
    told = set(explained(manager))
    assert everything(manager) == before
    manager.run_gc()
    assert before - everything(manager) == told
    manager.check()


def test_what_only_an_expired_root_holds_is_told_as_well(clock: ManualClock) -> None:
    manager = made(clock)
    (root,), (child, free) = stored(manager, 1, root=True, ttl=5), stored(manager, 2)
    chain(manager, root, child)
    assert explained(manager) == {free: "unreachable"}
    clock.advance(5)
    assert explained(manager) == {
        root: "expired",
        child: "unreachable",
        free: "unreachable",
    }
    assert sorted(manager.run_gc().freed_ids) == sorted([root, child, free])


def test_an_object_brought_from_elsewhere_waits_its_turn_in_the_dry_run_too(
    clock: ManualClock,
) -> None:
    """It is older than those before it in the queue, but the queue is looked at from the front."""
    source = made(clock)
    veteran = source.store({}, importance=0, id="veteran")
    clock.advance(1e6)
    manager = generational(clock)
    stored(manager, 1, importance=0)
    manager.store_existing(veteran)
    told = set(explained(manager))
    assert set(manager.run_gc().freed_ids) == told


# -- in slices -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_steps")
def test_even_the_shortest_slice_gets_further(manager: MemoryManager) -> None:
    root, *ids = stored(manager, 20)
    manager.add_root(root)
    chain(manager, root, *ids[:10])
    assert step_until_done(manager) > 20
    assert sorted(manager.ids()) == sorted([root, *ids[:10]])
    assert manager.gc_events[-1].trigger == "step"
    assert manager.gc_events[-1].slices > 20


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", range(12))
def test_a_link_moved_behind_the_collectors_back_is_seen(
    manager: MemoryManager, steps: int
) -> None:
    """The old path to the object is cut, and a new one leads from where the collector has been."""
    first, middle, last = stored(manager, 3)
    stored(manager, 3)
    manager.add_root(first)
    chain(manager, first, middle, last)
    for _ in range(steps):
        manager.gc_step(0)
    manager.add_reference(first, last)
    manager.remove_reference(middle, last)
    step_until_done(manager)
    assert {first, middle, last} <= set(manager.ids())


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("keep", ["add_root", "pin"])
def test_whoever_becomes_a_root_in_mid_cycle_stays_with_all_it_leads_to(
    manager: MemoryManager, steps: int, keep: str
) -> None:
    one, two, three = stored(manager, 3)
    chain(manager, three, two, one)  # against the order of the sweep
    for _ in range(steps):
        manager.gc_step(0)
    if three in manager:
        getattr(manager, keep)(three)
        left = set(manager.ids())
        step_until_done(manager)
        assert set(manager.ids()) == left
    else:
        assert steps > 3


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", range(10))
def test_an_object_born_in_mid_cycle_outlives_the_cycle(clock: ManualClock, steps: int) -> None:
    manager = made(clock, MarkAndSweepCollector())
    stored(manager, 2)
    for _ in range(steps):
        manager.gc_step(0)
    newborn = stored(manager, 3)
    running = manager.stats()["gc_running"]
    if running:
        step_until_done(manager)
        assert set(newborn) <= set(manager.ids())
    manager.run_gc()
    assert manager.ids() == []


@pytest.mark.usefixtures("small_steps")
def test_more_objects_than_the_table_had_rows_come_in_mid_cycle(clock: ManualClock) -> None:
    manager = made(clock, MarkAndSweepCollector())
    (root,) = stored(manager, 1, root=True)
    manager.gc_step(0)
    newborn = [each.id for each in manager.store_many([NewObject({})] * 1500)]
    manager.add_reference(root, newborn[-1])
    manager.pin(newborn[-2])
    step_until_done(manager)
    assert len(manager) == 1501
    assert manager.run_gc().freed == 1498
    manager.check()


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", [2, 20, 35, 50, 70])
def test_a_hub_may_change_while_its_chain_is_walked(manager: MemoryManager, steps: int) -> None:
    hub, *ids = stored(manager, 61)
    manager.add_root(hub)
    for each in ids:
        manager.add_reference(hub, each)
    for _ in range(steps):
        manager.gc_step(0)
    for each in ids[::3]:
        manager.remove_reference(hub, each)
    for each in ids[1::3]:
        manager.free_object(each)
    added = stored(manager, 60)
    for each in added:
        manager.add_reference(hub, each)
    manager.check()
    step_until_done(manager)
    assert {hub, *ids[2::3], *added} <= set(manager.ids())
    manager.run_gc()
    assert set(manager.ids()) == {hub, *ids[2::3], *added}


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", range(30))
def test_a_collector_does_not_stray_into_another_chain(manager: MemoryManager, steps: int) -> None:
    """It stands on a reference that is removed; another object could get the row of that one."""
    root, other, *ids = stored(manager, 14)
    manager.add_root(root)
    manager.add_root(other)
    for each in ids:
        manager.add_reference(root, each)
    for _ in range(steps):
        manager.gc_step(0)
    for each in ids[::2]:
        manager.remove_reference(root, each)
    for each in ids[::2]:
        manager.add_reference(other, each)
    step_until_done(manager)
    assert manager.ids() == [root, other, *ids]


@pytest.mark.usefixtures("small_steps")
def test_references_removed_in_mid_cycle_leave_their_place_to_others(
    manager: MemoryManager,
) -> None:
    root, *ids = stored(manager, 11)
    manager.add_root(root)
    for each in ids:
        manager.pin(each)
    rows = manager.engine.heap.references.target
    for _ in range(10):
        for each in ids:
            manager.add_reference(root, each)
        for _ in range(15):
            manager.gc_step(0)
        manager.explain_gc()
        for each in ids:
            manager.remove_reference(root, each)
        step_until_done(manager)
    assert len(rows) <= 20


@pytest.mark.usefixtures("small_steps")
def test_a_full_cycle_first_finishes_the_one_under_way(clock: ManualClock) -> None:
    manager = made(clock, MarkAndSweepCollector())
    ids = stored(manager, 10)
    manager.gc_step(0)
    late = stored(manager, 1)
    event = manager.run_gc("on demand")
    assert manager.ids() == []
    assert [each.trigger for each in manager.gc_events] == ["step", "on demand"]
    assert manager.gc_events[0].freed_ids == ids
    assert event.freed_ids == late
    assert not manager.stats()["gc_running"]


@pytest.mark.usefixtures("small_steps")
def test_a_cycle_given_up_leaves_no_listeners_and_what_it_freed_stays_freed(
    clock: ManualClock,
) -> None:
    manager = made(clock)
    stored(manager, 10)
    heap = manager.engine.heap
    quiet = [len(each) for each in (heap.on_stored, heap.on_freed, heap.on_kept)]
    for _ in range(15):
        manager.gc_step(0)
    left = len(manager)
    assert 0 < left < 10
    manager.engine.abandon_work()
    assert [len(each) for each in (heap.on_stored, heap.on_freed, heap.on_kept)] == quiet
    assert len(manager) == left
    assert not manager.stats()["gc_running"]
    manager.check()
    assert manager.run_gc().freed == left


def test_closing_gives_a_cycle_up(clock: ManualClock) -> None:
    manager = made(clock)
    stored(manager, 10)
    manager.gc_step(0)
    manager.close()
    with pytest.raises(InvalidInput, match="closed"):
        manager.store({})


class CollectingMachine(RuleBasedStateMachine):
    """The program changes whatever it likes between the smallest possible slices of a cycle."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.manager = made(self.clock)
        self.references: dict[str, set[str]] = {}
        self.held: dict[str, set[str]] = {}  # id -> {"root", "pin"}
        self.ends: dict[str, float] = {}

    def teardown(self) -> None:
        self.manager.close()

    def reachable(self) -> set[str]:
        """What may not go: unexpired, and reached from what is held, through what exists."""
        seen = {each for each, why in self.held.items() if why}
        waiting = list(seen)
        while waiting:
            for target in self.references[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        return {each for each in seen if self.ends[each] > self.clock()}

    def one(self, data: st.DataObject) -> str:
        now = self.clock()
        return data.draw(st.sampled_from([each for each in self.ends if self.ends[each] > now]))

    def gone(self, ids: set[str]) -> None:
        for each in ids:
            del self.references[each], self.held[each], self.ends[each]
        for targets in self.references.values():
            targets -= ids

    def notice(self, reachable: set[str]) -> None:
        """Take note of what a collector freed; it must not have been reachable."""
        freed = set(self.ends) - everything(self.manager)
        assert not freed & reachable, "a reachable object was freed"
        self.gone(freed)

    def anybody(self) -> bool:
        return any(end > self.clock() for end in self.ends.values())

    @rule(
        root=st.sampled_from([False, False, True]),
        pin=st.sampled_from([False, False, True]),
        ttl=st.sampled_from([None, None, None, 5.0]),
        count=st.integers(1, 4),
    )
    def store(self, root: bool, pin: bool, ttl: float | None, count: int) -> None:
        for _ in range(count):
            made = self.manager.store({}, root=root, pin=pin, ttl=ttl)
            assert made.id not in self.ends
            self.references[made.id] = set()
            self.held[made.id] = {how for how, on in (("root", root), ("pin", pin)) if on}
            self.ends[made.id] = made.expires_at
            self.notice(self.reachable())

    def refer(self, source: str, target: str, *, on: bool) -> None:
        """Link or unlink what is still there; the space may do a slice of its own afterwards."""
        now = self.clock()
        if self.ends.get(source, now) <= now or self.ends.get(target, now) <= now:
            return
        change = self.manager.add_reference if on else self.manager.remove_reference
        change(source, target)
        (self.references[source].add if on else self.references[source].discard)(target)
        self.notice(self.reachable())

    @precondition(anybody)
    @rule(data=st.data())
    def link(self, data: st.DataObject) -> None:
        self.refer(self.one(data), self.one(data), on=True)

    @precondition(anybody)
    @rule(data=st.data())
    def link_to_all(self, data: st.DataObject) -> None:
        source = self.one(data)
        for target in list(self.ends):
            self.refer(source, target, on=True)

    @precondition(anybody)
    @rule(data=st.data())
    def unlink(self, data: st.DataObject) -> None:
        source = self.one(data)
        for target in sorted(self.references[source])[::2]:
            self.refer(source, target, on=False)

    @precondition(anybody)
    @rule(data=st.data())
    def move_a_link(self, data: st.DataObject) -> None:
        """What Dijkstra's barrier is for."""
        source, other = self.one(data), self.one(data)
        for target in sorted(self.references[source])[:1]:
            self.refer(other, target, on=True)
            self.refer(source, target, on=False)

    @precondition(anybody)
    @rule(data=st.data(), how=st.sampled_from(["root", "pin"]), on=st.booleans())
    def hold(self, data: st.DataObject, how: str, on: bool) -> None:
        each, manager = self.one(data), self.manager
        if how == "root":
            (manager.add_root if on else manager.remove_root)(each)
        else:
            (manager.pin if on else manager.unpin)(each)
        (self.held[each].add if on else self.held[each].discard)(how)
        self.notice(self.reachable())

    @precondition(anybody)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        each = self.one(data)
        self.manager.free_object(each)
        self.gone({each})
        self.notice(self.reachable())

    @rule()
    def let_time_pass(self) -> None:
        self.clock.advance(3)

    @rule(slices=st.integers(1, 12))
    def slices(self, slices: int) -> None:
        for _ in range(slices):
            reachable = self.reachable()
            self.manager.gc_step(0)
            self.notice(reachable)

    @rule()
    def explain(self) -> None:
        expected = set(self.ends) - self.reachable_after_expiry()
        assert set(explained(self.manager)) == expected

    def reachable_after_expiry(self) -> set[str]:
        """What a cycle leaves that begins now: the expired hold nobody any longer."""
        now = self.clock()
        seen = {each for each, why in self.held.items() if why and self.ends[each] > now}
        waiting = list(seen)
        while waiting:
            for target in self.references[waiting.pop()] - seen:
                if self.ends[target] > now:
                    seen.add(target)
                    waiting.append(target)
        return seen

    @rule()
    def two_full_cycles(self) -> None:
        expected = self.reachable_after_expiry()
        self.manager.run_gc()
        self.manager.run_gc()
        self.notice(expected)
        assert set(self.ends) == expected

    @invariant()
    def nothing_is_broken(self) -> None:
        self.manager.check()
        now = self.clock()
        assert everything(self.manager) == set(self.ends)
        for each, targets in self.references.items():
            if self.ends[each] > now:
                living = {target for target in targets if self.ends[target] > now}
                assert set(self.manager.references(each)) == living


def test_no_interleaving_frees_a_reachable_object(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_everywhere(monkeypatch)
    run_state_machine_as_test(
        CollectingMachine, settings=settings(max_examples=150, stateful_step_count=50)
    )


# -- what can go wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("pipeline", ["default", "generational", "all"])
@pytest.mark.parametrize("batch", [2, 4])
@pytest.mark.parametrize("whole", [True, False])
def test_a_journal_that_fails_in_mid_cycle_spares_the_condemned_until_next_time(
    clock: ManualClock, tmp_path: Path, pipeline: str, batch: int, whole: bool
) -> None:
    disk = FaultyDisk()
    with WriteAheadLog(tmp_path, sync=OS, disk=disk, clock=clock) as wal:
        manager = made(clock, *[kind() for kind in PIPELINES[pipeline]], wal=wal)
        kept = stored(manager, 5, root=True, importance=0.9)
        doomed = stored(manager, 50, ttl=5) + stored(manager, 50, importance=0)
        clock.advance(1e6)
        disk.fail("pwrite", batch, times=10, error=errno.ENOSPC)
        collect = manager.run_gc if whole else lambda: step_until_done(manager)
        with pytest.raises(JournalUnavailable):
            collect()
        left = everything(manager)
        assert set(kept) < left < {*kept, *doomed}, "some batches went, the others were spared"
        assert not manager.stats()["gc_running"]
        manager.check()
        assert set(explained(manager)) == left - set(kept)
        disk.heal()
        step_until_done(manager)
        assert manager.ids() == kept
        manager.check()
        manager.close()


def test_a_collector_that_fails_is_heard_and_the_space_goes_on(clock: ManualClock) -> None:
    class Broken(MarkAndSweepCollector):
        def condemn(self, heap: Any, now: float) -> collectors.Verdicts:
            yield None
            raise RuntimeError("broken")

    manager = made(clock, Broken())
    stored(manager, 3)
    for collect in (manager.run_gc, lambda: step_until_done(manager)):
        with pytest.raises(RuntimeError, match="broken"):
            collect()
        assert not manager.stats()["gc_running"]
    assert len(stored(manager, 3)) == 3
    manager.check()


def test_pressure_goes_on_with_the_cycle_under_way(clock: ManualClock) -> None:
    with MemoryManager(4096, retriever=None, runtime=Runtime(clock=clock)) as manager:
        ids = [manager.store({"x": "y" * 100}).id for _ in range(20)]
        manager.gc_step(0)
        held = manager.store({"x": "y" * 100}, root=True).id
        big = manager.store({"x": "y" * 3000}, root=True).id
        assert held in manager
        assert big in manager
        assert len(set(ids) & set(manager.ids())) < len(ids)
        with pytest.raises(OutOfSpace):
            manager.store({"x": "y" * 3000})
        with pytest.raises(UnknownObject):
            manager.load(ids[0])
        manager.check()


def test_changing_an_end_again_and_again_leaves_no_heap_of_ends() -> None:
    clock = ManualClock()
    with MemoryManager(1 << 16, retriever=None, runtime=Runtime(clock=clock)) as manager:
        ids = [manager.store({"n": n}, ttl=10, root=True).id for n in range(4)]
        for step in range(5000):
            manager.update(ids[step % 3], ttl=1000 + step)
        assert len(manager.engine.heap.due) < 2500
        manager.check()
        clock.advance(11)
        assert manager.run_gc().freed_ids == [ids[3]]
