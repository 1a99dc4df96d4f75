"""A cache of vectors in a folder, one file per identifier.

Files are written atomically; an unreadable file counts as missing and is written again. Several
threads and processes may share the folder. Files are never unpickled, so they cannot run code.

A lost vector can be computed again, so by default writes are not synced: after a power cut the
newest files may be missing or truncated, and both count as missing. ``durable=True`` syncs, for
vectors that are expensive, and for file systems that may return a file of zeros after a crash.
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
    """Arrays in files, by identifier. Over a limit, the oldest written files are removed first.

    Args:
        folder: Where the files are; created on the first write.
        max_files: The largest number of files; None for no limit.
        max_bytes: The largest total size; None for no limit.
        durable: Whether to sync each write.
    """

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
        """The folder of the files."""
        return self._files.folder

    def get(self, identifier: JSONSerializableObject) -> NDArray[Any] | None:
        """Return an array, or None if it is missing or unreadable."""
        return self._found(_name_of(identifier))

    async def find(self, identifier: JSONSerializableObject) -> NDArray[Any] | None:
        """Return what ``get`` returns; if the disk would block, read in a thread."""
        name = _name_of(identifier)
        try:
            data = self._files.at_hand(name)
        except KeyError:
            return None
        return await asyncio.to_thread(self._found, name) if data is None else _decode(data)

    def put(self, identifier: JSONSerializableObject, vectors: ArrayLike) -> None:
        """Store an array; replace an existing one."""
        self._keep(_name_of(identifier), vectors)

    def add(self, identifier: JSONSerializableObject, vectors: ArrayLike) -> None:
        """Store an array unless there is a readable one."""
        name = _name_of(identifier)
        if self._found(name) is None:
            self._keep(name, vectors)

    def drop(self, identifier: JSONSerializableObject) -> None:
        """Remove an array; raise ``FileNotFoundError`` if there is none."""
        try:
            del self._files[_name_of(identifier)]
        except KeyError:
            raise FileNotFoundError(f"{self.path(identifier)} does not exist") from None

    def clear(self) -> None:
        """Remove all arrays. Other files in the folder stay."""
        for name in list(self._files):
            with suppress(KeyError):  # another process has removed it
                del self._files[name]

    def path(self, identifier: JSONSerializableObject) -> Path:
        """Return the path of an array's file, whether it exists or not."""
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
            raise RuntimeError(f"{path} is not a file; nothing can be stored there") from None


class FileEmbeddingCache(EmbeddingCacheBase):
    """AgentScope's embedding cache in files. Reads and writes do not block the event loop.

    Args:
        cache_dir: The folder.
        max_file_number: The largest number of files; None or 0 for no limit.
        max_cache_size: The largest total size in MB; None for no limit.
        durable: Whether to sync each write.

    Raises:
        InvalidInput: If a limit is not a number of 0 or more.
    """

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
                raise InvalidInput(
                    f"{name} must be a number of 0 or more, got {type(limit).__name__}"
                )
        self.max_file_number = max_file_number
        self.max_cache_size = max_cache_size
        self.files = VectorFiles(
            cache_dir,
            max_files=max_file_number if max_file_number else None,  # 0 also means no limit
            max_bytes=int(max_cache_size * _MEGABYTE) if max_cache_size is not None else None,
            durable=durable,
        )

    @property
    def cache_dir(self) -> str:
        """The folder, created if it does not exist."""
        self.files.folder.mkdir(parents=True, exist_ok=True)
        return str(self.files.folder)

    async def store(
        self,
        embeddings: list[Embedding],
        identifier: JSONSerializableObject,
        overwrite: bool = False,
    ) -> None:
        """Store vectors; readable ones are kept unless ``overwrite``."""
        keep = self.files.put if overwrite else self.files.add
        await asyncio.to_thread(keep, identifier, embeddings)

    async def retrieve(self, identifier: JSONSerializableObject) -> list[Embedding] | None:
        """Return the vectors, or None if they are missing or unreadable."""
        found = await self.files.find(identifier)
        return found.tolist() if found is not None else None

    async def remove(self, identifier: JSONSerializableObject) -> None:
        """Remove the vectors of an identifier; raise ``FileNotFoundError`` if there are none."""
        await asyncio.to_thread(self.files.drop, identifier)

    async def clear(self) -> None:
        """Remove all vectors. Other files in the folder stay."""
        await asyncio.to_thread(self.files.clear)


class CachedEmbedder(StandsBefore):
    """An embedder with a cache: it calls another one only for texts that are not cached.

    This pays off for servers and networks; ``StaticEmbedder`` is faster than any file.

    Args:
        embedder: The embedder to call.
        cache: Where the vectors are stored.
    """

    def __init__(self, embedder: Embedder, cache: VectorFiles | FileEmbeddingCache) -> None:
        self.embedder = embedder
        self._files = cache.files if isinstance(cache, FileEmbeddingCache) else cache

    def __repr__(self) -> str:
        return f"CachedEmbedder({self.embedder!r}, {str(self._files.folder)!r})"

    @property
    def name(self) -> str:
        """The vector space of the embedder."""
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
        """Return the vectors; each text is embedded at most once."""
        return self._embed(texts, partial(embed_texts, self.embedder))

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of questions, or of passages if the embedder has only those."""
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
        return {**found, "kind": kind} if kind else found  # compatible with older caches


def _name_of(identifier: JSONSerializableObject) -> str:
    """Return a hash of an identifier; the order of keys does not matter."""
    try:
        text = _to_json(identifier)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"an identifier must be a JSON value: {error}") from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(vectors: ArrayLike) -> bytes:
    """Return an array as ``numpy.save`` writes it."""
    try:
        array = np.asarray(vectors)
    except ValueError as error:  # vectors of different lengths
        raise InvalidInput("embeddings must be vectors of numbers, of equal length") from error
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"embeddings must be vectors of numbers, got {array.dtype}")
    return _header(array.shape, array.dtype.str) + array.tobytes()


@lru_cache(maxsize=256)
def _header(shape: tuple[int, ...], dtype: str) -> bytes:
    """Return the header of a file, which all vectors of one length share."""
    file = io.BytesIO()
    form = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, form)
    return file.getvalue()


def _decode(data: bytes) -> NDArray[Any] | None:
    """Return an array that ``numpy.save`` wrote, or None for any other data; never unpickle."""
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
    """Return where the header ends: magic, version (2 bytes), length (2 or 4 bytes), header."""
    form = "<H" if data[6:7] == b"\x01" else "<I"
    begin = 8 + struct.calcsize(form)
    return begin + int(struct.unpack(form, data[8:begin])[0])


@lru_cache(maxsize=256)
def _form(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Parse a header with numpy; all vectors of one length share it."""
    file = io.BytesIO(header)
    is_first = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    return read(file)
