"""The checks of prompts: each rule of a provider has a prompt that breaks it and is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from memoryspace.testing.providers import (
    check_anthropic,
    check_dashscope,
    check_deepseek,
    check_gemini,
    check_ollama,
    check_openai,
)

Prompt = list[dict[str, Any]]
PIXEL = "iVBORw0KGgo="


def call(id: str = "call_1", name: str = "look", arguments: Any = '{"where": "here"}') -> Any:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(arguments: Any = '{"where": "here"}', content: Any = None) -> Prompt:
    """A conversation that every provider with OpenAI's form takes."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is there?"},
        {
            "role": "assistant",
            "content": content,
            "tool_calls": [
                call("call_1", arguments=arguments),
                call("call_2", arguments=arguments),
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "a tree", "name": "look"},
        {"role": "tool", "tool_call_id": "call_1", "content": "a hill", "name": "look"},
        {"role": "assistant", "content": "A tree and a hill."},
        {"role": "user", "content": "Thanks."},
    ]


def anthropic() -> Prompt:
    return [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "What is there?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "abc"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
                {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a tree"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [{"type": "text", "text": "a hill"}],
                },
                {"type": "text", "text": "Well?"},
            ],
        },
    ]


def gemini() -> Prompt:
    return [
        {"role": "user", "parts": [{"text": "What is there?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"function_call": {"id": "1", "name": "look", "args": {}}},
                {"function_call": {"id": "2", "name": "hear", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"function_response": {"id": "1", "name": "look", "response": {"output": "tree"}}},
                {"function_response": {"id": "2", "name": "hear", "response": {"output": "hum"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Well?"}]},
    ]


def test_good_prompts_are_taken() -> None:
    for prompt in (chat(), chat(content=""), chat()[1:], chat()[:5], chat()[:6]):
        assert check_openai(prompt) is None
    assert check_openai([{"role": "system", "content": [{"type": "text", "text": "x"}]}]) is None
    assert check_dashscope(chat(content="")) is None
    assert check_dashscope(chat(content=[])) is None
    assert check_deepseek(chat()) is None
    assert check_ollama(chat({"where": "here"})) is None
    assert check_anthropic(anthropic()) is None
    assert check_anthropic(anthropic()[1:]) is None
    assert check_gemini(gemini()) is None


def test_media_in_a_users_turn_are_taken() -> None:
    openai = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
    ]
    assert check_openai([{"role": "user", "content": openai}]) is None
    dashscope = [{"text": "Look:"}, {"image": "http://example.org/a.png"}, {"video": "https://a.b"}]
    assert check_dashscope([{"role": "user", "content": dashscope}]) is None
    claude = [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    ]
    assert check_anthropic([{"role": "user", "content": claude}]) is None
    inline = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    assert check_gemini([{"role": "user", "parts": inline}]) is None
    assert check_ollama([{"role": "user", "content": "Look:", "images": [PIXEL]}]) is None


def change(prompt: Prompt, edit: Callable[[Prompt], object]) -> Prompt:
    changed = copy.deepcopy(prompt)
    edit(changed)
    return changed


def user(*parts: Any) -> Callable[[Prompt], object]:
    return lambda p: p[1].update(content=list(parts))


ANY_CHAT: list[tuple[str, Callable[[Prompt], object]]] = [
    ("not empty", lambda p: p.clear()),
    ("is a dict", lambda p: p.append("hello")),  # type: ignore[arg-type]
    ("not JSON", lambda p: p[1].update(content=[{"type": "text", "text": b"bytes"}])),
    ("not JSON", lambda p: p[1].update(content="\ud800")),
    ("not JSON", lambda p: p[1].update(weight=float("nan"))),
    ("role is one of", lambda p: p[1].update(role="function")),
    ("it has content", lambda p: p[1].pop("content")),
    ("not blank", lambda p: p[1].update(content=None)),
    ("not blank", lambda p: p[1].update(content=" \n")),
    ("not blank", lambda p: p[3].update(content="")),
    ("not blank", lambda p: p[5].update(content="")),
    ("answered right behind it", lambda p: p.pop(3)),
    ("answered right behind it", lambda p: p.insert(4, {"role": "user", "content": "Wait."})),
    ("answered right behind it", lambda p: p.__delitem__(slice(4, None))),
    ("an unanswered call right before it", lambda p: p.insert(5, dict(p[4]))),
    ("an unanswered call right before it", lambda p: p.insert(1, dict(p[4]))),
    ("an unanswered call right before it", lambda p: p[3].update(tool_call_id="call_3")),
    ("a unique id", lambda p: p[2]["tool_calls"][1].update(id="call_1")),
    ("only the assistant calls", lambda p: p[1].update(tool_calls=[call("call_3")])),
    ("tool_calls is a list", lambda p: p[5].update(tool_calls=[])),
    ("type function", lambda p: p[2]["tool_calls"][0].update(type="tool")),
    ("{1,40}", lambda p: p[2]["tool_calls"][0].update(id="x" * 41)),
    ("{1,40}", lambda p: p[2]["tool_calls"][0].update(id="")),
    ("{1,64}", lambda p: p[2]["tool_calls"][0]["function"].update(name="look here")),
    ("{1,64}", lambda p: p[1].update(name="Ann Lee")),
    ("unexpected structure", lambda p: p[2]["tool_calls"].append("look")),
]  # fmt: skip


@pytest.mark.parametrize(("what", "edit"), ANY_CHAT)
def test_what_every_provider_of_openais_form_refuses(
    what: str, edit: Callable[[Prompt], object]
) -> None:
    for check, prompt in (
        (check_openai, chat()),
        (check_dashscope, chat(content="")),
        (check_deepseek, chat()),
        (check_ollama, chat({})),
    ):
        with pytest.raises(AssertionError) as refused:
            check(change(prompt, edit))
        assert what in str(refused.value)


@pytest.mark.parametrize(
    ("what", "check", "prompt"),
    [
        ("JSON of an object", check_openai, chat("{broken")),
        ("JSON of an object", check_openai, chat("[1]")),
        ("JSON of an object", check_openai, chat({})),
        ("JSON of an object", check_dashscope, chat("", content="")),
        ("are an object", check_ollama, chat("{}")),
        ("not empty", check_openai, chat(content=[])),
        ("not blank", check_dashscope, chat()),
        ("first turn", check_dashscope, chat()[:1]),
        ("one system message", check_dashscope, [*chat(content=""), chat()[0]]),
        ("take turns", check_deepseek, [*chat(), chat()[1]]),
        ("take turns", check_deepseek, [chat()[5], *chat()[5:]]),
        ("last turn", check_deepseek, chat()[:6]),
        ("base64", check_ollama, [{"role": "user", "content": "x", "images": ["https://a.b"]}]),
        ("not blank", check_deepseek, [{"role": "user", "content": [{"text": "x"}]}]),
    ],
)
def test_what_one_provider_of_openais_form_refuses(
    what: str, check: Callable[[Prompt], None], prompt: Prompt
) -> None:
    with pytest.raises(AssertionError) as refused:
        check(prompt)
    assert what in str(refused.value)


@pytest.mark.parametrize(
    ("what", "check", "edit"),
    [
        ("not empty", check_openai, user()),
        ("is a dict", check_openai, user("text")),
        ("not blank", check_openai, user({"type": "text", "text": ""})),
        ("a part is a text", check_openai, user({"type": "image", "source": {}})),
        ("address or inline", check_openai, user({"type": "image_url", "image_url": {"url": "a"}})),
        ("address or inline", check_openai,
         user({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}})),
        ("base64", check_openai, user({"type": "input_audio", "input_audio": {"data": ""}})),
        ("wav or mp3", check_openai,
         user({"type": "input_audio", "input_audio": {"data": PIXEL, "format": "ogg"}})),
        ("only users", check_openai,
         lambda p: p[5].update(content=[{"type": "image_url", "image_url": {"url": "https://a"}}])),
        ("part is", check_dashscope, user({"type": "text", "text": "x"})),
        ("part is", check_dashscope, user({"file": "https://a.b"})),
        ("address or inline", check_dashscope, user({"image": "file:///a.png"})),
    ],
)  # fmt: skip
def test_parts_that_are_refused(
    what: str, check: Callable[[Prompt], None], edit: Callable[[Prompt], object]
) -> None:
    with pytest.raises(AssertionError) as refused:
        check(change(chat(content=""), edit))
    assert what in str(refused.value)


def image(**source: Any) -> Callable[[Prompt], object]:
    return lambda p: p[1]["content"].append({"type": "image", "source": source})


@pytest.mark.parametrize(
    ("what", "edit"),
    [
        ("not empty", lambda p: p.clear()),
        ("more than a system message", lambda p: p.__delitem__(slice(1, None))),
        ("texts only", lambda p: p[0]["content"].append({"type": "image"})),
        ("not blank", lambda p: p[0]["content"].append({"type": "text", "text": ""})),
        ("take turns", lambda p: p.pop(1)),
        ("take turns", lambda p: p.insert(1, p[1])),
        ("take turns", lambda p: p.append({"role": "system", "content": "Now."})),
        ("last turn", lambda p: p.append({"role": "assistant", "content": "So"})),
        ("content is a text or blocks", lambda p: p[1].update(content=[])),
        ("content is a text or blocks", lambda p: p[1].update(content=None)),
        ("a block is a dict", lambda p: p[1].update(content=["hello"])),
        ("not blank", lambda p: p[1].update(content=[{"type": "text", "text": " "}])),
        ("not blank", lambda p: p[1].update(content="")),
        ("begins with a result", lambda p: p[3]["content"].pop(0)),
        ("begins with a result", lambda p: p[3]["content"].insert(0, p[3]["content"].pop())),
        ("begins with a result", lambda p: p[3]["content"][0].update(tool_use_id="toolu_2")),
        ("a call right before", lambda p: p[3]["content"].append(p[3]["content"][0])),
        ("a call right before", lambda p: p[1]["content"].append(p[3]["content"][0])),
        ("not blank", lambda p: p[3]["content"][1].update(content=[{"type": "text", "text": ""}])),
        ("content is a text or", lambda p: p[3]["content"][0].update(content={})),
        ("a unique id", lambda p: p[2]["content"][3].update(id="toolu_1")),
        ("[a-zA-Z0-9_-]+", lambda p: p[2]["content"][3].update(id="functions.look:0")),
        ("[a-zA-Z0-9_-]{1,64}", lambda p: p[2]["content"][3].update(name="look here")),
        ("is an object", lambda p: p[2]["content"][3].update(input="{}")),
        ("calls come last", lambda p: p[2]["content"].append({"type": "text", "text": "x"})),
        ("not thinking", lambda p: p[2]["content"].append(p[2]["content"][0])),
        ("signature", lambda p: p[2]["content"][0].pop("signature")),
        ("an assistant sends", lambda p: p[2]["content"].insert(0, {"type": "image"})),
        ("a user sends", lambda p: p[1]["content"].append({"type": "audio"})),
        ("is https", image(type="url", url="http://example.org/a.png")),
        ("a url or base64", image(type="file", path="/a.png")),
        ("image/png", image(type="base64", media_type="image/svg+xml", data=PIXEL)),
        ("base64", image(type="base64", media_type="image/png", data="abc")),
        ("unexpected structure", lambda p: p[1]["content"].append({"type": "image"})),
    ],
)  # fmt: skip
def test_what_anthropic_refuses(what: str, edit: Callable[[Prompt], object]) -> None:
    with pytest.raises(AssertionError) as refused:
        check_anthropic(change(anthropic(), edit))
    assert what in str(refused.value)


def answers(prompt: Prompt) -> list[Any]:
    parts: list[Any] = prompt[2]["parts"]
    return parts


@pytest.mark.parametrize(
    ("what", "edit"),
    [
        ("not empty", lambda p: p.clear()),
        ("first turn", lambda p: p.pop(0)),
        ("last turn", lambda p: p.append({"role": "model", "parts": [{"text": "So"}]})),
        ("user or model", lambda p: p.insert(1, {"role": "assistant", "parts": [{"text": "So"}]})),
        ("are one turn", lambda p: p.insert(1, {"role": "model", "parts": [{"text": "So"}]})),
        ("has parts", lambda p: p[0].update(parts=[])),
        ("a part is a dict", lambda p: p[0].update(parts=["text"])),
        ("a part is one of", lambda p: p[0].update(parts=[{}])),
        ("a part is one of", lambda p: p[0]["parts"][0].update(inline_data={})),
        ("not blank", lambda p: p[0].update(parts=[{"text": ""}])),
        ("base64", lambda p: p[0].update(parts=[{"inline_data": {"data": "?"}}])),
        ("mime_type", lambda p: p[0].update(parts=[{"inline_data": {"data": PIXEL}}])),
        ("a response for each", lambda p: p.pop(2)),
        ("a response for each", lambda p: answers(p).pop()),
        ("a response for each", lambda p: p[3]["parts"].append(answers(p)[0])),
        ("alone in a turn", lambda p: answers(p).append({"text": "Well?"})),
        ("order of the calls", lambda p: answers(p).reverse()),
        ("order of the calls", lambda p: answers(p)[0]["function_response"].update(id="3")),
        ("response is an object", lambda p: answers(p)[0]["function_response"].update(response=1)),
        ("{0,63}", lambda p: p[1]["parts"][1]["function_call"].update(name="1st")
         or answers(p)[0]["function_response"].update(name="1st")),
        ("only the model", lambda p: p[0]["parts"].append(p[1]["parts"][1])),
        ("args of a call", lambda p: p[1]["parts"][1]["function_call"].update(args="{}")),
    ],
)  # fmt: skip
def test_what_gemini_refuses(what: str, edit: Callable[[Prompt], object]) -> None:
    with pytest.raises(AssertionError) as refused:
        check_gemini(change(gemini(), edit))
    assert what in str(refused.value)


def test_a_refusal_does_not_quote_what_was_said() -> None:
    prompt = [{"role": "user", "content": "the secret"}, {"role": "user", "content": ["secret"]}]
    with pytest.raises(AssertionError) as refused:
        check_openai(prompt)
    assert "secret" not in str(refused.value)
