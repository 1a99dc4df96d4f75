"""The LoCoMo board: recall, and answers based on it."""

from __future__ import annotations

from ...evaluation.datasets import load_locomo
from .board_answers import board_experiment
from .recall_boards import RecallBoard

EXPERIMENT = board_experiment(
    RecallBoard(
        "locomo",
        "LoCoMo, turns, categories 1-4",
        ("locomo.jsonl.gz",),
        lambda paths: load_locomo(paths[0]),
    )
)
