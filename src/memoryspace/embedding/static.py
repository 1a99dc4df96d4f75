"""``StaticEmbedder``: averaged word vectors. Fast and small, without a network.

The weights are those of WordLlama (256 dimensions, MIT licence). They are read from the installed
package, which is not imported.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import CorruptData
from .bpe import BytePairs
from .contract import Vectors, check_texts, normalised
from .installed import MissingWeights, package_folder
from .safetensors import read_tensors
from .scripts import LATIN

PACKAGE = "wordllama"

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_AT_ONCE = 1 << 14  # tokens


class StaticEmbedder:
    """WordLlama's vectors (``pip install --no-deps wordllama``), loaded on first use.

    They know words, not their order, and English best: it ranks Latin script only.

    Args:
        folder: The folder of the package; by default the installed one.

    Raises:
        MissingWeights: If the weights are not installed.
    """

    name = "wordllama-l2-supercat/256"
    dimensions = 256
    scripts: frozenset[str] | None = LATIN

    def __init__(self, folder: str | Path | None = None) -> None:
        found = Path(folder) if folder is not None else package_folder(PACKAGE)
        if found is None or not (found / _WEIGHTS).is_file():
            raise MissingWeights(PACKAGE, found)
        self._folder = found
        self._lock = threading.Lock()
        self._loaded: tuple[BytePairs, Vectors] | None = None

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the mean of each text's word vectors, scaled to length 1."""
        checked = check_texts(texts)
        rows = np.zeros((len(checked), self.dimensions), np.float32)
        tokenizer, weights = self._load()
        for number, text in enumerate(checked):
            if text and not text.isspace():
                self._add_up(weights, tokenizer.encode(text), rows[number])
        return normalised(rows)

    @staticmethod
    def _add_up(weights: Vectors, tokens: list[int], row: Vectors) -> None:
        for begin in range(0, len(tokens), _AT_ONCE):
            row += np.add.reduce(weights[tokens[begin : begin + _AT_ONCE]], axis=0)

    def _load(self) -> tuple[BytePairs, Vectors]:
        with self._lock:
            if self._loaded is None:
                path = self._folder / _WEIGHTS
                weights = read_tensors(path).get(_TENSOR)
                if weights is None or weights.ndim != 2 or weights.shape[1] != self.dimensions:
                    raise CorruptData(f"{path} does not hold the expected vectors")
                tokenizer = BytePairs.read(self._folder / _TOKENIZER)
                self._loaded = tokenizer, weights.astype(np.float32)
            return self._loaded
