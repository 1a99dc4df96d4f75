"""Objects are found by words, with an embedder by meaning as well, and always by something."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from memoryspace.errors import InvalidInput
from memoryspace.retrieval.similarity import SimilarityRetriever

MEANINGS = (("cat", "kitten", "feline"), ("car", "automobile", "vehicle"), ("tea", "brew", "cup"))


@dataclass(frozen=True)
class Thing:
    id: str
    payload: Any


class Meaning:
    """An embedder that knows a few words of one meaning each."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.broken = False

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.calls.append(texts)
        if self.broken:
            raise ConnectionError("the model does not answer")
        rows = np.array([self._row(text) for text in texts], np.float32)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        return self.embed(texts)

    def _row(self, text: str) -> list[float]:
        words = text.lower().split()
        return [1e-3, *(sum(word in group for word in words) + 1e-3 for group in MEANINGS)]


def ids(found: list[tuple[Thing, float]]) -> list[str]:
    return [thing.id for thing, _ in found]


def things() -> list[Thing]:
    return [
        Thing("cat", {"text": "the cat sleeps"}),
        Thing("kitten", {"text": "a kitten plays"}),
        Thing("car", {"text": "my car is red"}),
        Thing("tea", {"text": "a cup of tea"}),
    ]


def retriever(embedder: Meaning | None = None) -> SimilarityRetriever[Thing]:
    made: SimilarityRetriever[Thing] = SimilarityRetriever(embedder)
    for thing in things():
        made.index(thing)
    return made


def test_without_an_embedder_words_decide() -> None:
    assert set(ids(retriever().query("red cat"))) == {"cat", "car"}
    assert ids(retriever().query("feline")) == []
    [(thing, score)] = retriever().query("sleeps")
    assert thing == things()[0]
    assert score > 0


def test_with_an_embedder_meaning_finds_what_words_do_not() -> None:
    found = retriever(Meaning()).query("feline", 2)
    assert set(ids(found)) == {"cat", "kitten"}


def test_a_dense_model_is_an_embedder_with_another_name() -> None:
    made: SimilarityRetriever[Thing] = SimilarityRetriever(dense_model=Meaning())
    made.rebuild(things())
    assert set(ids(made.query("feline", 2))) == {"cat", "kitten"}


def test_words_and_meaning_count_half_each() -> None:
    found = retriever(Meaning()).query("kitten", 4)
    assert ids(found)[:2] == ["kitten", "cat"]
    assert found[0][1] == pytest.approx(1.0)  # the best of both arms
    assert found[1][1] == pytest.approx(0.5, abs=0.01)  # as near in meaning, without the word
    assert found[-1][1] == pytest.approx(0.0, abs=0.01)


def test_equals_come_newest_first() -> None:
    for embedder in (None, Meaning()):
        made: SimilarityRetriever[Thing] = SimilarityRetriever(embedder)
        for name in "abcd":
            made.index(Thing(name, "the cat"))
        assert ids(made.query("cat")) == ["d", "c", "b", "a"]
        made.remove("b")
        made.index(Thing("e", "the cat"))  # takes the place of b inside
        made.index(Thing("a", "the cat"))  # counts as new
        assert ids(made.query("cat")) == ["a", "e", "d", "c"]


@pytest.mark.parametrize("names", [("zebra", "cat"), ("cat", "zebra")])
def test_equals_of_the_two_arms_come_newest_first(names: tuple[str, str]) -> None:
    made: SimilarityRetriever[Thing] = SimilarityRetriever(Meaning())
    for name in names:
        made.index(Thing(name, name))
    found = made.query("zebra feline")  # one has a word of it, the other the meaning
    assert [score for _, score in found] == [0.5, 0.5]
    assert ids(found) == [*reversed(names)]


def test_the_least_near_candidate_gets_nothing_for_its_nearness() -> None:
    made: SimilarityRetriever[Thing] = SimilarityRetriever(Meaning())
    made.rebuild([Thing("near", "cat"), Thing("half", "cat tea")])
    assert [score for _, score in made.query("feline")] == [0.5, 0.0]


def test_an_object_indexed_again_is_replaced() -> None:
    for embedder in (None, Meaning()):
        made = retriever(embedder)
        made.index(Thing("cat", {"text": "now a automobile"}))
        assert len(made) == 4
        assert ids(made.query("automobile", 1)) == ["cat"]
        assert ids(made.query("kitten feline", 1)) == ["kitten"]
        assert all("sleeps" not in thing.payload["text"] for thing, _ in made.query("sleeps"))


def test_a_removed_object_is_not_found_again() -> None:
    for embedder in (None, Meaning()):
        made = retriever(embedder)
        made.query("cat")
        assert made.remove("cat")
        assert made.remove(things()[1])
        assert not made.remove("cat")
        assert "cat" not in made
        assert not {"cat", "kitten"} & set(ids(made.query("cat kitten feline", 10)))


def test_rebuilding_forgets_what_was_there() -> None:
    made = retriever(Meaning())
    made.query("cat")
    made.rebuild([Thing("new", "a vehicle")])
    assert len(made) == 1
    assert ids(made.query("car")) == ["new"]


def test_rebuilding_from_what_is_found_works() -> None:
    made = retriever()

    def cats() -> Iterator[Thing]:
        yield from (thing for thing, _ in made.query("cat kitten"))

    made.rebuild(cats())
    assert sorted(ids(made.query("cat kitten car"))) == ["cat", "kitten"]


@pytest.mark.parametrize("embedder", [None, Meaning()])
def test_a_filter_that_refuses_most_still_yields_the_best_allowed(embedder: Meaning | None) -> None:
    made: SimilarityRetriever[Thing] = SimilarityRetriever(embedder)
    for number in range(400):
        made.index(Thing(f"loud{number}", "cat cat cat"))
    made.index(Thing("quiet", "there was once a cat somewhere in a long text"))
    made.index(Thing("silent", "nothing"))
    for number in range(400):
        made.index(Thing(f"late{number}", "cat cat cat"))
    allowed = {"quiet", "silent"}
    found = made.query("cat", 3, filter_fn=lambda thing: thing.id in allowed)
    assert ids(found)[0] == "quiet"
    assert set(ids(found)) <= allowed


def test_a_failing_embedder_leaves_the_words_and_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = Meaning()
    embedder.broken = True
    made = retriever(embedder)
    with caplog.at_level(logging.WARNING):
        assert made.query("kitten feline") == retriever().query("kitten feline")
        assert made.query("car") == retriever().query("car")
    [record] = caplog.records
    assert "searching by words alone" in record.getMessage()
    assert "does not answer" in record.getMessage()


def test_an_embedder_that_is_back_makes_up_for_what_it_missed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = Meaning()
    made = retriever(embedder)
    made.query("cat")
    embedder.broken = True
    made.index(Thing("new", "a vehicle"))
    assert ids(made.query("automobile")) == []
    embedder.broken = False
    assert set(ids(made.query("automobile", 2))) == {"car", "new"}
    embedder.broken = True
    with caplog.at_level(logging.WARNING):
        made.query("cat")
    assert len(caplog.records) == 2, "a new outage is told of again"
    made.check()


@pytest.mark.parametrize(
    "rows", [np.zeros((1, 3)), np.full((4, 3), np.nan), np.zeros(4), np.zeros((4, 0)), "no rows"]
)
def test_an_embedder_that_returns_nonsense_leaves_the_words(rows: Any) -> None:
    class Nonsense:
        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return rows  # type: ignore[no-any-return]

    made: SimilarityRetriever[Thing] = SimilarityRetriever(Nonsense())
    made.rebuild(things())
    assert made.query("cat car") == retriever().query("cat car")


def test_a_query_whose_vector_does_not_fit_is_answered_by_words() -> None:
    class Changing:
        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return np.ones((len(texts), 2 + len(texts)), np.float32)

    made: SimilarityRetriever[Thing] = SimilarityRetriever(Changing())
    made.rebuild(things())
    assert made.query("cat car") == retriever().query("cat car")


def test_many_objects_are_embedded_in_one_call() -> None:
    embedder = Meaning()
    made = retriever(embedder)
    made.query("cat")
    made.query("cat")
    assert [len(texts) for texts in embedder.calls] == [4, 1, 1]


def test_bad_arguments_are_refused() -> None:
    made = retriever()
    with pytest.raises(InvalidInput, match="top_k must be 1 or more, got 0"):
        made.query("cat", 0)
    with pytest.raises(TypeError, match="top_k must be an int, got float"):
        made.query("cat", 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the query must be a str, got list"):
        made.query(["cat"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not both"):
        SimilarityRetriever(Meaning(), Meaning())
    with pytest.raises(TypeError, match="must have a method embed"):
        SimilarityRetriever(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must have a method encode"):
        SimilarityRetriever(dense_model="a name")  # type: ignore[arg-type]


def test_nothing_is_found_in_an_empty_retriever() -> None:
    embedder = Meaning()
    made: SimilarityRetriever[Thing] = SimilarityRetriever(embedder)
    assert made.query("cat") == []
    assert embedder.calls == []
    made.index(things()[0])
    made.query("cat")
    made.remove("cat")
    assert made.query("cat") == []


class Comings(RuleBasedStateMachine):
    """Whatever came and went, what is here is found as if it had come to a new retriever."""

    @initialize(meaning=st.booleans())
    def begin(self, meaning: bool) -> None:
        self.embedder = Meaning() if meaning else None
        self.made: SimilarityRetriever[Thing] = SimilarityRetriever(self.embedder)
        self.model: dict[str, Thing] = {}

    @rule(
        name=st.sampled_from("abcdef"), text=st.sampled_from(["cat", "tea cup", "car", "cat tea"])
    )
    def index(self, name: str, text: str) -> None:
        thing = Thing(name, text)
        self.made.index(thing)
        self.model.pop(name, None)
        self.model[name] = thing

    @rule(name=st.sampled_from("abcdef"))
    def remove(self, name: str) -> None:
        assert self.made.remove(name) == (self.model.pop(name, None) is not None)

    @rule(broken=st.booleans())
    def outage(self, broken: bool) -> None:
        if self.embedder is not None:
            self.embedder.broken = broken

    @rule(query=st.sampled_from(["cat", "feline", "brew car"]), top_k=st.integers(1, 7))
    def ask(self, query: str, top_k: int) -> None:
        works = self.embedder is not None and not self.embedder.broken
        fresh: SimilarityRetriever[Thing] = SimilarityRetriever(Meaning() if works else None)
        fresh.rebuild(self.model.values())
        expected, found = fresh.query(query, top_k), self.made.query(query, top_k)
        assert ids(found) == ids(expected)
        assert [score for _, score in found] == pytest.approx([score for _, score in expected])

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "made"):
            self.made.check()


TestComings = Comings.TestCase
TestComings.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
