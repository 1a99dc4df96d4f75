"""The filter behind ``matching=True``: entries that match by themselves, without their context.

An entry matches if its own text has a word of the question, or its own vector is near the
question's. Stop words count only if a question has no other words. Speakers' names and words about
the conversation itself hardly affect the ranking, but they count here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .ranking import ParsedQuestion, Ranked
from .sparse.index import SparseIndex
from .text.stopwords import query_words

# The cosine from which two texts count as similar. Of pairs of a LoCoMo question and a turn of an
# unrelated conversation, 1 in 100 exceeds it, both with MiniLM and with static vectors. "hi there"
# has .297 to its nearest unrelated text; "what sport do I enjoy?" has .32 (static) or .70 (MiniLM)
# to "I like tennis". Other models may need another floor.
LIKENESS_FLOOR = 0.3


class Matcher:
    """Tests candidates against one question; ``floor`` is the least cosine that matches."""

    def __init__(
        self, question: ParsedQuestion, catalogue: Catalogue, sparse: SparseIndex, floor: float
    ) -> None:
        self._question, self._catalogue = question, catalogue
        self._sparse, self._floor = sparse, floor

    def only_matching(self, ranked: Ranked) -> Ranked:
        """Return the ranking without the candidates that do not match by themselves."""
        pool, totals = ranked.pool, ranked.totals
        is_match = self._have_words(ranked) | (pool.cosines >= self._floor)
        if not self.has_other_words:  # then every match is in the order already
            return replace(ranked, order=ranked.order[is_match.take(ranked.order)])
        matched = np.flatnonzero(is_match)
        ages = self._catalogue.ages[pool.rows[matched]]
        order = matched[np.lexsort((-ages, -totals[matched].round(9)))]
        return replace(ranked, order=order)

    @cached_property
    def has_other_words(self) -> bool:
        """Whether the question has words that propose no candidates."""
        text, keywords = self._question.text, self._question.keywords
        if " ".join(text.split()) == keywords:
            return False
        return set(query_words(text)) != set(query_words(keywords))

    def _have_words(self, ranked: Ranked) -> NDArray[np.bool_]:
        found = ranked.pool.scores > 0
        if self.has_other_words:
            found |= self._sparse.scores(self._question.text, ranked.pool.rows) > 0
        return found
