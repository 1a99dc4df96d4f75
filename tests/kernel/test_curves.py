"""The curves agree with a plain simulation of the cache they describe."""

from __future__ import annotations

import random
from collections import OrderedDict
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.kernel.tiers.curves import HitRate, MissRatioCurve, Window
from memoryspace.testing import ManualClock


def lru_misses(trace: list[tuple[int, int]], capacity: int) -> int:
    """Count the misses of an LRU cache the obvious way."""
    cache: OrderedDict[int, int] = OrderedDict()
    misses = 0
    for key, size in trace:
        if key in cache:
            cache.move_to_end(key)
            continue
        misses += 1
        cache[key] = size
        while sum(cache.values()) > capacity:
            cache.popitem(last=False)
    return misses


def zipf(keys: int, count: int, seed: int) -> list[int]:
    weights = [*accumulate((rank + 1) ** -0.9 for rank in range(keys))]
    return random.Random(seed).choices(range(keys), cum_weights=weights, k=count)


def record_all(curve: MissRatioCurve, trace: list[tuple[int, int]]) -> MissRatioCurve:
    for key, size in trace:
        curve.record(key, size)
    curve.check()
    return curve


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(1, 14))
def test_a_full_sample_is_exactly_an_lru_cache(keys: list[int], capacity: int) -> None:
    trace = [(key, 1) for key in keys]
    curve = record_all(MissRatioCurve(1.0), trace)
    assert curve.miss_ratio(capacity) == pytest.approx(lru_misses(trace, capacity) / len(trace))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(6, 40))
def test_objects_of_different_sizes_take_their_room(keys: list[int], capacity: int) -> None:
    trace = [(key, 1 + key % 6) for key in keys]
    curve = record_all(MissRatioCurve(1.0), trace)
    assert curve.miss_ratio(capacity) == pytest.approx(lru_misses(trace, capacity) / len(trace))


def test_a_long_trace_stays_exact_through_every_compaction() -> None:
    trace = [(key, 1) for key in zipf(1500, 12_000, seed=3)]
    curve = record_all(MissRatioCurve(1.0), trace)
    for capacity in (1, 10, 100, 600):
        assert curve.miss_ratio(capacity) == pytest.approx(lru_misses(trace, capacity) / 12_000)


def test_a_sample_is_near_the_truth() -> None:
    trace = [(key, 1) for key in zipf(20_000, 100_000, seed=7)]
    truth = record_all(MissRatioCurve(1.0, max_samples=20_000), trace)
    sample = record_all(MissRatioCurve(0.05, seed=1), trace)
    errors = [abs(sample.miss_ratio(size) - ratio) for size, ratio in truth.curve(20) if size > 100]
    assert len(errors) >= 8
    assert sum(errors) / len(errors) < 0.02


def test_too_many_keys_halve_the_rate_and_stay_near_the_truth() -> None:
    trace = [(key, 1) for key in zipf(20_000, 100_000, seed=9)]
    truth = record_all(MissRatioCurve(1.0, max_samples=20_000), trace)
    sample = record_all(MissRatioCurve(1.0, max_samples=1000, seed=2), trace)
    assert (truth.rate, sample.rate) == (1.0, 1 / 16)
    errors = [abs(sample.miss_ratio(size) - ratio) for size, ratio in truth.curve(20) if size > 100]
    assert len(errors) >= 8
    assert sum(errors) / len(errors) < 0.03


def test_memory_is_bounded_for_any_number_of_keys_and_distances() -> None:
    curve = MissRatioCurve(1.0, max_samples=50)
    rng = random.Random(1)
    for step in range(20_000):
        curve.record(rng.randrange(2000), size=rng.randrange(1, 10**6))
        if step % 500 == 0:
            curve.check()
    assert curve.accesses == 20_000
    assert curve.rate <= 1 / 32


def test_more_distances_than_buckets_lose_only_their_finest_part() -> None:
    trace = [(key, 1 + key % 50) for key in zipf(1000, 8000, seed=4)]
    curve = record_all(MissRatioCurve(1.0), trace)
    for size in (48, 800, 6400, 16_000):  # ends of buckets, where nothing is lost
        assert curve.miss_ratio(size) == pytest.approx(lru_misses(trace, size) / len(trace))


def test_the_curve_falls_from_small_caches_to_first_accesses_alone() -> None:
    keys = zipf(300, 4000, seed=2)
    points = record_all(MissRatioCurve(1.0), [(key, 1) for key in keys]).curve(16)
    assert all(
        size < larger and ratio >= lower for (size, ratio), (larger, lower) in pairwise(points)
    )
    assert len(points) <= 16
    assert points[0][0] == 1
    assert points[-1][1] == pytest.approx(len({*keys}) / len(keys))


def test_the_same_seed_samples_the_same_keys_and_another_seed_others() -> None:
    trace = [(key, 1) for key in zipf(5000, 20_000, seed=5)]
    one, same, other = (
        record_all(MissRatioCurve(0.1, seed=seed), trace).curve() for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_freed_object_takes_no_room() -> None:
    curve = MissRatioCurve(1.0)
    for key in (1, 2, 3):
        curve.record(key)
    curve.remove(2)
    curve.remove(99)
    curve.record(1)
    curve.check()
    assert (curve.miss_ratio(1), curve.miss_ratio(2)) == (1.0, 0.75)


def test_an_empty_curve_misses_everything() -> None:
    curve = MissRatioCurve()
    assert curve.curve() == [(1, 1.0)]
    assert curve.miss_ratio(0) == 1.0


def test_hits_and_misses_are_told_by_windows_of_accesses() -> None:
    rate = HitRate(4)
    for hit in (True, False, True, True, False, False):
        rate.record(hit)
    assert rate.series() == [Window(0, 4, 3, 1), Window(4, 8, 0, 2)]
    assert [window.rate for window in rate.series()] == [0.75, 0.0]
    assert rate.rate == 0.5


def test_with_a_clock_windows_are_in_seconds_and_idle_time_makes_none() -> None:
    clock = ManualClock(100.0)
    rate = HitRate(10, clock=clock)
    for hit, seconds in ((True, 9), (False, 1), (True, 500), (True, 0)):
        rate.record(hit)
        clock.advance(seconds)
    assert rate.series() == [
        Window(100, 110, 1, 1), Window(110, 120, 1, 0), Window(610, 620, 1, 0)
    ]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=200), st.integers(1, 3), st.integers(4, 9))
def test_windows_are_bounded_and_lose_nothing(hits: list[bool], length: int, most: int) -> None:
    rate = HitRate(length, max_windows=most)
    for hit in hits:
        rate.record(hit)
        rate.check()
    assert (rate.hits, rate.misses) == (hits.count(True), hits.count(False))
    assert [window.start for window in rate.series()[:1]] == [0] * bool(hits)


def test_the_recent_past_stays_fine_when_the_older_is_merged() -> None:
    rate = HitRate(1, max_windows=8)
    for step in range(100):
        rate.record(step % 2 == 0)
    lengths = [window.end - window.start for window in rate.series()]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-3:] == [1, 1, 1]
    assert sum(lengths) == 100


def test_nothing_recorded_is_a_rate_of_zero() -> None:
    assert (HitRate().rate, HitRate().series()) == (0.0, [])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: HitRate(0), "window must be more than 0"),
        (lambda: HitRate(float("nan")), "window must be more than 0"),
        (lambda: HitRate(max_windows=3), "max_windows must be 4 or more"),
        (lambda: MissRatioCurve(0), "rate must be more than 0 and at most 1, got 0"),
        (lambda: MissRatioCurve(1.1), "rate must be more than 0 and at most 1, got 1.1"),
        (lambda: MissRatioCurve(max_samples=0), "max_samples must be 1 or more"),
        (lambda: MissRatioCurve().record(5, size=0), "size of key 5 must be 1 or more, got 0"),
        (lambda: MissRatioCurve().curve(1), "points must be 2 or more"),
    ],
)
def test_bad_values_are_refused(act, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        act()
