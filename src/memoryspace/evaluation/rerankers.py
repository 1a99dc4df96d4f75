"""Two rerankers without extra dependencies; ``Recall`` accepts either as ``reranker``.

Neither uses a model trained to rerank. ``TokenReranker`` uses a sentence embedder: each token of
the question is matched to its most similar token in the text (late interaction as in ColBERT, but
with vectors that were not trained for it). ``WordReranker`` counts words. Neither sees all signals
of the first ranking, so neither overrules it: the original rank and the new score are combined by
reciprocal rank fusion.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..embedding import Embedder, MiniLMEmbedder
from ..retrieval import Reranker
from ..retrieval.text.words import words

PLACES = 10  # added to a rank; dampens the lead of the first place over the second
_KEPT = 64 << 20  # bytes of cached token vectors


def reranker_for(embedder: Embedder | None) -> tuple[str, Reranker]:
    """Return the reranker for an embedder, and its name."""
    if isinstance(embedder, MiniLMEmbedder):
        return "MiniLM tokens, max-sim, with place", TokenReranker(embedder)
    return "shared words, with place", WordReranker()


class TokenReranker:
    """Scores a text by its best cosine per question token, averaged, and by its original rank."""

    def __init__(self, embedder: MiniLMEmbedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        self._bytes = 0

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text."""
        asked = self._embedder.embed_tokens([question])[0]
        rows = self._tokens(texts)
        scores = [
            float((asked @ each.T.astype(np.float32)).max(axis=1).mean())
            if len(asked) and len(each)
            else 0.0
            for each in rows
        ]
        return blended(scores)

    def _tokens(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        """Return the token vectors of each text; recent ones are cached for the next question."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for text, rows in zip(new, self._embedder.embed_tokens(new), strict=True):
            self._kept[text] = rows.astype(np.float16)
            self._bytes += self._kept[text].nbytes
        for text in texts:
            self._kept.move_to_end(text)
        found = [self._kept[text] for text in texts]
        while self._bytes > _KEPT:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.nbytes
        return found


class WordReranker:
    """Scores a text by its share of the question's words, weighted by rarity, and its rank."""

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text."""
        wanted = frozenset(words(question))
        said = [wanted & frozenset(words(text)) for text in texts]
        known = Counter(word for each in said for word in each)
        worth = {word: math.log(1 + len(texts) / (1 + known[word])) for word in wanted}
        return blended([sum(worth[word] for word in each) for each in said])


def blended(scores: Sequence[float]) -> list[float]:
    """Return sums of reciprocal ranks: by score, and by original position."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])  # ties keep their order
    by_score = {place: rank for rank, place in enumerate(order)}
    return [1 / (PLACES + by_score[place]) + 1 / (PLACES + place) for place in range(len(scores))]
