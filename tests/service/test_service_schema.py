"""The runtime's message schema: built, checked, changed, written down and read back."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput, InvalidMessage, NotSerializable
from memoryspace.service.schema import (
    AudioContent,
    Content,
    ContentType,
    DataContent,
    Error,
    Event,
    FileContent,
    ImageContent,
    Message,
    MessageType,
    RefusalContent,
    Role,
    RunStatus,
    SequenceNumberGenerator,
    Session,
    TextContent,
)
from memoryspace.service.schema.model import compact_dict
from memoryspace.service.schema.reading import MAX_DATA_CHARACTERS, MAX_DATA_DEPTH, text_of_data

PARTS: list[Any] = [
    TextContent(text="look at this"),
    ImageContent(image_url="http://x/y.png"),
    DataContent(data={"city": "Oulu", "degrees": [1, 2.5, None, True]}),
    AudioContent(data="AAAA", format="mp3"),
    FileContent(file_url="http://x/z", file_id="f1", filename="plan.pdf", file_data="BBBB"),
    RefusalContent(refusal="I would rather not"),
]


def full() -> Message:
    return Message(
        sequence_number=3,
        status="failed",
        error=Error(code="404", message="gone"),
        id="m1",
        type="function_call",
        role="assistant",
        content=copy.deepcopy(PARTS),
        code="c",
        message="what happened",
        usage={"tokens": 3},
        metadata={"deep": {"list": [1, "a"]}},
    )


# -- building --------------------------------------------------------------------------------------


def test_a_message_has_the_defaults_of_the_runtime() -> None:
    message = Message()
    assert message.id.startswith("msg_")
    assert len(message.id) == 40
    assert message.id != Message().id
    assert (message.object, message.type, message.status) == ("message", "message", "created")
    assert message.role is message.content is message.metadata is message.error is None


def test_a_part_has_the_defaults_of_the_runtime() -> None:
    part = TextContent(type="text", text="hello")
    assert (part.object, part.delta, part.index, part.msg_id) == ("content", False, None, None)
    assert part.status is None


def test_parts_may_be_given_as_dicts() -> None:
    given_as_dicts = Message(id="m", content=[part.model_dump() for part in PARTS])
    assert given_as_dicts == Message(id="m", content=copy.deepcopy(PARTS))
    assert [type(part) for part in given_as_dicts.content or []] == [type(part) for part in PARTS]


def test_an_error_may_be_given_as_a_dict() -> None:
    event = Event(object="x", error={"code": "1", "message": "no"})  # type: ignore[arg-type]
    assert event.error == Error(code="1", message="no")


def test_values_are_equal_by_their_fields() -> None:
    assert full() == full()
    assert TextContent(text="a") == TextContent(text="a") != TextContent(text="b")
    assert DataContent() != AudioContent()
    changed = full()
    changed.metadata = {"deep": {"list": [1, "b"]}}
    assert changed != full()


def test_a_message_keeps_a_list_of_its_own() -> None:
    parts: list[Any] = [TextContent(text="a")]
    message = Message(content=parts)
    parts.append(TextContent(text="b"))
    assert message.content == [TextContent(text="a")]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Message(role="owner"), r"Message\.role .* assistant.* got 'owner'"),
        (lambda: Message(role=7), r"Message\.role .* got int"),
        (lambda: Message(id=None), r"Message\.id must be str, got NoneType"),
        (lambda: Message(status=None), r"Message\.status must be str"),
        (lambda: Message(content="hello"), r"Message\.content must be list or None, got str"),
        (lambda: Message(content={"type": "text"}), r"Message\.content .* got dict"),
        (lambda: Message(content=["hello"]), r"Message\.content\[0\] must be a TextContent"),
        (lambda: Message(content=[None]), r"content\[0\] .* got NoneType"),
        (lambda: Message(content=[Content(type="text")]), r"content\[0\] .* got Content"),
        (lambda: Message(content=[{"text": "a"}]), r"content\[0\]\.type must be one of text"),
        (lambda: Message(content=[{"type": []}]), r"content\[0\]\.type must be one of text"),
        (
            lambda: Message(content=[TextContent(), {"type": "text", "text": 1}]),
            r"content\[1\]: TextContent\.text must be str or None, got int",
        ),
        (
            lambda: Message(content=[{"type": "text", "txt": "a"}]),
            r"content\[0\]: TextContent has no field 'txt'; it has .*text",
        ),
        (lambda: Message(metadata=[1]), r"Message\.metadata must be dict or None, got list"),
        (lambda: Message(usage="much"), r"Message\.usage must be dict or None"),
        (lambda: Message(sequence_number="1"), r"Message\.sequence_number must be int or None"),
        (lambda: Message(sequence_number=True), r"sequence_number .* got bool"),
        (lambda: Message(sequence_number=1.0), r"sequence_number .* got float"),
        (lambda: TextContent(type="image"), r"TextContent\.type must be one of text"),
        (lambda: TextContent(delta=1), r"TextContent\.delta must be bool or None, got int"),
        (lambda: DataContent(data="{}"), r"DataContent\.data must be dict or None"),
        (lambda: Error(code=404, message="m"), r"Error\.code must be str, got int"),
        (lambda: Event(object="e", error="bad"), r"Event\.error must be Error or None"),
        (lambda: Event(object="e", error={"code": "1"}), r"Error needs the field 'message'"),
        (lambda: Session(id="s", user_id=1), r"Session\.user_id must be str"),
        (lambda: Session(id="s", user_id="u", messages=[None]), r"Session\.messages\[0\] must"),
        (lambda: Message.model_validate({"texts": 1}), r"Message has no field 'texts'"),
        (lambda: Message.model_validate([1]), r"Message must be a dict, got list"),
        (lambda: Error.model_validate({"code": "1"}), r"Error needs the field 'message'"),
        (lambda: Message.model_validate_json("{"), r"Message cannot be built from 1 characters"),
        (lambda: Message.model_validate_json("[]"), r"Message must be a dict, got list"),
        (lambda: full().model_copy(update={"texts": 1}), r"Message has no field 'texts'"),
        (lambda: full().model_copy(update={"role": "x"}), r"Message\.role"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(build: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        build()


@pytest.mark.parametrize("cls", [Message, TextContent, Error, Session])
def test_an_unknown_keyword_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="colour"):
        cls(colour="red")


def test_a_refused_value_is_a_value_error_as_in_pydantic() -> None:
    assert issubclass(InvalidMessage, ValueError)


def test_values_take_keywords_only() -> None:
    with pytest.raises(TypeError):
        TextContent("hello")  # type: ignore[misc]


# -- written down and read back --------------------------------------------------------------------


@pytest.mark.parametrize("message", [Message(), Message(content=[]), full()])
@pytest.mark.parametrize("exclude_none", [True, False])
def test_a_message_reads_back_equal(message: Message, exclude_none: bool) -> None:
    data = message.model_dump(exclude_none=exclude_none)
    assert Message.model_validate(data) == message
    assert Message.model_validate_json(json.dumps(data)) == message
    assert Message.model_validate_json(message.json(exclude_none=exclude_none).encode()) == message


def test_a_dump_holds_every_field_or_only_what_is_there() -> None:
    part = TextContent(text="a")
    assert part.model_dump() == part.dict() == {
        "sequence_number": None,
        "object": "content",
        "status": None,
        "error": None,
        "type": "text",
        "index": None,
        "delta": False,
        "msg_id": None,
        "text": "a",
    }  # fmt: skip
    assert part.model_dump(exclude_none=True) == part.dict(exclude_none=True) == {
        "object": "content", "type": "text", "delta": False, "text": "a"
    }  # fmt: skip
    assert full().dict()["error"] == {"code": "404", "message": "gone"}
    assert full().dict()["content"][0]["text"] == "look at this"


def test_none_inside_of_data_is_no_missing_field() -> None:
    message = Message(content=[DataContent(data={"a": None})], metadata={"b": None})
    data = message.model_dump(exclude_none=True)
    assert data["content"][0]["data"] == {"a": None}
    assert data["metadata"] == {"b": None}


def test_a_dump_shares_nothing_with_the_message() -> None:
    message = full()
    data = message.model_dump()
    data["metadata"]["deep"]["list"].append(2)
    data["content"][2]["data"]["city"] = "Kotka"
    data["content"].clear()
    assert message == full()


def test_json_is_compact_and_readable() -> None:
    text = TextContent(text="北京").model_dump_json(exclude_none=True)
    assert text == '{"object":"content","type":"text","delta":false,"text":"北京"}'
    assert TextContent(text="北京").json() == TextContent(text="北京").model_dump_json()


def test_what_json_cannot_hold_is_an_error_of_json_alone() -> None:
    message = Message(metadata={"when": {1, 2}})
    assert message.model_dump()["metadata"] == {"when": {1, 2}}
    with pytest.raises(NotSerializable):
        message.model_dump_json()


def test_validating_a_message_returns_it() -> None:
    message = full()
    assert Message.model_validate(message) is message


def test_little_is_told_of_a_plain_message_and_it_is_enough() -> None:
    message = Message(id="m", role="user", content=[TextContent(text="hi")])
    assert compact_dict(message) == {
        "id": "m", "type": "message", "role": "user", "content": [{"type": "text", "text": "hi"}]
    }  # fmt: skip
    odd = TextContent(delta=None, status="completed", object="other")
    for each in (message, full(), Message(content=[odd])):
        assert Message.model_validate(compact_dict(each)) == each


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.none() | st.dictionaries(st.text(), _JSON, max_size=3)
_TEXTS = st.none() | st.text()
_COMMON: dict[str, Any] = {
    "index": st.none() | st.integers(0, 9),
    "delta": st.sampled_from([None, True, False]),
    "msg_id": _TEXTS,
    "status": _TEXTS,
    "sequence_number": st.none() | st.integers(0, 9),
    "error": st.none() | st.builds(Error, code=st.text(), message=st.text()),
}
_PARTS = st.one_of(
    st.builds(TextContent, text=_TEXTS, **_COMMON),
    st.builds(ImageContent, image_url=_TEXTS, **_COMMON),
    st.builds(DataContent, data=_OBJECTS, **_COMMON),
    st.builds(AudioContent, data=_TEXTS, format=_TEXTS, **_COMMON),
    st.builds(FileContent, filename=_TEXTS, file_id=_TEXTS, file_data=_TEXTS, **_COMMON),
    st.builds(RefusalContent, refusal=_TEXTS, **_COMMON),
)
MESSAGES = st.builds(
    Message,
    id=st.text(min_size=1),
    type=st.sampled_from(MessageType.all_values()),
    role=st.sampled_from([None, "user", "assistant", "system", "tool"]),
    content=st.none() | st.lists(_PARTS, max_size=4),
    code=_TEXTS,
    message=_TEXTS,
    usage=_OBJECTS,
    metadata=_OBJECTS,
)


@given(MESSAGES)
def test_any_message_reads_back_equal_and_can_be_read(message: Message) -> None:
    assert Message.model_validate(message.model_dump()) == message
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert Message.model_validate(compact_dict(message)) == message
    assert message.model_copy(deep=True) == message
    assert isinstance(message.get_all_text(), str)


# -- copying ---------------------------------------------------------------------------------------


def test_a_deep_copy_shares_nothing_and_a_shallow_one_its_parts() -> None:
    message = full()
    shallow, deep = message.model_copy(), message.model_copy(deep=True)
    assert shallow == deep == message
    assert shallow.content is message.content
    deep.content[0].text = "changed"  # type: ignore[index, union-attr]
    deep.metadata["deep"]["list"].append(2)  # type: ignore[index]
    assert message == full()


def test_a_copy_may_be_changed_on_the_way() -> None:
    message = full()
    other = message.model_copy(update={"role": "user", "content": [{"type": "text"}]})
    assert (other.role, other.content) == ("user", [TextContent()])
    assert other.id == message.id
    assert message == full()


# -- events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["created", "in_progress", "completed", "rejected", "canceled"])
def test_a_step_sets_the_status_and_returns_the_event(status: str) -> None:
    for event in (Event(object="x"), Message(), TextContent()):
        assert getattr(event, status)() is event
        assert event.status == status
        assert event.error is None


def test_a_failure_says_why() -> None:
    message, error = Message(), Error(code="1", message="no")
    assert message.failed(error) is message
    assert (message.status, message.error) == ("failed", error)


def test_the_words_of_the_schema() -> None:
    assert set(MessageType.all_values()) == {
        "message", "function_call", "function_call_output", "plugin_call", "plugin_call_output",
        "component_call", "component_call_output", "mcp_list_tools", "mcp_approval_request",
        "mcp_approval_response", "mcp_call", "mcp_call_output", "reasoning", "heartbeat", "error",
    }  # fmt: skip
    assert (ContentType.TEXT, ContentType.REFUSAL) == ("text", "refusal")
    assert (Role.TOOL, Role.USER) == ("tool", "user")
    assert (RunStatus.Created, RunStatus.InProgress) == ("created", "in_progress")


def test_a_sequence_numbers_the_events_of_a_stream() -> None:
    numbers = SequenceNumberGenerator()
    events = [numbers.yield_with_sequence(Message()) for _ in range(3)]
    assert [event.sequence_number for event in events] == [0, 1, 2]
    assert numbers.next() == 3
    assert SequenceNumberGenerator(start=7).next() == 7


def test_a_session_has_messages_of_its_own() -> None:
    first, second = Session(id="s", user_id="u"), Session(id="s", user_id="u")
    first.messages.append(Message())
    assert second.messages == []
    held = Session(id="s", user_id="u", messages=[Message(id="m"), {"role": "user"}])
    assert held.dict()["messages"][1] == {"role": "user"}
    assert held.dict()["messages"][0]["id"] == "m"


# -- a content that comes in pieces ----------------------------------------------------------------


def test_deltas_grow_into_a_part() -> None:
    message = Message(id="m")
    first = message.add_delta_content(TextContent(text="Hel", delta=True))
    assert first is not None
    assert (first.index, first.msg_id, first.status, first.delta) == (0, "m", "in_progress", True)
    more = message.add_delta_content(TextContent(text="lo", delta=True, index=0))
    assert more is not None
    assert (more.text, more.msg_id, more.status) == ("lo", "m", "in_progress")
    assert message.content == [TextContent(text="Hello")]
    done = message.content_completed(0)
    assert done == TextContent(text="Hello", index=0, msg_id="m", status="completed")
    assert message.content == [TextContent(text="Hello")]


def test_a_delta_of_data_adds_to_text_and_lists_and_brings_new_keys() -> None:
    message = Message()
    message.add_delta_content(DataContent(delta=True, data={"name": "add", "n": 1, "l": [1]}))
    delta = DataContent(
        delta=True, index=0, data={"name": "ition", "n": 2, "l": [2], "new": "x", "none": None}
    )
    message.add_delta_content(delta)
    assert message.content == [
        DataContent(data={"name": "addition", "n": 2, "l": [1, 2], "new": "x", "none": None})
    ]


@pytest.mark.parametrize(
    ("old", "new", "whole"),
    [
        (TextContent(), TextContent(text="a"), TextContent(text="a")),
        (TextContent(text="a"), TextContent(), TextContent(text="a")),
        (ImageContent(image_url="a"), ImageContent(image_url="b"), ImageContent(image_url="ab")),
        (RefusalContent(refusal="n"), RefusalContent(refusal="o"), RefusalContent(refusal="no")),
        (DataContent(), DataContent(data={"a": 1}), DataContent(data={"a": 1})),
        (DataContent(data={"a": 1}), DataContent(), DataContent(data={"a": 1})),
    ],
)  # fmt: skip
def test_every_kind_of_part_can_come_in_pieces(old: Any, new: Any, whole: Any) -> None:
    message = Message(content=[TextContent(text="before"), copy.deepcopy(old)])
    message.add_delta_content(new.model_copy(update={"index": 1, "delta": True}))
    assert message.content == [TextContent(text="before"), whole]


def test_a_delta_of_another_kind_or_without_a_part_is_refused() -> None:
    message = Message(content=[TextContent(text="a")])
    with pytest.raises(InvalidMessage, match=r"ImageContent cannot be merged into content\[0\]"):
        message.add_delta_content(ImageContent(index=0, delta=True))
    for index in (1, -1):
        with pytest.raises(InvalidInput, match=f"1 parts and none at {index}"):
            message.add_delta_content(TextContent(index=index, delta=True))
    assert message.content == [TextContent(text="a")]


def test_a_part_with_a_place_that_is_no_delta_is_not_taken_in() -> None:
    message = Message(content=[TextContent(text="a")])
    assert message.add_delta_content(TextContent(text="b", index=0)) is None
    assert message.add_content(TextContent(text="b", index=0)) is None
    assert message.content == [TextContent(text="a")]


def test_a_whole_part_is_appended_as_a_copy() -> None:
    message = Message(id="m", content=[TextContent(text="a")])
    part = DataContent(data={"k": [1]})
    event = message.add_content(part)
    assert event is part
    assert (part.index, part.msg_id, part.status) == (1, "m", "completed")
    part.data["k"].append(2)  # type: ignore[index]
    assert message.content == [TextContent(text="a"), DataContent(data={"k": [1]})]


def test_no_part_is_completed_where_there_is_none() -> None:
    assert Message().content_completed(0) is None
    message = Message(content=[TextContent(text="a")])
    assert message.content_completed(1) is None
    assert message.content_completed(-1) is None


def test_a_completed_part_is_a_copy() -> None:
    message = Message(content=[DataContent(data={"k": [1]})])
    done = message.content_completed(0)
    done.data["k"].append(2)  # type: ignore[union-attr, index]
    assert message.content == [DataContent(data={"k": [1]})]


# -- what is in it ---------------------------------------------------------------------------------


def test_the_first_text_the_pictures_and_the_sounds() -> None:
    message = Message(content=[*PARTS, TextContent(text="second"), ImageContent(), AudioContent()])
    assert message.get_text_content() == "look at this"
    assert message.get_image_content() == ["http://x/y.png"]
    assert message.get_audio_content() == ["AAAA"]


@pytest.mark.parametrize("content", [None, []])
def test_a_message_without_content_is_fine_everywhere(content: Any) -> None:
    message = Message(content=content)
    assert message.get_text_content() is None
    assert message.get_image_content() == message.get_audio_content() == []
    assert message.get_all_text() == ""
    assert message.content_completed(0) is None
    assert Message.model_validate(message.dict()) == message


def test_all_text_is_everything_that_can_be_read_in_order() -> None:
    message = Message(content=[*PARTS, TextContent(text="at last")])
    assert message.get_all_text() == (
        "look at this\ncity: Oulu\ndegrees:\n1\n2.5\ntrue\nplan.pdf\nI would rather not\nat last"
    )


def test_json_inside_of_data_is_opened() -> None:
    answer = {"call_id": "call_9", "output": '{"city": "\\u5317\\u4eac", "sky": "a\\nb"}'}
    message = Message(content=[DataContent(data=answer)])
    assert message.get_all_text() == "output:\ncity: 北京\nsky: a\nb"
    assert text_of_data('{"half": "ope') == '{"half": "ope'
    assert text_of_data('["[1, \\"two\\"]"]') == "1\ntwo"


def test_bytes_written_as_text_are_no_text() -> None:
    blob = "iVBORw0KGgo" * 50
    data = {"png": blob, "url": "data:image/png;base64," + blob, "note": "a harbour"}
    assert text_of_data(data) == "note: a harbour"
    assert text_of_data("我" * 600) == "我" * 600
    assert text_of_data("word " * 200) == "word " * 200


def test_much_data_is_cut_and_words_are_not() -> None:
    assert len(text_of_data("word " * 100_000)) == MAX_DATA_CHARACTERS
    assert len(text_of_data([{"key": "word"}] * 100_000)) <= MAX_DATA_CHARACTERS + 1
    filled = text_of_data(["w " * (MAX_DATA_CHARACTERS // 2), "the tail"])
    assert len(filled) == MAX_DATA_CHARACTERS
    words = "word " * 100_000
    assert Message(content=[TextContent(text=words)]).get_all_text() == words


def test_deep_data_are_read_as_far_as_anyone_would() -> None:
    deep: Any = "bottom"
    for _ in range(MAX_DATA_DEPTH):
        deep = [deep]
    assert text_of_data(deep) == "bottom"
    assert text_of_data([deep]) == ""
    assert text_of_data("[" * 100_000) != ""
    assert text_of_data({"a": "[" * 5000 + "]" * 5000}).startswith("a: [")


def test_content_set_afterwards_is_read_or_refused_by_name() -> None:
    message: Any = Message(id="m")
    message.content = [{"type": "text", "text": "a dict"}]
    assert message.get_all_text() == "a dict"
    assert message.get_text_content() is None
    message.content = "just text"
    with pytest.raises(InvalidMessage, match="content of message 'm' must be a list, got str"):
        message.get_all_text()


# -- from OpenAI's form ----------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_plain_openai_text_is_one_text_part(role: Any) -> None:
    message = Message.from_openai_message({"role": role, "content": "hi"})
    assert (message.type, message.role) == ("message", role)
    assert message.content == [TextContent(text="hi")]


def test_openai_parts_become_ours() -> None:
    message = Message.from_openai_message(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "http://x"}},
                {"type": "image_url", "image_url": "http://y"},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_id": "f"}},
                {"type": "refusal", "refusal": "no"},
                {"type": "new_kind", "what": 1},
            ],
        }
    )
    assert message.content == [
        TextContent(text="look"),
        ImageContent(image_url="http://x"),
        ImageContent(image_url="http://y"),
        AudioContent(data="AA", format="wav"),
        FileContent(filename="a.pdf", file_id="f"),
        RefusalContent(refusal="no"),
        DataContent(data={"type": "new_kind", "what": 1}),
    ]


def test_calls_of_tools_keep_what_was_said_beside_them() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    message = Message.from_openai_message(
        {"role": "assistant", "content": "let me add", "tool_calls": [call]}
    )
    assert (message.type, message.role) == ("function_call", "assistant")
    data = {"call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
    assert message.content == [TextContent(text="let me add"), DataContent(data=data)]


def test_the_answer_of_a_tool_becomes_an_output() -> None:
    said = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    message = Message.from_openai_message(said)
    assert (message.type, message.role) == ("function_call_output", "tool")
    assert message.content == [DataContent(data={"call_id": "c1", "name": None, "output": "3"})]


def test_openai_messages_without_content_or_with_a_refusal() -> None:
    silent = Message.from_openai_message({"role": "assistant", "content": None, "tool_calls": None})
    assert (silent.type, silent.content) == ("message", None)
    refused = Message.from_openai_message({"role": "assistant", "content": None, "refusal": "no"})
    assert refused.content == [RefusalContent(refusal="no")]


def test_openais_other_words_for_roles_are_known() -> None:
    assert Message.from_openai_message({"role": "developer", "content": "x"}).role == "system"
    assert Message.from_openai_message({"role": "function", "content": "x"}).role == "tool"


def test_our_own_form_and_our_own_messages_are_taken_as_they_are() -> None:
    message = full()
    assert Message.from_openai_message(message) is message
    assert Message.from_openai_message(message.dict()) == message


def test_an_object_that_can_be_dumped_is_read_as_its_dict() -> None:
    class Spoken:
        def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
            return {"role": "user", "content": "hi"}

    assert Message.from_openai_message(Spoken()).content == [TextContent(text="hi")]


def test_id_and_metadata_of_an_openai_message_are_kept() -> None:
    said = {"role": "user", "content": "x", "id": "i", "metadata": {"k": 1}}
    message = Message.from_openai_message(said)
    assert (message.id, message.metadata) == ("i", {"k": 1})


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("hi", "must be a dict, got str"),
        (None, "must be a dict, got NoneType"),
        ({"content": "x"}, "needs 'role'"),
        ({"role": "owner", "content": "x"}, "role must be one of"),
        ({"role": 5, "content": "x"}, "role must be"),
        ({"role": "user", "content": 5}, "content must be a str or a list, got int"),
        ({"role": "user", "content": [5]}, r"content\[0\] must be a dict, got int"),
        ({"role": "assistant", "content": "", "tool_calls": 5}, "tool_calls must be a list"),
        ({"role": "assistant", "content": "", "tool_calls": [{}]}, "tool_calls must be a dict"),
    ],
)
def test_what_is_no_openai_message_is_refused(said: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        Message.from_openai_message(said)


# -- importing -------------------------------------------------------------------------------------


def test_the_schema_and_the_forms_load_nothing_heavy() -> None:
    program = (
        "import sys, types, memoryspace\n"
        "service = types.ModuleType('memoryspace.service')\n"  # so that only these two are loaded
        "service.__path__ = [memoryspace.__path__[0] + '/service']\n"
        "sys.modules['memoryspace.service'] = service\n"
        "import memoryspace.service.schema, memoryspace.service.values.forms\n"
        "print(*sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "memoryspace.service.values.forms" in loaded
    assert loaded.isdisjoint({"numpy", "pydantic", "openai", "redis", "sqlalchemy"})
