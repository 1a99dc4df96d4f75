import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import FrozenMessage
from memoryspace.message import Msg, freeze, thaw
from memoryspace.message.msg import peek_content, peek_metadata
from memoryspace.message.sharing import FrozenMsg, LentMsg, Loan, is_on_loan, lend

ATTRIBUTES = ["name", "content", "role", "metadata", "id", "timestamp", "invocation_id"]


def message(content: Any = None) -> Msg:
    blocks = [{"type": "text", "text": "hello"}, {"type": "tool_use", "input": {"a": [1]}}]
    return Msg("alice", blocks if content is None else content, "user", {"k": [1]}, "t", "call")


def lent_message(content: Any = None) -> tuple[Msg, FrozenMsg, Loan]:
    frozen, loan = freeze(message(content)), Loan()
    return lend(frozen, loan), frozen, loan


def test_a_frozen_message_shares_nothing_with_the_one_it_came_from() -> None:
    msg = message()
    before = copy.deepcopy(msg.to_dict())
    frozen = freeze(msg)
    msg.content[1]["input"]["a"].append(2)  # type: ignore[index]
    msg.metadata["k"].append(2)
    assert frozen.to_dict() == before
    assert isinstance(frozen, Msg)


def test_freezing_twice_is_freezing_once() -> None:
    frozen = freeze(message())
    assert freeze(frozen) is frozen


@pytest.mark.parametrize("name", [*ATTRIBUTES, "note"])
def test_a_frozen_message_refuses_to_be_changed(name: str) -> None:
    frozen = freeze(message())
    before = frozen.to_dict()
    with pytest.raises(FrozenMessage, match=name):
        setattr(frozen, name, "new")
    with pytest.raises(FrozenMessage, match=frozen.id):
        delattr(frozen, name)
    assert frozen.to_dict() == before


def test_a_frozen_message_hands_out_copies() -> None:
    frozen = freeze(message())
    before = frozen.to_dict()
    frozen.content.append("x")  # type: ignore[union-attr, arg-type]
    frozen.metadata["k"].append("x")
    frozen.to_dict()["content"][1]["input"]["a"].append("x")
    frozen.get_content_blocks().clear()
    frozen.get_content_blocks("text")[0]["text"] = "x"  # type: ignore[typeddict-unknown-key]
    assert frozen.to_dict() == before


def test_a_thawed_message_is_an_ordinary_one_with_parts_of_its_own() -> None:
    frozen = freeze(message())
    before = frozen.to_dict()
    thawed = thaw(frozen)
    assert type(thawed) is Msg
    assert thawed.to_dict() == before
    thawed.content[1]["input"]["a"].append(2)  # type: ignore[index]
    thawed.metadata["k"].append(2)
    thawed.name = "bob"
    assert frozen.to_dict() == before


def test_a_lent_message_shares_its_parts() -> None:
    lent, frozen, loan = lent_message()
    assert peek_content(lent) is peek_content(frozen)
    assert peek_metadata(lent) is peek_metadata(frozen)
    assert is_on_loan(lent)
    assert isinstance(lent, Msg)
    assert not loan.recalled


READERS: dict[str, Callable[[Msg], object]] = {
    "simple attributes": lambda msg: (msg.id, msg.name, msg.role, msg.timestamp, msg.invocation_id),
    "get_text_content": lambda msg: msg.get_text_content(),
    "has_content_blocks": lambda msg: msg.has_content_blocks("tool_use"),
    "to_dict": lambda msg: msg.to_dict(),
    "repr": repr,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "thaw": thaw,
    "freeze": freeze,
    "reduce": lambda msg: msg.__reduce_ex__(4),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("content", [None, "plain"], ids=["blocks", "text"])
def test_reading_does_not_end_the_loan(read: Callable[[Msg], object], content: str | None) -> None:
    lent, _, loan = lent_message(content)
    read(lent)
    assert is_on_loan(lent)
    assert not loan.recalled


def test_reading_text_content_does_not_end_the_loan() -> None:
    lent, _, loan = lent_message("plain")
    assert lent.content == "plain"
    assert lent.get_content_blocks("text") == [{"type": "text", "text": "plain"}]
    assert is_on_loan(lent)
    assert not loan.recalled


TAKERS: dict[str, Callable[[Msg], object]] = {
    "list content": lambda msg: msg.content,
    "metadata": lambda msg: msg.metadata,
    "all blocks": lambda msg: msg.get_content_blocks(),
    "blocks of a type": lambda msg: msg.get_content_blocks("text"),
    "a new attribute": lambda msg: setattr(msg, "note", 1),
    **{f"set {name}": lambda msg, name=name: setattr(msg, name, "new") for name in ATTRIBUTES},
    **{f"delete {name}": lambda msg, name=name: delattr(msg, name) for name in ATTRIBUTES},
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
def test_changing_or_taking_a_part_ends_the_loan(take: Callable[[Msg], object]) -> None:
    lent, frozen, loan = lent_message()
    before = frozen.to_dict()
    take(lent)
    assert type(lent) is Msg
    assert loan.recalled
    assert frozen.to_dict() == before


def test_a_change_is_kept_by_the_reader_alone() -> None:
    lent, frozen, _ = lent_message()
    before = frozen.to_dict()
    lent.name = "bob"
    lent.content.append({"type": "text", "text": "more"})  # type: ignore[union-attr]
    lent.metadata["k"].append(2)
    assert (lent.name, lent.metadata, len(lent.content)) == ("bob", {"k": [1, 2]}, 3)
    assert lent.id == frozen.id
    assert frozen.to_dict() == before


def test_one_reader_does_not_end_the_loan_of_another() -> None:
    frozen, loan = freeze(message()), Loan()
    first, second = lend(frozen, loan), lend(frozen, loan)
    first.metadata["k"] = "changed"
    assert type(first) is Msg
    assert type(second) is LentMsg
    assert second.to_dict() == frozen.to_dict()


def test_the_dict_of_a_lent_message_is_its_own() -> None:
    lent, frozen, _ = lent_message()
    before = frozen.to_dict()
    data = lent.to_dict()
    data["content"].clear()
    data["metadata"]["k"].append(2)
    assert frozen.to_dict() == lent.to_dict() == before


@pytest.mark.parametrize("kind", ["frozen", "lent"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_an_ordinary_message(kind: str, copied: Callable[[Msg], Msg]) -> None:
    lent, frozen, _ = lent_message()
    before = frozen.to_dict()
    twin = copied(frozen if kind == "frozen" else lent)
    assert type(twin) is Msg
    assert twin.to_dict() == before
    twin.metadata["k"].append(2)
    assert frozen.to_dict() == before


@pytest.mark.parametrize("kind", ["frozen", "lent"])
def test_what_would_be_pickled_is_an_ordinary_message(kind: str) -> None:
    lent, frozen, _ = lent_message()
    build, arguments = (frozen if kind == "frozen" else lent).__reduce__()[:2]
    twin = build(*arguments)
    assert type(twin) is Msg
    assert twin.to_dict() == frozen.to_dict()


def test_a_copy_of_a_kept_message_is_independent_of_the_loan() -> None:
    lent, _, loan = lent_message()
    lent.name = "bob"
    loan.recalled = False
    twin = copy.deepcopy(lent)
    twin.metadata["k"].append(2)
    assert lent.metadata == {"k": [1]}
    assert not loan.recalled


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
json_like = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
contents = st.text() | st.lists(st.dictionaries(st.text(), json_like, max_size=4), max_size=4)


def spoil(value: Any, random: Random) -> None:
    """Change some list or dict somewhere inside."""
    inner = list(value.values()) if isinstance(value, dict) else list(value)
    deeper = [item for item in inner if isinstance(item, dict | list)]
    if deeper and random.random() < 0.7:
        spoil(random.choice(deeper), random)
    elif isinstance(value, dict):
        random.choice([value.clear, lambda: value.update(spoiled=1)])()
    else:
        random.choice([value.clear, lambda: value.append("spoiled"), value.reverse])()


MUTATIONS: list[Callable[[Msg, Random], object]] = [
    lambda msg, random: isinstance(msg.content, list) and spoil(msg.content, random),
    lambda msg, random: spoil(msg.metadata, random),
    lambda msg, random: spoil(msg.get_content_blocks(), random),
    lambda msg, random: spoil(msg.to_dict()["metadata"], random),
    lambda msg, random: spoil(copy.copy(msg).metadata, random),
    lambda msg, random: setattr(msg, random.choice(["name", "id", "timestamp", "note"]), "x"),
    lambda msg, random: setattr(msg, "metadata", {}),
    lambda msg, random: msg.metadata.update(more=1),
]


@given(
    contents,
    st.dictionaries(st.text(), json_like, max_size=4),
    st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_no_change_of_a_lent_message_reaches_the_frozen_one(
    content: Any,
    metadata: dict[str, Any],
    mutations: list[Callable[[Msg, Random], object]],
    random: Random,
) -> None:
    frozen = freeze(Msg("a", content, "user", metadata))
    before = copy.deepcopy(frozen.to_dict())
    lent = lend(frozen, Loan())
    for mutate in mutations:
        mutate(lent, random)
        assert frozen.to_dict() == before
    assert lend(frozen, Loan()).to_dict() == before


def test_what_is_made_from_the_class_of_a_shared_message_is_plain() -> None:
    msg = Msg("Ann", "hello", "user")
    for shared in (freeze(msg), lend(freeze(msg), Loan())):
        made = [type(shared)("Bob", "hi", "user"), type(shared).from_dict(shared.to_dict())]
        assert [type(each) for each in made] == [Msg, Msg]
        assert [each.name for each in made] == ["Bob", "Ann"]


def test_messages_without_metadata_do_not_come_to_share_any() -> None:
    one, other = (freeze(Msg("a", "x", "user")) for _ in range(2))
    one.metadata["stray"] = 1
    one.to_dict()["metadata"]["stray"] = 1
    thaw(one).metadata["stray"] = 1
    lend(one, Loan()).metadata["stray"] = 1
    assert one.metadata == other.metadata == freeze(Msg("a", "x", "user")).metadata == {}
