"""Who matches a question by itself, and not for the sake of what stands beside it.

An entry does if its own text has a word of the question, or its own vector is near the question's.
Stop words count only where a question has no others; speakers' names and talk about talking, which
say little for the order, count here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .ranking import Question, Ranked
from .sparse.index import SparseIndex
from .text.stopwords import query_words

# Cosine from which on a text is about the same. Of questions beside turns of talks that they are
# not about, 1 in 100 is nearer, both with MiniLM and with static vectors (LoCoMo). "hi there" is
# .297 near the nearest thing that merely looks like it; "what sport do I enjoy?" is .32 (static) or
# .70 (MiniLM) near "I like tennis". A model of another kind may need another floor.
LIKENESS_FLOOR = 0.3


class Matcher:
    """One question, put to candidates one by one; ``floor`` is the cosine that is near enough."""

    def __init__(
        self, question: Question, catalogue: Catalogue, sparse: SparseIndex, floor: float
    ) -> None:
        self._question, self._catalogue = question, catalogue
        self._sparse, self._floor = sparse, floor

    def only_matching(self, ranked: Ranked) -> Ranked:
        """Return a ranking of those candidates alone that match by themselves."""
        pool, totals = ranked.pool, ranked.totals
        is_match = self._have_words(ranked) | (pool.cosines >= self._floor)
        if not self.has_other_words:  # then all of them are in order already
            return replace(ranked, order=ranked.order[is_match.take(ranked.order)])
        matched = np.flatnonzero(is_match)
        ages = self._catalogue.ages[pool.rows[matched]]
        order = matched[np.lexsort((-ages, -totals[matched].round(9)))]
        return replace(ranked, order=order)

    @cached_property
    def has_other_words(self) -> bool:
        """Whether the question has words that candidates are not looked for by."""
        text, keywords = self._question.text, self._question.keywords
        if " ".join(text.split()) == keywords:
            return False
        return set(query_words(text)) != set(query_words(keywords))

    def _have_words(self, ranked: Ranked) -> NDArray[np.bool_]:
        found = ranked.pool.scores > 0
        if self.has_other_words:
            found |= self._sparse.scores(self._question.text, ranked.pool.rows) > 0
        return found
