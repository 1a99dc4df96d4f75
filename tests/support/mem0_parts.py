"""The real mem0 on a folder of its own: with a toy embedder, and a model that says what it is told.

If the package is not installed the tests are skipped loudly; with ``MEMORYSPACE_TEST_STRICT`` set
they fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.embedding.contract import Vectors, normalised
from memoryspace.errors import MissingExtra
from memoryspace.model import Completion
from memoryspace.service.mem0 import Mem0MemoryService, providers
from memoryspace.service.mem0.opening import close_memory, load

os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="memoryspace-mem0-"))

DIMENSIONS = 256


def package() -> Any:
    """Return mem0."""
    try:
        return load()
    except MissingExtra as error:
        if os.environ.get("MEMORYSPACE_TEST_STRICT"):
            pytest.fail(f"NO PACKAGE: {error}")
        pytest.skip(f"NO PACKAGE: {error}")


class Words:
    """An embedder: each word is a direction, so texts are alike as far as they share words."""

    name = "words"
    dimensions = DIMENSIONS
    scripts = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), DIMENSIONS))
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
                row[int.from_bytes(digest, "big") % DIMENSIONS] += 1
        return normalised(rows)


class Scripted:
    """A chat model that derives the facts it was given, whatever it is asked."""

    name = "scripted"

    def __init__(self, *facts: str, error: Exception | None = None) -> None:
        self.facts = facts
        self.error = error
        self.asked: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append("\n".join(each["content"] for each in messages))
        if self.error is not None:
            raise self.error
        events = [
            {"id": str(number), "text": text, "event": "ADD"}
            for number, text in enumerate(self.facts)
        ]
        return Completion(json.dumps({"facts": list(self.facts), "memory": events}))


def config_in(folder: str | Path, model: object | None = None) -> Any:
    """Return mem0's configuration of a memory in a folder."""
    package()
    providers.register()
    from mem0.configs.base import MemoryConfig

    store = {"path": f"{folder}/vectors", "embedding_model_dims": DIMENSIONS, "on_disk": True}
    return MemoryConfig(
        vector_store={"provider": "qdrant", "config": store},
        llm=providers.llm_config(Scripted() if model is None else model),  # type: ignore[arg-type]
        embedder=providers.embedder_config(Words()),
        history_db_path=f"{folder}/history.db",
    )


@contextmanager
def memory(model: object | None = None, folder: str | Path | None = None) -> Iterator[Any]:
    """Yield an open-source memory of mem0 on a local vector store."""
    with tempfile.TemporaryDirectory() as own:
        made = package().AsyncMemory(config_in(own if folder is None else folder, model))
        try:
            yield made
        finally:
            close_memory(made)


@asynccontextmanager
async def service(model: object | None = None, **options: Any) -> AsyncIterator[Mem0MemoryService]:
    """Yield a started service: word for word, unless there is a model."""
    options.setdefault("infer", model is not None)
    with memory(model) as client:
        async with Mem0MemoryService(client, **options) as started:
            yield started


class Client:
    """What all clients have alike."""

    async def add(self, messages: Any, **options: Any) -> None: ...
    async def search(self, query: str, **options: Any) -> None: ...
    async def get(self, memory_id: str) -> None: ...
    async def get_all(self, **options: Any) -> None: ...
    async def update(self, memory_id: str, **options: Any) -> None: ...
    async def delete(self, memory_id: str) -> None: ...
    async def delete_all(self, **options: Any) -> None: ...
    async def history(self, memory_id: str) -> None: ...
