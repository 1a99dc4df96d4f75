"""Other providers at their OpenAI-compatible servers, and any chat model as agents call one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import BaseModel

from histories import whole_histories
from memoryspace.errors import InvalidInput
from memoryspace.formatter import (
    DashScopeChatFormatter,
    DeepSeekChatFormatter,
    GeminiChatFormatter,
    OllamaChatFormatter,
    OpenAIChatFormatter,
)
from memoryspace.message import Msg
from memoryspace.model import (
    ChatModel,
    Completion,
    DashScopeChatModel,
    DeepSeekChatModel,
    GeminiChatModel,
    OllamaChatModel,
    OpenAICompatibleModel,
    WrappedChatModel,
    collected,
)
from memoryspace.model.addresses import ollama_address
from memoryspace.model.dialects import as_openai
from memoryspace.model.forms import ANSWER
from memoryspace.testing.providers import check_openai

from model_server import Reply, openai_answer, openai_events, provider

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Does {name}.",
            "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
        },
    }
    for name in ("find", "count")
]
OK = Reply(openai_answer({"content": "ok"}))


async def asked_by(model: Any, server: Any, messages: list[dict[str, Any]] = HELLO) -> Any:
    async with model:
        assert (await collected(await model(messages))).text == "ok"
    return server.asked


async def test_dashscope_is_asked_beside_its_native_address() -> None:
    with provider(OK, OK) as server:
        native = DashScopeChatModel(
            "qwen",
            "key",
            stream=False,
            enable_thinking=False,
            generate_kwargs={"top_k": 5, "extra_body": {"enable_search": True}},
            base_http_api_url=f"{server.url}/api/v1/",
        )
        asked = await asked_by(native, server)
        assert (asked["enable_thinking"], asked["top_k"], asked["enable_search"]) == (
            False,
            5,
            True,
        )
        assert server.heard[0].path == "/compatible-mode/v1/chat/completions"
        assert server.heard[0].headers["authorization"] == "Bearer key"
        other = DashScopeChatModel("qwen", "key", stream=False, base_url=f"{server.url}/v1")
        assert "enable_thinking" not in await asked_by(other, server)
        assert server.heard[1].path == "/v1/chat/completions"


async def test_deepseek_is_asked_for_a_call_instead_of_a_schema() -> None:
    class Mood(BaseModel):
        mood: str

    function = {"name": ANSWER, "arguments": '{"mood": "good"}'}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"content": "", "reasoning_content": "hm", "tool_calls": [call]}
    with provider(Reply(openai_answer(message))) as server:
        async with DeepSeekChatModel("chat", "key", stream=False, base_url=server.url) as model:
            found = await collected(await model(HELLO, structured_model=Mood))
    assert found.metadata == {"mood": "good"}
    assert found.content[0] == {"type": "thinking", "thinking": "hm"}
    assert "response_format" not in server.asked


async def test_gemini_takes_its_own_turns_and_its_own_option() -> None:
    messages = [
        {
            "role": "user",
            "parts": [
                {"text": "look"},
                {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "well"},
                {"function_call": {"id": "c1", "name": "find", "args": {"where": "here"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"function_response": {"id": "c1", "name": "find", "response": {"output": "3"}}}
            ],
        },
    ]
    with provider(OK) as server:
        model = GeminiChatModel(
            "gemini",
            "key",
            stream=False,
            thinking_config={"include_thoughts": True},
            base_url=server.url,
        )
        asked = await asked_by(model, server, messages)
    assert asked["extra_body"] == {"google": {"thinking_config": {"include_thoughts": True}}}
    user, assistant, tool = asked["messages"]
    assert user["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert assistant["role"] == "assistant"
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] == "c1"
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"where": "here"}
    assert json.loads(tool["content"]) == {"output": "3"}


async def test_ollama_is_asked_without_a_key_of_ones_own() -> None:
    with provider(
        OK, Reply(events=openai_events({"reasoning": "hm"}, {"content": "ok"}))
    ) as server:
        model = OllamaChatModel(
            "llama",
            options={"temperature": 0, "num_predict": 9},
            enable_thinking=False,
            host=server.url,
        )
        asked = await asked_by(model, server)
        assert (asked["temperature"], asked["max_tokens"]) == (0, 9)
        assert asked["reasoning_effort"] == "none"
        assert server.heard[0].path == "/v1/chat/completions"
        streaming = OllamaChatModel("llama", stream=True, host=server.url)
        assert "reasoning_effort" not in await asked_by(streaming, server)
    with pytest.raises(InvalidInput, match="num_ctx"):
        OllamaChatModel("llama", options={"num_ctx": 9})


@pytest.mark.parametrize(
    ("host", "variable", "address"),
    [
        (None, "", "http://localhost:11434"),
        (None, "box:1234", "http://box:1234"),
        (None, "http://box:1234/", "http://box:1234"),
        ("other", "box:1234", "http://other:11434"),
        ("https://other", "", "https://other"),
        (":99", "", "http://localhost:99"),
    ],
)
def test_where_ollama_is(
    host: str | None, variable: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", variable)
    assert ollama_address(host) == address


@pytest.mark.parametrize("kind", [DashScopeChatModel, DeepSeekChatModel, GeminiChatModel])
@pytest.mark.parametrize("key", [None, ""])
def test_openais_key_is_never_sent_to_somebody_else(
    kind: Any, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    with pytest.raises(InvalidInput, match="api_key"):
        kind("m", key)


# Dialects


def test_what_is_in_openais_words_stays_as_it_is() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "name": "f", "content": "1"},
    ]
    before = json.dumps(messages)
    assert as_openai(messages) == messages
    assert json.dumps(messages) == before


def test_dashscopes_parts_get_their_types() -> None:
    parts = [
        {"text": "see"},
        {"image": "http://i"},
        {"video": "http://v"},
        {"audio": "http://a.mp3"},
        {"odd": 1},
    ]
    (told,) = as_openai([{"role": "user", "content": parts}])
    assert told["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "http://i"}},
        {"type": "video_url", "video_url": {"url": "http://v"}},
        {"type": "input_audio", "input_audio": {"data": "http://a.mp3", "format": "mp3"}},
        {"odd": 1},
    ]


def test_ollamas_images_and_arguments_are_retold() -> None:
    user = {"role": "user", "content": "see", "images": ["aGk=", "http://i"]}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": "é"}}}
    told = as_openai([user, {"role": "assistant", "content": "", "tool_calls": [call]}])
    assert [part["type"] for part in told[0]["content"]] == ["text", "image_url", "image_url"]
    assert told[0]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert "images" not in told[0]
    assert told[1]["tool_calls"][0]["function"]["arguments"] == '{"x": "é"}'


def test_geminis_calls_without_ids_are_paired_by_their_order() -> None:
    turns = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": name}} for name in "ab"]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": name, "response": {"output": name}}} for name in "ab"
            ],
        },
    ]
    _, assistant, *results = as_openai(turns)
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [each["tool_call_id"] for each in results] == ids
    assert len(set(ids)) == 2
    assert assistant["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("sound", "form"),
    [
        ("data:audio/mp3;base64,aGk=", "mp3"),
        ("http://a/b.ogg?key=1", "ogg"),
        ("http://a/b", "wav"),
    ],
)
def test_what_a_sound_is_in_is_told(sound: str, form: str) -> None:
    (told,) = as_openai([{"role": "user", "content": [{"audio": sound}]}])
    assert told["content"][0]["input_audio"] == {"data": sound, "format": form}


@settings(max_examples=50)
@given(history=whole_histories())
def test_what_formatters_write_is_good_for_compatible_servers_too(history: list[Msg]) -> None:
    kinds = (
        DashScopeChatFormatter,
        DeepSeekChatFormatter,
        GeminiChatFormatter,
        OllamaChatFormatter,
        OpenAIChatFormatter,
    )
    for kind in kinds:
        prompt = asyncio.run(kind().format(history))
        if prompt:
            check_openai(as_openai(prompt))


# Any chat model


class TextModel:
    """A chat model of somebody's: text in, text out."""

    name = "text"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.schemas: list[Any] = []

    async def complete(self, messages: Any, *, schema: Any = None) -> Completion:
        self.asked.append(messages)
        self.schemas.append(schema)
        return Completion(self.answers.pop(0), 5, 3)


async def test_any_chat_model_answers_as_agents_ask() -> None:
    model = WrappedChatModel(TextModel("hello yourself"))
    found = await model(HELLO)
    assert isinstance(model, ChatModel)
    assert found.content == [{"type": "text", "text": "hello yourself"}]
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (5, 3)
    assert model.name == "text"


async def test_calls_are_read_from_the_words_of_any_chat_model() -> None:
    answer = {
        "text": "I will look",
        "calls": [{"name": "find", "arguments": {"where": "here"}}, {"name": "count"}, "odd"],
    }
    text = TextModel(f"```json\n{json.dumps(answer)}\n```")
    found = await WrappedChatModel(text)(HELLO, tools=TOOLS)
    said, first, second = found.content
    assert said == {"type": "text", "text": "I will look"}
    assert (first.get("name"), first.get("input")) == ("find", {"where": "here"})
    assert (second.get("name"), second.get("input")) == ("count", {})
    assert first.get("id") != second.get("id")
    assert "Does find." in text.asked[0][0]["content"]
    forms = text.schemas[0]["properties"]["calls"]["items"]["anyOf"]
    assert [form["properties"]["name"]["const"] for form in forms] == ["find", "count"]


@pytest.mark.parametrize(
    ("choice", "names", "is_forced"),
    [
        ("auto", ["find", "count"], False),
        ("required", ["find", "count"], True),
        ("count", ["count"], True),
    ],
)
async def test_the_choice_of_a_tool_is_told_to_any_chat_model(
    choice: str, names: list[str], is_forced: bool
) -> None:
    text = TextModel("no")
    await WrappedChatModel(text)(HELLO, tools=TOOLS, tool_choice=choice)
    calls = text.schemas[0]["properties"]["calls"]
    assert [form["properties"]["name"]["const"] for form in calls["items"]["anyOf"]] == names
    assert ("minItems" in calls) is is_forced


async def test_no_tools_are_told_where_none_may_be_called() -> None:
    text = TextModel('{"text": "quoted"}')
    found = await WrappedChatModel(text)(HELLO, tools=TOOLS, tool_choice="none")
    assert text.schemas == [None]
    assert found.text == '{"text": "quoted"}'


async def test_a_history_with_calls_is_told_as_text() -> None:
    function = {"name": "find", "arguments": '{"where": "here"}'}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "name": "find", "content": "three"},
    ]
    text = TextModel("done")
    await WrappedChatModel(text)(messages, tools=TOOLS)
    system, user, assistant, result = text.asked[0]
    assert system["content"].startswith("be brief\n")
    assert user["content"] == "hi\n[image_url]"
    assert json.loads(assistant["content"])["calls"] == [
        {"name": "find", "arguments": {"where": "here"}}
    ]
    assert result == {"role": "user", "content": "The result of find:\nthree"}


async def test_a_structured_answer_of_any_chat_model_is_metadata() -> None:
    class Mood(BaseModel):
        mood: str

    text = TextModel('{"mood": "good"}', "no")
    model = WrappedChatModel(text)
    assert (await model(HELLO, structured_model=Mood)).metadata == {"mood": "good"}
    assert text.schemas[0]["required"] == ["mood"]
    assert (await model(HELLO, structured_model=Mood)).metadata is None
    assert (await WrappedChatModel(TextModel("x")).complete(HELLO)).text == "x"


async def test_the_dependency_free_model_serves_agents_when_wrapped() -> None:
    answer = json.dumps({"text": "", "calls": [{"name": "find", "arguments": {}}]})
    with provider(Reply(openai_answer({"content": answer}))) as server:
        model = WrappedChatModel(OpenAICompatibleModel("m", base_url=server.url))
        found = await model(HELLO, tools=TOOLS)
    assert [block.get("name") for block in found.content] == ["find"]


def test_a_missing_sdk_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules.update(openai=None, anthropic=None)\n"
        "import memoryspace.model as model\n"
        "for name in ('OpenAIChatModel', 'OllamaChatModel', 'AnthropicChatModel'):\n"
        "    try: getattr(model, name)\n"
        "    except ImportError as error: print(error)\n"
        "print(model.WrappedChatModel.__name__)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.count("pip install 'memoryspace[openai]'") == 2
    assert run.stdout.count("pip install 'memoryspace[anthropic]'") == 1
    assert run.stdout.endswith("WrappedChatModel\n")


def test_importing_models_loads_no_sdk() -> None:
    code = "import memoryspace.model, sys; print({'openai', 'anthropic'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
