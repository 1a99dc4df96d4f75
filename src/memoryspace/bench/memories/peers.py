"""Other packages' memories, unmodified, if they are installed.

None of them has a size limit, so the oldest texts are deleted through their own interface. Those
that search by vectors use our embedder, WordLlama, which ships with a package and needs no server.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import tempfile
import warnings
from collections.abc import Coroutine
from importlib import import_module
from typing import Any

from ...embedding import Embedder, StaticEmbedder
from ...errors import MissingExtra
from ..harness.experiment import CannotRun
from .baselines import OldestFirst
from .footprint import Footprint, folder_bytes, reachable_bytes

_USER = "bench"


def _embedder() -> StaticEmbedder:
    try:
        return StaticEmbedder()
    except MissingExtra as error:
        raise CannotRun(str(error)) from error


class LangChainMemory(OldestFirst):
    """LangChain's ``InMemoryVectorStore``."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        try:
            from langchain_core.embeddings import Embeddings
            from langchain_core.vectorstores import InMemoryVectorStore
        except ImportError as error:
            raise CannotRun("langchain-core is not installed") from error
        embedder = _embedder()

        class Static(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                vectors: list[list[float]] = embedder.embed(texts).tolist()
                return vectors

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        self._store = InMemoryVectorStore(Static())

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search by vectors."""
        return [found.page_content for found in self._store.similarity_search(query, k=k)]

    def _add(self, number: int, text: str) -> None:
        self._store.add_texts([text], ids=[str(number)])

    def _remove(self, number: int) -> None:
        self._store.delete([str(number)])


class Mem0Memory(OldestFirst):
    """mem0, open source, storing verbatim (``infer=False``), on its local vector store."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        from ...service.mem0.opening import close_memory

        self._embedder = embedder = _embedder()
        self._close = close_memory
        self._folder = tempfile.TemporaryDirectory(prefix="memoryspace-bench-")
        self._memory = open_mem0(self._folder.name, embedder)
        self._ids: dict[int, str] = {}

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search through its public API."""
        return ask_mem0(self._memory, query, _USER, k)

    def footprint(self) -> Footprint:
        """Return its objects without our embedder, and its files."""
        resident = reachable_bytes(self, without=(self._embedder,))
        return Footprint(resident, disk=folder_bytes(self._folder.name))

    def close(self) -> None:
        """Close it and remove its files."""
        self._close(self._memory)
        self._folder.cleanup()

    def _add(self, number: int, text: str) -> None:
        said = [{"role": "user", "content": text}]
        added = self._memory.add(said, user_id=_USER, infer=False)
        self._ids[number] = added["results"][0]["id"]

    def _remove(self, number: int) -> None:
        self._memory.delete(self._ids.pop(number))


class RuntimeMemory(OldestFirst):
    """agentscope-runtime's ``InMemoryMemoryService``, with a session per text."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from agentscope_runtime.engine.schemas import agent_schemas
                from agentscope_runtime.engine.services.memory import InMemoryMemoryService
        except ImportError as error:
            raise CannotRun("agentscope-runtime 1.0 is not installed") from error
        self._schema = agent_schemas
        self._loop = asyncio.new_event_loop()
        self._service = InMemoryMemoryService()
        self._wait(self._service.start())

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search by keywords: it returns the newest matches, the newest last."""
        asked = self._service.search_memory(_USER, [self._message(query)], {"top_k": k})
        found = self._wait(asked)
        return [each.content[0].text for each in reversed(found)]

    def footprint(self) -> Footprint:
        """Return its objects, without the loop that runs it."""
        return Footprint(reachable_bytes(self, without=(self._loop,)))

    def close(self) -> None:
        """Stop the service."""
        self._wait(self._service.stop())
        self._loop.close()

    def _add(self, number: int, text: str) -> None:
        self._wait(self._service.add_memory(_USER, [self._message(text)], str(number)))

    def _remove(self, number: int) -> None:
        self._wait(self._service.delete_memory(_USER, str(number)))

    def _message(self, text: str) -> Any:
        content = [self._schema.TextContent(type="text", text=text)]
        return self._schema.Message(role="user", content=content)

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)


def open_mem0(folder: str, embedder: Embedder) -> Any:
    """Open mem0 with its local vector store in a folder, and no chat model."""
    from ...service.mem0 import providers
    from ...service.mem0.opening import load, quieten

    try:
        mem0 = load()
    except MissingExtra as error:
        raise CannotRun(str(error)) from error
    providers.register()
    quieten()
    place = {
        "path": f"{folder}/vectors",
        "embedding_model_dims": embedder.dimensions,
        "on_disk": True,
    }
    config = import_module("mem0.configs.base").MemoryConfig(
        vector_store={"provider": "qdrant", "config": place},
        llm=providers.llm_config(_NoModel()),
        embedder=providers.embedder_config(embedder),
        history_db_path=f"{folder}/history.db",
    )
    logging.getLogger("qdrant_client").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mem0.Memory(config)


def ask_mem0(memory: Any, query: str, user: str, k: int) -> list[str]:
    """Return the texts that mem0 finds, whichever release it is."""
    if "top_k" in inspect.signature(type(memory).search).parameters:
        found = memory.search(query, top_k=k, filters={"user_id": user})
    else:
        found = memory.search(query, limit=k, user_id=user)
    return [each["memory"] for each in found["results"]]


class _NoModel:
    """A placeholder for the chat model that mem0 requires; ``infer=False`` never calls it."""

    name = "none"

    async def complete(self, messages: Any, *, schema: Any = None) -> Any:
        """Raise: this is never called."""
        raise AssertionError("a memory that stores word for word asked a model")
