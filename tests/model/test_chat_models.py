"""The models on official SDKs, against a real server on this machine: answers, calls, troubles."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest

from memoryspace.errors import InvalidInput, ModelFailed, ModelUnavailable
from memoryspace.model import (
    Answer,
    AnthropicChatModel,
    ChatModel,
    ChatResponse,
    OpenAIChatModel,
    collected,
)
from memoryspace.model.sdk import SDKChatModel

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

SECRET = "what the user said in confidence"
KEY = "sk-very-secret-0123456789"
HELLO = [{"role": "user", "content": SECRET}]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
AT_ONCE = {"retry-after-ms": "1"}  # both SDKs obey it
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Looks for {name}.",
            "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
        },
    }
    for name in ("find", "count")
]
MODELS: list[Any] = [OpenAIChatModel, AnthropicChatModel]
each_model = pytest.mark.parametrize("kind", MODELS)
each_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@contextmanager
def asking(
    kind: Any, *replies: Reply, stream: bool = True, **options: Any
) -> Iterator[tuple[SDKChatModel, Provider]]:
    with provider(*replies) as server:
        client = {"base_url": server.url, **options.pop("client_kwargs", {})}
        yield kind("m", KEY, stream=stream, client_kwargs=client, **options), server


async def responses_of(answer: Answer) -> list[ChatResponse]:
    assert isinstance(answer, AsyncGenerator)
    return [each async for each in answer]


def said(kind: Any, text: str, stream: bool) -> Reply:
    half = len(text) // 2
    if kind is OpenAIChatModel:
        if not stream:
            return Reply(openai_answer({"content": text}))
        pieces = [{"content": text[:half]}, {"content": text[half:]}]
        return Reply(events=openai_events(*pieces, usage=USAGE))
    if not stream:
        return Reply(anthropic_answer({"type": "text", "text": text}))
    deltas = [{"type": "text_delta", "text": each} for each in (text[:half], text[half:])]
    return Reply(events=anthropic_events([{"type": "text", "text": ""}, *deltas]))


def broken(kind: Any, text: str, ending: Any) -> Reply:
    if kind is OpenAIChatModel:
        return Reply(events=openai_events({"content": text}, finish=None), ending=ending)
    block = [{"type": "text", "text": ""}, {"type": "text_delta", "text": text}]
    return Reply(events=anthropic_events(block, is_whole=False), ending=ending)


@each_model
@each_way
async def test_an_answer_has_text_usage_and_an_id(kind: Any, stream: bool) -> None:
    with asking(kind, said(kind, "good morning", stream), stream=stream) as (model, _):
        async with model:
            found = await collected(await model(HELLO))
    assert found.content == [{"type": "text", "text": "good morning"}]
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (11, 7)
    assert found.usage.time > 0
    assert found.id in ("chatcmpl-1", "msg_1")
    assert found.metadata is None


@each_model
async def test_each_streamed_response_holds_everything_so_far(kind: Any) -> None:
    with asking(kind, said(kind, "good morning", True)) as (model, _):
        async with model:
            found = await responses_of(await model(HELLO))
    assert [each.text for each in found] == ["good m", "good morning", "good morning"]
    assert len({(each.id, each.created_at) for each in found}) == 1
    assert found[-1].usage is not None
    found[0].content.append({"type": "text", "text": "mine"})
    assert len(found[1].content) == 1


@each_model
@each_way
async def test_every_such_model_is_a_chat_model(kind: Any, stream: bool) -> None:
    with asking(kind, said(kind, "yes", stream), stream=stream) as (model, server):
        assert isinstance(model, ChatModel)
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "well?"}]
        async with model:
            found = await model.complete(messages)
    assert (found.text, found.input_tokens, found.output_tokens) == ("yes", 11, 7)
    assert "be brief" in json.dumps(server.asked)


def parallel_calls(kind: Any, stream: bool) -> Reply:
    first, second = '{"where": "in the house"}', '{"where": "outside"}'
    if kind is OpenAIChatModel:
        if not stream:
            calls = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in (("c1", "find", first), ("c2", "count", second))
            ]
            return Reply(openai_answer({"content": None, "tool_calls": calls}, "tool_calls"))
        pieces = [
            call_delta(0, "c1", "find", ""),
            call_delta(0, arguments=first[:9]),
            call_delta(1, "c2", "count", ""),
            call_delta(0, arguments=first[9:]),
            call_delta(1, arguments=second),
        ]
        return Reply(events=openai_events(*pieces, finish="tool_calls", usage=USAGE))
    if not stream:
        blocks = [
            {"type": "tool_use", "id": id, "name": name, "input": json.loads(arguments)}
            for id, name, arguments in (("c1", "find", first), ("c2", "count", second))
        ]
        return Reply(anthropic_answer(*blocks))
    return Reply(
        events=anthropic_events(
            *(
                [
                    {"type": "tool_use", "id": id, "name": name, "input": {}},
                    {"type": "input_json_delta", "partial_json": arguments[:9]},
                    {"type": "input_json_delta", "partial_json": arguments[9:]},
                ]
                for id, name, arguments in (("c1", "find", first), ("c2", "count", second))
            )
        )
    )


@each_model
@each_way
async def test_parallel_calls_are_told_apart(kind: Any, stream: bool) -> None:
    with asking(kind, parallel_calls(kind, stream), stream=stream) as (model, _):
        async with model:
            found = await collected(await model(HELLO, tools=TOOLS))
    assert found.content == [
        {
            "type": "tool_use",
            "id": id,
            "name": name,
            "input": {"where": where},
            "raw_input": json.dumps({"where": where}),
        }
        for id, name, where in (("c1", "find", "in the house"), ("c2", "count", "outside"))
    ]


@each_model
async def test_arguments_that_were_cut_off_keep_what_is_whole_and_the_raw_text(kind: Any) -> None:
    raw = '{"path": "a.txt", "lines": [1, 2], "text": "once upon a ti'
    if kind is OpenAIChatModel:
        events = openai_events(call_delta(0, "c1", "write", raw), finish="length")
    else:
        start = {"type": "tool_use", "id": "c1", "name": "write", "input": {}}
        events = anthropic_events([start, {"type": "input_json_delta", "partial_json": raw}])
    with asking(kind, Reply(events=events)) as (model, _):
        async with model:
            found = await collected(await model(HELLO, tools=TOOLS))
    (call,) = found.content
    assert call["type"] == "tool_use"
    assert call["input"] == {"path": "a.txt", "lines": [1, 2]}
    assert call["raw_input"] == raw


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
@each_way
async def test_reasoning_is_a_thought_before_the_text(member: str, stream: bool) -> None:
    deltas = [{member: "let me "}, {member: "see"}, {"content": "42"}]
    whole = Reply(openai_answer({member: "let me see", "content": "42"}))
    reply = Reply(events=openai_events(*deltas)) if stream else whole
    with asking(OpenAIChatModel, reply, stream=stream) as (model, _):
        async with model:
            found = await collected(await model(HELLO))
    assert found.content == [
        {"type": "thinking", "thinking": "let me see"},
        {"type": "text", "text": "42"},
    ]


@each_way
async def test_thoughts_of_anthropic_keep_their_signature_and_their_order(stream: bool) -> None:
    whole = [
        {"type": "thinking", "thinking": "let me see", "signature": "sig1"},
        {"type": "text", "text": "first"},
        {"type": "thinking", "thinking": "and then", "signature": "sig2"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "second"},
    ]
    events = anthropic_events(
        [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "let me "},
            {"type": "thinking_delta", "thinking": "see"},
            {"type": "signature_delta", "signature": "sig1"},
        ],
        [{"type": "text", "text": ""}, {"type": "text_delta", "text": "first"}],
        [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "and then"},
            {"type": "signature_delta", "signature": "sig2"},
        ],
        [{"type": "redacted_thinking", "data": "xyz"}],
        [{"type": "text", "text": ""}, {"type": "text_delta", "text": "second"}],
    )
    reply = Reply(events=events) if stream else Reply(anthropic_answer(*whole))
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with asking(AnthropicChatModel, reply, stream=stream, thinking=thinking) as (model, server):
        async with model:
            found = await collected(await model(HELLO))
    assert found.content == [each for each in whole if each["type"] != "redacted_thinking"]
    assert server.asked["thinking"] == thinking


@pytest.mark.parametrize(
    "deltas",
    [
        [call_delta(0, "a", "find", "{}"), call_delta(0, "b", "count", "{}")],
        [call_delta(None, "a", "find", "{"), call_delta(None, arguments="}"),
         call_delta(None, "b", "count", "{}")],
        [call_delta(0, "a", "find", "{"), call_delta(0, "a", "find", "}"),
         call_delta(1, "b", "count", {}), call_delta(1, "", "", "")],
    ],
    ids=["same index, other id", "no index", "id and name repeated, arguments as an object"],
)  # fmt: skip
async def test_calls_of_servers_that_are_not_quite_openais_are_told_apart(deltas: Any) -> None:
    with asking(OpenAIChatModel, Reply(events=openai_events(*deltas))) as (model, _):
        async with model:
            found = await collected(await model(HELLO, tools=TOOLS))
    assert [(call.get("id"), call.get("name"), call.get("input")) for call in found.content] == [
        ("a", "find", {}),
        ("b", "count", {}),
    ]


async def test_a_call_without_an_id_gets_one() -> None:
    reply = Reply(events=openai_events(call_delta(0, None, "find", "{}")))
    with asking(OpenAIChatModel, reply) as (model, _):
        async with model:
            found = await responses_of(await model(HELLO, tools=TOOLS))
    ids = {call.get("id") for each in found for call in each.content}
    assert len(ids) == 1
    assert str(ids.pop()).startswith("call_")


@each_model
async def test_arguments_may_stay_unread_until_the_call_is_complete(kind: Any) -> None:
    reply = parallel_calls(kind, True)
    with asking(kind, reply, stream_tool_parsing=False) as (model, _):
        async with model:
            found = await responses_of(await model(HELLO, tools=TOOLS))
    assert all(call.get("input") == {} for each in found[:-1] for call in each.content)
    assert found[-1].content[0].get("input") == {"where": "in the house"}


@pytest.mark.parametrize(
    ("choice", "of_openai", "of_anthropic"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("none", "none", {"type": "none"}),
        ("required", "required", {"type": "any"}),
        (
            "count",
            {"type": "function", "function": {"name": "count"}},
            {"type": "tool", "name": "count"},
        ),
    ],
)
async def test_the_choice_of_a_tool_is_told_in_the_providers_words(
    choice: str, of_openai: Any, of_anthropic: Any
) -> None:
    for kind, told in ((OpenAIChatModel, of_openai), (AnthropicChatModel, of_anthropic)):
        with asking(kind, said(kind, "ok", False), stream=False) as (model, server):
            async with model:
                await model(HELLO, tools=TOOLS, tool_choice=choice)
        assert server.asked["tool_choice"] == told
        assert len(server.asked["tools"]) == 2


@each_model
async def test_without_tools_none_are_mentioned(kind: Any) -> None:
    for tools in (None, []):
        with asking(kind, said(kind, "ok", False), stream=False) as (model, server):
            async with model:
                await model(HELLO, tools=tools, tool_choice="auto")
        assert not {"tools", "tool_choice"} & server.asked.keys()


@each_model
@pytest.mark.parametrize(("choice", "error"), [("juggle", InvalidInput), (1, TypeError)])
async def test_a_choice_that_is_none_is_refused_before_anything_is_sent(
    kind: Any, choice: Any, error: Any
) -> None:
    with asking(kind) as (model, server):
        with pytest.raises(error, match="tool_choice must be"):
            await model(HELLO, tools=TOOLS, tool_choice=choice)
        assert server.heard == []


async def test_tools_are_told_in_anthropics_words_and_system_messages_stand_apart() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "be brief"},
        {"role": "system", "content": [{"type": "text", "text": "be kind"}]},
        {"role": "user", "content": "hello"},
    ]
    before = json.dumps(messages)
    reply = said(AnthropicChatModel, "ok", False)
    with asking(AnthropicChatModel, reply, stream=False) as (model, server):
        async with model:
            await model(messages, tools=[*TOOLS, {"function": {"name": "stop"}}])
    assert json.dumps(messages) == before
    assert [each["text"] for each in server.asked["system"]] == ["be brief", "be kind"]
    assert server.asked["messages"] == [{"role": "user", "content": "hello"}]
    assert server.asked["tools"][0]["input_schema"] == TOOLS[0]["function"]["parameters"]  # type: ignore[index]
    assert server.asked["tools"][2] == {
        "name": "stop",
        "input_schema": {"type": "object", "properties": {}},
    }


@each_model
async def test_options_are_sent_and_those_that_are_none_left_out(kind: Any) -> None:
    options = {"temperature": 0.5, "top_p": None}
    reply = said(kind, "ok", True)
    with asking(kind, reply, generate_kwargs=options) as (model, server):
        async with model:
            await collected(await model(HELLO))
    assert server.asked["temperature"] == 0.5
    assert "top_p" not in server.asked
    assert server.asked["stream"] is True


async def test_openais_own_options() -> None:
    replies = [said(OpenAIChatModel, "ok", True)] * 2
    with asking(
        OpenAIChatModel,
        *replies,
        reasoning_effort="low",
        organization="org",
        generate_kwargs={"stream_options": None, "top_k": 3, "extra_body": {"min_p": 0.1}},
    ) as (model, server):
        async with model:
            await collected(await model(HELLO))
    asked = server.asked
    assert (asked["reasoning_effort"], asked["top_k"], asked["min_p"]) == ("low", 3, 0.1)
    assert "stream_options" not in asked
    assert server.heard[-1].headers["openai-organization"] == "org"
    with asking(OpenAIChatModel, *replies) as (model, server):
        async with model:
            await collected(await model(HELLO))
    assert server.asked["stream_options"] == {"include_usage": True}


async def test_azure_is_openai_under_another_address() -> None:
    with provider(said(OpenAIChatModel, "ok", False)) as server:
        model = OpenAIChatModel(
            "deployed",
            KEY,
            stream=False,
            client_type="azure",
            client_kwargs={"azure_endpoint": server.url, "api_version": "2024-10-21"},
        )
        async with model:
            assert (await collected(await model(HELLO))).text == "ok"
    assert server.heard[0].path.startswith("/openai/deployments/deployed/chat/completions")
    with pytest.raises(ValueError, match="client_type"):
        OpenAIChatModel("m", KEY, client_type="other")  # type: ignore[arg-type]  # that is the point


@each_model
async def test_the_older_name_for_the_options_of_a_client_is_taken_too(kind: Any) -> None:
    with provider(said(kind, "ok", False)) as server:
        options = {"base_url": server.url}
        async with kind("m", KEY, stream=False, client_args=options) as model:
            assert (await model(HELLO)).text == "ok"
    with pytest.raises(InvalidInput, match="client_kwargs"):
        kind("m", KEY, client_args={}, client_kwargs={})


@each_model
@each_way
async def test_half_a_sign_does_not_keep_a_prompt_from_being_sent(kind: Any, stream: bool) -> None:
    messages = [{"role": "system", "content": "\ud83d"}, {"role": "user", "content": "a \udc00 b"}]
    with asking(kind, said(kind, "ok", stream), stream=stream) as (model, server):
        async with model:
            assert (await collected(await model(messages))).text == "ok"
    heard = server.asked["messages"][-1]["content"]
    assert heard in ("a \ufffd b", "a \udc00 b")  # older SDKs can send it
    assert messages[1]["content"] == "a \udc00 b"


# Troubles


@each_model
@each_way
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_again(kind: Any, stream: bool, status: int) -> None:
    trouble = Reply({"error": {"message": "busy"}}, status, headers=AT_ONCE)
    with asking(kind, trouble, said(kind, "ok", stream), stream=stream) as (model, server):
        async with model:
            assert (await collected(await model(HELLO))).text == "ok"
    assert len(server.heard) == 2


@each_model
@each_way
async def test_a_server_that_stays_busy_is_unavailable(kind: Any, stream: bool) -> None:
    trouble = Reply(
        {"error": {"type": "overloaded_error", "message": SECRET}}, 529, headers=AT_ONCE
    )
    with asking(kind, *[trouble] * 3, stream=stream) as (model, server):
        async with model:
            with pytest.raises(ModelUnavailable, match="status 529, overloaded_error") as caught:
                await collected(await model(HELLO))
    assert len(server.heard) == 3
    check_that_nothing_leaks(caught.value)


@each_model
@each_way
@pytest.mark.parametrize(
    ("status", "advice"),
    [(400, "DEBUG"), (401, "check api_key"), (404, "check model_name"), (413, "shorten")],
)
async def test_what_will_not_pass_fails_at_once_and_quotes_nothing(
    kind: Any, stream: bool, status: int, advice: str
) -> None:
    message = f"wrong key {KEY} in the request {SECRET}"
    trouble = Reply({"error": {"message": message, "type": KEY, "code": message}}, status)
    with asking(kind, trouble, stream=stream) as (model, server):
        async with model:
            with pytest.raises(ModelFailed, match=advice) as caught:
                await collected(await model(HELLO))
    assert not isinstance(caught.value, ModelUnavailable)
    assert len(server.heard) == 1
    check_that_nothing_leaks(caught.value)


def check_that_nothing_leaks(error: BaseException) -> None:
    told = "".join(traceback.format_exception(error)) + repr(error)
    assert SECRET not in told
    assert KEY not in told
    assert error.__context__ is None


@each_model
async def test_a_key_is_shown_nowhere(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    trouble = Reply({"error": {"message": f"wrong key {KEY}"}}, 401)
    with caplog.at_level(logging.INFO), asking(kind, trouble) as (model, server):
        async with model:
            with pytest.raises(ModelFailed) as caught:
                await collected(await model(HELLO))
    headers = server.heard[0].headers
    assert KEY in (headers.get("authorization") or headers["x-api-key"])
    assert KEY not in repr(model) + str(model) + caplog.text + repr(caught.value)
    check_that_nothing_leaks(caught.value)


@each_model
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(kind: Any) -> None:
    with pytest.raises(InvalidInput, match="api_key") as caught:
        kind("m", KEY + "\n")
    assert KEY not in str(caught.value)


async def test_without_a_key_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = OpenAIChatModel("m", stream=False)
    with pytest.raises(ModelFailed, match="api_key"):
        await model(HELLO)


@each_model
@each_way
async def test_no_server_at_all_is_unavailable(kind: Any, stream: bool) -> None:
    with provider() as server:
        address = server.url
    options = {"base_url": address, "max_retries": 0}
    async with kind("m", KEY, stream=stream, client_kwargs=options) as model:
        with pytest.raises(ModelUnavailable, match="did not answer") as caught:
            await collected(await model(HELLO))
    check_that_nothing_leaks(caught.value)


@each_model
@pytest.mark.parametrize("ending", ["cut", "whole"], ids=["hangs up", "ends too early"])
async def test_a_stream_that_breaks_raises_after_what_was_said(kind: Any, ending: str) -> None:
    with asking(kind, broken(kind, "so far, so good", ending)) as (model, _):
        async with model:
            answer: Any = await model(HELLO)
            assert (await anext(answer)).text == "so far, so good"
            with pytest.raises(ModelUnavailable, match="broke off in the middle") as caught:
                await anext(answer)
    check_that_nothing_leaks(caught.value)


@each_model
async def test_an_error_within_a_stream_is_told_by_its_kind(kind: Any) -> None:
    error = {"type": "overloaded_error", "message": SECRET}
    for code, expected in (
        ("overloaded_error", ModelUnavailable),
        ("invalid_request", ModelFailed),
    ):
        error["type"] = code
        event = f"event: error\ndata: {json.dumps({'type': 'error', 'error': error})}\n\n"
        first = broken(kind, "well", "whole").events or []
        with asking(kind, Reply(events=[*first, event])) as (model, _):
            async with model:
                with pytest.raises(expected, match=code) as caught:
                    await collected(await model(HELLO))
        assert type(caught.value) is expected
        check_that_nothing_leaks(caught.value)


@each_model
@each_way
@pytest.mark.parametrize("body", [b"<html>hello</html>", {}, {"choices": []}, {"content": None}])
async def test_an_answer_that_is_none_fails_clearly(kind: Any, stream: bool, body: Any) -> None:
    with asking(kind, *[Reply(body)] * 3, stream=stream) as (model, _):
        async with model:
            with pytest.raises(ModelFailed, match="model 'm'") as caught:
                await collected(await model(HELLO))
    check_that_nothing_leaks(caught.value)


@each_model
async def test_being_cancelled_in_a_stream_hangs_up(kind: Any) -> None:
    begun = asyncio.Event()

    async def listen(model: SDKChatModel) -> None:
        answer: Any = await model(HELLO)
        async for _ in answer:
            begun.set()

    with asking(kind, broken(kind, "wait for it", "hang")) as (model, server):
        task = asyncio.create_task(listen(model))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 10)
        await model.close()


@each_model
async def test_leaving_a_stream_hangs_up(kind: Any) -> None:
    with asking(kind, broken(kind, "wait for it", "hang")) as (model, server):
        answer: Any = await model(HELLO)
        assert (await anext(answer)).text == "wait for it"
        await answer.aclose()
        assert await asyncio.to_thread(server.client_left.wait, 10)
        await model.close()


@each_model
@each_way
async def test_being_cancelled_before_anything_was_said_hangs_up(kind: Any, stream: bool) -> None:
    async def ask(model: SDKChatModel) -> None:
        await collected(await model(HELLO))

    with asking(kind, Reply({}, ending="hang"), stream=stream) as (model, server):
        task = asyncio.create_task(ask(model))
        await asyncio.to_thread(server.was_asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 10)
        await model.close()


@each_model
async def test_a_timeout_of_the_sdk_is_unavailable(kind: Any) -> None:
    options = {"timeout": 0.05, "max_retries": 0}
    with asking(kind, Reply({}, ending="hang"), stream=False, client_kwargs=options) as (model, _):
        async with model:
            with pytest.raises(ModelUnavailable, match="APITimeoutError"):
                await model(HELLO)


# Clients


@each_model
async def test_a_stream_that_nobody_listens_to_asks_for_nothing(kind: Any) -> None:
    with asking(kind, said(kind, "ok", True)) as (model, server):
        answer: Any = await model(HELLO)
        await answer.aclose()
        assert server.heard == []


@pytest.mark.parametrize(
    ("kind", "sdk"),
    [(OpenAIChatModel, openai.AsyncOpenAI), (AnthropicChatModel, anthropic.AsyncAnthropic)],
)
async def test_a_client_that_was_given_stays_open(kind: Any, sdk: Any) -> None:
    with provider(said(kind, "ok", False)) as server:
        async with sdk(api_key=KEY, base_url=server.url) as client:
            async with kind("m", client=client, stream=False) as model:
                assert (await model(HELLO)).text == "ok"
            assert not client.is_closed()


@each_model
async def test_its_own_client_is_closed_and_the_model_can_be_used_again(kind: Any) -> None:
    with asking(kind, *[said(kind, "ok", False)] * 2, stream=False) as (model, _):
        assert (await collected(await model(HELLO))).text == "ok"
        client = model._own.get()
        await model.close()
        assert client.is_closed()
        await model.close()
        assert (await collected(await model(HELLO))).text == "ok"
        await model.close()


@each_model
def test_one_model_serves_one_event_loop_after_another(kind: Any) -> None:
    with asking(kind, *[said(kind, "ok", True)] * 3) as (model, _):

        async def ask() -> str:
            async with model:
                return (await collected(await model(HELLO))).text

        assert [asyncio.run(ask()) for _ in range(3)] == ["ok"] * 3
