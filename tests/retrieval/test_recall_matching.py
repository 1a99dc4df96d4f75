"""Searches for what matches by itself, and how like the question each hit says it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from memoryspace.embedding import CallableEmbedder, Embedder, MiniLMEmbedder, StaticEmbedder
from memoryspace.errors import MissingExtra
from memoryspace.retrieval import Entry, Only, Recall
from memoryspace.retrieval.matching import LIKENESS_FLOOR

TALK = ["the cat sat", "quantum theory", "I like tennis"]


def talk(texts: Sequence[str] = TALK, embedder: Embedder | None = None, **more: float) -> Recall:
    recall = Recall(embedder=embedder, **more)  # type: ignore[arg-type]  # floor alone is given
    recall.add([Entry(text, text, session="s") for text in texts])
    return recall


def found(recall: Recall, question: str, top_k: int = 10) -> list[str]:
    return [hit.id for hit in recall.search(question, top_k, matching=True)]


def angles(degrees: dict[str, float]) -> CallableEmbedder:
    """Texts as vectors in a plane: the cosine of two is that of the angle between them."""

    def embed(texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        turned = np.radians([degrees[text] for text in texts])
        return np.stack([np.cos(turned), np.sin(turned)], axis=1)

    return CallableEmbedder(embed, "plane", 2)


def installed(kind: type[StaticEmbedder] | type[MiniLMEmbedder]) -> Embedder:
    try:
        return kind()
    except MissingExtra as error:
        pytest.skip(str(error))


def test_neighbours_of_a_match_are_found_only_without_matching() -> None:
    recall = talk()
    assert {hit.id for hit in recall.search("the tennis")} == set(TALK)
    assert found(recall, "the tennis") == ["I like tennis"]


def test_a_word_that_nobody_said_finds_nothing() -> None:
    assert found(talk(), "hello") == []


def test_stop_words_match_only_where_there_are_no_others() -> None:
    recall = talk(["to be or not to be", "we are to go"])
    assert found(recall, "to go") == ["we are to go"]
    assert found(recall, "or not")[0] == "to be or not to be"


def test_a_standing_instruction_is_not_returned_for_its_own_sake() -> None:
    recall = Recall(embedder=None)
    recall.add([Entry("i", "Always answer in metric units.", role="user"), Entry("t", "tea")])
    assert {hit.id for hit in recall.search("tea")} == {"i", "t"}
    assert found(recall, "tea") == ["t"]


def test_a_title_is_part_of_the_own_text() -> None:
    recall = Recall(embedder=None)
    recall.add([Entry("a", "a river", title="Thames"), Entry("b", "a city")])
    assert found(recall, "Thames") == ["a"]


@pytest.mark.parametrize("size", [10, 2000])  # all are candidates, or the best
def test_a_name_and_talk_about_talking_match_although_they_rank_nothing(size: int) -> None:
    recall = Recall(embedder=None)
    recall.add([Entry(f"x{n}", f"filler text {n}", speaker="Bob") for n in range(size)])
    recall.add(
        [
            Entry("name", "Ann was here", speaker="Bob"),
            Entry("list", "my list", speaker="Bob"),
            Entry("said", "hm", speaker="Ann"),
        ]
    )
    assert "name" in found(recall, "Ann and zebras")
    assert found(recall, "a list of zebras") == ["list"]
    assert recall.search("a list of zebras", matching=True, only=Only(speaker="Ann")) == []


def test_order_and_scores_are_those_of_the_search_without() -> None:
    recall = talk(["tea and cake", "cake", "tea with milk", "nothing", "tea"])
    everything = [hit for hit in recall.search("tea or cake") if hit.id != "nothing"]
    assert recall.search("tea or cake", matching=True) == everything


def test_equals_come_newest_first() -> None:
    recall = Recall(embedder=None)
    recall.add([Entry(str(n), "the same tea") for n in range(5)])
    assert found(recall, "tea", 3) == ["4", "3", "2"]


def test_a_vector_as_near_as_the_floor_matches_and_one_further_off_does_not() -> None:
    near = float(np.degrees(np.arccos(LIKENESS_FLOOR)))
    embedder = angles({"q": 0, "a": near - 1, "b": near + 1})
    assert found(talk(["a", "b"], embedder), "q") == ["a"]
    assert found(talk(["a", "b"], embedder, floor=0.1), "q") == ["a", "b"]
    assert found(talk(["a", "b"], embedder, floor=0.9), "q") == []


def test_a_match_is_not_found_for_its_neighbours_vector() -> None:
    embedder = angles({"q": 0, "a": 5, "b": 85, "c": 80})
    assert found(talk(["a", "b", "c"], embedder), "q") == ["a"]


def test_why_not_heeds_matching() -> None:
    recall = talk()
    assert recall.why_not("tennis", "quantum theory").reason == "found"
    assert recall.why_not("tennis", "quantum theory", matching=True).reason == "not matched"
    assert recall.why_not("tennis", "I like tennis", matching=True).reason == "found"


def test_a_reranker_sees_only_what_matches() -> None:
    seen: list[str] = []

    def rerank(question: str, texts: Sequence[str]) -> list[float]:
        seen.extend(texts)
        return [0.0] * len(texts)

    recall = Recall(embedder=None, reranker=rerank)
    recall.add([Entry(text, text, session="s") for text in TALK])
    assert found(recall, "tennis") == ["I like tennis"]
    assert seen == ["I like tennis"]


@pytest.mark.parametrize("kind", [StaticEmbedder, MiniLMEmbedder])
def test_small_talk_stays_out_and_a_paraphrase_comes_in(
    kind: type[StaticEmbedder] | type[MiniLMEmbedder],
) -> None:
    texts = [*TALK, "I bought a small dog yesterday", "The engine of my vehicle broke down"]
    recall = talk(texts, installed(kind))
    for small_talk in ("hello", "hi there", "thanks a lot!", "how are you?", "good morning"):
        assert found(recall, small_talk) == []
    assert found(recall, "the tennis") == ["I like tennis"]
    assert found(recall, "my puppy") == ["I bought a small dog yesterday"]
    assert found(recall, "car trouble") == ["The engine of my vehicle broke down"]
    assert "I like tennis" in found(recall, "what sport do I enjoy?")


def test_likeness_is_the_cosine_to_the_question() -> None:
    recall = talk(["a", "b"], angles({"q": 0, "a": 30, "b": 60}))
    likeness = {hit.id: hit.why.likeness for hit in recall.search("q", explain=True) if hit.why}
    assert likeness == {"a": pytest.approx(0.75**0.5), "b": pytest.approx(0.5)}
    told = recall.why_not("q", "b", 1)
    assert told.why is not None
    assert told.why.likeness == pytest.approx(0.5)


def test_likeness_is_none_without_a_vector_on_either_side() -> None:
    hit = talk().search("tennis", explain=True)[0]
    assert hit.why is not None
    assert hit.why.likeness is None
    recall = talk(["a"], angles({"q a b": 0, "a": 30}))
    recall.add([Entry("b", "b")])  # of which the embedder makes nothing
    likeness = {hit.id: hit.why.likeness for hit in recall.search("q a b", explain=True) if hit.why}
    assert likeness == {"a": pytest.approx(0.75**0.5), "b": None}


def test_ids_are_those_of_the_entries_there_are() -> None:
    recall = talk()
    recall.remove(["the cat sat"])
    assert sorted(recall.ids()) == ["I like tennis", "quantum theory"]
