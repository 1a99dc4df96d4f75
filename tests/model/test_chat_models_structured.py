"""Structured answers from real SDKs: the form a server takes is found once, and text will do."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from memoryspace.errors import ModelFailed
from memoryspace.model import (
    AnthropicChatModel,
    ChatResponse,
    OpenAIChatModel,
    ask,
    collected,
)
from memoryspace.model.builder import ResponseBuilder
from memoryspace.model.forms import ANSWER, structured_answer
from memoryspace.model.parsing import arguments_of

from model_server import (
    Provider,
    Reply,
    anthropic_answer,
    anthropic_events,
    call_delta,
    openai_answer,
    openai_events,
    provider,
)

QUESTION = [{"role": "user", "content": "how was it?"}]
GOOD = {"mood": "good", "reasons": ["sun", "sea"]}
REFUSED = Reply({"error": {"message": "response_format is not supported"}}, 400)


class Mood(BaseModel):
    mood: str
    reasons: list[str] = []


class MoodStruct(msgspec.Struct):
    mood: str
    reasons: list[str] = []


def openai_at(server: Provider, stream: bool = False) -> OpenAIChatModel:
    return OpenAIChatModel("m", "key", stream=stream, client_kwargs={"base_url": server.url})


def anthropic_at(server: Provider, stream: bool = False) -> AnthropicChatModel:
    return AnthropicChatModel("m", "key", stream=stream, client_kwargs={"base_url": server.url})


def text(content: Any) -> Reply:
    said = content if isinstance(content, str) else json.dumps(content)
    return Reply(openai_answer({"content": said}))


def called(arguments: Any, name: str = ANSWER) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "c1", "type": "function", "function": function}
    return Reply(openai_answer({"content": None, "tool_calls": [call]}))


async def mood_of(model: Any, structured_model: Any = Mood) -> ChatResponse:
    return await collected(await model(QUESTION, structured_model=structured_model))


@pytest.mark.parametrize("form", [Mood, MoodStruct, Mood.model_json_schema()])
async def test_a_schema_is_asked_for_and_the_answer_is_metadata(form: Any) -> None:
    with provider(text(GOOD)) as server:
        async with openai_at(server) as model:
            found = await mood_of(model, form)
    assert found.metadata == GOOD
    assert json.loads(found.text) == GOOD
    wanted = server.asked["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert wanted["schema"]["required"] == ["mood", "reasons"]
    assert wanted["schema"]["additionalProperties"] is False


async def test_a_schema_with_members_it_does_not_name_is_not_promised() -> None:
    class Counts(BaseModel):
        counts: dict[str, int]

    with provider(text({"counts": {"a": 1}})) as server:
        async with openai_at(server) as model:
            assert (await mood_of(model, Counts)).metadata == {"counts": {"a": 1}}
    assert server.asked["response_format"]["json_schema"]["strict"] is False


async def test_a_server_without_schemas_is_asked_for_a_call_from_then_on() -> None:
    with provider(REFUSED, called(GOOD), called(GOOD)) as server:
        async with openai_at(server) as model:
            first, second = await mood_of(model), await mood_of(model)
    assert first.metadata == second.metadata == GOOD
    assert [block["type"] for block in first.content] == ["text"]
    assert [("response_format" in each.body) for each in server.heard] == [True, False, False]
    assert server.asked["tool_choice"] == {"type": "function", "function": {"name": ANSWER}}


async def test_a_server_without_either_is_asked_in_words_from_then_on() -> None:
    told = f"Here you are:\n```json\n{json.dumps(GOOD)}\n```"
    with provider(REFUSED, REFUSED, text(told), text(told)) as server:
        async with openai_at(server) as model:
            first, second = await mood_of(model), await mood_of(model)
    assert first.metadata == second.metadata == GOOD
    assert len(server.heard) == 4
    assert not {"response_format", "tools"} & server.asked.keys()
    assert server.asked["messages"][0] == QUESTION[0]
    assert "JSON schema" in server.asked["messages"][-1]["content"]


async def test_a_server_that_refuses_everything_is_asked_from_the_beginning_next_time() -> None:
    with provider(REFUSED, REFUSED, REFUSED, text(GOOD)) as server:
        async with openai_at(server) as model:
            with pytest.raises(ModelFailed, match="status 400"):
                await mood_of(model)
            assert (await mood_of(model)).metadata == GOOD
    assert "response_format" in server.asked


@pytest.mark.parametrize(
    "said",
    ["I would rather not.", '{"mood": 3}', '{"mood": "go', "", "[]", "null", "[" * 100_000],
    ids=["words", "wrong type", "cut off", "nothing", "array", "null", "very deep"],
)
async def test_an_answer_of_another_form_is_text_without_metadata(said: str) -> None:
    with provider(text(said)) as server:
        async with openai_at(server) as model:
            found = await mood_of(model)
    assert found.metadata is None
    assert found.text == said


async def test_a_call_of_another_form_is_text_without_metadata() -> None:
    with provider(REFUSED, called({"mood": 3})) as server:
        async with openai_at(server) as model:
            found = await mood_of(model)
    assert found.metadata is None
    assert found.content == [{"type": "text", "text": '{"mood": 3}'}]


async def test_words_instead_of_the_call_that_was_asked_for_are_read() -> None:
    with provider(REFUSED, text(f"Well: {json.dumps(GOOD)}")) as server:
        async with openai_at(server) as model:
            assert (await mood_of(model)).metadata == GOOD


async def test_tools_are_not_offered_beside_a_structured_answer() -> None:
    tools = [{"type": "function", "function": {"name": "find", "parameters": {}}}]
    with provider(text(GOOD)) as server:
        async with openai_at(server) as model:
            found = await model(QUESTION, tools=tools, structured_model=Mood)
    assert isinstance(found, ChatResponse)
    assert found.metadata == GOOD
    assert "tools" not in server.asked


async def test_a_streamed_structured_answer_is_known_at_its_end() -> None:
    raw = json.dumps(GOOD)
    pieces = [{"content": raw[:10]}, {"content": raw[10:]}]
    calls = [call_delta(0, "c1", ANSWER, raw[:10]), call_delta(0, arguments=raw[10:])]
    replies = [
        Reply(events=openai_events(*pieces)), REFUSED, Reply(events=openai_events(*calls)),
    ]  # fmt: skip
    with provider(*replies) as server:
        async with openai_at(server, stream=True) as model:
            for _ in range(2):
                answer: Any = await model(QUESTION, structured_model=Mood)
                found = [each async for each in answer]
                assert [each.metadata for each in found] == [None, None, GOOD]
                assert [each.text for each in found] == [raw[:10], raw, raw]


async def test_anthropic_is_asked_for_a_call_and_then_in_words() -> None:
    use = {"type": "tool_use", "id": "t1", "name": ANSWER, "input": GOOD}
    refused = Reply({"error": {"type": "invalid_request_error", "message": "thinking"}}, 400)
    in_words = Reply(anthropic_answer({"type": "text", "text": json.dumps(GOOD)}))
    with provider(Reply(anthropic_answer(use)), refused, in_words, in_words) as server:
        async with anthropic_at(server) as model:
            found = [await mood_of(model) for _ in range(3)]
    assert [each.metadata for each in found] == [GOOD] * 3
    assert [block["type"] for block in found[0].content] == ["text"]
    assert server.heard[0].body["tool_choice"] == {"type": "tool", "name": ANSWER}
    assert "tools" not in server.asked
    assert len(server.heard) == 4


async def test_anthropic_streams_a_structured_answer() -> None:
    raw = json.dumps(GOOD)
    block = [
        {"type": "tool_use", "id": "t1", "name": ANSWER, "input": {}},
        {"type": "input_json_delta", "partial_json": raw[:9]},
        {"type": "input_json_delta", "partial_json": raw[9:]},
    ]
    with provider(Reply(events=anthropic_events(block))) as server:
        async with anthropic_at(server, stream=True) as model:
            found = await mood_of(model)
    assert found.metadata == GOOD
    assert found.content == [{"type": "text", "text": raw}]


TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("choice", ["required", "find"])
async def test_a_model_that_cannot_be_forced_is_offered_the_tools_from_then_on(choice: str) -> None:
    with provider(REFUSED, called({}, "find"), called({}, "find")) as server:
        async with openai_at(server) as model:
            for _ in range(2):
                found = await collected(await model(QUESTION, tools=TOOLS, tool_choice=choice))
                assert [block["type"] for block in found.content] == ["tool_use"]
    assert [each.body["tool_choice"] for each in server.heard][1:] == ["auto", "auto"]


async def test_what_is_refused_for_another_reason_is_told_after_the_offer() -> None:
    with provider(REFUSED, REFUSED) as server:
        async with anthropic_at(server) as model:
            with pytest.raises(ModelFailed, match="status 400"):
                await model(QUESTION, tools=TOOLS, tool_choice="required")
    assert [each.body["tool_choice"] for each in server.heard] == [
        {"type": "any"},
        {"type": "auto"},
    ]


@pytest.mark.parametrize("stream", [True, False])
async def test_ask_gets_a_checked_answer_and_tells_an_unusable_one_why(stream: bool) -> None:
    def reply(content: Any) -> Reply:
        said = json.dumps(content)
        return Reply(events=openai_events({"content": said})) if stream else text(content)

    with provider(reply({"mood": 3}), reply(GOOD)) as server:
        async with openai_at(server, stream) as model:
            found = await ask(model, QUESTION, MoodStruct)
    assert found == MoodStruct("good", ["sun", "sea"])
    assert len(server.asked["messages"]) == 3


# Reading


def test_strings_of_an_exact_document_are_left_as_they_are() -> None:
    document = {"mood": "<think>really?</think> good, // not bad"}
    content = [{"type": "text", "text": json.dumps(document)}]
    assert structured_answer(Mood, content) == {**document, "reasons": []}


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("", {}),
        ("{}", {}),
        ("[1]", {}),
        ("null", {}),
        ("no json", {}),
        ('{"a": 1, "b": "cut of', {"a": 1}),
        ('{"a": {"b": [1, 2], "c": ', {"a": {"b": [1, 2]}}),
        ('{"a": "<think>x</think>"}', {"a": "<think>x</think>"}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": 1,}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": ' + "[" * 100_000, {}),
    ],
)
def test_arguments_are_read_as_far_as_they_are_whole(raw: str, read: Any) -> None:
    assert arguments_of(raw) == read


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
arguments = st.dictionaries(st.text(max_size=6), json_values, max_size=5)


@given(given_arguments=arguments, data=st.data())
def test_arguments_in_any_pieces_end_as_the_whole_and_never_show_half_a_text(
    given_arguments: dict[str, Any], data: st.DataObject
) -> None:
    raw = json.dumps(given_arguments, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    builder = ResponseBuilder()
    for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        builder.add_call(0, "c1" if begin == 0 else "", "find", raw[begin:end])
        (call,) = builder.content()
        assert call["type"] == "tool_use"
        assert all(_is_part(value, given_arguments[key]) for key, value in call["input"].items())
    (call,) = builder.content(is_last=True)
    assert call == {
        "type": "tool_use", "id": "c1", "name": "find", "input": given_arguments, "raw_input": raw,
    }  # fmt: skip


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return bool(part == whole)


def test_long_arguments_are_read_a_few_times_only() -> None:
    builder = ResponseBuilder()
    raw = json.dumps({str(number): "x" * 20 for number in range(1000)})
    last: Any = None
    characters_read = 0
    for at in range(0, len(raw), 10):
        builder.add_call(0, "c1", "write", raw[at : at + 10])
        (call,) = builder.content()
        if call.get("input") is not last:
            last = call.get("input")
            characters_read += at + 10
    assert last
    assert characters_read < 8 * len(raw)
