"""Recall on public data sets as experiments: each arm alone and all together, by category.

The arms: ``sparse`` is words (BM25) alone, ``dense`` is vectors alone, ``fused`` is the shipped
ranking with all its signals, and ``fused + rerank`` adds a reranker for the first fifty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...embedding import Embedder
from ...evaluation.boards import METRICS, RERANKED, Answer, Board, Result, run
from ...evaluation.datasets import Corpus
from ...evaluation.rerankers import reranker_for
from ...retrieval import Reranker
from ..harness.data import Data
from ..harness.experiment import Asked, Cell, CellResult, Plot, Table
from ..harness.options import Options, option
from ..streams.asking import judged

EMBEDDERS = ("best", "e5", "minilm", "static", "none")
ARMS: Mapping[str, str] = {  # metric names here, and the depth at which each is measured
    "sparse": "words",
    "dense": "vectors",
    "fused": "fused",
    RERANKED: RERANKED,
}
SPLIT = (
    "Shipped defaults. Their weights were fitted on the development halves of LoCoMo and BEAM, and "
    "looked at on those of the other sets (files named _dev, and hotpotqa and cmrc2018_zh as they "
    "are); how far bridges lead was chosen on the last two. On these files expect a little more "
    "than elsewhere."
)

Load = Callable[[Sequence[Path]], tuple[Corpus, ...]]


@dataclass(frozen=True)
class BoardOptions(Options):
    """The embedder, the chat model, and how many hits the model sees."""

    seeds: tuple[int, ...] = option((1,), "unused: nothing here is random")
    embedder: str = option("best", "the embedder", quick="none", choices=EMBEDDERS)
    cache: Path | None = option(  # noqa: RUF009  # it is a field
        None, "folder that caches vectors", private=True
    )
    model_url: str = option("", "an OpenAI-compatible server that answers questions", private=True)
    model: str = option("", "the chat model there; its key is in MEMORYSPACE_MODEL_KEY")
    judge: str = option("", "the model that judges answers (default: the same model)")
    temperature: float = option(0.0, "of the models; a negative value is not sent")
    answered: int = option(200, "questions of a board that are answered", quick=20)
    answers_from: tuple[str, ...] = option(
        ("nothing", "fused"), "arms whose hits the model sees", choices=("nothing", *ARMS)
    )
    context: int = option(10, "number of hits that the model sees")


@dataclass(frozen=True)
class RecallBoard:
    """A data set for which recall is measured: its files, and how to read them."""

    name: str
    about: str
    files: tuple[str, ...]
    load: Load
    chinese: bool = False  # MiniLM cannot read its language, so words must rerank


def cells_of(board: RecallBoard, options: BoardOptions) -> list[Cell]:
    """Return a cell for each arm."""
    embedder = embedder_of(options.embedder, None)
    name = None if embedder is None else embedder.name
    kept = {"task": "recall", "board": board.name, "embedder": name}
    cells: list[Cell] = [{**kept, "embedder": None, "arm": "sparse"}]
    if embedder is not None:
        cells.append({**kept, "arm": "dense"})
    reranker, _ = reranker_of(board, embedder)
    return [*cells, {**kept, "arm": "fused"}, {**kept, "arm": RERANKED, "reranker": reranker}]


def run_board(board: RecallBoard, cell: Cell, data: Data) -> CellResult:
    """Score one arm. The rankings of all arms are computed together, once."""
    result = data.once((board.name, "answers"), lambda: _result(board, data))
    arm = ARMS[str(cell["arm"])]
    found = judged([_asked(each) for each in result.answers if each.arm == arm], METRICS)
    each_ms = result.seconds[arm] * 1e3 / max(1, int(found.figures["n"]))
    return replace(found, timings={"question_ms": each_ms})


def board_tables(board: RecallBoard) -> tuple[Table, ...]:
    """Return the recall tables: each arm, and each arm by category."""
    where = {"board": board.name, "task": "recall"}
    return (
        Table(
            board.about,
            where,
            ("n", *METRICS, "question_ms"),
            ("arm", "embedder", "reranker"),
            note=SPLIT,
        ),
        Table(
            f"{board.about}, by category",
            where,
            ("n", *METRICS),
            ("category", "arm"),
            parts="category",
        ),
    )


def board_plots(board: RecallBoard) -> tuple[Plot, ...]:
    """Return the recall plots: each arm by category."""
    where = {"board": board.name, "task": "recall"}
    return (
        Plot(
            f"{board.name}-arms", f"{board.about}: nDCG@10 of each arm", "bars", "nDCG@10", "arm",
            where=where, better="higher",
        ),
        Plot(
            f"{board.name}-categories", f"{board.about}: evidence among the first ten", "bars",
            "fraction@10", "category", "arm", parts="category", where=where, better="higher",
        ),
    )  # fmt: skip


def embedder_of(name: str, cache: Path | None) -> Embedder | None:
    """Return the embedder of this name, cached if there is a cache folder."""
    from ...embedding import (
        CachedEmbedder,
        E5Embedder,
        MiniLMEmbedder,
        StaticEmbedder,
        VectorFiles,
        best_embedder,
    )

    makers: Mapping[str, Callable[[], Embedder | None]] = {
        "best": best_embedder,
        "e5": E5Embedder,
        "minilm": MiniLMEmbedder,
        "static": StaticEmbedder,
        "none": lambda: None,
    }
    chosen = makers[name]()
    if chosen is None or cache is None:
        return chosen
    return CachedEmbedder(chosen, VectorFiles(cache))


def reranker_of(board: RecallBoard, embedder: Embedder | None) -> tuple[str, Reranker]:
    """Return the reranker of a board, and its name."""
    return reranker_for(None if board.chinese else embedder)


def options_of(data: Data) -> BoardOptions:
    """Return the options of a board run."""
    assert isinstance(data.options, BoardOptions)
    return data.options


def corpora_of(board: RecallBoard, data: Data) -> tuple[Corpus, ...]:
    """Return the corpora of a board."""
    paths = [data.path_of(name) for name in board.files]
    return data.once((board.name, "corpora"), lambda: board.load(paths))


def _result(board: RecallBoard, data: Data) -> Result:
    options, tick = options_of(data), data.tick
    corpora = corpora_of(board, data)
    asked = Board(board.name, board.about, lambda _: corpora)
    _, reranker = reranker_of(board, embedder_of(options.embedder, None))
    return run(
        asked,
        data.path_of(board.files[0]).parent,
        embedder_of(options.embedder, options.cache),
        lambda _, done, of: tick(done, of),
        reranker=reranker,
    )


def _asked(answer: Answer) -> Asked:
    return Asked(answer.question, answer.gold, answer.ranked, answer.category)
