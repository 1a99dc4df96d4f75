"""Public data sets as plain values, and the metrics that score recall and answers on them."""

from __future__ import annotations

from .datasets import (
    Corpus,
    Item,
    Question,
    load_beam,
    load_cmrc,
    load_hotpot_own,
    load_hotpot_pool,
    load_locomo,
    load_longmemeval,
)
from .metrics import all_at, any_at, fraction_at, ndcg_at, reciprocal_rank

__all__ = [
    "Corpus",
    "Item",
    "Question",
    "all_at",
    "any_at",
    "fraction_at",
    "load_beam",
    "load_cmrc",
    "load_hotpot_own",
    "load_hotpot_pool",
    "load_locomo",
    "load_longmemeval",
    "ndcg_at",
    "reciprocal_rank",
]
