"""The BEAM-100K board: recall, and answers based on it."""

from __future__ import annotations

from ...evaluation.datasets import load_beam
from .board_answers import board_experiment
from .recall_boards import RecallBoard

EXPERIMENT = board_experiment(
    RecallBoard(
        "beam",
        "BEAM-100K, messages",
        ("beam_100k.jsonl.gz",),
        lambda paths: load_beam(paths[0]),
    )
)
