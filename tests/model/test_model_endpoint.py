"""An OpenAI-compatible chat endpoint, over a real local server that answers, fails and lies."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from memoryspace.errors import InvalidInput, ModelFailed, ModelUnavailable
from memoryspace.model import ChatModel, Completion, OpenAICompatibleModel

from loopback import serving

KEY = "sk-very-secret"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
HELLO = [{"role": "user", "content": "Hello"}]
Answer = tuple[int, bytes]


@dataclass
class Server:
    """What was asked, and what to answer next."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    refused: tuple[str, ...] = ()  # response formats that it does not know
    waits: list[float] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0)
        if body.get("response_format", {}).get("type") in self.refused:
            return 400, b'{"error": "unknown response_format"}'
        return 200, said("Hello yourself")

    @property
    def formats(self) -> list[str | None]:
        return [body.get("response_format", {}).get("type") for body in self.bodies]

    def model(self, **options: Any) -> OpenAICompatibleModel:
        return OpenAICompatibleModel(
            "small", base_url=self.url, api_key=KEY, sleep=self.waits.append, **options
        )

    def complete(self, schema: Any = None, **options: Any) -> Completion:
        return asyncio.run(self.model(**options).complete(HELLO, schema=schema))


def said(content: Any) -> bytes:
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return json.dumps({"choices": [{"message": message}], "usage": usage}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    def answer(body: Any) -> tuple[int, dict[str, str], bytes]:
        status, data = state.answer(body)
        return status, {}, data

    with serving(answer, state.headers) as state.url:
        yield state


def test_messages_are_answered_and_tokens_counted(server: Server) -> None:
    assert server.complete() == Completion("Hello yourself", 7, 2)
    assert server.bodies == [{"model": "small", "messages": HELLO}]
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    model: ChatModel = server.model()
    assert model.name == "small"
    assert isinstance(model, ChatModel)


def test_options_are_sent_only_if_given(server: Server) -> None:
    server.complete(temperature=0.0, max_tokens=9)
    assert server.bodies[0]["temperature"] == 0.0
    assert server.bodies[0]["max_tokens"] == 9


def test_a_schema_is_asked_for_as_a_schema(server: Server) -> None:
    server.complete(SCHEMA)
    wanted = server.bodies[0]["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"] == {"name": "answer", "strict": True, "schema": SCHEMA}
    assert server.bodies[0]["messages"] == HELLO


@pytest.mark.parametrize(
    ("refused", "formats"),
    [
        (("json_schema",), ["json_schema", "json_object", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", None, None]),
    ],
)
def test_a_server_that_knows_no_schemas_is_told_in_words_and_this_is_remembered(
    server: Server, refused: tuple[str, ...], formats: list[str | None]
) -> None:
    server.refused = refused
    model = server.model()
    for _ in range(2):
        assert asyncio.run(model.complete(HELLO, schema=SCHEMA)).text == "Hello yourself"
    assert server.formats == formats
    told = server.bodies[-1]["messages"]
    assert json.dumps(SCHEMA) in told[0]["content"]
    assert told[1:] == HELLO


def test_a_refusal_for_another_reason_forgets_nothing(server: Server) -> None:
    server.answers = [(400, b"too long")] * 3
    model = server.model()
    with pytest.raises(ModelFailed, match="refused model 'small': status 400"):
        asyncio.run(model.complete(HELLO, schema=SCHEMA))
    asyncio.run(model.complete(HELLO, schema=SCHEMA))
    assert server.formats == ["json_schema", "json_object", None, "json_schema"]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: Server, status: int) -> None:
    server.answers = [(status, b""), (status, b"")]
    assert server.complete(SCHEMA).text == "Hello yourself"
    assert server.waits == [0.5, 1.0]
    assert server.formats == ["json_schema"] * 3


def test_a_server_that_stays_busy_is_unavailable(server: Server) -> None:
    server.answers = [(503, b"overloaded")] * 2
    with pytest.raises(ModelUnavailable, match="failed 2 times, last: status 503"):
        server.complete(attempts=2)


def test_a_server_that_never_answers_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        model = OpenAICompatibleModel("small", base_url=url, timeout=0.05, attempts=1)
        with pytest.raises(ModelUnavailable, match="timed out"):
            asyncio.run(model.complete(HELLO))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_is_told_at_once(server: Server, status: int) -> None:
    server.answers = [(status, b"no such thing")]
    with pytest.raises(ModelFailed, match=f"status {status} no such thing"):
        server.complete()
    assert len(server.bodies) == 1


def test_what_a_server_repeats_of_a_question_is_not_shown(server: Server) -> None:
    server.answers = [(422, b'{"input": "my secret"}')]
    with pytest.raises(ModelFailed, match="status 422") as caught:
        server.complete()
    assert "my secret" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', said(None), said(5), b'{"choices": null}'],
)
def test_an_answer_that_is_none_failed(server: Server, answer: bytes) -> None:
    server.answers = [(200, answer)]
    with pytest.raises(ModelFailed, match="that are not a completion of model 'small'"):
        server.complete()


def test_an_answer_in_parts_is_put_together(server: Server) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    server.answers = [(200, said(parts))]
    assert server.complete().text == "ab"


def test_the_key_is_never_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers = [(401, KEY.encode()), (400, KEY.encode()), (500, KEY.encode())]
    shown = [repr(server.model())]
    for _ in range(3):
        with pytest.raises(ModelFailed) as caught:
            server.complete(attempts=1)
        shown.append(str(caught.value))
    assert not [text for text in [*shown, caplog.text] if KEY in text]
    with pytest.raises(InvalidInput) as refused:
        OpenAICompatibleModel("m", api_key=f"{KEY} x")
    assert KEY not in str(refused.value)
