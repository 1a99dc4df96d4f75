"""Find the weights of personal memory's second look, and say how far to trust them.

    python tools/tune_personal.py --data-path FOLDER [--embedder best|none|static|minilm] [--write]

The people are those of ``personal_dev.jsonl`` in the folder and those of ``tools/people.jsonl.gz``,
which were written for this. Each question is a choice among its candidates: the weights are fitted
so that the softmax of the weighted sum puts its mass on right answers. Then, of each question's
best candidates, the signs that a later message supersedes an earlier one are fitted by logistic
regression. What is printed was fitted with the person's own sixth of all people left out;
``--write`` writes weights fitted to everybody.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from memoryspace.bench.boards.recall_boards import embedder_of
from memoryspace.bench.quality.people import filled, is_right, read_people
from memoryspace.embedding import Embedder
from memoryspace.retrieval import AllOf, Only
from memoryspace.retrieval.personal import currency, reader
from memoryspace.retrieval.personal.signals import SIGNALS, signals
from memoryspace.retrieval.ranking import Ranker, ask

PEOPLE = Path(__file__).with_name("people.jsonl.gz")
WEIGHTS = Path(reader.__file__).with_name("weights.json")
FOLDS = 6
UNANSWERABLE = ("abstain", "sensitive")
SHRINK, STEPS = 0.5, 400


@dataclass
class Asked:
    """A question with what a second look saw, and which of the candidates are right."""

    person: str
    question: dict
    signals: NDArray[np.float64]
    right: NDArray[np.bool_]
    stale: NDArray[np.bool_]
    look: reader.Look
    pairs: dict = field(default_factory=dict)
    totals: NDArray[np.float64] | None = None


def main() -> None:
    options = _options()
    embedder = embedder_of(options.embedder, options.cache)
    people = [*read_people(options.data_path / "personal_dev.jsonl"), *read_people(PEOPLE)]
    every = [each for person in people for each in looked_at(person, embedder)]
    folds = {name: at % FOLDS for at, name in enumerate(sorted({each.person for each in every}))}
    for fold in range(FOLDS):
        weights = fit_signals([each for each in every if folds[each.person] != fold])
        for each in every:
            if folds[each.person] == fold:
                each.totals = each.signals @ weights
    report("signals alone", every)
    for each in every:
        add_pairs(each)
    for least in (0.25, 0.3, 0.35, 0.4, 0.5, 0.6):
        report(f"currency from {least}", [_raised(each, every, folds, least) for each in every])
    print(json.dumps({k: round(v, 2) for k, v in zip(SIGNALS, fit_signals(every), strict=True)}))
    print(json.dumps(fit_signs(every)))
    if options.write:
        write(options.embedder, every)


_SIGNS_CACHE: dict[int, dict[str, float]] = {}  # by fold


def _raised(each: Asked, every: Sequence[Asked], folds: dict[str, int], least: float) -> Asked:
    fold = folds[each.person]
    if fold not in _SIGNS_CACHE:
        _SIGNS_CACHE[fold] = fit_signs([one for one in every if folds[one.person] != fold])
    totals = each.totals.copy()
    for (old, new), signs in sorted(each.pairs.items(), key=lambda pair: pair[0]):
        if currency.chance_of(signs, _SIGNS_CACHE[fold]) >= least and totals[old] > totals[new]:
            totals[new] = totals[old] + 1e-3
    return Asked(
        each.person, each.question, each.signals, each.right, each.stale, each.look, totals=totals
    )


def looked_at(person: dict, embedder: Embedder | None) -> Iterator[Asked]:
    recall = asyncio.run(filled(person, embedder))
    only = AllOf(
        (
            Only(kind=frozenset({"memory", "fact", "insight"})),
            Only(without=frozenset({"superseded"})),
        )
    )
    for question in person["questions"]:
        now = datetime.fromisoformat(question["time"])
        asked = ask(question["text"], now, recall.catalogue.values_of("speaker"))
        ranker = Ranker(
            asked, recall.catalogue.allowed(only), recall, recall.ranking, now.timestamp()
        )
        look = recall._reader.look(ranker.rank(), asked, recall, now.timestamp())
        if look is None:
            continue
        seen = signals(look.question, look.candidates, look.rarity)
        table = np.stack([seen.get(name, np.zeros(len(look.places))) for name in SIGNALS], axis=1)
        entries = [recall.catalogue.at(int(row)) for row in look.rows]
        ids = [entry.record for entry in entries]
        right = [
            is_right(question, each, text)
            for each, text in zip(ids, (entry.text for entry in entries), strict=True)
        ]
        stale = [
            each in question["stale_turns"] and each not in question["gold_turns"] for each in ids
        ]
        yield Asked(person["id"], question, table, np.array(right), np.array(stale), look)


def fit_signals(every: Sequence[Asked]) -> NDArray[np.float64]:
    """Fit by gradient with momentum, on padded arrays."""
    some = [e for e in every if e.question["category"] not in UNANSWERABLE and e.right.any()]
    size = max(len(each.right) for each in some)
    table = np.zeros((len(some), size, len(SIGNALS)))
    right, there = np.zeros((len(some), size), bool), np.zeros((len(some), size), bool)
    for at, each in enumerate(some):
        n = len(each.right)
        table[at, :n], right[at, :n], there[at, :n] = each.signals, each.right, True
    weights = np.zeros(len(SIGNALS))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = np.where(there, table @ weights, -1e9)
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        gold = np.where(right, chance, 0.0)
        gold /= np.maximum(gold.sum(axis=1, keepdims=True), 1e-12)
        slope = np.einsum("qn,qnk->k", gold - chance, table) - 2 * SHRINK * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights += 0.1 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def add_pairs(each: Asked) -> None:
    """Find the signs of every pair among the best."""
    if not each.look.question.is_present:
        return
    best = reader.best_statements(each.look, each.totals)
    statements = each.look.statements(best)
    facts = each.look.facts_among(best)
    found = currency.signs_of(each.look.question, statements, each.look.rarity, facts)
    each.pairs = {(best[old], best[new]): signs for (old, new), signs in found.items()}


def fit_signs(every: Sequence[Asked]) -> dict[str, float]:
    """Fit by Newton's method: does the later one of a pair take the earlier's place?"""
    rows, labels = [], []
    for each in every:
        if each.question["category"] in UNANSWERABLE:
            continue
        for (old, new), signs in each.pairs.items():
            if each.stale[old] and each.right[new]:
                labels.append(1.0)
            elif each.right[old] and not each.right[new]:
                labels.append(0.0)
            else:
                continue
            rows.append([signs[name] for name in currency.SIGNS])
    table, wanted = np.array(rows), np.array(labels)
    weights = np.zeros(len(currency.SIGNS))
    for _ in range(30):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (wanted - chance) - weights
        bend = (table * (chance * (1 - chance))[:, None]).T @ table + np.eye(len(weights))
        weights += np.linalg.solve(bend, slope)
    return {name: round(float(w), 2) for name, w in zip(currency.SIGNS, weights, strict=True)}


def report(label: str, every: Sequence[Asked]) -> None:
    for who, some in (
        ("dev", [e for e in every if e.person[0] == "d"]),
        ("ours", [e for e in every if e.person[0] != "d"]),
    ):
        known = [e for e in some if e.question["category"] not in UNANSWERABLE]
        order = [np.argsort(-e.totals, kind="stable") for e in known]
        first = [bool(e.right[o[0]]) for e, o in zip(known, order, strict=True)]
        three = [bool(e.right[o[:3]].any()) for e, o in zip(known, order, strict=True)]
        update = [
            r for r, e in zip(first, known, strict=True) if e.question["category"] == "update"
        ]
        stale = [
            bool(e.stale[o[0]])
            for e, o in zip(known, order, strict=True)
            if e.question["stale_turns"]
        ]
        print(f"{label:22} {who:5} first {np.mean(first):.3f} in 3 {np.mean(three):.3f} "
              f"update {np.mean(update):.3f} stale first {np.mean(stale):.3f}")  # fmt: skip


def write(embedder: str, every: Sequence[Asked]) -> None:
    data = json.loads(WEIGHTS.read_text("utf-8"))
    fitted = {k: round(float(v), 2) for k, v in zip(SIGNALS, fit_signals(every), strict=True)}
    chosen = {"signals": {k: v for k, v in fitted.items() if v}, "signs": fit_signs(every)}
    data["words" if embedder == "none" else "words and vectors"] = chosen
    WEIGHTS.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--embedder", default="best", choices=("best", "none", "static", "minilm"))
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in")
    parser.add_argument("--write", action="store_true", help="write weights.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
