"""The LongMemEval-S board: recall, and answers based on it."""

from __future__ import annotations

from ...evaluation.datasets import load_longmemeval
from .board_answers import board_experiment
from .recall_boards import RecallBoard

EXPERIMENT = board_experiment(
    RecallBoard(
        "longmemeval",
        "LongMemEval-S, sessions",
        (
            "longmemeval_s_questions.jsonl.gz",
            "longmemeval_s_sessions.jsonl.gz",
        ),
        lambda paths: load_longmemeval(paths[0], paths[1]),
    )
)
