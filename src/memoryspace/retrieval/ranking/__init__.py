"""Ranking: a question taken apart, candidates, signals, weights that are data, a sum."""

from __future__ import annotations

from .asking import Question, ask
from .fusion import Ranked, Ranker
from .profiles import Profiles
from .reordering import Reranker, reread, varied
from .weights import Ranking, default_ranking

__all__ = [
    "Profiles",
    "Question",
    "Ranked",
    "Ranker",
    "Ranking",
    "Reranker",
    "ask",
    "default_ranking",
    "reread",
    "varied",
]
