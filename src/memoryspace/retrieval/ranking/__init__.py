"""Ranking: parses a question, gathers candidates, scores them by weighted signals and sorts."""

from __future__ import annotations

from .asking import ParsedQuestion, ask
from .coverage import WIDE, covered
from .fusion import Ranked, Ranker
from .profiles import Profiles
from .reordering import Reranker, reread, varied
from .weights import Ranking, default_ranking

__all__ = [
    "WIDE",
    "ParsedQuestion",
    "Profiles",
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
