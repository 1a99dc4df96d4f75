"""The CMRC 2018 board: recall, and answers based on it."""

from __future__ import annotations

from ...evaluation.datasets import load_cmrc
from .board_answers import board_experiment
from .recall_boards import RecallBoard

EXPERIMENT = board_experiment(
    RecallBoard(
        "zh",
        "CMRC 2018, Chinese paragraphs",
        ("cmrc2018_zh.jsonl.gz",),
        lambda paths: load_cmrc(paths[0]),
        chinese=True,
    )
)
