"""An OpenAI-compatible endpoint, over a real local server that answers, fails and lies."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.embedding import (
    Embedder,
    EmbeddingFailed,
    EmbeddingUnavailable,
    FileEmbeddingCache,
    OpenAIEmbedder,
    OpenAITextEmbedding,
)
from memoryspace.errors import InvalidInput

from loopback import serving

KEY = "sk-very-secret"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """What was asked, and what to answer next instead of vectors."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0)
        data = [
            {"index": index, "embedding": [len(text), 1.0, 0.0][: body.get("dimensions")]}
            for index, text in enumerate(body["input"])
        ]
        data.reverse()  # the index counts, not the order
        found = {"object": "list", "data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}
        return 200, {}, json.dumps(found).encode()

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        return OpenAIEmbedder(
            self.url, "small", KEY, options.pop("dimensions", 3), sleep=self.waits.append, **options
        )


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    with serving(state.answer, state.headers) as state.url:
        yield state


def failure(status: int, text: str = "", **headers: str) -> Answer:
    return status, headers, text.encode()


def test_texts_become_vectors_of_length_one(server: Server) -> None:
    embedder: Embedder = server.embedder()
    rows = embedder.embed(["aaa", "", "a"])
    assert np.allclose(rows, [[0.9486833, 0.3162278, 0], [0, 0, 0], [0.7071068, 0.7071068, 0]])
    assert server.bodies == [{"input": ["aaa", "a"], "model": "small", "encoding_format": "float"}]
    assert server.headers[0]["path"] == "/v1/embeddings"
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert embedder.name == "small/3"


def test_many_texts_go_in_batches_and_blank_ones_do_not_go(server: Server) -> None:
    rows = server.embedder(batch=2).embed(["a", " ", "aa", "aaa", "aaaa", "aaaaa"])
    assert [body["input"] for body in server.bodies] == [["a", "aa"], ["aaa", "aaaa"], ["aaaaa"]]
    assert rows[5, 0] > rows[4, 0] > rows[3, 0] > rows[2, 0] > rows[0, 0] > rows[1, 0]
    server.embedder().embed(["", "\n"])
    assert len(server.bodies) == 3


def test_a_server_without_a_key_is_sent_none(server: Server) -> None:
    OpenAIEmbedder(server.url + "/", "small", None, 3).embed(["a"])
    assert "Authorization" not in server.headers[0]
    assert server.headers[0]["path"] == "/v1/embeddings"


def test_the_server_is_asked_to_cut_only_if_wanted(server: Server) -> None:
    server.embedder(cut=True).embed(["a"])
    assert server.bodies[0]["dimensions"] == 3


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: Server, status: int) -> None:
    server.answers = [failure(status), failure(status)]
    assert server.embedder().embed(["a"]).any()
    assert len(server.bodies) == 3
    assert server.waits == [0.5, 1.0]


def test_a_server_is_given_the_time_it_asks_for_within_reason(server: Server) -> None:
    server.answers = [
        failure(429, **{"Retry-After": "7"}),
        failure(429, **{"Retry-After": "86400"}),
        failure(429, **{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
    ]
    server.embedder().embed(["a"])
    assert server.waits == [7, 30, 2]


def test_after_the_last_attempt_the_trouble_is_told(server: Server) -> None:
    server.answers = [failure(503, "overloaded")] * 3
    with pytest.raises(EmbeddingUnavailable, match="failed 3 times, last: status 503 overloaded"):
        server.embedder(attempts=3).embed(["a"])
    assert len(server.bodies) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_will_not_pass_is_told_at_once(server: Server, status: int) -> None:
    server.answers = [failure(status, '{"error": "no such model"}')]
    with pytest.raises(EmbeddingFailed, match=f"refused model 'small': status {status}.*no such"):
        server.embedder().embed(["a"])
    assert len(server.bodies) == 1
    assert server.waits == []


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_server_that_repeats_the_texts_is_not_quoted(server: Server, status: int) -> None:
    server.answers = [failure(status, '{"error": "cannot embed: my secret"}')]
    with pytest.raises(EmbeddingFailed, match=f"refused model 'small': status {status}$") as caught:
        server.embedder().embed(["my secret"])
    assert "secret" not in str(caught.value)
    assert len(server.bodies) == 1


def test_nobody_there_is_told_with_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    waits: list[float] = []
    embedder = OpenAIEmbedder(url, "small", KEY, 3, attempts=2, sleep=waits.append)
    with pytest.raises(EmbeddingUnavailable, match=f"{url}/embeddings failed 2 times"):
        embedder.embed(["a"])
    assert waits == [0.5]


def test_a_server_that_never_answers_runs_into_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        embedder = OpenAIEmbedder(url, "small", KEY, 3, attempts=1, timeout=0.05)
        with pytest.raises(EmbeddingUnavailable, match="timed out"):
            embedder.embed(["a"])


def test_half_an_answer_is_asked_for_again(server: Server) -> None:
    server.answers = [(200, {"Content-Length": "1000"}, b'{"data": [')]
    assert server.embedder().embed(["a"]).any()
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>hello</html>",
        b"[]",
        b"{}",
        b'{"data": []}',
        b'{"data": [{"index": 1, "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1, null, 3]}]}',
    ],
)
def test_an_answer_that_is_none_is_told(server: Server, answer: bytes) -> None:
    server.answers = [(200, {}, answer)]
    with pytest.raises(EmbeddingFailed, match="bytes that are not 1 embeddings"):
        server.embedder().embed(["a"])


def test_vectors_of_another_length_are_refused(server: Server) -> None:
    with pytest.raises(InvalidInput, match=r"'small/4' returned an array of shape \(1, 3\)"):
        server.embedder(dimensions=4).embed(["a"])


def test_a_redirection_does_not_carry_the_key_away(server: Server) -> None:
    server.answers = [failure(status, Location=server.url) for status in (307, 302)]
    for _ in range(2):
        with pytest.raises(EmbeddingFailed, match="status 30"):
            server.embedder().embed(["a"])
    assert len(server.bodies) == 2


def test_the_key_is_never_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.answers = [
        failure(401, f"incorrect key {KEY} given"),
        failure(500, KEY),
        (200, {}, KEY.encode()),
    ]
    embedder = server.embedder(attempts=1)
    shown = [repr(embedder), repr(embedder._endpoint)]
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            with pytest.raises(EmbeddingFailed) as caught:
                embedder.embed(["a"])
            shown.append(str(caught.value))
    assert "***" in shown[2]
    assert not [text for text in [*shown, caplog.text] if KEY in text]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "localhost:11434", ""])
def test_only_web_addresses_are_asked(url: str) -> None:
    with pytest.raises(InvalidInput, match="must begin with http"):
        OpenAIEmbedder(url, "small", None, 3)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    for key in (f"{KEY}\n", f"{KEY} x", f"{KEY}é", ""):
        with pytest.raises(InvalidInput, match="api_key must consist of visible") as caught:
            OpenAIEmbedder("http://x", "m", key, 3)
        assert KEY not in str(caught.value)
    with pytest.raises(InvalidInput, match="must not hold a name or password") as caught:
        OpenAIEmbedder(f"http://me:{KEY}@x", "m", None, 3)
    assert KEY not in str(caught.value)


def test_unusable_numbers_are_refused() -> None:
    make: list[Callable[[], object]] = [
        lambda: OpenAIEmbedder("http://x", "m", None, 0),
        lambda: OpenAIEmbedder("http://x", "m", None, 3, batch=0),
        lambda: OpenAIEmbedder("http://x", "m", None, 3, attempts=0),
        lambda: OpenAIEmbedder("http://x", "m", None, 3, timeout=0),
    ]
    for each in make:
        with pytest.raises(InvalidInput, match="must be"):
            each()


# AgentScope's model


def model(server: Server, cache: FileEmbeddingCache | None = None) -> OpenAITextEmbedding:
    ticks = iter(range(100))
    return OpenAITextEmbedding(
        KEY, "small", 3, cache, base_url=server.url, clock=lambda: float(next(ticks))
    )


def test_the_model_answers_like_agentscopes(server: Server) -> None:
    answer = asyncio.run(model(server)(["aa", {"type": "text", "text": "aaaa"}, "aa"]))
    assert answer.embeddings == [[2.0, 1.0, 0.0], [4.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    assert answer.source == answer["source"] == "api"
    assert answer.type == "embedding"
    assert answer.usage is not None
    assert (answer.usage.tokens, answer.usage["time"]) == (7, 1.0)
    assert answer.get("nothing", 5) == 5
    with pytest.raises(KeyError):
        answer["nothing"]
    assert answer.id
    assert server.bodies[0]["input"] == ["aa", "aaaa"]
    assert server.bodies[0]["dimensions"] == 3


def test_a_batch_with_one_new_text_asks_for_that_one_only(server: Server, tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path))

    async def scene() -> None:
        embed = model(server, cache)
        await embed(["a", "aa"])
        mixed = await embed(["aa", "aaa", "a"])
        known = await embed(["aaa", "a"])
        assert [body["input"] for body in server.bodies] == [["a", "aa"], ["aaa"]]
        assert [vector[0] for vector in mixed.embeddings] == [2, 3, 1]
        assert [vector[0] for vector in known.embeddings] == [3, 1]
        assert (mixed.source, known.source) == ("api", "cache")
        assert known.usage is not None
        assert (known.usage.tokens, known.usage.time) == (0, 0)

    asyncio.run(scene())


def test_other_dimensions_do_not_hit_the_cache(server: Server, tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path))
    for dimensions in (3, 2):
        embed = OpenAITextEmbedding(KEY, "small", dimensions, cache, base_url=server.url)
        assert asyncio.run(embed(["a"])).source == "api"


def test_what_is_no_text_is_refused(server: Server) -> None:
    with pytest.raises(ValueError, match="expected a text or a text block, got int"):
        asyncio.run(model(server)([5]))  # type: ignore[list-item]
    assert server.bodies == []
