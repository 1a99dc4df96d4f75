"""Boards: public data sets on which recall is measured through the public API, as shipped.

Each question is put to a ``Recall`` that holds only its own corpus. If a data set does not say when
a question is asked, it is asked at the time of the last item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..embedding import Embedder
from ..errors import InvalidInput
from ..retrieval import Entry, Ranking, Recall, Reranker, default_ranking
from ..retrieval.ranking.overview import wants_overview
from . import datasets
from .datasets import Corpus, Item, Question
from .metrics import all_at, any_at, fraction_at, ndcg_at, reciprocal_rank

DEPTH = 50  # ranks stored per question
SHOWN = 10  # results a caller asks for; the metrics look no deeper
RERANKED = "fused + rerank"  # the arm that ends with a reranker

Progress = Callable[[str, int, int], None]  # corpus, questions done, questions in total

METRICS: Mapping[str, Callable[[Sequence[str], frozenset[str]], float]] = {
    "any@1": lambda ranked, gold: any_at(1, ranked, gold),
    "any@5": lambda ranked, gold: any_at(5, ranked, gold),
    "any@10": lambda ranked, gold: any_at(10, ranked, gold),
    "all@5": lambda ranked, gold: all_at(5, ranked, gold),
    "all@10": lambda ranked, gold: all_at(10, ranked, gold),
    "fraction@5": lambda ranked, gold: fraction_at(5, ranked, gold),
    "fraction@10": lambda ranked, gold: fraction_at(10, ranked, gold),
    "MRR": reciprocal_rank,
    "nDCG@10": lambda ranked, gold: ndcg_at(10, ranked, gold),
}


@dataclass(frozen=True)
class Board:
    """A data set: its name, its metrics, and how to load it from a folder."""

    name: str
    about: str
    load: Callable[[Path], tuple[Corpus, ...]]


BOARDS: Mapping[str, tuple[Board, ...]] = {
    "locomo": (
        Board(
            "locomo",
            "LoCoMo, turns, categories 1-4",
            lambda at: datasets.load_locomo(at / "locomo_dev.jsonl.gz"),
        ),
    ),
    "longmemeval": (
        Board(
            "longmemeval",
            "LongMemEval-S, sessions",
            lambda at: datasets.load_longmemeval(
                at / "longmemeval_s_questions_dev.jsonl.gz",
                at / "longmemeval_s_sessions_dev.jsonl.gz",
            ),
        ),
    ),
    "hotpot": (
        Board(
            "hotpot-pool",
            "HotpotQA, paragraphs of 500 questions pooled",
            lambda at: datasets.load_hotpot_pool(at / "hotpotqa.jsonl.gz"),
        ),
        Board(
            "hotpot-own",
            "HotpotQA, each question's own paragraphs",
            lambda at: datasets.load_hotpot_own(at / "hotpotqa.jsonl.gz"),
        ),
    ),
    "beam": (
        Board(
            "beam",
            "BEAM-100K, messages",
            lambda at: datasets.load_beam(at / "beam_100k_dev.jsonl.gz"),
        ),
    ),
    "zh": (
        Board(
            "zh",
            "CMRC 2018, Chinese paragraphs",
            lambda at: datasets.load_cmrc(at / "cmrc2018_zh.jsonl.gz"),
        ),
    ),
}


@dataclass(frozen=True)
class Answer:
    """The ranking that one arm returned for one question."""

    corpus: str
    question: str
    category: str
    arm: str
    gold: tuple[str, ...]
    ranked: tuple[str, ...]


@dataclass
class Result:
    """The rankings of every arm for every question of a board."""

    board: Board
    embedder: str | None
    answers: list[Answer] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # seconds per arm, in all

    def arms(self) -> list[str]:
        """Return the arms in the order they ran."""
        return list(dict.fromkeys(answer.arm for answer in self.answers))

    def categories(self) -> list[str]:
        """Return the question categories, sorted."""
        return sorted({answer.category for answer in self.answers})

    def means(self, arm: str, category: str | None = None) -> dict[str, float]:
        """Return ``n`` and the mean of each metric, over all questions or one category."""
        chosen = [
            answer
            for answer in self.answers
            if answer.arm == arm and category in (None, answer.category)
        ]
        means = {
            name: sum(metric(each.ranked, frozenset(each.gold)) for each in chosen) / len(chosen)
            for name, metric in METRICS.items()
        }
        return {"n": len(chosen), **means}


def arms_of(embedder: Embedder | None) -> dict[str, Ranking]:
    """Return the arms to measure: each signal alone, and all of them fused."""
    default = default_ranking()
    arms = {"words": default.only("words")}
    if embedder is not None:
        arms["vectors"] = default.only("meaning")
    return {**arms, "fused": default}


def run(
    board: Board,
    data_path: Path,
    embedder: Embedder | None,
    progress: Progress | None = None,
    *,
    reranker: Reranker | None = None,
) -> Result:
    """Put every question of a board to a recall that holds its corpus.

    With a ``reranker`` there is one more arm, ``fused + rerank``.
    """
    if not data_path.is_dir():
        raise InvalidInput(f"there is no folder {data_path}; pass the one that holds the data sets")
    corpora, result = (
        board.load(data_path),
        Result(board, None if embedder is None else embedder.name),
    )
    for number, corpus in enumerate(corpora):
        if progress is not None:
            progress(board.name, number, len(corpora))
        _answer(result, corpus, embedder, reranker)
    if progress is not None:
        progress(board.name, len(corpora), len(corpora))
    return result


def filled(corpus: Corpus, recall: Recall) -> Recall:
    """Return a recall that holds every item of the corpus."""
    recall.add(map(_entry, corpus.items))
    return recall


def asked_at(question: Question, corpus: Corpus) -> float | None:
    """Return when a question is asked; by default, the time of the last item."""
    if question.time is not None:
        return question.time
    return max((item.time for item in corpus.items if item.time is not None), default=None)


def _answer(
    result: Result, corpus: Corpus, embedder: Embedder | None, reranker: Reranker | None
) -> None:
    recall = filled(corpus, Recall(embedder=embedder))
    arms: dict[str, tuple[Ranking, Reranker | None]] = {
        name: (ranking, None) for name, ranking in arms_of(embedder).items()
    }
    if reranker is not None:
        arms[RERANKED] = (default_ranking(), reranker)
    for question in corpus.questions:
        gold = tuple(sorted(question.gold))
        recall.reranker = None
        recall.search(question.text, 1)  # the first call embeds the question, so it is slower
        for arm, (ranking, reads) in arms.items():
            recall.reranker = reads
            began = time.perf_counter()
            ranked = tuple(ranked_by(recall, corpus, question, ranking))
            took = time.perf_counter() - began
            result.seconds[arm] = result.seconds.get(arm, 0.0) + took
            result.answers.append(
                Answer(corpus.name, question.id, question.category, arm, gold, ranked)
            )


def ranked_by(recall: Recall, corpus: Corpus, question: Question, ranking: Ranking) -> list[str]:
    """Return the ranked ids for a question, of items or of sessions, best first."""
    now = asked_at(question, corpus)
    if corpus.gold == "session":
        sessions = recall.sessions(question.text, DEPTH, now=now, ranking=ranking)
        return [hit.session for hit in sessions]
    # An overview is chosen for the number of hits asked for and sorted by time, so the first ten
    # of fifty differ from the result of asking for ten. Deeper hits are appended behind those ten.
    depths = (SHOWN, DEPTH) if wants_overview(question.text) else (DEPTH,)
    found = (recall.search(question.text, most, now=now, ranking=ranking) for most in depths)
    return list(dict.fromkeys(hit.id for hits in found for hit in hits))[:DEPTH]


def _entry(item: Item) -> Entry:
    return Entry(
        item.id,
        item.text,
        session=item.session,
        speaker=item.speaker,
        role=item.role,
        time=item.time,
        title=item.title,
    )
