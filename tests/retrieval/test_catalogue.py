"""What retrieval knows of entries: rows, filters, neighbours; beside a list that is filtered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from memoryspace import Msg
from memoryspace.errors import InvalidInput
from memoryspace.record import Record
from memoryspace.retrieval.catalogue import NO_ROW, Catalogue
from memoryspace.retrieval.entries import (
    DEEPEST,
    MOST_INSIDE,
    OPAQUE,
    Entry,
    Only,
    checked,
    entry_of,
    items_of,
)
from memoryspace.service.values.envelope import VALID_TO
from memoryspace.service.values.envelope import entry_of as memory_entry_of

small = st.sampled_from(["a", "b", "c"])
plain = st.sampled_from([1, True, 0, False, None, "x", 2.5])
lists = st.lists(plain, max_size=4).map(tuple)
times = st.none() | st.integers(0, 9).map(float)
marks = st.frozensets(small, max_size=2)
items = st.none() | st.dictionaries(small, plain, max_size=2)
held = st.none() | st.dictionaries(small, plain | lists | st.just(OPAQUE), max_size=2)
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
        metadata=held,
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
    said = Msg(
        "Ann", "I moved to Lisbon", "user", metadata={"mood": "glad", "at": {"city": "Rome"}}
    )
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
        metadata={"mood": "glad", "at": OPAQUE, "at.city": "Rome"},
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
        Entry("a", "x", metadata={"several": {1, 2}}),
        Entry("a", "x", metadata={5: 1}),  # type: ignore[dict-item]  # wrong on purpose
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


def test_what_can_be_asked_for_is_plain_or_a_list_and_has_a_name() -> None:
    metadata = {
        "n": 1,
        "tags": ["x", 2, None],
        "none": [],
        "place": {"city": "Rome", "at": (41.9, 12.5), "of": {"land": "Italy"}},
        "empty": {},
        "mixed": ["x", ["y"]],
        "listed": [{"a": 1}],
        "other": object(),
        "odd": {5: "no name", "name": "x"},
        5: "no name",
    }
    assert items_of(metadata) == {
        "n": 1,
        "tags": ("x", 2, None),
        "none": (),
        "place": OPAQUE,
        "place.city": "Rome",
        "place.at": (41.9, 12.5),
        "place.of": OPAQUE,
        "place.of.land": "Italy",
        "empty": OPAQUE,
        "mixed": OPAQUE,
        "listed": OPAQUE,
        "other": OPAQUE,
        "odd": OPAQUE,
        "odd.name": "x",
    }


def test_what_has_a_name_with_a_dot_itself_is_what_is_meant_by_it() -> None:
    for metadata in (
        {"a.b": 1, "a": {"b": 2, "c": 3}},
        {"a": {"b": 2, "c": 3}, "a.b": 1},
    ):
        assert items_of(metadata) == {"a": OPAQUE, "a.b": 1, "a.c": 3}
    nearer = {"a": {"b": {"c": 1}}, "a.b": {"c": 2}}
    assert items_of(nearer) == {"a": OPAQUE, "a.b": OPAQUE, "a.b.c": 2}
    assert items_of({"a": {"b.c": 1}}) == {"a": OPAQUE, "a.b.c": 1}
    for alike in ({"a": {"b.c": 1}, "a.b": {"c": 2}}, {"a.b": {"c": 2}, "a": {"b.c": 1}}):
        assert items_of(alike)["a.b.c"] == 1


def test_what_stands_too_deep_is_there_and_no_more() -> None:
    metadata: dict[str, object] = {"n": 1, "list": ["x"]}
    for _ in range(DEEPEST):
        metadata = {"a": metadata, "b": 5}
    known = items_of(metadata)
    deepest = ".".join(["a"] * DEEPEST)
    assert known[deepest] is OPAQUE
    assert known[".".join(["a"] * (DEEPEST - 1) + ["b"])] == 5
    assert max(name.count(".") for name in known) == DEEPEST - 1
    endless: list[object] = []
    endless.append(endless)
    around: dict[str, object] = {"list": endless}
    around["self"] = around
    assert items_of(around)["self.list"] is OPAQUE


def test_what_would_be_too_much_is_there_and_hides_no_other() -> None:
    many = list(range(MOST_INSIDE))
    assert items_of({"many": many})["many"] == tuple(many)
    assert items_of({"many": [*many, 1]}) == {"many": OPAQUE}
    assert len(items_of({"many": dict.fromkeys(map(str, many), 1)})) == MOST_INSIDE + 1
    assert items_of({"many": dict.fromkeys(map(str, [*many, -1]), 1)}) == {"many": OPAQUE}
    crowded = {"many": many, "place": {"city": "Rome", "more": many}, "tags": ["x"], "n": 1}
    for metadata in (crowded, dict(reversed(crowded.items()))):
        assert items_of(metadata) == {
            "many": OPAQUE,
            "place": OPAQUE,
            "place.city": "Rome",
            "place.more": OPAQUE,
            "tags": ("x",),
            "n": 1,
        }


def test_what_cannot_be_looked_into_takes_no_room() -> None:
    half = MOST_INSIDE // 2
    tags = ["x"] * (half + 1)
    assert items_of({"dicts": [{}] * half, "tags": tags})["tags"] == tuple(tags)
    too_deep: dict[str, object] = dict.fromkeys(map(str, range(half)), 1)
    inner: dict[str, object] = {"deep": too_deep, "tags": tags}
    for _ in range(DEEPEST - 1):
        inner = {"a": inner}
    known = items_of(inner)
    assert (known["a.a.deep"], known["a.a.tags"]) == (OPAQUE, tuple(tags))


def test_plain_items_are_known_however_many() -> None:
    metadata: dict[str, object] = {str(n): n for n in range(2 * MOST_INSIDE)}
    assert items_of(metadata) == metadata
    assert items_of(metadata | {"tags": ["x"]}) == metadata | {"tags": ("x",)}


anything = st.recursive(
    plain | st.just(OPAQUE) | st.just(b""),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "a.b", "a.b.a"]), anything, max_size=4))
def test_what_was_made_of_metadata_stays_as_it_is(metadata: dict[str, object]) -> None:
    known = items_of(metadata)
    assert items_of(known) == known
    assert known.keys() >= metadata.keys()
    if b"" not in metadata.values():
        entry = checked(Entry("e", "x", metadata=metadata))
        assert entry.metadata == known
        assert checked(entry) == entry


def test_a_memory_and_a_message_are_asked_for_alike() -> None:
    metadata = {"tags": ["x"], "place": {"city": "Rome"}, "listed": [{}]}
    of_message = entry_of(Record("r", Msg("Ann", "tea", "user", metadata=metadata)))
    of_memory = memory_entry_of(Record("r", {"metadata": metadata, "valid_to": 5.0}, kind="memory"))
    assert of_memory is not None
    assert of_memory.metadata == {**items_of(metadata), VALID_TO: 5.0}
    assert of_message.metadata == items_of(metadata)


def test_only_asks_for_plain_values() -> None:
    for value in (["x"], ("x",), {"city": "Rome"}, OPAQUE):
        with pytest.raises(InvalidInput, match=r"'k'.*use Item"):
            Only(metadata={"k": value})  # type: ignore[dict-item]  # wrong on purpose
    with pytest.raises(TypeError, match="must be a dict"):
        Only(metadata=["k"])  # type: ignore[arg-type]  # wrong on purpose
