"""Ranking: a question taken apart, candidates, signals, weights that are data, a sum."""

from __future__ import annotations

from .asking import Question, ask
from .coverage import WIDE, covered
from .fusion import Ranked, Ranker
from .profiles import Profiles
from .reordering import Reranker, reread, varied
from .weights import Ranking, default_ranking

__all__ = [
    "WIDE",
    "Profiles",
    "Question",
    "Ranked",
    "Ranker",
    "Ranking",
    "Reranker",
    "ask",
    "covered",
    "default_ranking",
    "reread",
    "varied",
]
