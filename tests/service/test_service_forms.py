"""What may be said, in four forms: read into drafts, written down as bodies, read back equal."""

from __future__ import annotations

import copy
import json
import time
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import CorruptData, InvalidInput, InvalidMessage, NotSerializable
from memoryspace.message import Msg, freeze
from memoryspace.message.sharing import Loan, lend
from memoryspace.record import Origin
from memoryspace.service.schema import DataContent, Error, Message, TextContent
from memoryspace.service.values.forms import (
    body_of,
    draft_of,
    drafts_of,
    query_text,
    said_from,
    text_of,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()

FUNCTION = {"name": "weather", "arguments": '{"in": "Oulu"}'}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
ICE = [{"type": "text", "text": "ice"}]
FAILURE = Error(code="404", message="gone")


def message(**fields: Any) -> Message:
    return Message(id="m1", role="user", content=[TextContent(text="I like tea")], **fields)


def msg(content: Any = "I like tea", **fields: Any) -> Msg:
    made = Msg("alice", content, "user", timestamp="2026-01-02 12:00:00.000", **fields)
    made.id = "g1"
    return made


def same(left: object, right: object) -> bool:
    """Tell whether two are equal; a ``Msg`` equals only itself, so its dict is looked at."""
    if isinstance(left, Msg) and isinstance(right, Msg):
        return type(left) is type(right) and left.to_dict() == right.to_dict()
    return type(left) is type(right) and left == right


# -- drafts ----------------------------------------------------------------------------------------


def test_a_message_becomes_a_draft() -> None:
    draft = draft_of(message(metadata={"title": "Tea", "n": [1]}))
    assert draft.value == message(metadata={"title": "Tea", "n": [1]})
    assert (draft.id, draft.role, draft.name, draft.title) == ("m1", "user", None, "Tea")
    assert draft.text == "I like tea"
    assert draft.metadata == {"title": "Tea", "n": [1]}
    assert draft.created_at is None
    assert draft.origin == Origin(author="user")


def test_a_msg_becomes_a_draft() -> None:
    draft = draft_of(msg(metadata={"k": 1}))
    assert same(draft.value, msg(metadata={"k": 1}))
    assert (draft.id, draft.role, draft.name, draft.title) == ("g1", "user", "alice", None)
    assert (draft.text, draft.metadata) == ("I like tea", {"k": 1})
    assert draft.created_at == NOON
    assert draft.origin == Origin(author="alice")


def test_a_dict_becomes_a_draft() -> None:
    said = {
        "role": "assistant",
        "name": "bot",
        "content": "hello",
        "id": "d1",
        "metadata": {"title": "T"},
        "timestamp": "2026-01-02T13:00:00+01:00",
        "own": [1],
    }
    draft = draft_of(said)
    assert draft.value == said
    assert (draft.id, draft.role, draft.name, draft.title) == ("d1", "assistant", "bot", "T")
    assert draft.created_at == NOON
    assert draft.origin == Origin(author="bot")


def test_text_becomes_a_draft() -> None:
    draft = draft_of("hello")
    assert (draft.value, draft.text, draft.id, draft.role) == ("hello", "hello", None, "user")
    assert draft.origin == Origin()
    assert draft.metadata == {}


@pytest.mark.parametrize("name", ["", None])
def test_without_a_name_the_role_is_the_author(name: Any) -> None:
    assert draft_of({"role": "user", "name": name, "content": "x"}).origin == Origin(author="user")


@pytest.mark.parametrize("title", [None, 5, ["a"]])
def test_a_title_is_text_or_none(title: Any) -> None:
    assert draft_of(message(metadata={"title": title})).title is None


def test_a_draft_shares_nothing_with_what_was_given() -> None:
    given_message = message(metadata={"l": [1]}, usage={"u": [1]})
    given_msg = msg([{"type": "text", "text": "a"}], metadata={"l": [1]})
    given_dict = {"content": [{"type": "text", "text": "a"}], "metadata": {"l": [1]}}
    for said in (given_message, given_msg, given_dict):
        draft, before = draft_of(said), draft_of(copy.deepcopy(said))
        metadata = said["metadata"] if isinstance(said, dict) else said.metadata
        content = said["content"] if isinstance(said, dict) else said.content
        metadata["l"].append(2)  # type: ignore[index, call-overload]
        content.clear()  # type: ignore[union-attr]
        assert same(draft.value, before.value)
        assert draft.metadata == before.metadata == {"l": [1]}


def test_the_metadata_of_a_draft_are_not_those_of_its_value() -> None:
    for said in (message(metadata={"l": [1]}), msg(metadata={"l": [1]})):
        draft = draft_of(said)
        draft.metadata["l"].append(2)
        assert draft.value.metadata == {"l": [1]}  # type: ignore[union-attr]
    draft = draft_of({"content": "x", "metadata": {"l": [1]}})
    draft.metadata["l"].append(2)
    assert draft.value["metadata"] == {"l": [1]}  # type: ignore[index, call-overload]


@pytest.mark.parametrize("made", [freeze, lambda plain: lend(freeze(plain), Loan())])
def test_shared_messages_are_drafted_as_plain_ones(made: Any) -> None:
    said = made(msg([{"type": "text", "text": "a"}], metadata={"k": 1}))
    assert type(draft_of(said).value) is Msg
    assert draft_of(said).text == "a"


# -- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_id", [7, None, "", "a\0b", "x" * 300, "memoryspace:summary", ["a"]])
def test_an_id_of_a_dict_that_cannot_be_one_is_not_used(given_id: Any) -> None:
    draft = draft_of({"id": given_id, "content": "x"})
    assert draft.id is None
    assert draft.value == {"id": given_id, "content": "x"}


@pytest.mark.parametrize("given_id", ["", "a\0b", "x" * 300, "memoryspace:summary"])
def test_an_id_of_a_message_that_cannot_be_one_is_refused(given_id: str) -> None:
    with pytest.raises(InvalidInput, match="message id"):
        draft_of(Message(id=given_id, content=[TextContent(text="x")]))
    said = msg()
    said.id = given_id
    with pytest.raises(InvalidInput, match=r"message id|\$\.id"):
        draft_of(said)


# -- times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_time",
    [
        "2026-01-02 12:00:00",
        "2026-01-02T12:00:00.000Z",
        " 2026-01-02T20:00:00+08:00 ",
        NOON,
        int(NOON),
        NOON * 1000,
    ],
)
@pytest.mark.parametrize("key", ["timestamp", "created_at"])
def test_a_time_is_read_in_any_usual_form(key: str, given_time: Any) -> None:
    assert draft_of({"content": "x", key: given_time}).created_at == NOON


@pytest.mark.parametrize(
    "given_time",
    [None, "", "yesterday", True, [1], float("inf"), float("nan"), 1e300, -1e300, 10**400],
)
def test_what_is_no_time_is_left_to_the_clock(given_time: Any) -> None:
    assert draft_of({"content": "x", "timestamp": given_time}).created_at is None


def test_the_first_time_that_can_be_read_counts() -> None:
    both = {"content": "x", "timestamp": "2026-01-02 12:00", "created_at": "1999-01-01"}
    assert draft_of(both).created_at == NOON
    assert draft_of(both | {"timestamp": "noon", "created_at": NOON}).created_at == NOON


def test_a_time_without_a_zone_is_utc_but_a_msg_says_local_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as far_away:
        far_away.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        said = draft_of({"content": "x", "timestamp": "2026-01-02 12:00"})
        assert said.created_at == NOON
        assert draft_of(msg()).created_at == NOON - 9 * 3600
    time.tzset()


def test_times_before_1970_are_times() -> None:
    assert draft_of({"content": "x", "timestamp": "1969-12-31T23:59:59"}).created_at == -1.0
    assert draft_of({"content": "x", "timestamp": -1}).created_at == -1.0


# -- text ------------------------------------------------------------------------------------------


def test_a_msg_is_searched_by_its_words_and_its_tools_but_not_its_thoughts() -> None:
    said = msg(
        [
            {"type": "thinking", "thinking": "hidden"},
            {"type": "text", "text": "let me look"},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"in": "Oulu"}},
            {"type": "tool_result", "id": "c1", "name": "weather", "output": "snow"},
            {"type": "tool_result", "id": "c2", "name": "w", "output": ICE},
            {"type": "image", "source": {"type": "url", "url": "http://x"}},
            {"type": "text", "text": "done"},
        ]
    )
    assert text_of(said) == "let me look\nweather\nin: Oulu\nsnow\nice\ndone"
    assert draft_of(said).text == text_of(said)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"content": "a"}, "a"),
        ({"content": None}, ""),
        ({"content": []}, ""),
        ({"content": ["a", {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [{"type": "input_text", "text": "b"}, {"text": "c"}]}, "b\nc"),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, "no"),
        ({"content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}, ""),
        ({"content": [{"type": "reasoning", "text": "hm"}]}, ""),
        ({"content": [{"type": "file", "file": {"filename": "a.pdf"}}]}, "a.pdf"),
        ({"content": [{"type": "file", "filename": "b.pdf"}]}, "b.pdf"),
        ({"content": [{"type": "data", "data": {"output": "21", "call_id": "c"}}]}, "output: 21"),
        ({"content": [{"type": "tool_result", "content": "21"}]}, "21"),
        ({"role": "tool", "content": '{"sky": "\\u6674"}'}, "sky: 晴"),
        ({"role": "user", "content": '{"sky": "\\u6674"}'}, '{"sky": "\\u6674"}'),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "weather\nin: Oulu"),
        ({"content": "hm", "tool_calls": [CALL, {}]}, "hm\nweather\nin: Oulu"),
        ({"content": None, "function_call": FUNCTION}, "weather\nin: Oulu"),
        ({"type": "error", "content": [{"type": "data", "data": {"a": "b"}}]}, "a: b"),
    ],
)
def test_a_dict_is_searched_by_all_that_can_be_read_in_it(said: dict[str, Any], text: str) -> None:
    assert draft_of(said).text == text_of(said) == text


def test_a_message_is_searched_by_every_part() -> None:
    parts = [TextContent(text="a"), DataContent(data={"k": 1}), TextContent(text="b")]
    assert draft_of(Message(content=parts)).text == "a\nk: 1\nb"  # type: ignore[arg-type]
    assert draft_of(Message(content=None)).text == ""


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [None, 5, b"x", ["x"], {"x"}, object(), TextContent(text="x")])
def test_anything_else_is_no_message(said: Any) -> None:
    for read in (draft_of, body_of, text_of):
        with pytest.raises(
            TypeError, match=f"{type(said).__name__} is not a message; pass a Message"
        ):
            read(said)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({}, "neither 'content' nor 'tool_calls'"),
        ({"role": "user"}, "neither 'content' nor 'tool_calls'"),
        ({"role": 5, "content": "x"}, r"\$\.role"),
        ({"content": 5}, r"\$\.content"),
        ({"content": [5]}, r"\$\.content\[0\]"),
        ({"content": [None]}, r"\$\.content\[0\]"),
        ({"content": {"type": "text"}}, r"\$\.content"),
        ({"name": 5, "content": "x"}, r"\$\.name"),
        ({"metadata": [1], "content": "x"}, r"\$\.metadata"),
        ({"content": "x", "tool_calls": "x"}, r"\$\.tool_calls"),
        ({"content": "x", "tool_calls": [None]}, r"\$\.tool_calls\[0\]"),
    ],
)
def test_a_dict_of_another_shape_is_refused_by_the_place(said: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        draft_of(said)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (message(metadata={"a": {"b": [0, {1}]}}), r"\['metadata'\]\['a'\]\['b'\]\[1\] is a set"),
        (msg(metadata={"when": datetime(2026, 1, 1)}), r"\['metadata'\]\['when'\] is a datetime"),
        (
            {"content": "x", "metadata": {1: 2}},
            r"\['metadata'\] has a key of type int; JSON keys must be str",
        ),
        ({"content": "x", "raw": b"x"}, r"\['raw'\] is a bytes"),
        (Message(content=[DataContent(data={"k": object()})]), r"\['data'\]\['k'\] is a object"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_key(said: Any, says: str) -> None:
    with pytest.raises(NotSerializable, match=says):
        draft_of(said)
    with pytest.raises(NotSerializable, match=says):
        body_of(said)


def test_what_is_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotSerializable, match="nested deeper"):
        draft_of({"content": "x", "metadata": {"endless": endless}})


def test_a_message_that_was_broken_afterwards_is_refused() -> None:
    broken = message()
    broken.role = "owner"  # type: ignore[assignment]
    with pytest.raises(InvalidMessage, match=r"Message\.role"):
        draft_of(broken)
    broken = message()
    broken.content = "text"  # type: ignore[assignment]
    with pytest.raises(InvalidMessage, match=r"Message\.content"):
        draft_of(broken)
    said = msg()
    said.content = None  # type: ignore[assignment]
    with pytest.raises(InvalidMessage, match=r"\$\.content"):
        draft_of(said)


def test_what_a_message_cannot_keep_is_refused_and_not_lost() -> None:
    class Spoken(TextContent, kw_only=True):
        language: str = "en"

    assert draft_of(Message(content=[Spoken(text="x")])).text == "x"
    with pytest.raises(InvalidMessage, match="TextContent has no field 'language'"):
        draft_of(Message(content=[Spoken(text="x", language="fi")]))


# -- several ---------------------------------------------------------------------------------------


def test_several_are_drafted_in_order_and_one_alone_as_well() -> None:
    drafts = drafts_of([message(), msg(), {"content": "d"}, "t"])
    assert [draft.id for draft in drafts] == ["m1", "g1", None, None]
    assert [draft.text for draft in drafts_of(("a", "b"))] == ["a", "b"]
    assert [draft.text for draft in drafts_of("hello")] == ["hello"]
    assert drafts_of(message())[0].id == "m1"
    assert drafts_of([]) == []


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (None, TypeError),
        (5, TypeError),
        (["nested"], TypeError),
        ({"role": "user"}, InvalidMessage),
        ({"content": "x", "k": b""}, NotSerializable),
        (Message(id="a\nb"), InvalidInput),
    ],
)
def test_an_error_among_several_says_which(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^messages\[1\]: ") as caught:
        drafts_of(["fine", bad])
    assert caught.type is error


def test_nothing_at_all_is_no_message_to_add() -> None:
    with pytest.raises(TypeError, match="NoneType is not a message"):
        drafts_of(None)


# -- bodies ----------------------------------------------------------------------------------------


def read_back(said: Any) -> Any:
    form, body = body_of(said)
    return said_from(form, json.loads(json.dumps(body)))


@pytest.mark.parametrize(
    ("said", "form"),
    [
        (message(metadata={"k": [None, 1.5, True]}, error=FAILURE), "message"),
        (Message(id="m", content=None), "message"),
        (Message(id="m", code="404", message="", content=[TextContent(text="")]), "message"),
        (msg([{"type": "text", "text": "a"}], metadata={"k": 1}, invocation_id="i"), "msg"),
        (msg(""), "msg"),
        ({"role": "user", "content": None, "code": "404"}, "dict"),
        ({"any": {"form": "message", "body": {}}}, "dict"),
        ("", "text"),
        ('{"role": "user"}', "text"),
    ],
)
def test_what_was_said_reads_back_equal_in_its_own_form(said: Any, form: str) -> None:
    assert body_of(said)[0] == form
    assert same(read_back(said), said)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_any_data_read_back_equal(data: dict[str, Any]) -> None:
    assert same(read_back(data), data)
    held = message(metadata=data)
    held.content.append(DataContent(data=data))  # type: ignore[union-attr]
    assert same(read_back(held), held)
    assert same(read_back(msg([data], metadata=data)), msg([data], metadata=data))


@given(st.dictionaries(st.sampled_from(["role", "content", "id", "metadata", "name"]), _JSON))
def test_any_dict_becomes_a_draft_or_is_refused_as_no_message(data: dict[str, Any]) -> None:
    try:
        draft = draft_of(data)
    except InvalidMessage:
        return
    assert draft.value == data
    assert draft.text == text_of(data) == query_text([data])


def test_a_plain_message_takes_little_room() -> None:
    said = Message(role="user", content=[TextContent(text="hello!")])
    assert len(json.dumps(body_of(said))) < 160


class Colour(str, Enum):  # noqa: UP042 - the older form, whose str() is not its value
    RED = "red"


class Number(int):
    pass


class Real(float):
    pass


def test_subclasses_become_plain_on_every_backend_alike() -> None:
    odd = {"content": (Colour.RED, "b"), Colour.RED: Number(3), "real": Real(1.5), "yes": True}
    plain = {"content": ["red", "b"], "red": 3, "real": 1.5, "yes": True}
    value: Any = draft_of(odd).value
    assert value == plain
    assert [type(value[key]) for key in ("red", "real", "yes")] == [int, float, bool]
    assert type(value["content"][0]) is str
    assert all(type(key) is str for key in value)
    assert type(draft_of(Colour.RED).value) is str


def test_a_value_and_the_body_it_was_read_from_share_nothing() -> None:
    for said in (message(metadata={"l": [1]}), msg(metadata={"l": [1]})):
        form, body = body_of(said)
        read: Any = said_from(form, body)
        read.metadata["l"].append(2)
        assert same(said_from(form, body), said)
    form, body = body_of({"l": [1]})
    read = said_from(form, body)
    read["l"].append(2)
    assert said_from(form, body) == {"l": [1]}


GOOD = msg().to_dict()


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("pickle", "x"),
        ("", {}),
        ("Message", {"id": "m"}),
        ("text", {"a": 1}),
        ("text", None),
        ("dict", "x"),
        ("dict", None),
        ("dict", [1]),
        ("message", "x"),
        ("message", {"id": 5}),
        ("message", {"id": "m", "content": "x"}),
        ("message", {"id": "m", "content": [{"type": "code"}]}),
        ("message", {"id": "m", "__class__": "os.system"}),
        ("msg", "x"),
        ("msg", {}),
        ("msg", GOOD | {"role": "tool"}),
        ("msg", GOOD | {"content": None}),
        ("msg", GOOD | {"metadata": [1]}),
        ("msg", GOOD | {"timestamp": 5}),
        ("msg", GOOD | {"id": None}),
        ("msg", {key: value for key, value in GOOD.items() if key != "id"}),
    ],
)
def test_a_body_that_does_not_read_back_is_corrupt(form: str, body: Any) -> None:
    with pytest.raises(CorruptData, match="a stored body of the form"):
        said_from(form, body)


# -- queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (None, ""),
        ([], ""),
        ((), ""),
        ("tea", "tea"),
        (["coffee", "tea"], "tea"),
        ([message(), {"content": "last"}], "last"),
        (({"content": "last"}, message()), "I like tea"),
        (message(), "I like tea"),
        (msg(), "I like tea"),
        ([msg()], "I like tea"),
        ({"role": "user", "content": "dict"}, "dict"),
        (Message(content=None), ""),
        ([Message(content=[])], ""),
        ({"role": "user", "content": None}, ""),
        ({"role": "user"}, ""),
        ({"content": "x", "metadata": {"when": datetime(2026, 1, 1)}}, "x"),
        (Message(content=[TextContent(text="a"), TextContent(text="b")]), "a\nb"),
    ],
)
def test_the_query_is_the_text_of_the_last_message(messages: Any, text: str) -> None:
    assert query_text(messages) == text


@pytest.mark.parametrize("messages", [5, [None], ["x", None], [["x"]], b"x"])
def test_what_is_no_message_is_no_query(messages: Any) -> None:
    with pytest.raises(TypeError, match="is not a message"):
        query_text(messages)
