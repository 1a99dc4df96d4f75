"""Vectors kept in a folder, one file for each thing they were made from.

A file is written whole or not at all; one that does not read back counts as missing and is written
anew. Several threads and processes may share the folder. No file can run code: no pickle.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..files import FileMap
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .contract import Embedder, Vectors, check_texts

_SUFFIX = ".npy"
_MEGABYTE = 1 << 20


class VectorFiles:
    """Arrays by identifier, synchronously; over a limit, the oldest written go first."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_files: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._files = FileMap(folder, suffix=_SUFFIX, max_files=max_files, max_bytes=max_bytes)

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._files.folder

    def get(self, identifier: JSONSerializableObject) -> NDArray[Any] | None:
        """Return an array, or None if there is none that reads back."""
        try:
            return _decode(self._files[_name_of(identifier)])
        except (KeyError, IsADirectoryError, PermissionError):
            return None

    def put(self, identifier: JSONSerializableObject, vectors: ArrayLike) -> None:
        """Keep an array in the place of whatever is there."""
        path = self.path(identifier)
        if path.exists() and not path.is_file():
            raise RuntimeError(f"{path} is no file; nothing can be kept there")
        self._files[_name_of(identifier)] = _encode(vectors)

    def drop(self, identifier: JSONSerializableObject) -> None:
        """Forget an array; ``FileNotFoundError`` if there is none."""
        try:
            del self._files[_name_of(identifier)]
        except KeyError:
            raise FileNotFoundError(f"{self.path(identifier)} does not exist") from None

    def clear(self) -> None:
        """Forget all arrays. Other files in the folder stay."""
        for name in list(self._files):
            with suppress(KeyError):  # somebody else was quicker
                del self._files[name]

    def path(self, identifier: JSONSerializableObject) -> Path:
        """Return where an array is or would be."""
        return self.folder / (_name_of(identifier) + _SUFFIX)


class FileEmbeddingCache(EmbeddingCacheBase):
    """AgentScope's cache in files; ``max_cache_size`` is in MB. File work runs in a thread."""

    def __init__(
        self,
        cache_dir: str = "./.cache/embeddings",
        max_file_number: int | None = None,
        max_cache_size: float | None = None,
    ) -> None:
        self.max_file_number = max_file_number
        self.max_cache_size = max_cache_size
        self.files = VectorFiles(
            cache_dir,
            max_files=max_file_number if max_file_number else None,  # 0 means no limit, too
            max_bytes=int(max_cache_size * _MEGABYTE) if max_cache_size is not None else None,
        )

    @property
    def cache_dir(self) -> str:
        """The folder, made if it is not there."""
        self.files.folder.mkdir(parents=True, exist_ok=True)
        return str(self.files.folder)

    async def store(
        self,
        embeddings: list[Embedding],
        identifier: JSONSerializableObject,
        overwrite: bool = False,
    ) -> None:
        """Keep vectors; those that are there and read back stay unless ``overwrite``."""
        await asyncio.to_thread(self._store, embeddings, identifier, overwrite)

    async def retrieve(self, identifier: JSONSerializableObject) -> list[Embedding] | None:
        """Return the vectors, or None: nothing there, or a file that does not read back."""
        found = await asyncio.to_thread(self.files.get, identifier)
        return found.tolist() if found is not None else None

    async def remove(self, identifier: JSONSerializableObject) -> None:
        """Forget the vectors of one identifier; ``FileNotFoundError`` if there are none."""
        await asyncio.to_thread(self.files.drop, identifier)

    async def clear(self) -> None:
        """Forget all vectors. Other files in the folder stay."""
        await asyncio.to_thread(self.files.clear)

    def _store(
        self, embeddings: list[Embedding], identifier: JSONSerializableObject, overwrite: bool
    ) -> None:
        if overwrite or self.files.get(identifier) is None:
            self.files.put(identifier, embeddings)


class CachedEmbedder:
    """An embedder that asks another one only for texts it does not know yet.

    Worth it for a server or a network; ``StaticEmbedder`` is quicker than any file.
    """

    def __init__(self, embedder: Embedder, cache: VectorFiles | FileEmbeddingCache) -> None:
        self.embedder = embedder
        self._files = cache.files if isinstance(cache, FileEmbeddingCache) else cache

    @property
    def name(self) -> str:
        """The vector space: the embedder's own."""
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self.embedder.dimensions

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts that the embedder can rank."""
        return self.embedder.scripts

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors, each text asked for at most once."""
        checked = check_texts(texts)
        known = {text: self._known(text) for text in dict.fromkeys(checked)}
        missing = [text for text, row in known.items() if row is None]
        if missing:
            for text, row in zip(missing, self.embedder.embed(missing), strict=True):
                self._files.put(self._identifier(text), row)
                known[text] = row
        found = np.zeros((len(checked), self.dimensions), np.float32)
        for number, text in enumerate(checked):
            found[number] = known[text]
        return found

    def _known(self, text: str) -> Vectors | None:
        found = self._files.get(self._identifier(text))
        if found is None or found.shape != (self.dimensions,) or not np.isfinite(found).all():
            return None
        return found.astype(np.float32)

    def _identifier(self, text: str) -> JSONSerializableObject:
        return {"embedder": self.name, "text": text}


def _name_of(identifier: JSONSerializableObject) -> str:
    """Return a hash of the content; the order of keys does not matter."""
    try:
        text = json.dumps(identifier, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"an identifier must be a JSON value: {error}") from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(vectors: ArrayLike) -> bytes:
    array = np.asarray(vectors)
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"embeddings must be numbers of one length each, got {array.dtype}")
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _decode(data: bytes) -> NDArray[Any] | None:
    try:
        found = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError):
        return None
    return found if isinstance(found, np.ndarray) and found.dtype.kind in "fiu" else None
