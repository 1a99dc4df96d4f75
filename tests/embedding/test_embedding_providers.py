"""Embedding models as AgentScope names them, over a real server; and the one that runs here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memoryspace.embedding import (
    CallableEmbedder,
    DashScopeMultiModalEmbedding,
    DashScopeTextEmbedding,
    EmbeddingFailed,
    EmbeddingModelBase,
    EmbeddingUnavailable,
    FileEmbeddingCache,
    GeminiTextEmbedding,
    LocalTextEmbedding,
    OllamaTextEmbedding,
    OpenAITextEmbedding,
    best_embedder,
)
from memoryspace.embedding.installed import MissingWeights
from memoryspace.errors import InvalidInput

from loopback import serving

KEY = "sk-very-secret"
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
FILM = {"type": "video", "source": {"type": "url", "url": "http://film"}}


@dataclass
class Server:
    """Counts letters, in as many dimensions as it is asked for."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        self.bodies.append(body)
        if self.failures:
            return self.failures.pop(0), {}, b'{"error": "my secret"}'
        if "dimensions" not in body:
            return 200, {}, json.dumps(self._many_kinds(body)).encode()
        data = [
            {"index": index, "embedding": [float(len(text))] * body["dimensions"]}
            for index, text in enumerate(body["input"])
        ]
        found = {"data": data[::-1], "usage": {"total_tokens": 3 * len(data)}}
        return 200, {}, json.dumps(found).encode()

    def _many_kinds(self, body: dict[str, Any]) -> dict[str, Any]:
        vectors = [
            {"index": index, "embedding": [float(len(json.dumps(content)))] * 1024}
            for index, content in enumerate(body["input"]["contents"])
        ]
        return {"output": {"embeddings": vectors}, "usage": {"input_tokens": 2, "image_tokens": 5}}


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    with serving(state.answer, state.headers) as state.url:
        yield state


def no_wait(_: float) -> None:
    pass


def model_of(kind: Any, server: Server, cache: FileEmbeddingCache | None = None) -> Any:
    if kind is OllamaTextEmbedding:
        host = server.url.removesuffix("/v1")
        return kind("small", 4, host=host, embedding_cache=cache, sleep=no_wait)
    return kind(KEY, "small", 4, cache, base_url=server.url, sleep=no_wait)


KINDS = [OpenAITextEmbedding, DashScopeTextEmbedding, GeminiTextEmbedding, OllamaTextEmbedding]
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
async def test_texts_come_back_as_vectors_in_their_order(kind: Any, server: Server) -> None:
    model = model_of(kind, server)
    found = await model(["aaa", {"type": "text", "text": "a"}, "", "aaa"])
    assert isinstance(model, EmbeddingModelBase)
    assert model.supported_modalities == ("text",)
    assert [vector[0] for vector in found.embeddings] == [3, 1, 0, 3]
    assert {len(vector) for vector in found.embeddings} == {4}
    assert (found.source, found.usage.tokens) == ("api", 9)
    assert server.bodies[0]["input"] == ["aaa", "a", ""]
    assert server.bodies[0]["model"] == "small"
    assert server.headers[0]["path"] == "/v1/embeddings"


@each_kind
async def test_only_texts_that_are_not_known_are_asked_for(
    kind: Any, server: Server, tmp_path: Path
) -> None:
    model = model_of(kind, server, FileEmbeddingCache(str(tmp_path)))
    await model(["a", "aa"])
    mixed = await model(["aaa", "a", "aaaa", "aa"])
    known = await model(["aaaa", "a"])
    assert [body["input"] for body in server.bodies] == [["a", "aa"], ["aaa", "aaaa"]]
    assert [vector[0] for vector in mixed.embeddings] == [3, 1, 4, 2]
    assert (mixed.source, known.source) == ("api", "cache")
    assert (known.usage.tokens, known.usage.time) == (0, 0)
    assert [vector[0] for vector in known.embeddings] == [4, 1]


@each_kind
async def test_another_model_or_length_is_another_vector(
    kind: Any, server: Server, tmp_path: Path
) -> None:
    cache = FileEmbeddingCache(str(tmp_path))
    first = model_of(kind, server, cache)
    await first(["a"])
    for name, dimensions in (("small", 5), ("large", 4)):
        other = model_of(kind, server, cache)
        other.model_name, other.dimensions = name, dimensions
        found = await other(["a"])
        assert found.source == "api"
        assert len(found.embeddings[0]) == dimensions
    assert (await first(["a"])).source == "cache"


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (OpenAITextEmbedding, [128, 2]),
        (DashScopeTextEmbedding, [10] * 13),
        (GeminiTextEmbedding, [100, 30]),
    ],
)
async def test_many_texts_go_in_the_batches_a_provider_takes(
    kind: Any, sizes: list[int], server: Server
) -> None:
    found = await model_of(kind, server)(["a" * number for number in range(130)])
    assert [len(body["input"]) for body in server.bodies] == sizes
    assert [vector[0] for vector in found.embeddings] == list(range(130))
    assert found.usage.tokens == 390


async def test_what_was_answered_before_a_failure_is_kept(server: Server, tmp_path: Path) -> None:
    model = model_of(DashScopeTextEmbedding, server, FileEmbeddingCache(str(tmp_path)))
    texts = ["a" * number for number in range(15)]
    await model(texts[:10])
    server.failures = [400]
    with pytest.raises(EmbeddingFailed, match=r"status 400$"):
        await model(texts)
    assert (await model(texts)).source == "api"
    assert [len(body["input"]) for body in server.bodies] == [10, 5, 5]


@each_kind
async def test_keys_go_where_they_belong(kind: Any, server: Server) -> None:
    await model_of(kind, server)(["a"])
    sent = server.headers[0].get("Authorization")
    assert sent == (None if kind is OllamaTextEmbedding else f"Bearer {KEY}")


@each_kind
async def test_troubles_are_told_apart_and_quote_nothing(kind: Any, server: Server) -> None:
    model = model_of(kind, server)
    server.failures = [500, 429]
    assert (await model(["a"])).source == "api"
    server.failures = [503] * 4
    with pytest.raises(EmbeddingUnavailable, match="failed 4 times"):
        await model(["a"])
    server.failures = [422]
    with pytest.raises(EmbeddingFailed) as caught:
        await model(["my secret"])
    assert "secret" not in str(caught.value)


@each_kind
async def test_nothing_is_asked_for_nothing(kind: Any, server: Server) -> None:
    found = await model_of(kind, server)([])
    assert (found.embeddings, found.source, server.bodies) == ([], "api", [])
    with pytest.raises(ValueError, match="expected a text or a text block"):
        await model_of(kind, server)([{"type": "image"}])


async def test_vectors_of_another_length_are_refused_and_not_kept(
    server: Server, tmp_path: Path
) -> None:
    class Stubborn(OpenAITextEmbedding):
        def _ask(self, things: Any) -> Any:
            return self._endpoint.embed(things, 3)

    cache = FileEmbeddingCache(str(tmp_path))
    model = Stubborn(KEY, "small", 4, cache, base_url=server.url)
    with pytest.raises(EmbeddingFailed, match="a vector of 3 numbers, not of 4"):
        await model(["a"])
    assert await cache.retrieve(model._identifier("a")) is None


def test_the_defaults_are_agentscopes() -> None:
    assert OpenAITextEmbedding(KEY, "m").dimensions == 1024
    assert DashScopeTextEmbedding(KEY, "m").dimensions == 1024
    assert DashScopeTextEmbedding(KEY, "m").batch_size_limit == 10
    assert GeminiTextEmbedding(KEY, "m").dimensions == 3072


# Pictures and films


async def test_pictures_and_films_have_vectors_too(server: Server, tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path))
    model = DashScopeMultiModalEmbedding(
        KEY, "multimodal-embedding-v1", None, cache, base_url=server.url
    )
    blocks: Any = [{"type": "text", "text": "hi"}, PICTURE, FILM]
    found = await model(blocks)
    assert model.dimensions == 1024
    assert [len(body["input"]["contents"]) for body in server.bodies] == [1, 1, 1]
    assert [body["input"]["contents"][0] for body in server.bodies] == [
        {"text": "hi"},
        {"image": "data:image/png;base64,aGk="},
        {"video": "http://film"},
    ]
    assert len({vector[0] for vector in found.embeddings}) == 3
    assert found.usage is not None
    assert found.usage.tokens == 21
    assert (await model(blocks[::-1])).embeddings == found.embeddings[::-1]
    assert len(server.bodies) == 3
    assert server.headers[0]["path"].endswith("/multimodal-embedding/multimodal-embedding")


@pytest.mark.parametrize(
    ("name", "length", "batch"),
    [
        ("tongyi-embedding-vision-plus", 1152, 8),
        ("tongyi-embedding-vision-flash", 768, 8),
        ("multimodal-embedding-v1", 1024, 1),
        ("something-new", 1024, 1),
    ],
)
def test_what_each_model_gives_and_takes_is_known(name: str, length: int, batch: int) -> None:
    model = DashScopeMultiModalEmbedding(KEY, name)
    assert (model.dimensions, model.batch_size_limit) == (length, batch)


def test_a_length_that_a_model_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has 1152 dimensions, got 5"):
        DashScopeMultiModalEmbedding(KEY, "tongyi-embedding-vision-plus", 5)
    assert DashScopeMultiModalEmbedding(KEY, "something-new", 5).dimensions == 5


@pytest.mark.parametrize(
    "block",
    [
        "text",
        {"type": "audio", "source": FILM["source"]},
        {"type": "image"},
        {"type": "video", "source": PICTURE["source"]},
    ],
)
async def test_a_block_that_has_no_vector_is_refused(block: Any, server: Server) -> None:
    model = DashScopeMultiModalEmbedding(KEY, "m", base_url=server.url)
    with pytest.raises(ValueError, match="expected a text, image or video block"):
        await model([block])


async def test_troubles_with_pictures_quote_nothing(server: Server) -> None:
    model = DashScopeMultiModalEmbedding(KEY, "m", 3, base_url=server.url, attempts=1)
    blocks: Any = [{"type": "text", "text": "my secret"}]
    for status, kind in ((400, EmbeddingFailed), (503, EmbeddingUnavailable)):
        server.failures = [status]
        with pytest.raises(kind):
            await model(blocks)
    with pytest.raises(EmbeddingFailed, match="1024 numbers, not of 3") as caught:
        await model(blocks)
    assert "secret" not in str(caught.value)


# Here


async def test_an_embedder_that_runs_here_answers_in_the_same_shape(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [[len(text), 0.0] for text in texts]

    embedder = CallableEmbedder(embed, "length/2", 2)
    model = LocalTextEmbedding(embedder, FileEmbeddingCache(str(tmp_path)))
    first = await model(["aa", "b", "aa"])
    second = await model(["b", "ccc"])
    assert asked == [["aa", "b"], ["ccc"]]
    assert first.embeddings == [[1.0, 0.0]] * 3
    assert (model.model_name, model.dimensions) == ("length/2", 2)
    assert (first.source, second.source) == ("api", "api")
    assert (await model(["b"])).source == "cache"


async def test_the_best_embedder_is_the_default() -> None:
    best = best_embedder()
    if best is None:
        with pytest.raises(MissingWeights, match="semantic"):
            LocalTextEmbedding()
        return
    model = LocalTextEmbedding()
    found = await model(["a cat sat on the mat", "a feline rested on the rug", "tax returns"])
    near = sum(a * b for a, b in zip(found.embeddings[0], found.embeddings[1], strict=True))
    far = sum(a * b for a, b in zip(found.embeddings[0], found.embeddings[2], strict=True))
    assert near > far
    assert len(found.embeddings[0]) == model.dimensions == best.dimensions
