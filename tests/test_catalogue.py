"""What retrieval knows of entries: rows, filters, neighbours; beside a list that is filtered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from memoryspace import Msg
from memoryspace.errors import InvalidInput
from memoryspace.record import Record
from memoryspace.retrieval.catalogue import NO_ROW, Catalogue
from memoryspace.retrieval.entries import Entry, Only, checked, entry_of

small = st.sampled_from(["a", "b", "c"])
plain = st.sampled_from([1, True, 0, False, None, "x", 2.5])
times = st.none() | st.integers(0, 9).map(float)
marks = st.frozensets(small, max_size=2)
items = st.none() | st.dictionaries(small, plain, max_size=2)
narrowings = st.builds(
    Only,
    ids=st.none() | st.frozensets(st.integers(0, 30).map(str), max_size=8),
    session=st.none() | small,
    speaker=st.none() | small,
    role=st.none() | small,
    kind=st.none() | small,
    marks=marks,
    without=marks,
    since=times,
    until=times,
    metadata=items,
)


class CatalogueBesideAList(RuleBasedStateMachine):
    added = Bundle("added")

    def __init__(self) -> None:
        super().__init__()
        self.catalogue = Catalogue()
        self.entries: list[Entry] = []
        self.next = 0

    @rule(
        target=added,
        session=st.none() | small,
        speaker=small,
        role=small,
        kind=small,
        time=times,
        marks=marks,
        metadata=items,
    )
    def add(self, **fields: object) -> str:
        entry = Entry(str(self.next), "text", **fields)  # type: ignore[arg-type]  # drawn to fit
        self.next += 1
        self.catalogue.add(entry)
        self.entries.append(entry)
        return entry.id

    @rule(entry_id=consumes(added))
    def remove(self, entry_id: str) -> None:
        self.catalogue.remove(self.catalogue.find(entry_id))
        self.entries = [each for each in self.entries if each.id != entry_id]

    @rule(only=narrowings)
    def choose(self, only: Only) -> None:
        chosen = self.catalogue.allowed(only).tolist()
        assert chosen == sorted(chosen)
        expected = {each.id for each in self.entries if only.refusal(each) is None}
        assert {self.catalogue.at(row).id for row in chosen} == expected
        assert len(chosen) == len(expected)

    @rule(entry_id=added)
    def neighbours(self, entry_id: str) -> None:
        entry = next(each for each in self.entries if each.id == entry_id)
        row = self.catalogue.find(entry_id)
        together = [each.id for each in self.entries if each.session == entry.session]
        at = together.index(entry_id)
        for distance, rows in self.catalogue.neighbours(np.array([row]), 2):
            there = at + distance
            inside = entry.session is not None and 0 <= there < len(together)
            found = int(rows[0])
            assert (self.catalogue.at(found).id if found != NO_ROW else None) == (
                together[there] if inside else None
            )

    @invariant()
    def sound(self) -> None:
        self.catalogue.check()
        assert len(self.catalogue) == len(self.entries)


TestCatalogueBesideAList = CatalogueBesideAList.TestCase
TestCatalogueBesideAList.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_columns_grow_and_keep_what_they_hold() -> None:
    catalogue = Catalogue()
    for number in range(1000):
        catalogue.add(Entry(str(number), "x", session="s", time=float(number)))
    rows = catalogue.allowed(Only(since=990.0))
    assert [catalogue.at(row).id for row in rows.tolist()] == [str(n) for n in range(990, 1000)]
    catalogue.check()


def test_a_record_of_a_message_becomes_an_entry_with_its_speaker_and_role() -> None:
    said = Msg("Ann", "I moved to Lisbon", "user", metadata={"mood": "glad", "deep": {"no": 1}})
    entry = entry_of(
        Record("r", said, marks=frozenset({"home"}), created_at=5.0, session="s", importance=0.9)
    )
    assert entry == Entry(
        "r",
        "I moved to Lisbon",
        session="s",
        speaker="Ann",
        role="user",
        time=5.0,
        importance=0.9,
        marks=frozenset({"home"}),
        metadata={"mood": "glad"},
    )


def test_a_record_says_itself_what_a_search_sees() -> None:
    assert entry_of(Record("r", {"a": 1}, text="seen", kind="fact")).text == "seen"


@pytest.mark.parametrize(
    "wrong",
    [
        Entry("", "x"),
        Entry("a\nb", "x"),
        Entry("a", "x", time=float("nan")),
        Entry("a", "x", importance=float("inf")),
        Entry("a", "x", metadata={"deep": {}}),  # type: ignore[dict-item]  # wrong on purpose
    ],
)
def test_an_entry_that_could_not_be_kept_is_refused(wrong: Entry) -> None:
    with pytest.raises(InvalidInput):
        checked(wrong)


@pytest.mark.parametrize("wrong", [Entry("a", 5), Entry("a", "x", session=5), "text"])  # type: ignore[arg-type]  # wrong on purpose
def test_an_entry_of_the_wrong_type_is_refused(wrong: Entry) -> None:
    with pytest.raises(TypeError):
        checked(wrong)


def test_a_refusal_says_why() -> None:
    entry = Entry("e", "x", session="s", role="user", time=5.0, marks=frozenset({"old"}))
    reasons = {
        Only(session="t"): "session is 's'",
        Only(role="system"): "role is 'user'",
        Only(ids=frozenset({"f"})): "id",
        Only(marks=frozenset({"new"})): "none of the marks",
        Only(without=frozenset({"old"})): "mark 'old'",
        Only(since=6.0): "before",
        Only(until=5.0): "not before",
    }
    for only, reason in reasons.items():
        assert reason in str(only.refusal(entry))
    assert "no time" in str(Only(since=1.0).refusal(Entry("f", "x")))
    assert "'k'" in str(Only(metadata={"k": 1}).refusal(entry))
