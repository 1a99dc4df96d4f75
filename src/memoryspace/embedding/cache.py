"""Vectors kept in a folder, one file for each thing they were made from.

A file is written whole or not at all; one that does not read back counts as missing and is written
anew. Several threads and processes may share the folder. No file can run code: no pickle.

What a cache loses is made again, so it does not wait for the disk: after a power cut the newest
files may be missing or cut short, and both read as missing. ``durable=True`` waits, for vectors
that are dear, and for file systems that may bring back a file with zeros in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import math
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..files import FileMap
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .contract import (
    Embedder,
    StandsBefore,
    TellsQuestions,
    Vectors,
    check_texts,
    embed_questions,
    embed_texts,
)

_SUFFIX = ".npy"
_MEGABYTE = 1 << 20
_to_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode

_Embed = Callable[[Sequence[str]], Vectors]


class VectorFiles:
    """Arrays by identifier; over a limit, the oldest written go first."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_files: int | None = None,
        max_bytes: int | None = None,
        durable: bool = False,
    ) -> None:
        self._files = FileMap(
            folder, suffix=_SUFFIX, max_files=max_files, max_bytes=max_bytes, durable=durable
        )

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._files.folder

    def get(self, identifier: JSONSerializableObject) -> NDArray[Any] | None:
        """Return an array, or None if there is none that reads back."""
        return self._found(_name_of(identifier))

    async def find(self, identifier: JSONSerializableObject) -> NDArray[Any] | None:
        """``get`` for an event loop: a thread waits for the disk, where it has to be waited for."""
        name = _name_of(identifier)
        try:
            data = self._files.at_hand(name)
        except KeyError:
            return None
        return await asyncio.to_thread(self._found, name) if data is None else _decode(data)

    def put(self, identifier: JSONSerializableObject, vectors: ArrayLike) -> None:
        """Keep an array in the place of whatever is there."""
        self._keep(_name_of(identifier), vectors)

    def add(self, identifier: JSONSerializableObject, vectors: ArrayLike) -> None:
        """Keep an array unless there is one that reads back."""
        name = _name_of(identifier)
        if self._found(name) is None:
            self._keep(name, vectors)

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

    def _found(self, name: str) -> NDArray[Any] | None:
        try:
            return _decode(self._files[name])
        except (KeyError, IsADirectoryError, PermissionError):
            return None

    def _keep(self, name: str, vectors: ArrayLike) -> None:
        try:
            self._files[name] = _encode(vectors)
        except IsADirectoryError:
            path = self.folder / (name + _SUFFIX)
            raise RuntimeError(f"{path} is no file; nothing can be kept there") from None


class FileEmbeddingCache(EmbeddingCacheBase):
    """AgentScope's cache in files; ``max_cache_size`` is in MB. Threads wait for the disk."""

    def __init__(
        self,
        cache_dir: str = "./.cache/embeddings",
        max_file_number: int | None = None,
        max_cache_size: float | None = None,
        *,
        durable: bool = False,
    ) -> None:
        for name, limit in (
            ("max_file_number", max_file_number),
            ("max_cache_size", max_cache_size),
        ):
            if limit is not None and (not isinstance(limit, int | float) or limit < 0):
                raise InvalidInput(f"{name} must be a number from 0 on, got {type(limit).__name__}")
        self.max_file_number = max_file_number
        self.max_cache_size = max_cache_size
        self.files = VectorFiles(
            cache_dir,
            max_files=max_file_number if max_file_number else None,  # 0 means no limit, too
            max_bytes=int(max_cache_size * _MEGABYTE) if max_cache_size is not None else None,
            durable=durable,
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
        keep = self.files.put if overwrite else self.files.add
        await asyncio.to_thread(keep, identifier, embeddings)

    async def retrieve(self, identifier: JSONSerializableObject) -> list[Embedding] | None:
        """Return the vectors, or None: nothing there, or a file that does not read back."""
        found = await self.files.find(identifier)
        return found.tolist() if found is not None else None

    async def remove(self, identifier: JSONSerializableObject) -> None:
        """Forget the vectors of one identifier; ``FileNotFoundError`` if there are none."""
        await asyncio.to_thread(self.files.drop, identifier)

    async def clear(self) -> None:
        """Forget all vectors. Other files in the folder stay."""
        await asyncio.to_thread(self.files.clear)


class CachedEmbedder(StandsBefore):
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
        return self._embed(texts, partial(embed_texts, self.embedder))

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of questions: those of ``embed`` if the embedder does not care."""
        if not isinstance(self.embedder, TellsQuestions):
            return self.embed(texts)
        return self._embed(texts, partial(embed_questions, self.embedder), "question")

    def _embed(self, texts: Sequence[str], embed: _Embed, kind: str = "") -> Vectors:
        checked = check_texts(texts)
        keys = {text: self._identifier(text, kind) for text in dict.fromkeys(checked)}
        known = {text: self._known(key) for text, key in keys.items()}
        missing = [text for text, row in known.items() if row is None]
        if missing:
            for text, row in zip(missing, embed(missing), strict=True):
                self._files.put(keys[text], row)
                known[text] = row
        found = np.zeros((len(checked), self.dimensions), np.float32)
        for number, text in enumerate(checked):
            found[number] = known[text]
        return found

    def _known(self, identifier: JSONSerializableObject) -> Vectors | None:
        found = self._files.get(identifier)
        if found is None or found.shape != (self.dimensions,) or not np.isfinite(found).all():
            return None
        return found.astype(np.float32)

    def _identifier(self, text: str, kind: str) -> JSONSerializableObject:
        found: dict[str, JSONSerializableObject] = {"embedder": self.name, "text": text}
        return {**found, "kind": kind} if kind else found  # as before there were kinds


def _name_of(identifier: JSONSerializableObject) -> str:
    """Return a hash of the content; the order of keys does not matter."""
    try:
        text = _to_json(identifier)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"an identifier must be a JSON value: {error}") from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(vectors: ArrayLike) -> bytes:
    """Return an array as ``numpy.save`` writes it."""
    try:
        array = np.asarray(vectors)
    except ValueError as error:  # of different lengths
        raise InvalidInput("embeddings must be numbers of one length each") from error
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"embeddings must be numbers of one length each, got {array.dtype}")
    return _header(array.shape, array.dtype.str) + array.tobytes()


@lru_cache(maxsize=256)
def _header(shape: tuple[int, ...], dtype: str) -> bytes:
    """Return what stands before the numbers: the same for all vectors of one length."""
    file = io.BytesIO()
    form = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, form)
    return file.getvalue()


def _decode(data: bytes) -> NDArray[Any] | None:
    """Return what ``numpy.save`` wrote, or None for anything else. Nothing in it is run."""
    try:
        end = _end_of_header(data)
        shape, is_turned, dtype = _form(data[:end])
        if dtype.kind not in "fiu":
            return None
        numbers = np.frombuffer(data, dtype, math.prod(shape), end)
        return numbers.reshape(shape, order="F" if is_turned else "C").copy()
    except (ValueError, EOFError, SyntaxError, TypeError, struct.error):
        return None


def _end_of_header(data: bytes) -> int:
    """The magic, two bytes of version, the length in two bytes (later in four), and the header."""
    form = "<H" if data[6:7] == b"\x01" else "<I"
    begin = 8 + struct.calcsize(form)
    return begin + int(struct.unpack(form, data[8:begin])[0])


@lru_cache(maxsize=256)
def _form(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return what a header says, as numpy reads it: the same for all vectors of one length."""
    file = io.BytesIO(header)
    is_first = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    return read(file)
