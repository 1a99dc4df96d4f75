"""The baselines keep what they say they keep, and find it by the words of the real index."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.retrieval.baselines import (
    BaselineMemory,
    Reservoir,
    ReservoirMemory,
    SlidingWindow,
    SlidingWindowMemory,
)

NAMES = ["anna", "boris", "clara", "david", "elena", "frank", "greta", "henry", "irene", "jonas"]

BOTH = pytest.mark.parametrize("kind", [SlidingWindowMemory, ReservoirMemory])


def kept(memory: BaselineMemory) -> list[int]:
    """What is kept, by number of arrival, the newest first: every text has the word in it."""
    found = memory.retrieve("word", 1000)
    return sorted((int(item.id) for item, _ in found), reverse=True)


def filled(memory: BaselineMemory, count: int) -> BaselineMemory:
    for number in range(count):
        memory.store({"text": f"word {NAMES[number % 10]}", "nested": {"n": number}})
    return memory


def test_a_window_keeps_the_newest() -> None:
    assert kept(filled(SlidingWindowMemory(3), 10)) == [9, 8, 7]


def test_a_window_forgets_what_slid_out() -> None:
    memory = filled(SlidingWindowMemory(3), 10)
    assert memory.retrieve("greta") == []
    [(item, score)] = memory.retrieve("henry")
    assert item.id == "7"
    assert item.payload == {"text": "word henry", "nested": {"n": 7}}
    assert score > 0


def test_a_reservoir_keeps_each_item_with_the_same_chance() -> None:
    times: Counter[int] = Counter()
    for seed in range(600):
        times.update(kept(filled(ReservoirMemory(4, seed), 12)))
    # 600 draws of 4 in 12: 200 each, give or take six standard deviations of 11.5.
    assert all(130 < times[number] < 270 for number in range(12)), times


def test_a_reservoir_of_one_keeps_the_first_of_two_half_the_time() -> None:
    first = sum(kept(filled(ReservoirMemory(1, seed), 2)) == [0] for seed in range(200))
    assert 55 < first < 145  # 100, give or take six standard deviations of 7


def test_a_reservoir_is_repeated_by_its_seed() -> None:
    assert kept(filled(ReservoirMemory(5, 7), 90)) == kept(filled(ReservoirMemory(5, 7), 90))
    assert kept(filled(ReservoirMemory(5, 7), 90)) != kept(filled(ReservoirMemory(5, 8), 90))


def test_what_a_reservoir_refuses_is_not_found() -> None:
    memory = ReservoirMemory(1, seed=0)
    items = [memory.store(f"word {name}") for name in NAMES]
    [survivor] = kept(memory)
    found = [item.id for item in items if memory.retrieve(item.payload.split()[1])]
    assert found == [str(survivor)]


@BOTH
@given(size=st.integers(1, 6), count=st.integers(0, 20))
def test_there_are_never_too_many_nor_fewer_than_there_could_be(
    kind: type[BaselineMemory], size: int, count: int
) -> None:
    memory = filled(kind(size), count)
    assert len(memory) == len(kept(memory)) == min(size, count)
    assert memory.stats() == {
        "items": len(memory),
        "max_items": size,
        "stored": count,
        "dropped": count - len(memory),
    }


@BOTH
def test_the_best_match_comes_first_and_then_the_newest(kind: type[BaselineMemory]) -> None:
    memory = kind(10)
    for text in ["a red house", "red red red", "a red house", "blue"]:
        memory.store(text)
    assert [item.id for item, _ in memory.retrieve("red")] == ["1", "2", "0"]
    assert [item.id for item, _ in memory.retrieve("red", top_k=2)] == ["1", "2"]


@BOTH
def test_chinese_is_found_by_its_words(kind: type[BaselineMemory]) -> None:
    memory = kind(10)
    memory.store("我喜欢红烧肉")
    memory.store("天气很好")
    assert [item.id for item, _ in memory.retrieve("红烧")] == ["0"]


@BOTH
def test_a_size_that_keeps_nothing_is_refused(kind: type[BaselineMemory]) -> None:
    with pytest.raises(InvalidInput, match="max_items must be 1 or more, got 0"):
        kind(0)
    with pytest.raises(TypeError, match="max_items must be an int, got float"):
        kind(2.5)  # type: ignore[arg-type]


def test_the_short_names_are_the_same() -> None:
    assert SlidingWindow is SlidingWindowMemory
    assert Reservoir is ReservoirMemory
