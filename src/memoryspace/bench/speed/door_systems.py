"""The memories that ``memoryspace bench door`` measures: ours, and others that are installed.

Each keeps everything in a folder of its own and gets the same embedder. The others are used as
their documentation shows, for one user; only filling goes by the fastest way that each of them has.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from ...door import Memory
from ...embedding import StaticEmbedder
from ...embedding.contract import Vectors
from ...errors import MissingExtra
from ...service.settings import ServiceSettings
from ...service.stored import StoredMemoryService
from ..harness.experiment import CannotRun
from ..memories.peers import ask_mem0, open_mem0

USER = "ann"
BATCH = 1000


class CountedEmbedder:
    """The static embedder, which notes how long it works."""

    def __init__(self) -> None:
        try:
            self._inner = StaticEmbedder()
        except MissingExtra as error:
            raise CannotRun(str(error)) from error
        self.name, self.dimensions = self._inner.name, self._inner.dimensions
        self.scripts = self._inner.scripts
        self.seconds = 0.0
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        began = time.perf_counter()
        vectors = self._inner.embed(texts)
        with self._lock:
            self.seconds += time.perf_counter() - began
        return vectors

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.embed(texts).tolist()
        return vectors


class System(ABC):
    """A memory in a folder."""

    name: str
    package: str
    embeds_in_add: bool = True  # or afterwards, in the background
    an_add: str  # what it promises when it returns
    a_search: str  # what it looks at

    @abstractmethod
    def fill(self, texts: Sequence[str]) -> None:
        """Add many texts at once."""

    @abstractmethod
    def add(self, text: str) -> None:
        """Add one text."""

    @abstractmethod
    def search(self, question: str, k: int) -> list[str]:
        """Return the texts found, best first."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""

    def settle(self) -> None:  # noqa: B027  # most have none
        """Wait for the work that goes on after a call has returned."""


class Ours(System):
    name = package = "memoryspace"
    embeds_in_add = False
    an_add = (
        "screened, stored, facts derived by rules; 4 to 5 fsyncs one after another, 5 to 11 if it "
        "states "
        "facts. The vector follows in the background"
    )
    a_search = "words, vectors, facts, time, neighbours; relevance and reasons; logged"

    def __init__(self, folder: Path, embedder: CountedEmbedder) -> None:
        settings = ServiceSettings(embedder=embedder)
        self._folder, self._settings = folder / "memories", settings
        self._memory = Memory(self._folder, user=USER, settings=settings)

    def fill(self, texts: Sequence[str]) -> None:
        """Fill without deriving facts from each text: there are none in them."""
        asyncio.run(self._filled(texts))

    async def _filled(self, texts: Sequence[str]) -> None:
        async with StoredMemoryService(self._folder, settings=self._settings) as service:
            for some in batches(texts):
                await service.add_memory(USER, some)
            await service.settled(USER)

    def add(self, text: str) -> None:
        self._memory.add(text)

    def search(self, question: str, k: int) -> list[str]:
        return list(self._memory.search(question, limit=k).texts)

    def settle(self) -> None:
        self._memory.settle()
        self._memory.recalls(limit=1)  # writes the recall log

    def close(self) -> None:
        self._memory.close()


class Mem0(System):
    name, package = "mem0", "mem0ai"
    an_add = "two commits of SQLite, the point and the history: 8 fsyncs; infer=False"
    a_search = "vectors, all of them (local Qdrant); its default threshold"

    def __init__(self, folder: Path, embedder: CountedEmbedder) -> None:
        from ...service.mem0.opening import close_memory

        self._memory, self._embedder = open_mem0(str(folder), embedder), embedder
        self._close = close_memory

    def fill(self, texts: Sequence[str]) -> None:
        """Insert into its vector store what ``add`` would, without waiting for the disk."""
        local = self._memory.vector_store.client._client.collections
        for collection in local.values():
            _unsynced(collection)
        for some in batches(texts):
            self._memory.vector_store.insert(
                vectors=self._embedder.lists(some),
                ids=[str(uuid4()) for _ in some],
                payloads=[_payload(text) for text in some],
            )
        for collection in local.values():
            collection.storage.storage.execute("PRAGMA synchronous=FULL")

    def add(self, text: str) -> None:
        self._memory.add([{"role": "user", "content": text}], user_id=USER, infer=False)

    def search(self, question: str, k: int) -> list[str]:
        return ask_mem0(self._memory, question, USER, k)

    def close(self) -> None:
        self._close(self._memory)


def _unsynced(collection: Any) -> None:
    connection: sqlite3.Connection = collection.storage.storage
    connection.execute("PRAGMA synchronous=OFF")


def _payload(text: str) -> dict[str, str]:
    now = datetime.now(UTC).isoformat()
    return {
        "data": text,
        "text_lemmatized": text,
        "user_id": USER,
        "role": "user",
        "created_at": now,
        "updated_at": now,
    }


class LangGraph(System):
    name, package = "LangGraph SqliteStore", "langgraph-checkpoint-sqlite"
    an_add = "one commit of SQLite: 4 fsyncs"
    a_search = "vectors, all of them (sqlite-vec)"

    def __init__(self, folder: Path, embedder: CountedEmbedder) -> None:
        try:
            store = import_module("langgraph.store.sqlite").SqliteStore
        except ImportError as error:
            raise CannotRun("langgraph-checkpoint-sqlite is not installed") from error
        index = {"dims": embedder.dimensions, "embed": embedder.lists, "fields": ["text"]}
        self._connection = _extensible(folder / "store.db")
        self._store = store(self._connection, index=index)
        self._store.setup()
        self._put = import_module("langgraph.store.base").PutOp

    def fill(self, texts: Sequence[str]) -> None:
        for some in batches(texts):
            self._store.batch([self._put((USER,), str(uuid4()), {"text": text}) for text in some])

    def add(self, text: str) -> None:
        self._store.put((USER,), str(uuid4()), {"text": text})

    def search(self, question: str, k: int) -> list[str]:
        found = self._store.search((USER,), query=question, limit=k)
        return [each.value["text"] for each in found]

    def close(self) -> None:
        self._connection.close()


def _extensible(path: Path) -> Any:
    """Open SQLite as the store's own constructor does, by a driver that can load extensions."""
    driver: Any = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        try:
            driver = import_module("pysqlite3")
        except ImportError as error:
            raise CannotRun(
                "this Python's sqlite3 loads no extensions; install pysqlite3-binary"
            ) from error
    return driver.connect(str(path), check_same_thread=False, isolation_level=None)


class Chroma(System):
    name, package = "Chroma", "chromadb"
    an_add = "commits of SQLite: 8 fsyncs; its index is saved every so many adds"
    a_search = "vectors, approximately (HNSW)"

    def __init__(self, folder: Path, embedder: CountedEmbedder) -> None:
        try:
            chroma = import_module("chromadb")
        except ImportError as error:
            raise CannotRun("chromadb is not installed") from error
        quiet = chroma.config.Settings(anonymized_telemetry=False)
        self._client = chroma.PersistentClient(str(folder / "chroma"), settings=quiet)
        self._embedder = embedder
        self._found = self._client.get_or_create_collection(
            USER, embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    def fill(self, texts: Sequence[str]) -> None:
        for some in batches(texts):
            self._add(some)

    def add(self, text: str) -> None:
        self._add([text])

    def search(self, question: str, k: int) -> list[str]:
        asked = self._embedder.lists([question])
        found: list[str] = self._found.query(query_embeddings=asked, n_results=k)["documents"][0]
        return found

    def close(self) -> None:
        import_module("chromadb.api.client").SharedSystemClient.clear_system_cache()

    def _add(self, texts: Sequence[str]) -> None:
        self._found.add(
            ids=[str(uuid4()) for _ in texts],
            documents=list(texts),
            embeddings=self._embedder.lists(texts),
        )


Opener = Callable[[Path, CountedEmbedder], System]
SYSTEMS: Mapping[str, type[System]] = {
    each.package: each for each in (Ours, Mem0, LangGraph, Chroma)
}


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in batches."""
    for start in range(0, len(texts), BATCH):
        yield list(texts[start : start + BATCH])
