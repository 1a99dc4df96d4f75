"""Generations of vectors: one serves, another is filled, and no search ever sees both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.retrieval.dense.generations import Generations

OLD, NEW = "model-1/3", "model-2/4"


def old_vector(key: int) -> list[float]:
    return [1.0, key / 10, 0.0]


def new_vector(key: int) -> list[float]:
    return [0.0, key / 10, 1.0, 0.5]


def with_old(count: int) -> Generations:
    generations = Generations()
    generations.begin(OLD, 3)
    generations.add_many(OLD, range(count), [old_vector(key) for key in range(count)])
    return generations


def test_the_first_generation_serves_at_once_and_a_second_only_after_the_switch() -> None:
    generations = with_old(3)
    generations.begin(NEW, 4)
    assert generations.serving == OLD
    generations.add_many(NEW, [0, 1, 2], [new_vector(key) for key in range(3)])
    assert generations.serving == OLD
    generations.switch(NEW)
    assert generations.serving == NEW


def test_searches_use_the_old_generation_entirely_until_the_switch() -> None:
    generations = with_old(5)
    before = generations.search(OLD, old_vector(2), 5)
    generations.begin(NEW, 4)
    for key in range(5):
        generations.add(NEW, key, new_vector(key))
        assert generations.search(OLD, old_vector(2), 5) == before
    generations.switch(NEW)
    assert generations.search(NEW, new_vector(2), 1)[0][0] == 2
    with pytest.raises(InvalidInput, match=r"of generation 'model-1/3', but 'model-2/4' is serv"):
        generations.search(OLD, old_vector(2), 5)
    with pytest.raises(InvalidInput, match="embed the query with that model"):
        generations.scores(OLD, old_vector(2), [1])


def test_a_generation_that_lacks_something_cannot_take_over() -> None:
    generations = with_old(4)
    generations.begin(NEW, 4)
    generations.add(NEW, 0, new_vector(0))
    generations.add(NEW, 2, new_vector(2))
    assert generations.pending(NEW).tolist() == [1, 3]
    assert generations.pending(NEW, [3, 2, 99]).tolist() == [3, 99]
    with pytest.raises(InvalidInput, match=r"lacks 2 of the vectors in service \(key 1"):
        generations.switch(NEW)
    assert generations.serving == OLD


def test_what_arrives_during_the_filling_is_pending_and_what_goes_is_not() -> None:
    generations = with_old(2)
    generations.begin(NEW, 4)
    generations.add_many(NEW, generations.pending(NEW), [new_vector(0), new_vector(1)])
    generations.add(OLD, 7, old_vector(7))
    assert generations.pending(NEW).tolist() == [7]
    assert generations.remove(7)
    assert len(generations.pending(NEW)) == 0
    generations.switch(NEW)


def test_remove_forgets_a_key_in_every_generation() -> None:
    generations = with_old(2)
    generations.begin(NEW, 4)
    generations.add(NEW, 1, new_vector(1))
    assert generations.remove(1) is True
    assert [1 in index for index in generations.indexes.values()] == [False, False]
    assert generations.remove(1) is False


def test_a_vector_of_another_generation_is_refused() -> None:
    generations = with_old(1)
    generations.begin(NEW, 4)
    with pytest.raises(InvalidInput, match="this index holds vectors of 4 dimensions"):
        generations.add(NEW, 0, old_vector(0))
    with pytest.raises(InvalidInput, match="no generation 'model-3'"):
        generations.add("model-3", 0, old_vector(0))
    with pytest.raises(InvalidInput, match="has 3 dimensions, not 5"):
        generations.begin(OLD, 5)
    with pytest.raises(InvalidInput, match="needs a name"):
        generations.begin("", 5)


def test_an_interrupted_filling_goes_on_where_it_was() -> None:
    generations = with_old(2)
    generations.begin(NEW, 4)
    generations.add(NEW, 0, new_vector(0))
    generations.begin(NEW, 4)
    assert generations.pending(NEW).tolist() == [1]


def test_the_serving_generation_is_not_dropped() -> None:
    generations = with_old(1)
    generations.begin(NEW, 4)
    generations.add(NEW, 0, new_vector(0))
    with pytest.raises(InvalidInput, match="is serving"):
        generations.drop(OLD)
    generations.switch(NEW)
    generations.drop(OLD)
    assert list(generations.indexes) == [NEW]
    with pytest.raises(InvalidInput, match="no generation"):
        generations.drop(OLD)


def test_generations_are_saved_and_loaded_with_the_one_that_serves(tmp_path: Path) -> None:
    generations = with_old(3)
    generations.begin(NEW, 4)
    generations.add(NEW, 1, new_vector(1))
    generations.save(tmp_path)
    loaded = Generations.load(tmp_path)
    loaded.check()
    assert loaded.serving == OLD
    assert loaded.pending(NEW).tolist() == [0, 2]
    assert loaded.search(OLD, old_vector(1), 3) == generations.search(OLD, old_vector(1), 3)


def test_damaged_or_missing_generations_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no generations saved"):
        Generations.load(tmp_path)
    with_old(1).save(tmp_path)
    for text in ("{", '{"names": []}', '{"names": ["a"], "serving": "b"}'):
        (tmp_path / "generations.json").write_text(text)
        with pytest.raises(CorruptData):
            Generations.load(tmp_path)


class Changing(RuleBasedStateMachine):
    """Models come and go over the same keys; whoever serves has every key, always."""

    names = st.sampled_from("abc")

    def __init__(self) -> None:
        super().__init__()
        self.generations = Generations()
        self.generations.begin("a", 2)
        self.keys: set[int] = set()

    @rule(key=st.integers(0, 9))
    def add(self, key: int) -> None:
        serving = self.generations.serving
        assert serving is not None
        if key not in self.keys:
            self.generations.add(serving, key, self.vector(serving))
            self.keys.add(key)
            # A generation that served before may still have what it was filled with.

    @rule(key=st.integers(0, 9))
    def remove(self, key: int) -> None:
        assert self.generations.remove(key) == (key in self.keys)
        self.keys.discard(key)

    @rule(name=names, some=st.integers(1, 5))
    def fill(self, name: str, some: int) -> None:
        self.generations.begin(name, 2 + "abc".index(name))
        for key in self.generations.pending(name)[:some].tolist():
            self.generations.add(name, key, self.vector(name))

    @rule(name=names)
    def switch(self, name: str) -> None:
        if name in self.generations.indexes and not len(self.generations.pending(name)):
            self.generations.switch(name)
        else:
            with pytest.raises(InvalidInput):
                self.generations.switch(name)

    @rule(name=names)
    def drop(self, name: str) -> None:
        if name in self.generations.indexes and name != self.generations.serving:
            self.generations.drop(name)

    @invariant()
    def the_serving_one_has_every_key_with_its_own_vectors(self) -> None:
        self.generations.check()
        serving = self.generations.serving
        assert serving is not None
        assert len(self.generations) == len(self.keys)
        hits = self.generations.search(serving, self.vector(serving), 20)
        assert {key for key, _ in hits} == self.keys
        assert all(cosine == pytest.approx(1) for _, cosine in hits)

    @staticmethod
    def vector(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.arange(1.0, 3.0 + "abc".index(name))


TestChanging = Changing.TestCase
TestChanging.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
