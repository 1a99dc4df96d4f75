"""A search written down and done again."""

from __future__ import annotations

import pytest

from memoryspace.errors import CorruptData
from memoryspace.retrieval import Entry, Only, Recall, Recording, record, replay


def filled() -> Recall:
    recall = Recall(embedder=None)
    recall.add(
        [
            Entry("a", "Ann moved to Lisbon", session="s", time=10.0),
            Entry("b", "Lisbon is sunny", session="s", time=20.0),
            Entry("c", "Lisbon has hills", session="t", time=30.0),
        ]
    )
    return recall


def test_the_same_memory_gives_the_same_again() -> None:
    recall = filled()
    taken = record(recall, "who moved to Lisbon?", 3, only=Only(session="s"), now=100.0)
    assert taken.ids[0] == "a"
    assert "c" not in taken.ids
    again = replay(recall, Recording.from_json(taken.to_json()))
    assert again.is_same
    assert again.again == taken


def test_a_replay_says_who_is_gone_who_is_new_and_who_moved() -> None:
    recall = filled()
    taken = record(recall, "Lisbon", 3, now=100.0)
    first, second, third = taken.ids
    recall.remove([first])
    recall.add([Entry("d", "Lisbon, Lisbon, Lisbon!", time=40.0)])
    found = replay(recall, taken)
    assert not found.is_same
    assert found.gone == (first,)
    assert found.new == ("d",)
    places = {each: place for place, each in enumerate(found.again.ids, 1)}
    assert found.moved == {
        each: (before, places[each])
        for each, before in ((second, 2), (third, 3))
        if places[each] != before
    }


def test_a_recording_keeps_every_part_of_the_filter() -> None:
    only = Only(
        ids=frozenset({"a"}),
        marks=frozenset({"x"}),
        since=1.5,
        metadata={"n": 1, "t": True, "s": "x", "none": None},
    )
    taken = record(filled(), "Lisbon", only=only, now=1.0)
    assert Recording.from_json(taken.to_json()).only == only


@pytest.mark.parametrize("wrong", ["", "{}", "[1]", '{"question": 1}'])
def test_what_is_no_recording_is_refused(wrong: str) -> None:
    with pytest.raises(CorruptData, match="not a recording"):
        Recording.from_json(wrong)
