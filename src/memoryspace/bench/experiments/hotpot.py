"""HotpotQA: recall of the paragraphs that answer a question.

``seed``: the prototype's benchmark. The ten paragraphs of a question are stored, then the question
is asked; hit@k is any supporting paragraph among the first k. The manager has a heap of
``hot_capacity`` bytes; the window holds ``sliding_window`` paragraphs, so the manager has more
distractors.

``fair``: the same bytes for all systems. After each question's paragraphs, one of all questions so
far is asked; all of its supporting paragraphs must be found (all@k).

``recall``: the public recall API on a pool of paragraphs and on each question's own; and answers
based on the hits, if a chat model is configured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...errors import InvalidInput
from ...evaluation import raw
from ...evaluation.boards import METRICS
from ...evaluation.datasets import load_hotpot_own, load_hotpot_pool
from ...evaluation.metrics import any_at
from ..boards.board_answers import answer_cells, answer_plots, answer_tables, run_either
from ..boards.recall_boards import BoardOptions, RecallBoard, board_plots, board_tables, cells_of
from ..harness.data import Data
from ..harness.experiment import (
    Cell,
    CellResult,
    Claim,
    Experiment,
    Parameter,
    Plot,
    Published,
    Table,
    integer,
)
from ..harness.findings import Findings
from ..harness.options import option
from ..memories.baselines import INDEXES, SlidingMemory
from ..memories.managed import Memory, managed
from ..memories.systems import QUICK, SYSTEMS, system_cells
from ..streams.asking import Metric, judged
from ..streams.fair import by_age, compared, really_used, tiered_finds_all
from ..streams.playing import Playing, play_system
from ..streams.queries import Query, Stream, Targets, age_class

FILE = "hotpotqa.jsonl.gz"
SETTINGS = ("seed", "fair", "recall")
_SPLIT = re.compile(r"\w*(?:\[:(\d+)\])?")

HITS: dict[str, Metric] = {f"hit@{k}": partial(any_at, k) for k in (1, 3, 5)}
STRICT: dict[str, Metric] = {
    name: METRICS[name] for name in ("all@5", "all@10", "any@1", "any@5", "fraction@10", "MRR")
}
BOARDS = {
    board.name: board
    for board in (
        RecallBoard(
            "hotpot-pool",
            "HotpotQA, paragraphs of 500 questions pooled",
            (FILE,),
            lambda paths: load_hotpot_pool(paths[0]),
        ),
        RecallBoard(
            "hotpot-own",
            "HotpotQA, each question's own paragraphs",
            (FILE,),
            lambda paths: load_hotpot_own(paths[0]),
        ),
    )
}


@dataclass(frozen=True)
class HotpotOptions(BoardOptions):
    """The prototype's flags, those of the fair setting, and those of recall."""

    seeds: tuple[int, ...] = option(
        (1, 2, 3), "number of seeds, or the seeds themselves", quick=(1, 2)
    )
    settings: tuple[str, ...] = option(
        ("seed",), "settings to run; bench all runs every one", choices=SETTINGS, full=SETTINGS
    )
    dataset_split: str = option("", "such as train[:5000]; only the number matters")
    max_samples: int = option(5000, "maximum number of questions", quick=50)
    hot_capacity: int = option(32_768, "bytes of the manager in the seed's setting")
    sliding_window: int = option(4096, "paragraphs of the window in the seed's setting")
    indexes: tuple[str, ...] = option(
        ("word counts",), "used in the seed's setting; the seed's own uses word counts",
        choices=tuple(INDEXES), full=tuple(INDEXES),
    )  # fmt: skip
    budgets: tuple[int, ...] = option(
        (65_536, 262_144, 1_048_576), "bytes in the fair setting", quick=(32_768,)
    )
    systems: tuple[str, ...] = option(
        tuple(SYSTEMS), "used in the fair setting", choices=tuple(SYSTEMS), quick=QUICK
    )


def samples_of(options: HotpotOptions) -> int:
    """Return the maximum number of questions."""
    split = _SPLIT.fullmatch(options.dataset_split)
    if split is None:
        raise InvalidInput(f"--dataset-split is {options.dataset_split!r}; write train[:5000]")
    return min(options.max_samples, int(split[1])) if split[1] else options.max_samples


def cells(options: HotpotOptions, data: Data) -> list[Cell]:
    """Return the cells of all settings."""
    made: list[dict[str, Parameter]] = []
    kept: dict[str, Parameter] = {"data": data.label, "samples": samples_of(options)}
    if "seed" in options.settings:
        capacities = {"manager": options.hot_capacity, "sliding": options.sliding_window}
        made += [
            {"setting": "seed", **kept, "index": index, "system": name, "capacity": capacity}
            for index in options.indexes
            for name, capacity in capacities.items()
        ]
    if "fair" in options.settings:
        made += system_cells({"setting": "fair", **kept}, options.systems, options.budgets)
    found: list[Cell] = [{**cell, "seed": seed} for cell in made for seed in options.seeds]
    if "recall" in options.settings:
        for board in BOARDS.values():
            asked = [*cells_of(board, options), *answer_cells(board, options)]
            found += [{"setting": "recall", **cell} for cell in asked]
    return found


def run(cell: Cell, data: Data) -> CellResult:
    """Run a cell of any setting."""
    if cell["setting"] == "recall":
        return run_either(BOARDS[str(cell["board"])], cell, data)
    questions = _questions(cell, data)
    if cell["setting"] == "seed":
        return _run_seed(cell, questions, data)
    return play_system(cell, _history(questions, integer(cell, "seed")), STRICT, data.tick)


def _run_seed(cell: Cell, questions: Sequence[raw.HopQuestion], data: Data) -> CellResult:
    playing = Playing(_seed_memory(cell), None)
    for number, question in enumerate(questions):
        texts = list(map(_text, question.paragraphs))
        for text in texts:
            playing.tell(text)
        playing.ask(Query(question.id, question.question, _right(question), question.type), texts)
        data.tick(number, len(questions))
    playing.memory.close()
    return judged(playing.asked, HITS)


def _seed_memory(cell: Cell) -> Memory:
    index, capacity = INDEXES[str(cell["index"])](), integer(cell, "capacity")
    if cell["system"] == "manager":
        return managed(capacity, keep="newest", index=index)
    return _Window(capacity, index)


class _Window(SlidingMemory):
    """A fixed number of paragraphs, regardless of size."""

    def store(self, text: str) -> None:
        """Store a paragraph, replacing the oldest."""
        while len(self._sizes) >= self.budget:
            number, freed = self._sizes.popleft()
            self._remove(number)
            self._used -= freed
        self._add(self._stored, text)
        self._sizes.append((self._stored, len(text.encode())))
        self._used += self._sizes[-1][1]
        self._stored += 1


def _history(questions: Sequence[raw.HopQuestion], seed: int) -> Stream:
    """Stream all paragraphs in order; after each question's, ask one of all so far."""
    draw = random.Random(f"hotpot {seed}")
    targets = Targets(len(questions), draw)
    texts: list[str] = []
    starts: list[int] = []
    asked: dict[int, list[Query]] = {}
    for now, question in enumerate(questions):
        starts.append(len(texts))
        texts += map(_text, question.paragraphs)
        why, number = targets.pick(now)
        chosen = questions[number]
        right = tuple(starts[number] + place for place in _right(chosen))
        query = Query(f"{why}-{chosen.id}", chosen.question, right, age_class(now - number))
        asked[len(texts) - 1] = [query]
    return Stream(texts, asked)


def _questions(cell: Cell, data: Data) -> list[raw.HopQuestion]:
    found = data.once("questions", lambda: raw.read(data.path_of(FILE), raw.HopQuestion))
    order = list(found)
    random.Random(f"questions {cell['seed']}").shuffle(order)
    return order[: integer(cell, "samples")]


def _text(paragraph: raw.Paragraph) -> str:
    return f"{paragraph.title}. {''.join(paragraph.sentences).strip()}"


def _right(question: raw.HopQuestion) -> tuple[int, ...]:
    titles = {title for title, _ in question.supporting}
    return tuple(n for n, each in enumerate(question.paragraphs) if each.title in titles)


def _reached(found: Findings) -> bool:
    where = {"setting": "seed", "index": "bm25", "system": "manager"}
    return found.mean("hit@1", where) >= 0.438 and found.mean("hit@5", where) >= 0.798


EXPERIMENT = Experiment(
    "hotpot",
    "whether the paragraphs that answer a question are found again (HotpotQA)",
    HotpotOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    version=2,
    tables=(
        Table(
            "The seed's setting: any supporting paragraph, just stored",
            {"setting": "seed"},
            ("n", *HITS),
            ("index", "system", "capacity"),
        ),
        compared(
            "Fair: the same bytes for all, any question so far, all supporting paragraphs",
            tuple(STRICT),
        ),
        really_used(),
        by_age("Fair, by the age of the question", ("all@10", "fraction@10")),
        *(table for board in BOARDS.values() for table in board_tables(board)),
        *(table for board in BOARDS.values() for table in answer_tables(board)),
    ),
    plots=(
        Plot(
            "hotpot-seed", "The seed's setting", "bars", "hit@5", "system", "index",
            where={"setting": "seed"},
        ),
        Plot(
            "hotpot-fair", "Fair: all supporting paragraphs among the first ten", "lines",
            "all@10", "capacity", "system", where={"setting": "fair"}, x_label="bytes", log_x=True,
        ),
        *(plot for board in BOARDS.values() for plot in board_plots(board)),
        *(plot for board in BOARDS.values() for plot in answer_plots(board)),
    ),
    published=tuple(
        Published(
            {"setting": "seed", "system": system, "data": "hotpotqa", "index": "word counts"},
            dict(zip(HITS, values, strict=True)),
            "MemorySpace prototype, train[:5000]",
        )
        for system, values in (
            ("manager", (0.438, 0.680, 0.798)),
            ("sliding", (0.374, 0.537, 0.601)),
        )
    ),
    claims=(
        Claim("in the seed's setting our manager reaches the published hit@1 and hit@5", _reached),
        tiered_finds_all("all@10"),
    ),
    notes=(
        "The seed's window holds more paragraphs than its manager, which makes its task harder: "
        "the one comparison where less memory wins."
    ),
)  # fmt: skip
