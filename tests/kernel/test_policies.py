"""Policies: when a collection starts, and what a bandit learns from it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from memoryspace.errors import InvalidInput
from memoryspace.kernel import (
    AdaptiveFragmentationPolicy,
    BanditGCPolicy,
    GCPolicy,
    MemoryManager,
    ObjectGrowthPolicy,
    PeriodicGCPolicy,
    Runtime,
)
from memoryspace.testing import ManualClock


@dataclass
class Watched:
    """A heap as policies see it, with whatever figures a test likes."""

    now: float = 1000.0
    live_objects: int = 0
    capacity: int = 1000
    scattered: float = 0.0

    def fragmentation(self) -> float:
        return self.scattered


@dataclass
class Report:
    freed_bytes: int = 0
    duration: float = 0.0


class Always(GCPolicy):
    """Says what it was told to say, and remembers what it heard."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.heard: list[Any] = []

    def should_trigger(self, manager: Any, reason: str) -> bool:
        return self.answer

    def notify_gc(self, manager: Any, event: Any) -> None:
        self.heard.append(event)


@pytest.fixture
def heap() -> Watched:
    return Watched()


# -- the simple ones -------------------------------------------------------------------------------


def test_periodically_counts_from_the_first_look_and_from_every_cycle(heap: Watched) -> None:
    policy = PeriodicGCPolicy(interval=60)
    assert not policy.should_trigger(heap, "tick")
    heap.now += 59.9
    assert not policy.should_trigger(heap, "tick")
    heap.now += 0.1
    assert policy.should_trigger(heap, "tick")
    assert policy.should_trigger(heap, "tick"), "until a cycle has run"
    policy.notify_gc(heap, Report())
    assert not policy.should_trigger(heap, "tick")
    heap.now += 60
    assert policy.should_trigger(heap, "tick")


def test_fragmentation_above_the_threshold_triggers_but_not_again_at_once(heap: Watched) -> None:
    policy = AdaptiveFragmentationPolicy(threshold=0.4, min_interval_s=5)
    heap.scattered = 0.4
    assert not policy.should_trigger(heap, "tick")
    heap.scattered = 0.41
    assert policy.should_trigger(heap, "tick"), "nobody needs to wait before the first cycle"
    policy.notify_gc(heap, Report())
    heap.now += 4.9
    assert not policy.should_trigger(heap, "tick")
    heap.now += 0.1
    assert policy.should_trigger(heap, "tick")


def test_growth_is_a_ratio_and_at_least_a_number(heap: Watched) -> None:
    policy = ObjectGrowthPolicy(growth_ratio=0.5, window=100)
    heap.live_objects = 50
    assert not policy.should_trigger(heap, "tick")
    heap.live_objects = 149
    assert not policy.should_trigger(heap, "tick"), "three times as many, but fewer than a window"
    heap.live_objects = 150
    assert policy.should_trigger(heap, "tick")
    heap.live_objects = 1000
    policy.notify_gc(heap, Report())
    heap.live_objects = 1499
    assert not policy.should_trigger(heap, "tick"), "more than a window, but less than half as many"
    heap.live_objects = 1500
    assert policy.should_trigger(heap, "tick")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: PeriodicGCPolicy(0), "interval"),
        (lambda: PeriodicGCPolicy(float("nan")), "interval"),
        (lambda: AdaptiveFragmentationPolicy(-0.1), "threshold"),
        (lambda: AdaptiveFragmentationPolicy(1.1), "threshold"),
        (lambda: ObjectGrowthPolicy(0), "growth_ratio"),
        (lambda: ObjectGrowthPolicy(window=0), "window"),
        (lambda: BanditGCPolicy([]), "at least one policy"),
        (lambda: BanditGCPolicy([Always()], epsilon=1.5), "epsilon"),
        (lambda: BanditGCPolicy([Always()], epsilon=-0.5), "epsilon"),
        (lambda: BanditGCPolicy([Always()], pause_penalty=-1), "pause_penalty"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        make()


# -- the bandit ------------------------------------------------------------------------------------


def pull(bandit: BanditGCPolicy, heap: Watched, freed: int, duration: float = 0.0) -> int:
    """Let the bandit start a cycle ten seconds after the last one; return whose word counted."""
    arm = bandit.arm
    assert bandit.should_trigger(heap, "tick")
    heap.now += 10
    bandit.notify_gc(heap, Report(freed, duration))
    return arm


def greedy(*arms: GCPolicy, **options: Any) -> BanditGCPolicy:
    return BanditGCPolicy(arms, epsilon=0, **options)


def test_the_chosen_policy_alone_has_the_say(heap: Watched) -> None:
    assert not greedy(Always(False), Always(True)).should_trigger(heap, "tick")
    assert greedy(Always(True), Always(False)).should_trigger(heap, "tick")


def test_every_policy_hears_of_every_cycle(heap: Watched) -> None:
    arms = [Always(), Always()]
    bandit, report = greedy(*arms), Report(1)
    bandit.notify_gc(heap, report)
    assert [arm.heard for arm in arms] == [[report], [report]]


def test_each_policy_is_tried_then_the_best_one_is_kept(heap: Watched) -> None:
    bandit = greedy(Always(), Always(), Always())
    freed = {0: 100, 1: 900, 2: 500}
    arms = [0, 1, 2]
    assert [pull(bandit, heap, freed[arm]) for arm in arms] == arms
    assert [pull(bandit, heap, 900) for _ in range(5)] == [1] * 5
    assert bandit.pulls == [1, 6, 1]
    assert bandit.values == pytest.approx([0.1, 0.9, 0.5])


def test_a_value_is_the_mean_of_its_rewards_and_may_fall_behind(heap: Watched) -> None:
    bandit = greedy(Always(), Always())
    pull(bandit, heap, 600)
    pull(bandit, heap, 500)
    assert pull(bandit, heap, 0) == 0
    assert bandit.values == pytest.approx([0.3, 0.5])
    assert pull(bandit, heap, 500) == 1


def test_the_reward_has_no_unit() -> None:
    bandit = greedy(Always(), pause_penalty=0.5)
    reward = bandit.reward(Report(250, 2.0), 1000, 10.0)
    assert reward == pytest.approx(0.25 - 0.5 * 0.2)
    scaled = bandit.reward(Report(250 << 20, 2000.0), 1000 << 20, 10_000.0)
    assert scaled == pytest.approx(reward), "neither bytes nor seconds matter, only parts"


def test_a_cycle_never_costs_more_than_the_whole_penalty() -> None:
    bandit = greedy(Always(), pause_penalty=0.5)
    assert bandit.reward(Report(0, 100.0), 1000, 10.0) == -0.5
    assert bandit.reward(Report(0, 1.0), 1000, 0.0) == -0.5, "no time has passed: all of it"


def test_the_time_since_the_last_cycle_counts_whoever_asked_for_that_one(heap: Watched) -> None:
    bandit = greedy(Always(), pause_penalty=1.0)
    bandit.notify_gc(heap, Report())
    heap.now += 90
    bandit.notify_gc(heap, Report(999, 1.0))
    assert list(bandit.decisions) == []
    pull(bandit, heap, 0, duration=1.0)
    assert bandit.decisions[0].reward == pytest.approx(-0.1)


def test_a_cycle_that_somebody_else_asked_for_earns_nothing(heap: Watched) -> None:
    bandit = greedy(Always(), Always())
    bandit.notify_gc(heap, Report(900))
    assert (bandit.pulls, bandit.values, list(bandit.decisions)) == ([0, 0], [0.0, 0.0], [])
    pull(bandit, heap, 100)
    bandit.notify_gc(heap, Report(900))
    assert (bandit.pulls, len(bandit.decisions)) == ([1, 0], 1)


def test_every_decision_is_recorded(heap: Watched) -> None:
    bandit = greedy(Always(), Always(), pause_penalty=1.0)
    pull(bandit, heap, 100, duration=1.0)
    pull(bandit, heap, 300)
    assert [each._asdict() for each in bandit.decisions] == [
        {
            "at": 1010.0,
            "arm": 0,
            "explored": False,
            "reward": pytest.approx(0.0),
            "freed_bytes": 100,
            "seconds": 1.0,
        },
        {
            "at": 1020.0,
            "arm": 1,
            "explored": False,
            "reward": pytest.approx(0.3),
            "freed_bytes": 300,
            "seconds": 0.0,
        },
    ]


def test_old_decisions_are_forgotten(heap: Watched) -> None:
    bandit = greedy(Always())
    for _ in range(10_050):
        pull(bandit, heap, 1)
    assert len(bandit.decisions) == 10_000
    assert bandit.pulls == [10_050]


def arms_chosen(heap: Watched, epsilon: float, seed: int, pulls: int = 400) -> list[int]:
    arms = [Always() for _ in range(4)]
    bandit = BanditGCPolicy(arms, epsilon=epsilon, rng=random.Random(seed))
    chosen = [pull(bandit, heap, freed=900 if bandit.arm == 2 else 100) for _ in range(pulls)]
    explored = sum(each.explored for each in bandit.decisions)
    assert explored == pytest.approx(epsilon * pulls, abs=40)
    return chosen


def test_epsilon_is_how_often_another_one_is_tried(heap: Watched) -> None:
    never = arms_chosen(heap, 0.0, seed=1)
    assert never == [0, 1, 2] + [3] + [2] * 396
    sometimes = arms_chosen(heap, 0.2, seed=1)
    assert 300 < sometimes.count(2) < 380
    always = arms_chosen(heap, 1.0, seed=1)
    assert all(70 < always.count(arm) < 130 for arm in range(4))


def test_the_same_seed_makes_the_same_choices() -> None:
    first, again, other = (arms_chosen(Watched(), 0.5, seed) for seed in (7, 7, 8))
    assert first == again != other
    unseeded = [BanditGCPolicy([Always()] * 9, epsilon=1.0).arm for _ in range(3)]
    assert len(set(unseeded)) == 1, "without a source of randomness it is the same one too"


# -- in a manager ----------------------------------------------------------------------------------


def managed(*policies: GCPolicy, clock: ManualClock | None = None) -> MemoryManager:
    clock = ManualClock() if clock is None else clock
    return MemoryManager(1 << 20, retriever=None, policies=policies, runtime=Runtime(clock=clock))


def fill(manager: MemoryManager, count: int) -> None:
    for number in range(count):
        manager.store({"n": number})


def test_a_policy_is_asked_as_the_program_runs() -> None:
    with managed(ObjectGrowthPolicy(window=200)) as manager:
        fill(manager, 1000)
        assert {event.trigger for event in manager.gc_events} == {"ObjectGrowthPolicy"}
        assert len(manager) < 600
        manager.check()


def test_a_tick_asks_at_once() -> None:
    clock = ManualClock()
    with managed(PeriodicGCPolicy(60), clock=clock) as manager:
        fill(manager, 3)
        manager.tick()
        assert not manager.gc_events
        clock.advance(60)
        manager.tick()
        assert [event.trigger for event in manager.gc_events] == ["PeriodicGCPolicy"]
        assert len(manager) == 0
        manager.tick()
        assert len(manager.gc_events) == 1


def test_scattered_free_bytes_are_noticed() -> None:
    with managed(AdaptiveFragmentationPolicy(threshold=0.02)) as manager:
        ids = [manager.store({"x": "y" * 5000}, root=True).id for _ in range(100)]
        manager.tick()
        assert not manager.gc_events
        manager.free_many(ids[::2])
        assert manager.fragmentation() > 0.02
        manager.tick()
        assert [event.trigger for event in manager.gc_events] == ["AdaptiveFragmentationPolicy"]


def test_policies_hear_of_cycles_that_others_asked_for() -> None:
    policy = Always(False)
    with managed(policy) as manager:
        fill(manager, 3)
        event = manager.run_gc()
        assert policy.heard == [event]


def test_a_bandit_learns_from_real_cycles() -> None:
    clock = ManualClock()
    bandit = BanditGCPolicy([PeriodicGCPolicy(10), ObjectGrowthPolicy(window=100)], epsilon=0)
    with managed(bandit, clock=clock) as manager:
        for _ in range(40):
            fill(manager, 50)
            clock.advance(1)
            manager.tick()
        assert all(bandit.pulls)
        assert sum(bandit.pulls) == len(bandit.decisions) == len(manager.gc_events)
        for decision, event in zip(bandit.decisions, manager.gc_events, strict=True):
            assert decision.freed_bytes == event.freed_bytes
            assert decision.seconds == event.duration
            share = decision.freed_bytes / manager.capacity
            assert 0 < share < 1
            assert decision.reward < share  # by however long the cycle took


class Broken(Always):
    """Fails when asked, or when told."""

    def __init__(self, *, when_told: bool) -> None:
        super().__init__()
        self.when_told = when_told

    def should_trigger(self, manager: Any, reason: str) -> bool:
        if not self.when_told:
            raise RuntimeError("broken policy")
        return True

    def notify_gc(self, manager: Any, event: Any) -> None:
        raise RuntimeError("broken policy")


@pytest.mark.parametrize("when_told", [False, True])
@pytest.mark.parametrize("inside_a_bandit", [False, True])
def test_what_a_policy_raises_is_not_swallowed(when_told: bool, inside_a_bandit: bool) -> None:
    broken: GCPolicy = Broken(when_told=when_told)
    with managed(greedy(broken) if inside_a_bandit else broken) as manager:
        fill(manager, 3)
        with pytest.raises(RuntimeError, match="broken policy"):
            manager.tick()
        with pytest.raises(RuntimeError, match="broken policy"):
            manager.run_gc()
        assert not manager.stats()["gc_running"]
        fill(manager, 3)
        assert len(manager) == 3, "the cycle itself did its work"
        manager.check()
