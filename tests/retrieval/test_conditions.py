"""Conditions: what and, or, not and comparisons mean, and that rows are chosen by that meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memoryspace.errors import InvalidInput
from memoryspace.retrieval import Recall
from memoryspace.retrieval.catalogue import Catalogue
from memoryspace.retrieval.conditions import (
    ANYTHING,
    MAX_DEPTH,
    MAX_PARTS,
    MAX_VALUES,
    AllOf,
    AnyOf,
    Condition,
    Item,
    Not,
    refusal,
)
from memoryspace.retrieval.entries import DEEPEST, Entry, Only, checked, same
from memoryspace.service import InMemoryMemoryService, Message, TextContent

NAN = float("nan")

names = st.sampled_from(["a", "b", "c"])
keys = st.sampled_from(["k", "l"])
dotted = keys | st.sampled_from(["k.k", "k.l", "l.k", "k.k.l", "k.l.k", "k.k.k.k"])
texts = st.sampled_from(["", "x", "X", "xy", "é", "1"])
numbers = st.sampled_from([-1, 0, 1, 1.0, 2.5, 10**30, float("inf")])
plain = texts | numbers | st.booleans() | st.none()
stored = plain | st.just(NAN)
several = st.lists(plain, max_size=4)
nested = st.recursive(
    stored | st.lists(stored, max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=6,
)
name_or_names = st.none() | names | st.frozensets(names, max_size=2)

items = (
    st.builds(Item, dotted, st.sampled_from(["eq", "ne", "contains"]), plain)
    | st.builds(Item, dotted, st.sampled_from(["gt", "gte", "lt", "lte"]), texts | numbers)
    | st.builds(Item, dotted, st.sampled_from(["in", "nin"]), several)
    | st.builds(Item, dotted, st.just("contains"), texts)
    | st.builds(Item, dotted, st.just("exists"), st.booleans())
)
narrowings = st.builds(
    Only,
    ids=st.none() | st.frozensets(st.integers(0, 12).map(str), max_size=6),
    session=name_or_names,
    role=name_or_names,
    kind=name_or_names,
    speaker=name_or_names,
    marks=st.frozensets(names, max_size=2),
    without=st.frozensets(names, max_size=1),
    since=st.none() | st.integers(0, 9).map(float),
    metadata=st.none() | st.dictionaries(dotted, plain, max_size=2),
)
conditions = st.recursive(
    items | narrowings,
    lambda parts: (
        st.builds(AllOf, st.lists(parts, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(parts, max_size=3).map(tuple))
        | st.builds(Not, parts)
    ),
    max_leaves=6,
)
entries = st.lists(
    st.builds(
        Entry,
        st.just(""),
        st.just("text"),
        session=st.none() | names,
        role=st.none() | names,
        kind=names,
        speaker=st.none() | names,
        marks=st.frozensets(names, max_size=2),
        time=st.none() | st.integers(0, 9).map(float),
        metadata=st.none() | st.dictionaries(dotted, stored | nested, max_size=2),
    ),
    max_size=12,
)


@settings(max_examples=300)
@given(entries, st.sets(st.integers(0, 11)), conditions)
def test_rows_are_chosen_as_the_meaning_says(
    drawn: list[Entry], removed: set[int], condition: Condition
) -> None:
    catalogue, here = Catalogue(), list[Entry]()
    for number, entry in enumerate(drawn):
        named = checked(replace(entry, id=str(number)))
        row = catalogue.add(named)
        if number in removed:
            catalogue.remove(row)
        else:
            here.append(named)
    chosen = catalogue.allowed(condition).tolist()
    assert chosen == sorted(set(chosen))
    expected = {each.id for each in here if refusal(condition, each) is None}
    assert {catalogue.at(row).id for row in chosen} == expected
    catalogue.check()


few = st.sampled_from([1, 1.0, True, 0, "x", "xx", None])
one_item = (
    st.builds(Item, st.just("k"), st.sampled_from(["eq", "ne", "contains"]), few)
    | st.builds(Item, st.just("k"), st.sampled_from(["in", "nin"]), st.lists(few, max_size=2))
    | st.builds(Item, st.just("k"), st.sampled_from(["gt", "lte"]), st.sampled_from([0, 1, "x"]))
    | st.builds(Item, st.just("k"), st.just("exists"), st.booleans())
)
value_of_it = few | st.lists(few | st.just(NAN), max_size=3) | st.just([{}]) | st.just({})


@settings(max_examples=300)
@given(st.lists(value_of_it, max_size=6), one_item)
def test_rows_are_chosen_by_lists_and_what_is_in_them_as_the_meaning_says(
    values: list[Any], item: Item
) -> None:
    catalogue = Catalogue()
    entries = [replace(has("k", value), id=str(n)) for n, value in enumerate(values)]
    rows = [catalogue.add(entry) for entry in entries]
    catalogue.check()
    expected = [row for row, entry in zip(rows, entries, strict=True) if not refusal(item, entry)]
    assert catalogue.allowed(item).tolist() == expected
    for row in rows:
        catalogue.remove(row)
    catalogue.check()


def has(key: str, value: Any) -> Entry:
    return checked(Entry("e", "text", metadata={key: value}))


@pytest.mark.parametrize(
    ("op", "asked", "true_of", "not_of"),
    [
        ("eq", 1, [1, 1.0], [True, "1", None, 2, NAN]),
        ("eq", True, [True], [1, 1.0, "True", False]),
        ("eq", None, [None], [0, "", False]),
        ("ne", 1, [2, True, "1", None, NAN], [1, 1.0]),
        ("gt", 1, [2, 1.5, float("inf"), 10**400], [1, 0, True, "2", None, NAN]),
        ("gte", 1, [1, 1.0, 2], [0.5, True, "1", NAN]),
        ("lt", 1, [0, -2.5], [1, False, "0", None, NAN]),
        ("lte", 1, [1, 0], [2, True, False, "1"]),
        ("gt", "b", ["c", "ba"], ["b", "B", 99, None, True]),
        ("lte", "b", ["b", "Z", ""], ["é", "c", 0]),
        ("in", [1, "x", None], [1.0, "x", None], [True, "1", "X", 0]),
        ("in", [], [], [1, None]),
        ("nin", [1, "x"], [True, 2, "y", None], [1, "x"]),
        ("contains", "Lis", ["in Lisbon", "Lis"], ["lisbon", "", 1, None]),
        ("exists", True, [1, None, "", False], []),
        ("exists", False, [], [1, None]),
        ("eq", "x", [], [["x"], ("x",), [], {"x": "x"}]),
        ("in", ["x", 1], [], [["x"], [1], [], {"x": 1}]),
        ("ne", "x", [["x"], [], ("y",)], []),
        ("nin", ["x"], [["x"], [], ("y",)], []),
        ("gt", "a", [], [["b"], [], {"k": "b"}]),
        ("lte", 1, [], [[0], [1], [], {"k": 0}]),
        ("contains", "x", [["x"], ("y", "x"), ["x", "x"]], [["xy"], ["X"], [], [["x"]], [1]]),
        ("contains", 1, [[1], [1.0, 2]], [[True], ["1"], [2], [NAN], 1, "1", [[1]]]),
        ("contains", True, [[False, True]], [[1], ["True"], [False], True]),
        ("contains", None, [[None]], [[], [0], None, "None"]),
        ("exists", True, [[], ["x"], {}, {"a": 1}, [{"a": 1}], [["x"]], list(range(999))], []),
    ],
)
def test_an_operator_means(op: str, asked: Any, true_of: list[Any], not_of: list[Any]) -> None:
    item = Item("k", op, asked)
    assert [value for value in true_of if refusal(item, has("k", value)) is not None] == []
    assert [value for value in not_of if refusal(item, has("k", value)) is None] == []


@pytest.mark.parametrize(
    "item",
    [
        Item("k", "eq", None),
        Item("k", "ne", 1),
        Item("k", "nin", [1]),
        Item("k", "lt", 5),
        Item("k", "contains", ""),
        Item("k", "exists", True),
    ],
)
def test_only_not_is_true_of_an_item_that_is_not_there(item: Item) -> None:
    for entry in (has("other", 1), Entry("e", "text")):
        assert "no 'k'" in str(refusal(item, entry))
        assert refusal(Not(item), entry) is None
        assert refusal(Item("k", "exists", False), entry) is None


def test_joined_without_parts_all_are_everything_and_any_is_nothing() -> None:
    entry = Entry("e", "text")
    assert refusal(AllOf(()), entry) is None
    assert refusal(AnyOf(()), entry) is not None
    assert refusal(ANYTHING, entry) is None


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("like", "x"),
        ("", 1),
        ("eq", {"a": 1}),
        ("eq", [1]),
        ("eq", NAN),
        ("ne", NAN),
        ("gt", True),
        ("gt", None),
        ("lte", NAN),
        ("lt", [1]),
        ("in", "text"),
        ("in", 5),
        ("in", [NAN]),
        ("nin", [{}]),
        ("in", list(range(MAX_VALUES + 1))),
        ("contains", NAN),
        ("contains", ["x"]),
        ("contains", {"a": 1}),
        ("exists", 1),
        ("exists", None),
    ],
)
def test_what_could_not_be_compared_is_refused_at_once(op: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        Item("k", op, value)


def test_a_refused_value_is_named_with_its_operator_and_what_is_needed() -> None:
    with pytest.raises(InvalidInput, match="gt of 'k' needs a str or a number, got 'None'"):
        Item("k", "gt", None)
    with pytest.raises(InvalidInput, match="unknown operator 'like'; use eq, ne"):
        Item("k", "like", "x")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Item(5, "eq", 1),  # type: ignore[arg-type]  # wrong on purpose
        lambda: AllOf(Only()),  # type: ignore[arg-type]  # wrong on purpose
        lambda: AnyOf(("text",)),  # type: ignore[arg-type]  # wrong on purpose
        lambda: Not(None),  # type: ignore[arg-type]  # wrong on purpose
        lambda: Only(session=5),  # type: ignore[arg-type]  # wrong on purpose
        lambda: Only(kind=frozenset({5})),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_what_is_no_condition_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_a_condition_may_be_so_deep_and_no_deeper() -> None:
    condition: Condition = Only()
    for _ in range(MAX_DEPTH - 1):
        condition = Not(condition)
    with pytest.raises(InvalidInput, match="too large"):
        Not(condition)


def test_a_condition_may_have_so_many_parts_and_no_more() -> None:
    parts = tuple(Item("k", "eq", number) for number in range(MAX_PARTS - 1))
    half = AnyOf(parts[: MAX_PARTS // 2])
    assert refusal(AnyOf(parts), has("k", 5)) is None
    with pytest.raises(InvalidInput, match="too large"):
        AllOf((*parts, Only()))
    with pytest.raises(InvalidInput, match="too large"):
        AllOf((half, half))


def test_conditions_are_values() -> None:
    one = AllOf((Item("k", "in", [1, 2]), Not(Only(session="s"))))
    same = AllOf([Item("k", "in", (1, 2)), Not(Only(session="s"))])  # type: ignore[arg-type]  # lists are made tuples
    assert one == same
    assert hash(one) == hash(same)


def test_a_field_may_name_several() -> None:
    entry = Entry("e", "text", session="a", role="user")
    for several in (frozenset({"a", "b"}), {"a", "b"}, ("a", "b"), ["a", "b"]):
        assert refusal(Only(session=several), entry) is None  # type: ignore[arg-type]  # all are made sets
    assert "one of ['b', 'c']" in str(refusal(Only(session=frozenset({"b", "c"})), entry))
    assert refusal(Only(session=frozenset()), entry) is not None
    assert refusal(Only(speaker=frozenset({"a"})), entry) is not None


def test_a_refusal_says_which_part_and_why() -> None:
    metadata = {"mood": "glad", "n": 1, "tags": list("abcd"), "at": {"city": "Rome"}}
    entry = checked(Entry("e", "text", session="s", metadata=metadata))
    reasons: list[tuple[Condition, str]] = [
        (Item("mood", "eq", "sad"), "its 'mood' is 'glad'; the search requires eq 'sad'"),
        (Item("n", "in", [5, 6, 7, 8]), "its 'n' is 1; the search requires in [5, 6, 7, …]"),
        (Item("n", "exists", False), "it has 'n', which it must not have"),
        (Item("m", "exists", True), "it has no 'm', which it must have"),
        (Item("m", "gt", 1), "it has no 'm'; the search requires gt 1"),
        (
            Item("tags", "contains", "x"),
            "its 'tags' is ['a', 'b', 'c', …]; the search requires contains 'x'",
        ),
        (
            Item("at", "eq", "x"),
            "its 'at' is a value that only the operator exists can test; "
            "the search requires eq 'x'",
        ),
        (Item("at.city", "eq", "x"), "its 'at.city' is 'Rome'; the search requires eq 'x'"),
        (Only(metadata={"at.city": "x"}), "its 'at.city' is 'Rome'; the search is limited to 'x'"),
        (AllOf((Only(), Item("n", "gt", 1))), "its 'n' is 1"),
        (
            AnyOf((Only(session="t"), Item("n", "gt", 1))),
            "none of 2 conditions: its session is 's'",
        ),
        (Not(Only(session="s")), "it matches what is excluded: Only(session='s')"),
    ]
    for condition, reason in reasons:
        assert reason in str(refusal(condition, entry))


def test_many_reasons_are_cut_short() -> None:
    condition = AnyOf(tuple(Item("n", "eq", number) for number in range(9)))
    assert str(refusal(condition, has("n", 99))).endswith("; and 6 more")


def test_a_search_returns_only_what_a_condition_allows_and_says_why_not() -> None:
    recall = Recall(embedder=None)
    recall.add(
        Entry(str(n), f"tea number {n}", session="s", metadata={"n": n, "even": n % 2 == 0})
        for n in range(8)
    )
    condition = AllOf((Item("n", "gte", 3), AnyOf((Item("even", "eq", True), Item("n", "eq", 7)))))
    found = {hit.id for hit in recall.search("tea", only=condition)}
    assert found == {"4", "6", "7"}
    assert recall.sessions("tea", only=Not(condition))[0].session == "s"
    told = recall.why_not("tea", "5", only=condition)
    assert told.reason == "filtered"
    assert "none of 2 conditions" in told.detail


def test_a_replaced_entry_is_chosen_by_what_it_has_now() -> None:
    recall = Recall(embedder=None)
    recall.add([Entry("a", "tea", session="s", metadata={"n": 1})])
    recall.add([Entry("a", "tea", session="s", metadata={"m": 2})])
    assert recall.search("tea", only=Item("n", "exists", True)) == []
    assert [hit.id for hit in recall.search("tea", only=Item("m", "lt", 3))] == ["a"]
    recall.check()


def test_true_and_one_are_told_apart_among_many() -> None:
    recall = Recall(embedder=None)
    recall.add(Entry(str(n), "tea", metadata={"k": v}) for n, v in enumerate([1, True, 1.0, "1"]))
    assert {hit.id for hit in recall.search("tea", only=Item("k", "eq", 1))} == {"0", "2"}
    assert {hit.id for hit in recall.search("tea", only=Item("k", "in", [True]))} == {"1"}
    assert {hit.id for hit in recall.search("tea", only=Item("k", "ne", 1))} == {"1", "3"}


def test_true_and_one_are_told_apart_within_lists() -> None:
    catalogue = Catalogue()
    one, true, both = (
        catalogue.add(replace(has("k", value), id=str(value)))
        for value in ([1, 1.0], [True], [True, 1])
    )
    assert catalogue.allowed(Item("k", "contains", 1)).tolist() == [one, both]
    assert catalogue.allowed(Item("k", "contains", True)).tolist() == [true, both]


def test_what_was_removed_fulfils_nothing_not_even_a_lack() -> None:
    catalogue = Catalogue()
    rows = [catalogue.add(Entry(str(n), "text")) for n in range(3)]
    catalogue.remove(rows[1])
    for lack in (Item("k", "exists", False), Not(Item("k", "eq", 1)), AllOf(())):
        assert catalogue.allowed(lack).tolist() == [rows[0], rows[2]]


def test_what_is_not_itself_is_nobodys() -> None:
    catalogue = Catalogue()
    catalogue.add(has("k", NAN))
    assert catalogue.allowed(Only(metadata={"k": NAN})).tolist() == []
    assert len(catalogue.allowed(Item("k", "exists", True))) == 1


def test_few_and_many_of_a_large_catalogue_are_chosen_alike() -> None:
    catalogue = Catalogue()
    for number in range(1000):
        catalogue.add(Entry(str(number), "text", role="rare" if number % 97 == 5 else "common"))
    for role in ("rare", "common"):
        expected = [row for row in range(1000) if catalogue.at(row).role == role]
        assert catalogue.allowed(Only(role=role)).tolist() == expected


MISSING = object()


def walked(metadata: Any, path: str) -> Any:
    """What stands at the end of a path, as far down as conditions look."""
    names = path.split(".")
    for name in names:
        if not isinstance(metadata, dict) or name not in metadata:
            return MISSING
        metadata = metadata[name]
    return metadata if len(names) <= DEEPEST else MISSING


@given(st.dictionaries(keys, nested, max_size=2), dotted, plain)
def test_a_dotted_key_reaches_what_a_walk_reaches(
    metadata: dict[str, Any], path: str, asked: Any
) -> None:
    entry, at = checked(Entry("e", "text", metadata=metadata)), walked(metadata, path)
    is_list = isinstance(at, list) and not any(isinstance(each, list | dict) for each in at)
    is_plain = at is not MISSING and not isinstance(at, list | dict)
    is_among = is_list and any(same(each, asked) for each in at)
    is_part = isinstance(at, str) and isinstance(asked, str) and asked in at
    expected = {
        "eq": is_plain and same(at, asked),
        "ne": is_list or (is_plain and not same(at, asked)),
        "contains": is_among or is_part,
    }
    for op, is_true in expected.items():
        assert (refusal(Item(path, op, asked), entry) is None) is is_true
    assert (refusal(Item(path, "exists", True), entry) is None) is (at is not MISSING)
    assert (refusal(Only(metadata={path: asked}), entry) is None) is expected["eq"]


@pytest.mark.parametrize("value", [{}, {"a": 1}, [{"a": 1}], [["x"]], list(range(999))])
def test_of_what_is_neither_plain_nor_a_list_of_plain_values_only_exists_is_true(
    value: Any,
) -> None:
    entry = has("k", value)
    assert refusal(Item("k", "exists", True), entry) is None
    for op in ("eq", "ne", "gt", "gte", "lt", "lte", "contains"):
        assert refusal(Item("k", op, 1), entry) is not None
    for op in ("in", "nin"):
        assert refusal(Item("k", op, [1]), entry) is not None


def test_lists_and_dicts_are_searched_by_what_is_in_them() -> None:
    recall = Recall(embedder=None)
    tags, place = ["x", "x", "y"], {"city": "Rome"}
    recall.add(
        [
            Entry("a", "tea", metadata={"tags": tags, "place": place}),
            Entry("b", "tea", metadata={"tags": ["y"], "place.city": "Rome"}),
            Entry("c", "tea", metadata={"tags": "x and y", "place": "Rome"}),
            Entry("d", "tea"),
        ]
    )
    tags.remove("x")
    place["city"] = "Oslo"

    def found(condition: Condition) -> set[str]:
        return {hit.id for hit in recall.search("tea", only=condition)}

    assert found(Item("tags", "contains", "x")) == {"a", "c"}
    assert found(Item("tags", "contains", "y")) == {"a", "b", "c"}
    assert found(Item("tags", "ne", "x")) == {"a", "b", "c"}
    assert found(Item("place.city", "eq", "Rome")) == {"a", "b"}
    assert found(Only(metadata={"place.city": "Rome"})) == {"a", "b"}
    assert found(Item("place", "exists", True)) == {"a", "c"}
    assert found(Not(Item("place.city", "exists", True))) == {"c", "d"}
    recall.check()
    recall.add([Entry("a", "tea", metadata={"tags": ["z"]})])
    recall.remove(["b"])
    assert found(Item("tags", "contains", "y")) == {"c"}
    assert found(Item("tags", "contains", "z")) == {"a"}
    recall.check()


async def test_a_service_searches_and_lists_by_what_is_in_lists_and_dicts() -> None:
    told = {"tags": ["x", "y"], "place": {"city": "Rome"}, "listed": [{"a": 1}]}
    async with InMemoryMemoryService() as service:
        for text, metadata in (("green tea", told), ("black tea", {"tags": []})):
            said = Message(role="user", content=[TextContent(text=text)], metadata=metadata)
            await service.add_memory("ann", [said])
        for asked in (
            {"tags": {"contains": "x"}},
            {"place.city": "Rome"},
            {"place": {"exists": True}},
            {"listed": {"exists": True}},
        ):
            for found in (
                await service.search_memory("ann", "tea", {"metadata": asked}),
                await service.list_memory("ann", {"metadata": asked}),
            ):
                assert [each.get_text_content() for each in found] == ["green tea"]
