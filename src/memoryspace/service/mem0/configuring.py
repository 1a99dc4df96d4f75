"""mem0's configuration with our models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...embedding import Embedder, EmbeddingModelBase
from ...errors import InvalidInput
from ...model import ChatModel
from .opening import load
from .providers import check_models, embedder_config, llm_config, register


class Mem0Parts(Struct, frozen=True, kw_only=True):
    """The parts of a mem0 memory. The other fields replace their parts of ``config``."""

    config: Any = None  # a MemoryConfig, or a dict as for ``from_config``
    model: ChatModel | None = None
    embedding_model: Embedder | EmbeddingModelBase | None = None
    vector_store: Any = None  # a VectorStoreConfig, or a dict of provider and config
    on_disk: bool = True

    def __post_init__(self) -> None:
        check_models(self.model, self.embedding_model)
        if self.config is None and (self.model is None or self.embedding_model is None):
            raise InvalidInput("mem0 needs model= and embedding_model=, or mem0_config=")


def open_parts(parts: Mem0Parts) -> Any:
    """Return an open memory. It imports mem0 and opens files, and blocks."""
    mem0 = load()
    register()
    changed = _changed(parts)
    if isinstance(parts.config, Mapping):
        if not changed:
            return mem0.AsyncMemory.from_config(dict(parts.config))
        return mem0.AsyncMemory(_made({**parts.config, **changed}))
    if parts.config is not None:
        return mem0.AsyncMemory(parts.config.model_copy(update=changed))
    return mem0.AsyncMemory(_made({"vector_store": _own_store(parts), **changed}))


def _changed(parts: Mem0Parts) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if parts.model is not None:
        changed["llm"] = llm_config(parts.model)
    if parts.embedding_model is not None:
        changed["embedder"] = embedder_config(parts.embedding_model)
    if parts.vector_store is not None:
        changed["vector_store"] = _store_config(parts.vector_store)
    return changed


def _own_store(parts: Mem0Parts) -> Any:
    """Return a local store in the user's folder. mem0's default folder is readable by everyone.

    There is a collection for each length of vectors, so that another embedder does not break it.
    """
    assert parts.embedding_model is not None
    size = parts.embedding_model.dimensions
    home = Path(os.environ.get("MEM0_DIR") or Path.home() / ".mem0")
    config = {
        "path": str(home / "memoryspace"),
        "collection_name": f"memoryspace_{size}",
        "embedding_model_dims": size,
        "on_disk": parts.on_disk,
    }
    return _store_config({"provider": "qdrant", "config": config})


def _store_config(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    return import_module("mem0.vector_stores.configs").VectorStoreConfig(**given)


def _made(parts: Mapping[str, Any]) -> Any:
    return import_module("mem0.configs.base").MemoryConfig(**parts)
