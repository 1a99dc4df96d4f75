from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.message import Msg, freeze
from memoryspace.record import (
    EVERYTHING,
    MESSAGE,
    SUMMARY,
    Record,
    Scope,
    Where,
    as_marks,
    check_id,
    is_number,
    text_of,
)

UNUSABLE_IDS = ["", "a\0b", "a\nb", "\x7f", "\x85", "\ud800", "x" * 256, "\U0001f600" * 192]
USABLE_IDS = ["a", "x" * 255, "漢" * 255, "\U0001f600" * 191, "../../x", "a:b", "a b", " ", "a'\"%"]


class Mark(str, Enum):  # noqa: UP042 - the older form, whose str() is not its value
    HINT = "hint"


@pytest.mark.parametrize("value", USABLE_IDS)
def test_an_id_that_every_backend_can_hold_comes_back_unchanged(value: str) -> None:
    assert check_id("message id", value) == value


@pytest.mark.parametrize("value", UNUSABLE_IDS)
def test_an_id_that_some_backend_cannot_hold_is_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidInput, match="message id"):
        check_id("message id", value)


@pytest.mark.parametrize("value", [None, 1, b"a", ["a"]])
def test_an_id_of_another_type_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="user id"):
        check_id("user id", value)


@given(st.text(max_size=300))
def test_whatever_passes_as_an_id_fits_and_can_be_printed(value: str) -> None:
    try:
        check_id("id", value)
    except InvalidInput:
        return
    assert 0 < len(value) <= 255
    assert len(value.encode()) <= 765
    assert not any(ord(sign) < 32 or 0xD800 <= ord(sign) <= 0xDFFF for sign in value)


def test_a_long_id_is_not_repeated_whole_in_the_message() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_id("id", "x" * 100_000)
    assert len(str(caught.value)) < 200


def test_a_scope_is_a_user_in_one_session_or_in_all() -> None:
    assert Scope("alice").session is None
    assert Scope("alice", "s") == Scope("alice", "s")
    assert Scope("alice", "s") != Scope("alice")
    assert len({Scope("alice", "s"), Scope("alice", "s"), Scope("bob", "s")}) == 2


def test_a_scope_is_frozen() -> None:
    scope: Any = Scope("alice")
    with pytest.raises(AttributeError):
        scope.user = "bob"
    assert scope.user == "alice"


@pytest.mark.parametrize("value", UNUSABLE_IDS)
def test_a_scope_refuses_ids_that_cannot_be_held(value: str) -> None:
    with pytest.raises(InvalidInput, match="user id"):
        Scope(value)
    with pytest.raises(InvalidInput, match="session id"):
        Scope("alice", value)


def test_a_scope_always_has_a_user() -> None:
    nobody: Any = None
    with pytest.raises(TypeError, match="user id"):
        Scope(nobody)


def test_a_record_is_frozen_and_a_message_unless_said_otherwise() -> None:
    record: Any = Record("id", "value")
    assert (record.kind, record.marks, record.pinned) == (MESSAGE, frozenset(), False)
    assert (record.origin, record.expires_at, record.session) == (None, None, None)
    with pytest.raises(AttributeError):
        record.kind = SUMMARY
    assert record.kind == MESSAGE


def test_marks_may_be_none_one_or_several() -> None:
    assert as_marks(None) == as_marks([]) == frozenset()
    assert as_marks("hint") == {"hint"}
    several = frozenset({"a", "b"})
    assert as_marks(["a", "b", "a"]) == as_marks(("a", "b")) == as_marks({"a", "b"}) == several


def test_a_string_enum_counts_as_its_value() -> None:
    for marks in (as_marks(Mark.HINT), as_marks([Mark.HINT, "hint"])):
        assert marks == {"hint"}
        assert all(type(mark) is str for mark in marks)


@pytest.mark.parametrize("marks", [1, b"hint", {"hint": 1}, iter(["hint"]), [1], ["a", None]])
def test_marks_of_another_type_are_a_type_error(marks: Any) -> None:
    with pytest.raises(TypeError, match="mark"):
        as_marks(marks)


@pytest.mark.parametrize("mark", UNUSABLE_IDS)
def test_a_mark_is_checked_like_an_id(mark: str) -> None:
    with pytest.raises(InvalidInput, match="mark"):
        as_marks(["fine", mark])


def test_text_of_shows_a_search_the_words_of_a_value() -> None:
    blocks: list[Any] = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}]
    assert text_of("words") == "words"
    assert text_of(Msg("n", "words", "user")) == "words"
    assert text_of(freeze(Msg("n", [*blocks, {"type": "text", "text": "c"}], "user"))) == "a\nc"


@pytest.mark.parametrize("value", [Msg("n", [], "user"), {"fact": "words"}, ["words"]])
def test_text_of_is_empty_where_there_are_no_words(value: Any) -> None:
    assert text_of(value) == ""


def test_a_negative_limit_is_refused() -> None:
    assert Where(limit=0).limit == 0
    with pytest.raises(InvalidInput, match="limit"):
        Where(limit=-1)


@pytest.mark.parametrize("name", ["limit", "after", "before", "skip"])
@pytest.mark.parametrize("number", [-1, 2**53])
def test_a_number_that_no_store_can_count_with_is_refused_by_name(name: str, number: int) -> None:
    fields: dict[str, Any] = {"limit": 1, name: number}
    with pytest.raises(InvalidInput, match=f"{name} must be"):
        Where(**fields)


def test_what_is_skipped_is_counted_in_pages() -> None:
    assert Where(skip=20, limit=10, newest=True).skip == 20
    with pytest.raises(InvalidInput, match="needs a limit"):
        Where(skip=20)


def test_a_where_knows_whether_it_asks_for_more_than_a_kind() -> None:
    assert EVERYTHING.is_only_kind
    assert Where(kind=MESSAGE).is_only_kind
    assert not Where(kind=MESSAGE, after=0).is_only_kind
    assert not Where(kind=MESSAGE, before=9).is_only_kind
    assert not Where(ids=frozenset()).is_only_kind
    assert not Where(limit=1).is_only_kind


def test_no_ids_match_nothing_while_ids_left_out_match_all() -> None:
    record = Record("a", "value")
    assert EVERYTHING.matches(record)
    assert not Where(ids=frozenset()).matches(record)


names = st.sampled_from("abc")
some = st.frozensets(names)
records = st.builds(Record, names, st.just("value"), marks=some, kind=names, seq=st.integers(0, 5))
choices = st.fixed_dictionaries(
    {},
    optional={
        "ids": st.none() | some,
        "kind": st.none() | names,
        "marks": some,
        "without": some,
        "after": st.none() | st.integers(0, 6),
        "before": st.none() | st.integers(0, 6),
        "limit": st.none() | st.integers(0, 3),
        "newest": st.booleans(),
    },
)


def fits(record: Record, ids: Any = None, kind: Any = None, after: Any = None, **more: Any) -> bool:
    """Say in other words what the fields mean; the limit is not about a single record."""
    marks, without = more.get("marks", frozenset()), more.get("without", frozenset())
    before = more.get("before")
    return all(
        [
            ids is None or any(id_ == record.id for id_ in ids),
            kind in (None, record.kind),
            after is None or after < record.seq,
            before is None or record.seq < before,
            not marks or len(marks & record.marks) > 0,
            len(without & record.marks) == 0,
        ]
    )


@given(records, choices)
def test_a_record_matches_when_it_fits_every_field_given(
    record: Record, fields: dict[str, Any]
) -> None:
    assert Where(**fields).matches(record) == fits(record, **fields)


@given(records, choices, choices)
def test_more_fields_never_match_more(
    record: Record, some_fields: dict[str, Any], more_fields: dict[str, Any]
) -> None:
    both = {**more_fields, **some_fields}
    if Where(**both).matches(record):
        assert Where(**some_fields).matches(record)
    else:
        assert not fits(record, **both)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (-1.5, True), (10**300, True), (10**400, False), (True, False), ("1", False),
     (float("nan"), False), (float("inf"), False), (None, False)],
)  # fmt: skip
def test_a_number_is_finite_and_no_bool(value: object, expected: bool) -> None:
    assert is_number(value) is expected
