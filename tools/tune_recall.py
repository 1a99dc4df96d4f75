"""Find weights for the signals of recall, on development data, and say how far to trust them.

    python tools/tune_recall.py --data-path FOLDER [--embedder none|static|minilm]

Each question is a choice among its candidates: the weights are fitted so that the softmax of the
weighted sum puts its mass on the evidence (listwise logistic loss, weights never negative, every
data set counting the same). The figures printed are: the shipped weights, the weights fitted to all
questions, and, for an honest view, weights fitted with the question's own conversation left out.
The shipped weights are the fitted ones rounded by hand; signals that one data set alone would want
bigger were kept smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from memoryspace.embedding import Embedder, MiniLMEmbedder, StaticEmbedder
from memoryspace.evaluation.boards import BOARDS, Board, asked_at, filled
from memoryspace.evaluation.datasets import Corpus, Question
from memoryspace.retrieval import Ranking, Recall, default_ranking
from memoryspace.retrieval.ranking.weights import SIGNALS

Matrix = NDArray[np.float64]

NAMES = sorted(SIGNALS)
HOPS = {
    "named",
    "bridge",
    "names the best",
    "shares a name",
}  # fitted last, by hand: they depend on the order
FITTED = ("locomo", "beam")
CANDIDATES = 150  # per question, and its evidence: those further down decide nothing
STEPS, RATE, SHRINK = 400, 0.05, 1e-3


@dataclass(frozen=True)
class Choice:
    """A question: its candidates' signals, and which of them are evidence."""

    corpus: str
    signals: Matrix
    is_gold: NDArray[np.bool_]


def main() -> None:
    options = _options()
    embedder = {"none": lambda: None, "static": StaticEmbedder, "minilm": MiniLMEmbedder}[
        options.embedder
    ]()
    choices = {
        name: [
            each for board in BOARDS[name] for each in _choices(board, options.data_path, embedder)
        ]
        for name in FITTED
    }
    shipped = _vector(default_ranking().weights(with_vectors=embedder is not None))
    fitted = _fitted(choices)
    report = {
        "embedder": options.embedder,
        "fitted": {name: round(float(w), 2) for name, w in zip(NAMES, fitted, strict=True) if w},
        "fraction@10 of the evidence among the candidates": {
            name: {
                "shipped": _mean(each, [shipped] * len(each)),
                "fitted to all": _mean(each, [fitted] * len(each)),
                "fitted without its conversation": _mean(each, _left_out(name, choices)),
            }
            for name, each in choices.items()
        },
    }
    text = json.dumps(report, indent=1)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(f".{options.embedder}.json").write_text(text + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--embedder", choices=["none", "static", "minilm"], default="none")
    parser.add_argument("--out", type=Path, default=Path("results/tune_recall"))
    return parser.parse_args()


def _choices(board: Board, data_path: Path, embedder: Embedder | None) -> Iterable[Choice]:
    for corpus in board.load(data_path):
        print(f"{board.name}: {corpus.name}", file=sys.stderr)
        recall = filled(corpus, Recall(embedder=embedder, ranking=_every_signal()))
        for question in corpus.questions:
            yield _choice(recall, corpus, question)


def _every_signal() -> Ranking:
    """A ranking whose explanations show every signal as it is."""
    ones = dict.fromkeys(NAMES, 1.0)
    return Ranking(words=ones, words_and_vectors=ones, always=ones)


def _choice(recall: Recall, corpus: Corpus, question: Question) -> Choice:
    now = asked_at(question, corpus)
    hits = recall.search(question.text, len(corpus.items), now=now, explain=True)
    kept = [hit for place, hit in enumerate(hits) if place < CANDIDATES or hit.id in question.gold]
    signals = np.array(
        [[(hit.why.signals if hit.why else {}).get(name, 0.0) for name in NAMES] for hit in kept]
    ).reshape(len(kept), len(NAMES))
    return Choice(corpus.name, signals, np.array([hit.id in question.gold for hit in kept]))


def _fitted(choices: dict[str, list[Choice]], without: str | None = None) -> Matrix:
    """Projected Adam on the listwise loss."""
    used = [
        (each, 1 / len(group))
        for group in choices.values()
        for each in group
        if each.is_gold.any() and each.corpus != without
    ]
    weights, mean, square = (np.zeros(len(NAMES)) for _ in range(3))
    frozen = np.array([name in HOPS for name in NAMES])
    for step in range(1, STEPS + 1):
        slope = 2 * SHRINK * weights
        for choice, share in used:
            slope += share * _slope(choice, weights)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
        weights = np.where(frozen, 0.0, np.maximum(weights - RATE * move, 0.0))
    return weights


def _slope(choice: Choice, weights: Matrix) -> Matrix:
    scores = choice.signals @ weights
    chances = np.exp(scores - scores.max())
    wanted = choice.is_gold / choice.is_gold.sum()
    slope: Matrix = choice.signals.T @ (chances / chances.sum() - wanted)
    return slope


def _left_out(name: str, choices: dict[str, list[Choice]]) -> list[Matrix]:
    conversations = dict.fromkeys(choice.corpus for choice in choices[name])
    fits = {each: _fitted(choices, without=each) for each in conversations}
    return [fits[choice.corpus] for choice in choices[name]]


def _mean(choices: list[Choice], weights: list[Matrix]) -> float:
    found = []
    for choice, each in zip(choices, weights, strict=True):
        best = np.argsort(-(choice.signals @ each), kind="stable")[:10]
        found.append(choice.is_gold[best].sum() / max(choice.is_gold.sum(), 1))
    return round(float(np.mean(found)), 4)


def _vector(weights: dict[str, float]) -> Matrix:
    return np.array([0.0 if name in HOPS else weights.get(name, 0.0) for name in NAMES])


if __name__ == "__main__":
    main()
