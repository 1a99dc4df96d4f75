"""The embedding interfaces of AgentScope v1: model, response and cache.

They are here only so that a program written for AgentScope runs once the root of its imports is
changed. The rest of the package uses ``Embedder``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

from ..message.msg import new_id
from ..types import Embedding, JSONSerializableObject


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


class _AsDict:
    """An object whose attributes can also be read like the items of a dict."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dict__:
            raise KeyError(name)
        return self.__dict__[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default if it does not exist."""
        return self.__dict__.get(name, default)


@dataclass
class EmbeddingUsage(_AsDict):
    """The seconds of a request, and its tokens if they were counted."""

    time: float
    tokens: int | None = None
    type: Literal["embedding"] = "embedding"


@dataclass
class EmbeddingResponse(_AsDict):
    """Vectors in the order of the input, and whether they came from a cache."""

    embeddings: list[Embedding]
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=_now)
    type: Literal["embedding"] = "embedding"
    usage: EmbeddingUsage | None = None
    source: Literal["api", "cache"] = "api"


class EmbeddingModelBase(ABC):
    """Base class of AgentScope's embedding models: ``await model([...])``."""

    supported_modalities: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model_name: str, dimensions: int) -> None:
        self.model_name = model_name
        self.dimensions = dimensions

    @abstractmethod
    async def __call__(self, text: list[Any]) -> EmbeddingResponse:
        """Return a vector for each item."""


class EmbeddingCacheBase(ABC):
    """Base class of embedding caches. An identifier is any JSON value."""

    @abstractmethod
    async def store(
        self,
        embeddings: list[Embedding],
        identifier: JSONSerializableObject,
        overwrite: bool = False,
    ) -> None:
        """Store vectors; existing ones are kept unless ``overwrite``."""

    @abstractmethod
    async def retrieve(self, identifier: JSONSerializableObject) -> list[Embedding] | None:
        """Return the vectors of an identifier, or None."""

    @abstractmethod
    async def remove(self, identifier: JSONSerializableObject) -> None:
        """Remove the vectors of an identifier; raise ``FileNotFoundError`` if there are none."""

    @abstractmethod
    async def clear(self) -> None:
        """Remove all vectors."""
