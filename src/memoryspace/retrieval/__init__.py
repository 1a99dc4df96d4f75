"""Retrieval: search over stored messages and facts, by words and by meaning.

``Recall`` answers questions. It is built on indexes over int keys, in memory and synchronous:
``SparseIndex`` for words, ``DenseIndex`` for vectors, ``Generations`` for several of the latter.
``SimilarityRetriever``, ``SlidingWindow`` and ``Reservoir`` are simple baselines to compare with.
"""

from __future__ import annotations

from .baselines import Reservoir, ReservoirMemory, SlidingWindow, SlidingWindowMemory
from .conditions import AllOf, AnyOf, Condition, Item, Not
from .dense.generations import Generations
from .dense.index import DenseIndex
from .entries import Entry, Only, entry_of
from .hits import Hit, SessionHit, Why, WhyNot
from .persistence import OutdatedIndex
from .ranking import Ranking, Reranker, default_ranking
from .recall import Recall
from .recording import Recording, Replay, record, replay
from .similarity import SimilarityRetriever
from .sparse.index import SparseIndex
from .text.analysis import text_of, tokens
from .times import TimeSpan, times_in
from .vector_arm import EmbedderStatus

__all__ = [
    "AllOf",
    "AnyOf",
    "Condition",
    "DenseIndex",
    "EmbedderStatus",
    "Entry",
    "Generations",
    "Hit",
    "Item",
    "Not",
    "Only",
    "OutdatedIndex",
    "Ranking",
    "Recall",
    "Recording",
    "Replay",
    "Reranker",
    "Reservoir",
    "ReservoirMemory",
    "SessionHit",
    "SimilarityRetriever",
    "SlidingWindow",
    "SlidingWindowMemory",
    "SparseIndex",
    "TimeSpan",
    "Why",
    "WhyNot",
    "default_ranking",
    "entry_of",
    "record",
    "replay",
    "text_of",
    "times_in",
    "tokens",
]
