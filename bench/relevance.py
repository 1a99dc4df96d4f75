"""Fit what services call a score to questions with and without an answer, and say how far it holds.

    python bench/relevance.py --data-path FOLDER [--embedder best|none] [--cache FOLDER] [--write]

A question counts as answered if its first hit is right. Without an answer are: questions of
personal memory on what was never said, and questions of LoCoMo and BEAM put to a person's memory
or to another conversation. What is printed was fitted with a sixth of all memories left out in
turn: how often an answerable question stands above another (AUC), how many questions without an
answer are above the score that keeps nine of ten right first hits (false recall), and how often
hits of each score are right. ``--write`` writes the weights, and with matplotlib a plot,
``results/relevance.svg``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tune_personal import PEOPLE, chosen_embedder, filled, is_right, read_people

from memoryspace.embedding import Embedder
from memoryspace.evaluation.boards import BOARDS, asked_at
from memoryspace.evaluation.boards import filled as with_corpus
from memoryspace.retrieval import AllOf, Condition, Only, Recall, relevance
from memoryspace.retrieval.conditions import ANYTHING
from memoryspace.retrieval.recall import _SearchRequest

WEIGHTS = Path(relevance.__file__).with_name("relevance.json")
PLOT = Path(__file__).parent.parent / "results" / "relevance.svg"
SIGNS = {
    "words": ("words", "words around it", "never mentioned", "none"),
    "words and vectors": ("nearness", "nearest", "words", "never mentioned", "none"),
    "personal words": ("points", "never mentioned", "none"),
    "personal words and vectors": ("points", "nearest", "never mentioned", "none"),
}
SEARCHED = AllOf(
    (
        Only(kind=frozenset({"memory", "fact", "insight"})),
        Only(without=frozenset({"superseded"})),
    )
)
FOLDS, OWN, FOREIGN = 6, 80, 60
UNRELATED = 5  # prompts put to each person's memory: some 500 in all


class Tried(NamedTuple):
    """A question put to a memory: whether it has an answer there, and what its first hit is."""

    sort: str
    board: str
    memory: str
    has_answer: bool
    is_right: bool
    signs: dict[str, float]


def main() -> None:
    options = _options()
    embedder = chosen_embedder(options.embedder, options.cache)
    tried = [*_of_people(options.data_path, embedder), *_of_boards(options.data_path, embedder)]
    weights = json.loads(WEIGHTS.read_text("utf-8"))
    shown = {}
    for sort in sorted({each.sort for each in tried}):
        some = [each for each in tried if each.sort == sort]
        shown[sort] = (some, _left_out(some, SIGNS[sort]))
        _report(sort, *shown[sort])
        fitted = _fitted(some, SIGNS[sort]).tolist()
        weights[sort] = {
            name: round(each, 2) for name, each in zip(SIGNS[sort], fitted, strict=True)
        }
        print("  ", weights[sort])
    if options.write:
        WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")
        _draw(shown)


def _of_people(data: Path, embedder: Embedder | None) -> Iterator[Tried]:
    foreign = [
        question.text
        for name in ("locomo", "beam")
        for corpus in BOARDS[name][0].load(data)
        for question in corpus.questions
    ]
    dice = random.Random(7)
    for person in [*read_people(data / "personal_dev.jsonl"), *read_people(PEOPLE)]:
        recall = asyncio.run(filled(person, embedder))
        board = "personal dev" if person["id"][0] == "d" else "our people"
        for prompt in dice.sample(foreign, UNRELATED):
            first, sort, signs = _first(recall, prompt, None, SEARCHED)
            if first is not None:
                yield Tried(sort, "unrelated", person["id"], False, False, signs)
        for question in person["questions"]:
            now = datetime.fromisoformat(question["time"]).timestamp()
            first, sort, signs = _first(recall, question["text"], now, SEARCHED)
            has_answer = question["category"] != "abstain"
            if first is None or question["category"] == "sensitive":
                continue
            right = has_answer and is_right(question, first.record, first.text)
            yield Tried(sort, board, person["id"], has_answer, right, signs)


def _of_boards(data: Path, embedder: Embedder | None) -> Iterator[Tried]:
    dice = random.Random(3)
    for name in ("locomo", "beam"):
        corpora = BOARDS[name][0].load(data)
        for corpus in corpora:
            recall = with_corpus(corpus, Recall(embedder=embedder))
            foreign = [q for other in corpora if other is not corpus for q in other.questions]
            own = dice.sample(corpus.questions, min(OWN, len(corpus.questions)))
            for question in (*own, *dice.sample(foreign, FOREIGN)):
                is_own = question in own
                now = asked_at(question, corpus)
                first, sort, signs = _first(recall, question.text, now, ANYTHING)
                if first is not None:
                    right = is_own and first.id in question.gold
                    yield Tried(sort, name, corpus.name, is_own, right, signs)


def _first(recall: Recall, text: str, now: float | None, only: Condition) -> tuple:
    ranked = recall._ranked(_SearchRequest(text, only, now, None, 10))
    if not len(ranked):
        return None, "", {}
    signs = relevance.signs_of(ranked, ranked.order[:1])
    plain = {name: float(each[0]) for name, each in signs.items()}
    return recall.catalogue.at(int(ranked.rows[0])), relevance.sort_of(ranked), plain


def _left_out(some: Sequence[Tried], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the chance of each, fitted without the sixth of the memories that it is of."""
    folds = {name: at % FOLDS for at, name in enumerate(sorted({each.memory for each in some}))}
    chances = np.zeros(len(some))
    for fold in range(FOLDS):
        weights = _fitted([each for each in some if folds[each.memory] != fold], names)
        for at, each in enumerate(some):
            if folds[each.memory] == fold:
                total = sum(w * each.signs[n] for w, n in zip(weights, names, strict=True))
                chances[at] = 1 / (1 + np.exp(-total))
    return chances


def _fitted(some: Sequence[Tried], names: Sequence[str]) -> NDArray[np.float64]:
    """Fit a logistic regression by Newton's method."""
    table = np.array([[each.signs[name] for name in names] for each in some])
    wanted = np.array([each.is_right for each in some], float)
    weights = np.zeros(len(names))
    for _ in range(30):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (wanted - chance) - weights
        bend = (table * (chance * (1 - chance))[:, None]).T @ table + np.eye(len(names))
        weights += np.linalg.solve(bend, slope)
    return weights


def _report(sort: str, some: Sequence[Tried], chances: NDArray[np.float64]) -> None:
    print(sort)
    for board in sorted({each.board for each in some}):
        rows = [(c, each) for c, each in zip(chances, some, strict=True) if each.board == board]
        known = [c for c, each in rows if each.has_answer]
        none = [c for c, each in rows if not each.has_answer]
        right = sorted(c for c, each in rows if each.is_right)
        if not right:
            passed = np.mean([c >= relevance.RELEVANT for c in none])
            print(f"  {board:14} n {len(rows):4} from {relevance.RELEVANT} on: {passed:.3f}")
            continue
        wins = np.mean([(a > b) + (a == b) / 2 for a in known for b in none])
        least = right[len(right) // 10]
        kept = np.mean([c >= relevance.RELEVANT for c in right])
        passed = np.mean([c >= relevance.RELEVANT for c in none])
        print(
            f"  {board:14} n {len(rows):4} AUC {wins:.3f}, "
            f"false recall {np.mean(np.array(none) >= least):.3f}; "
            f"from {relevance.RELEVANT} on: right {kept:.3f}, without answer {passed:.3f}"
        )
    for low, count, share in _reliability(some, chances):
        print(f"    {low:.1f}-{low + 0.1:.1f}: {count:4} hits, right {share:.2f}")


def _reliability(
    some: Sequence[Tried], chances: NDArray[np.float64]
) -> Iterator[tuple[float, int, float]]:
    for low in np.arange(0, 1, 0.1):
        right = [
            each.is_right
            for c, each in zip(chances, some, strict=True)
            if low <= c < low + 0.1 + 1e-9
        ]
        if right:
            yield float(low), len(right), float(np.mean(right))


def _draw(shown: dict[str, tuple[list[Tried], NDArray[np.float64]]]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 4.5))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for sort, (some, chances) in shown.items():
        points = [
            (low + 0.05, share) for low, count, share in _reliability(some, chances) if count > 9
        ]
        axes.plot(*zip(*points, strict=True), marker="o", label=sort)
    axes.set(xlabel="relevance of the first hit", ylabel="how often it is right")
    axes.legend()
    figure.savefig(PLOT, metadata={"Date": None})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--embedder", default="best", choices=("best", "none", "static", "minilm"))
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in")
    parser.add_argument("--write", action="store_true", help="write the weights and the plot")
    return parser.parse_args()


if __name__ == "__main__":
    main()
