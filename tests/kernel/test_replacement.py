"""Every policy takes the same random steps as its textbook form over plain lists."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate

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

from memoryspace.errors import InvalidInput
from memoryspace.kernel.tiers.replacement import (
    ARC,
    LFU,
    LRU,
    POLICIES,
    S3FIFO,
    SIEVE,
    Clock,
    ReplacementPolicy,
    make_policy,
)

KEYS = st.integers(0, 13)
SCAN_RESISTANT = ["sieve", "s3fifo", "arc"]


class LRUModel:
    def __init__(self) -> None:
        self.keys: list[int] = []

    def residents(self) -> list[int]:
        return self.keys

    def add(self, key: int) -> None:
        self.keys.append(key)

    def touch(self, key: int) -> None:
        self.keys.remove(key)
        self.keys.append(key)

    def remove(self, key: int) -> None:
        self.keys.remove(key)

    def evict(self) -> int:
        return self.keys.pop(0)

    def spare(self, key: int) -> None:
        self.keys.append(key)


class ClockModel:
    """A ring that stays put while the hand goes round; who comes in stands behind the hand."""

    def __init__(self) -> None:
        self.ring: list[int] = []
        self.hand = 0
        self.used: set[int] = set()

    def residents(self) -> list[int]:
        return self.ring

    def add(self, key: int) -> None:
        self.ring.insert(self.hand, key)
        self.hand = (self.hand + 1) % len(self.ring)

    def touch(self, key: int) -> None:
        self.used.add(key)

    def remove(self, key: int) -> None:
        place = self.ring.index(key)
        self.ring.remove(key)
        self.used.discard(key)
        self.hand -= place < self.hand
        self.hand %= max(1, len(self.ring))

    def evict(self) -> int:
        while (key := self.ring[self.hand]) in self.used:
            self.used.remove(key)
            self.hand = (self.hand + 1) % len(self.ring)
        self.remove(key)
        return key

    def spare(self, key: int) -> None:
        self.add(key)


class LFUModel:
    def __init__(self) -> None:
        self.score: dict[int, int] = {}
        self.used_at: dict[int, int] = {}
        self.age = 0
        self.now = 0

    def residents(self) -> list[int]:
        return [*self.score]

    def add(self, key: int) -> None:
        self.score[key] = self.age
        self.touch(key)

    def touch(self, key: int) -> None:
        self.now += 1
        self.score[key] += 1
        self.used_at[key] = self.now

    def remove(self, key: int) -> None:
        del self.score[key]

    def evict(self) -> int:
        key = min(self.score, key=lambda key: (self.score[key], self.used_at[key]))
        self.age = self.score.pop(key)
        return key

    def spare(self, key: int) -> None:
        self.add(key)


class SIEVEModel:
    """One queue, oldest first, and the place of the hand in it."""

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.hand = 0
        self.visited: set[int] = set()

    def residents(self) -> list[int]:
        return self.queue

    def add(self, key: int) -> None:
        self.queue.append(key)

    def touch(self, key: int) -> None:
        self.visited.add(key)

    def remove(self, key: int) -> None:
        place = self.queue.index(key)
        self.queue.remove(key)
        self.visited.discard(key)
        self._place_hand(self.hand - (place < self.hand))

    def evict(self) -> int:
        while (key := self.queue[self.hand]) in self.visited:
            self.visited.remove(key)
            self._place_hand(self.hand + 1)
        self.remove(key)
        return key

    def spare(self, key: int) -> None:
        self.queue.insert(self.hand, key)
        self._place_hand(self.hand + 1)

    def _place_hand(self, place: int) -> None:
        self.hand = place if place < len(self.queue) else 0


class S3FIFOModel:
    def __init__(self) -> None:
        self.small: list[int] = []
        self.main: list[int] = []
        self.ghosts: list[int] = []
        self.freq: dict[int, int] = {}

    def residents(self) -> list[int]:
        return self.small + self.main

    def add(self, key: int) -> None:
        (self.main if key in self.ghosts else self.small).append(key)
        self.ghosts = [ghost for ghost in self.ghosts if ghost != key]
        self.freq[key] = 0

    def touch(self, key: int) -> None:
        self.freq[key] = min(3, self.freq[key] + 1)

    def remove(self, key: int) -> None:
        (self.small if key in self.small else self.main).remove(key)
        self._trim()

    def evict(self) -> int:
        while True:
            if not self.main or len(self.small) > len(self.residents()) / 10:
                key = self.small.pop(0)
                if self.freq[key] <= 1:
                    self.ghosts.append(key)
                    break
                self.freq[key] = 0
            else:
                key = self.main.pop(0)
                if self.freq[key] == 0:
                    break
                self.freq[key] -= 1
            self.main.append(key)
        self._trim()
        return key

    def spare(self, key: int) -> None:
        self.ghosts = [ghost for ghost in self.ghosts if ghost != key]
        self.main.append(key)
        self.freq[key] = 0

    def _trim(self) -> None:
        surplus = len(self.ghosts) - len(self.residents())
        self.ghosts = self.ghosts[max(0, surplus) :]


class ARCModel:
    """The names of the paper; the cache size c is the number of residents."""

    def __init__(self) -> None:
        self.t1: list[int] = []
        self.t2: list[int] = []
        self.b1: list[int] = []
        self.b2: list[int] = []
        self.p = 1.0

    def residents(self) -> list[int]:
        return self.t1 + self.t2

    def add(self, key: int) -> None:
        c = len(self.residents())
        if key in self.b1:
            delta = 1 if len(self.b1) >= len(self.b2) else len(self.b2) / len(self.b1)
            self.p = min(self.p + delta, max(1, c))
        if key in self.b2:
            delta = 1 if len(self.b2) >= len(self.b1) else len(self.b1) / len(self.b2)
            self.p = max(1, min(self.p, c) - delta)
        (self.t2 if key in self.b1 + self.b2 else self.t1).append(key)
        self._forget(key)

    def touch(self, key: int) -> None:
        (self.t1 if key in self.t1 else self.t2).remove(key)
        self.t2.append(key)

    def remove(self, key: int) -> None:
        (self.t1 if key in self.t1 else self.t2).remove(key)
        self._trim()

    def evict(self) -> int:
        top, bottom = (self.t1, self.b1) if self._is_t1_next() else (self.t2, self.b2)
        bottom.append(top.pop(0))
        victim = bottom[-1]
        self._trim()
        return victim

    def spare(self, key: int) -> None:
        self._forget(key)
        self.t2.append(key)

    def _is_t1_next(self) -> bool:
        return not self.t2 or len(self.t1) > self.p

    def _forget(self, key: int) -> None:
        self.b1 = [ghost for ghost in self.b1 if ghost != key]
        self.b2 = [ghost for ghost in self.b2 if ghost != key]

    def _trim(self) -> None:
        c = len(self.residents())
        while len(self.b1) + len(self.b2) > c:
            is_l1_over = bool(self.b1) and len(self.t1) + len(self.b1) > c
            (self.b1 if is_l1_over or not self.b2 else self.b2).pop(0)


MODELS = {
    "lru": (LRU, LRUModel),
    "clock": (Clock, ClockModel),
    "lfu": (LFU, LFUModel),
    "sieve": (SIEVE, SIEVEModel),
    "s3fifo": (S3FIFO, S3FIFOModel),
    "arc": (ARC, ARCModel),
}


def machine_of(name: str) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.policy = make_policy(name)
            self.model = MODELS[name][1]()

        @rule(key=KEYS)
        def use(self, key: int) -> None:
            verb = "touch" if key in self.model.residents() else "add"
            getattr(self.policy, verb)(key)
            getattr(self.model, verb)(key)

        @rule(keys=st.lists(KEYS, max_size=12))
        def use_many(self, keys: list[int]) -> None:
            for key in keys:
                self.use(key)

        @rule(key=KEYS)
        def remove(self, key: int) -> None:
            if key in self.model.residents():
                self.policy.remove(key)
                self.model.remove(key)
            else:
                for verb in (self.policy.remove, self.policy.touch):
                    with pytest.raises(KeyError):
                        verb(key)

        @rule(key=KEYS)
        def add_or_spare_a_resident(self, key: int) -> None:
            if key in self.model.residents():
                for verb in (self.policy.add, self.policy.spare):
                    with pytest.raises(InvalidInput, match=f"key {key} is already resident"):
                        verb(key)

        @precondition(lambda self: self.model.residents())
        @rule()
        def evict(self) -> None:
            assert self.policy.evict() == self.model.evict()

        @rule()
        def evict_half(self) -> None:
            for _ in range(len(self.policy) // 2):
                self.evict()

        @precondition(lambda self: self.model.residents())
        @rule(key=KEYS)
        def fault(self, key: int) -> None:
            if key not in self.model.residents():
                self.evict()
            self.use(key)

        @precondition(lambda self: self.model.residents())
        @rule()
        def spare_the_victim(self) -> None:
            victim = self.policy.evict()
            assert victim == self.model.evict()
            self.policy.spare(victim)
            self.model.spare(victim)

        @invariant()
        def agree(self) -> None:
            self.policy.check()
            residents = self.model.residents()
            assert len(self.policy) == len(residents)
            assert {key for key in range(14) if key in self.policy} == set(residents)

        def teardown(self) -> None:
            for _ in range(len(self.policy)):
                self.evict()
                self.policy.check()

    return Machine


@pytest.mark.parametrize("name", POLICIES)
def test_random_steps_choose_the_victims_of_the_textbook(name: str) -> None:
    steps = settings(max_examples=60, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine_of(name), settings=steps)


def test_the_table_has_every_policy_under_its_name() -> None:
    assert {name: policy for name, (policy, _) in MODELS.items()} == POLICIES
    assert all(type(make_policy(name)) is policy for name, policy in POLICIES.items())


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'mru'.*'lru', 'clock', 'lfu', 'sieve', .*'arc'"):
        make_policy("mru")


@pytest.mark.parametrize("name", POLICIES)
def test_evicting_from_nothing_says_so(name: str) -> None:
    policy = make_policy(name)
    with pytest.raises(KeyError, match="nothing is resident"):
        policy.evict()
    policy.add(1)
    assert policy.evict() == 1
    with pytest.raises(KeyError, match="nothing is resident"):
        policy.evict()


def test_the_lfu_victims_are_the_least_used() -> None:
    uses = Counter(random.Random(5).choices(range(40), weights=range(1, 41), k=2000))
    policy = LFU()
    for key in uses:
        policy.add(key)
    for key in (touched := [*(uses - Counter(uses.keys())).elements()]):
        policy.touch(key)
    assert touched
    assert [uses[policy.evict()] for _ in range(len(uses))] == sorted(uses.values())


def test_lfu_forgets_a_favourite_that_is_not_used_any_more() -> None:
    policy = LFU()
    policy.add(0)
    for _ in range(20):
        policy.touch(0)
    policy.add(1)
    victims = [_replace(policy, key) for key in range(2, 40)]
    assert 0 in victims
    assert victims.index(0) > 15


@pytest.mark.parametrize("name", SCAN_RESISTANT)
def test_a_scan_does_not_flush_the_keys_in_use(name: str) -> None:
    hot = [*range(50)]
    trace = [*hot * 4, *range(1000, 2000), *hot]
    hits_at_the_end = {each: hits(each, trace, 100)[-50:].count(True) for each in (name, "lru")}
    assert hits_at_the_end["lru"] == 0
    assert hits_at_the_end[name] >= 45


def test_arc_learns_from_a_key_that_comes_back() -> None:
    policy = ARC()
    for key in range(6):
        policy.add(key)
    for key in range(3):
        policy.touch(key)
    assert [policy.evict() for _ in range(3)] == [3, 4, 0]  # seen once twice, seen again once
    assert policy.target == 1
    policy.add(3)
    assert policy.target == 2
    policy.add(0)
    assert policy.target == 1


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_remembered_shrinks_with_the_residents(name: str) -> None:
    policy = make_policy(name)
    for key in range(20):
        policy.add(key)
    gone = {policy.evict() for _ in range(10)}
    for key in {*range(20)} - gone:
        policy.remove(key)
        policy.check()
    for key in gone:  # with no resident left, nothing is remembered of them either
        policy.add(key)
    assert [policy.evict() for _ in gone] == [*gone]


def test_a_spared_key_teaches_arc_nothing() -> None:
    policy = ARC()
    for key in range(6):
        policy.add(key)
    policy.spare(policy.evict())
    assert policy.target == 1
    assert [policy.evict() for _ in range(6)] == [1, 2, 3, 4, 0, 5]


@pytest.mark.parametrize("shape", ["zipf", "zipf and scans", "agent"])
def test_arc_is_near_the_best_on_every_kind_of_trace(shape: str) -> None:
    trace = TRACES[shape](random.Random(11), 10_000, 40_000)
    rates = {name: sum(hits(name, trace, 500)) / len(trace) for name in POLICIES}
    assert max(rates.values()) - rates["arc"] <= 0.02, rates
    assert min(rates.values()) > 0.75 * max(rates.values()), f"one collapsed: {rates}"


def hits(name: str, trace: list[int], capacity: int) -> list[bool]:
    """Run a trace through a cache; say for each access whether it hit."""
    policy = make_policy(name)
    return [_access(policy, key, capacity) for key in trace]


def _access(policy: ReplacementPolicy, key: int, capacity: int) -> bool:
    if key in policy:
        policy.touch(key)
        return True
    if len(policy) == capacity:
        policy.evict()
    policy.add(key)
    return False


def _replace(policy: ReplacementPolicy, key: int) -> int:
    victim = policy.evict()
    policy.add(key)
    return victim


def zipf(rng: random.Random, keys: int, count: int) -> list[int]:
    weights = [*accumulate((rank + 1) ** -0.9 for rank in range(keys))]
    return rng.choices(range(keys), cum_weights=weights, k=count)


def zipf_and_scans(rng: random.Random, keys: int, count: int) -> list[int]:
    trace = zipf(rng, keys, count)
    scan = keys // 14
    for place in range(count, 0, -scan * 3):
        trace[place:place] = range(keys + place, keys + place + scan)
    return trace


def agent(rng: random.Random, keys: int, count: int) -> list[int]:
    """30 % new memories, 55 % recalls of mostly recent ones, 15 % core facts."""
    core, newest, trace = keys // 300, keys, []
    for _ in range(count):
        kind = rng.random()
        newest += kind < 0.30
        recall = newest - int((newest - keys + 1) ** rng.random()) + 1
        trace.append(newest if kind < 0.30 else recall if kind < 0.85 else rng.randrange(core))
    return trace


TRACES = {"zipf": zipf, "zipf and scans": zipf_and_scans, "agent": agent}
