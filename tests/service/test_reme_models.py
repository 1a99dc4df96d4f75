"""ReMe's long-term memories accept every embedding model of the package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.embedding import (
    CachedEmbedder,
    CallableEmbedder,
    DashScopeMultiModalEmbedding,
    DashScopeTextEmbedding,
    Embedder,
    EmbeddingModelBase,
    FileEmbeddingCache,
    GeminiTextEmbedding,
    LocalTextEmbedding,
    OllamaTextEmbedding,
    OpenAIEmbedder,
    OpenAITextEmbedding,
    as_embedder,
)
from memoryspace.embedding.agentscope import EmbeddingResponse
from memoryspace.errors import InvalidInput
from memoryspace.memory import (
    ReMePersonalLongTermMemory,
    ReMeTaskLongTermMemory,
    ReMeToolLongTermMemory,
)
from memoryspace.message import Msg
from memoryspace.model import DashScopeChatModel, OpenAIChatModel
from memoryspace.service.personal import PersonalMemoryService

from loopback import serving

KEY = "sk-very-secret"
SIZE = 16


def vector_of(text: str) -> list[float]:
    return [1.0 + text.count(chr(ord("a") + number)) for number in range(SIZE)]


@dataclass
class Server:
    """Counts letters, at both of the addresses that models ask."""

    url: str = ""
    texts: list[str] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if "contents" in body["input"]:
            texts = [each["text"] for each in body["input"]["contents"]]
            found: Any = {"output": {"embeddings": self._rows(texts)}}
        else:
            texts = body["input"]
            found = {"data": self._rows(texts), "usage": {"total_tokens": 1}}
        self.texts += texts
        return 200, {}, json.dumps(found).encode()

    @staticmethod
    def _rows(texts: Sequence[str]) -> list[dict[str, Any]]:
        return [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    with serving(state.answer, []) as state.url:
        yield state


class OwnModel(EmbeddingModelBase):
    """A model that a user wrote for AgentScope."""

    def __init__(self, server: Server) -> None:
        super().__init__("own", SIZE)
        self._server = server

    async def __call__(self, text: list[Any]) -> EmbeddingResponse:
        self._server.texts += text
        return EmbeddingResponse([vector_of(each) for each in text])


def counting(server: Server) -> CallableEmbedder:
    def count(texts: list[str]) -> list[list[float]]:
        server.texts += texts
        return [vector_of(text) for text in texts]

    return CallableEmbedder(count, "letters", SIZE)


def served(kind: Any, server: Server) -> Any:
    return kind(KEY, "small", SIZE, base_url=server.url)


MODELS: dict[str, Any] = {
    "OpenAITextEmbedding": lambda server, _: served(OpenAITextEmbedding, server),
    "DashScopeTextEmbedding": lambda server, _: served(DashScopeTextEmbedding, server),
    "GeminiTextEmbedding": lambda server, _: served(GeminiTextEmbedding, server),
    "OllamaTextEmbedding": lambda server, _: OllamaTextEmbedding(
        "small", SIZE, host=server.url.removesuffix("/v1")
    ),
    "DashScopeMultiModalEmbedding": lambda server, _: served(DashScopeMultiModalEmbedding, server),
    "LocalTextEmbedding": lambda server, _: LocalTextEmbedding(counting(server)),
    "LocalTextEmbedding with a cache": lambda server, folder: LocalTextEmbedding(
        counting(server), FileEmbeddingCache(str(folder))
    ),
    "a model of one's own": lambda server, _: OwnModel(server),
    "OpenAIEmbedder": lambda server, _: OpenAIEmbedder(server.url, "small", KEY, SIZE),
    "CallableEmbedder": lambda server, _: counting(server),
    "CachedEmbedder": lambda server, folder: CachedEmbedder(
        counting(server), FileEmbeddingCache(str(folder))
    ),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def trajectory(text: str) -> list[Msg | None]:
    return [Msg("ann", text, "user"), Msg("bot", "Done, it worked.", "assistant")]


@every_model
@pytest.mark.parametrize("kind", [ReMePersonalLongTermMemory, ReMeTaskLongTermMemory])
async def test_what_is_recorded_and_asked_for_goes_through_the_model(
    kind: Any, make: Any, server: Server, tmp_path: Path
) -> None:
    model = make(server, tmp_path)
    async with kind("bot", "ann", "run", embedding_model=model) as ltm:
        await ltm.record(trajectory("I keep bees on the roof."))
        await ltm.service.settled("ann")
        found = await ltm.retrieve(Msg("ann", "Where are the bees kept?", "user"))
        assert "bees" in found
        assert (await ltm.service.status("ann")).embedder.failures == 0
    assert any("bees on the roof" in text for text in server.texts)
    assert any("Where are the bees kept?" in text for text in server.texts)


@every_model
async def test_guidelines_of_tools_take_every_model_too(
    make: Any, server: Server, tmp_path: Path
) -> None:
    call = {
        "create_time": "2025-01-01 10:00:00", "tool_name": "look", "input": {"at": "x"},
        "output": "seen", "token_cost": 5, "success": True, "time_cost": 0.1,
    }  # fmt: skip
    async with ReMeToolLongTermMemory(
        user_name="ann", embedding_model=make(server, tmp_path)
    ) as ltm:
        answer = await ltm.record_to_memory("", [json.dumps(call)])
        assert answer.content[0]["text"].startswith("Successfully recorded 1 tool execution")
        await ltm.service.settled("ann")
        assert "look" in await ltm.retrieve(Msg("ann", "look", "user"))


@pytest.mark.parametrize(
    "kind", [ReMePersonalLongTermMemory, ReMeTaskLongTermMemory, ReMeToolLongTermMemory]
)
@pytest.mark.parametrize("chat", [DashScopeChatModel, OpenAIChatModel])
def test_the_pair_of_models_that_agentscope_asks_for_is_taken(
    kind: Any, chat: Any, server: Server
) -> None:
    model = chat(model_name="qwen-max", api_key=KEY)
    embedding = DashScopeTextEmbedding(api_key=KEY, model_name="text-embedding-v2")
    ltm = kind(agent_name="bot", user_name="ann", model=model, embedding_model=embedding)
    assert ltm.service.settings.embedder.name == "text-embedding-v2/1024"


def test_what_is_no_embedding_model_is_said_to_be_none() -> None:
    wrong: Any = "text-embedding-v2"
    with pytest.raises(InvalidInput, match="Embedder or an EmbeddingModelBase, got str"):
        ReMePersonalLongTermMemory(embedding_model=wrong)


@pytest.mark.parametrize("path", ["reme.yaml", Path("reme.yaml")])
def test_a_configuration_of_reme_is_taken_with_a_word_on_what_is_used(path: Any) -> None:
    with pytest.warns(UserWarning, match=r"'reme.yaml' is ignored.*model=.*service=") as said:
        ReMePersonalLongTermMemory("bot", "ann", "run", None, None, path)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="is ignored"):
        ReMePersonalLongTermMemory(service=PersonalMemoryService(), reme_config_path=path)


# -- the adapter itself ----------------------------------------------------------------------------


def test_an_embedder_stays_itself(server: Server, tmp_path: Path) -> None:
    embedder = counting(server)
    assert as_embedder(embedder) is embedder
    assert as_embedder(LocalTextEmbedding(embedder)) is embedder
    cached = LocalTextEmbedding(embedder, FileEmbeddingCache(str(tmp_path)))
    assert as_embedder(cached) is not embedder


async def test_a_model_as_embedder_gives_rows_of_length_one_from_inside_a_loop(
    server: Server,
) -> None:
    embedder = as_embedder(OwnModel(server))
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimensions, embedder.scripts) == (f"own/{SIZE}", SIZE, None)
    rows = embedder.embed(["aab", " ", "c"])
    assert np.linalg.norm(rows, axis=1).tolist() == pytest.approx([1, 0, 1])
    assert server.texts == ["aab", "c"]
