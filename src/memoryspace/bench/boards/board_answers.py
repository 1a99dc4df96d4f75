"""A board as an experiment: recall on it, and answers based on the hits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ...embedding import Embedder
from ...evaluation.boards import RERANKED, arms_of, asked_at, filled
from ...evaluation.datasets import Corpus, Question
from ...model import ChatModel, OpenAICompatibleModel
from ...retrieval import Entry, Recall, default_ranking
from ..harness.data import Data
from ..harness.experiment import CannotRun, Cell, CellResult, Experiment, Plot, Table, integer
from .answer_cache import AnswerCache
from .answering import NOT_CONFIGURED, Examiner, Task
from .recall_boards import (
    ARMS,
    BoardOptions,
    RecallBoard,
    board_plots,
    board_tables,
    cells_of,
    corpora_of,
    embedder_of,
    options_of,
    reranker_of,
    run_board,
)

KEY = "MEMORYSPACE_MODEL_KEY"
KEPT = "answers.jsonl"
_FIGURES = ("n", "success", "EM", "F1", "unusable")


def board_experiment(board: RecallBoard) -> Experiment:
    """Return the experiment of one board."""
    return Experiment(
        board.name,
        f"recall, and answers from it, on {board.about}",
        BoardOptions,
        cells=lambda options, data: [*cells_of(board, options), *answer_cells(board, options)],
        run=lambda cell, data: run_either(board, cell, data),
        files=lambda options: board.files,
        tables=(*board_tables(board), *answer_tables(board)),
        plots=(*board_plots(board), *answer_plots(board)),
        notes="Through the public API as shipped. Intervals: bootstrap over questions.",
    )


def run_either(board: RecallBoard, cell: Cell, data: Data) -> CellResult:
    """Run a recall cell or an answer cell."""
    return (run_board if cell["task"] == "recall" else run_answers)(board, cell, data)


def answer_cells(board: RecallBoard, options: BoardOptions) -> list[Cell]:
    """Return a cell per prompt setting; without a model, one cell that reports so."""
    kept = {"task": "answers", "board": board.name}
    if not (options.model and options.model_url):
        return [{**kept, "model": None}]
    embedder = embedder_of(options.embedder, None)
    return [
        {
            **kept,
            "model": options.model,
            "judge": options.judge or options.model,
            "temperature": options.temperature,
            "questions": options.answered,
            "told": arm,
            "context": 0 if arm == "nothing" else options.context,
            "embedder": None if embedder is None or arm == "nothing" else embedder.name,
        }
        for arm in options.answers_from
        if arm != "dense" or embedder is not None
    ]


def run_answers(board: RecallBoard, cell: Cell, data: Data) -> CellResult:
    """Have a model answer from what one arm retrieves, and judge the answers."""
    if cell["model"] is None:
        raise CannotRun(NOT_CONFIGURED)
    options = options_of(data)
    kept = None if data.folder is None else data.folder / KEPT
    examiner = Examiner(
        _model(str(cell["model"]), options), _model(str(cell["judge"]), options), AnswerCache(kept)
    )
    tasks = [
        task
        for corpus, questions in chosen_questions(
            corpora_of(board, data), integer(cell, "questions")
        )
        for task in _tasks(board, cell, options, corpus, questions)
    ]
    return examiner.examine(tasks, data.tick)


def chosen_questions(
    corpora: Sequence[Corpus], most: int
) -> Iterator[tuple[Corpus, list[Question]]]:
    """Yield the questions that can be judged, by corpus; if too many, evenly spaced ones."""
    everything = [
        (place, question)
        for place, corpus in enumerate(corpora)
        for question in corpus.questions
        if question.answers or question.rubric
    ]
    count = min(most, len(everything))
    taken = [everything[number * len(everything) // count] for number in range(count)]
    for place, corpus in enumerate(corpora):
        questions = [question for at, question in taken if at == place]
        if questions:
            yield corpus, questions


def answer_tables(board: RecallBoard) -> tuple[Table, ...]:
    """Return the answer tables: all questions, and by category."""
    where = {"board": board.name, "task": "answers"}
    return (
        Table(
            f"{board.about}: answers",
            where,
            _FIGURES,
            ("told", "context", "model", "judge"),
            note="The model sees what was found and the question; told nothing, it guesses. "
            "Success: the judge finds that the answer says what a gold answer says and covers "
            "every point of the rubric, if there is one. EM and F1: where there are gold answers.",
        ),
        Table(
            f"{board.about}: answers by category",
            where,
            _FIGURES[:-1],
            ("category", "told"),
            parts="category",
        ),
    )


def answer_plots(board: RecallBoard) -> tuple[Plot, ...]:
    """Return the answer plot: success by category, with and without a memory."""
    return (
        Plot(
            f"{board.name}-answers", f"{board.about}: answers that are right", "bars", "success",
            "category", "told", parts="category", better="higher",
            where={"board": board.name, "task": "answers"},
        ),
    )  # fmt: skip


def _tasks(
    board: RecallBoard,
    cell: Cell,
    options: BoardOptions,
    corpus: Corpus,
    questions: Sequence[Question],
) -> list[Task]:
    if cell["told"] == "nothing":
        return [Task(each, asked_at(each, corpus), None) for each in questions]
    embedder = embedder_of(options.embedder, options.cache)
    recall = filled(corpus, Recall(embedder=embedder))
    if cell["told"] == RERANKED:
        _, recall.reranker = reranker_of(board, embedder_of(options.embedder, None))
    ask = _Asking(recall, embedder, str(cell["told"]), integer(cell, "context"))
    return [
        Task(each, now, ask.found(each, now))
        for each in questions
        for now in (asked_at(each, corpus),)
    ]


class _Asking:
    """A recall restricted to one arm."""

    def __init__(self, recall: Recall, embedder: Embedder | None, arm: str, most: int) -> None:
        self._recall = recall
        self._ranking = {**arms_of(embedder), RERANKED: default_ranking()}[ARMS[arm]]
        self._most = most

    def found(self, question: Question, now: float | None) -> list[Entry]:
        hits = self._recall.search(question.text, self._most, now=now, ranking=self._ranking)
        return [hit.entry for hit in hits]


def _model(name: str, options: BoardOptions) -> ChatModel:
    return OpenAICompatibleModel(
        name,
        base_url=options.model_url,
        api_key=os.environ.get(KEY) or None,
        temperature=options.temperature if options.temperature >= 0 else None,
    )
