"""Recall through a memory service beside ``Recall`` itself: the same questions, the same ranking?

    python bench/service_recall.py --data-path FOLDER [--embedder none|static|minilm|e5]
        [--boards locomo,zh,hotpot-pool,beam,longmemeval]
        [--backend memory|sqlite|redis|postgres-server]

Each corpus is remembered by a user of one service, session by session, and every question is asked
with ``service.search`` as shipped; nothing is random. Counted is on how many questions the first
ten are those of a ``Recall`` that holds the same corpus, in the same order, and how good each of
the two is. A service dates what it remembers and puts it in a session: items without either get
both, in the recall too, and what the board's own entries come to stands beside it. If anything is
held back as suspicious, that is told, and the comparison is made with ``quarantine=False``. A run
takes its place among those in results/service_recall.json; the table there is written anew.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded

import argparse
import asyncio
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoryspace.embedding import (
    CachedEmbedder,
    E5Embedder,
    Embedder,
    MiniLMEmbedder,
    StaticEmbedder,
    VectorFiles,
)
from memoryspace.evaluation.boards import (
    BOARDS,
    DEPTH,
    Answer,
    Board,
    Result,
    asked_at,
    filled,
)
from memoryspace.evaluation.datasets import Corpus, Item, Question
from memoryspace.files import write_atomic
from memoryspace.retrieval import Recall
from memoryspace.service import (
    InMemoryMemoryService,
    RedisMemoryService,
    ServiceSettings,
    SQLMemoryService,
)
from memoryspace.service.reading.filters import MOST_HITS
from memoryspace.service.stored import StoredMemoryService
from memoryspace.service.writing.admission import SUSPICION

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402  # after the path

FIRST = 10  # places that are compared
UNDATED = 1.7e9  # when things were said of which that is not known
NAMED = 20  # questions that differ, in the report
SHOWN = ("any@1", "any@10", "all@10", "fraction@10", "MRR")  # of the metrics, in the table

BY_NAME = {board.name: board for boards in BOARDS.values() for board in boards}
SERVERS = {"redis": "redis", "postgres-server": "postgres"}
BACKENDS = ["memory", "sqlite", *SERVERS]
ENGLISH_ONLY = {"static", "minilm"}  # of no use on a Chinese board

Report = dict[str, Any]


# -- one corpus ------------------------------------------------------------------------------------


async def remember(service: StoredMemoryService, user: str, items: Iterable[Item]) -> None:
    """Add items in their order; all of them are new and keep their ids, else it is an error."""
    for session, together in groupby(items, lambda item: item.session):
        said = list(map(message_of, together))
        added = await service.add_memory(user, said, session)
        if added != [each["id"] for each in said]:
            raise ValueError(f"{len(said)} items of session {session!r}, but added were {added}")


def message_of(item: Item) -> dict[str, Any]:
    """Return an item as the message that makes the same entry of it as a board does."""
    parts = {"role": item.role, "name": item.speaker, "timestamp": item.time}
    said: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
    if item.title is not None:
        said["metadata"] = {"title": item.title}
    return {"id": item.id, "content": item.text, **said}


def as_held(corpus: Corpus) -> Corpus:
    """Return a corpus as a service can hold it: everything has a time and stands in a session.

    Each in one of its own: in one together, things that have nothing in common were neighbours.
    """
    items = (
        replace(
            item,
            session=item.id if item.session is None else item.session,
            time=UNDATED if item.time is None else item.time,
        )
        for item in corpus.items
    )
    return replace(corpus, items=tuple(items))


async def ask_service(
    service: StoredMemoryService, user: str, corpus: Corpus, question: Question
) -> list[str]:
    """Return the ids that a service finds, or the sessions in the order of their best."""
    are_sessions = corpus.gold == "session"
    hits = await service.search(
        user,
        question.text,
        top_k=MOST_HITS if are_sessions else DEPTH,
        now=asked_at(question, corpus),
    )
    if not are_sessions:
        return [hit.memory.id for hit in hits]
    return list(dict.fromkeys(hit.memory.session_id for hit in hits))[:DEPTH]


def ask_recall(recall: Recall, corpus: Corpus, question: Question) -> list[str]:
    """Return what a recall finds by itself, as the boards do it."""
    now = asked_at(question, corpus)
    if corpus.gold == "session":
        return [hit.session for hit in recall.sessions(question.text, DEPTH, now=now)]
    return [hit.id for hit in recall.search(question.text, DEPTH, now=now)]


async def answers_of(
    service: StoredMemoryService, user: str, corpus: Corpus, embedder: Embedder | None
) -> list[Answer]:
    """Fill both with a corpus and put every question to both."""
    held = as_held(corpus)
    await remember(service, user, held.items)
    recalls = {"recall": filled(held, Recall(embedder=embedder))}
    if held != corpus:
        recalls["board"] = filled(corpus, Recall(embedder=embedder))
    answers = []
    for question in corpus.questions:
        ranked = {arm: ask_recall(recall, held, question) for arm, recall in recalls.items()}
        ranked["service"] = await ask_service(service, user, held, question)
        answers += [_answer(corpus, question, arm, found) for arm, found in ranked.items()]
    return answers


def _answer(corpus: Corpus, question: Question, arm: str, ranked: Sequence[str]) -> Answer:
    gold = tuple(sorted(question.gold))
    return Answer(corpus.name, question.id, question.category, arm, gold, tuple(ranked))


# -- one board -------------------------------------------------------------------------------------


async def compare(
    board: Board, corpora: Sequence[Corpus], embedder: Embedder | None, backend: str
) -> Report:
    """Return how alike a service on a backend and a recall rank on all corpora of a board."""
    held_back = await suspicious(corpora)
    settings = ServiceSettings(embedder=embedder, quarantine=not held_back)
    result = Result(board, None if embedder is None else embedder.name)
    async with opened(backend, settings) as service:
        for number, corpus in enumerate(corpora, 1):
            result.answers += await answers_of(service, corpus.name, corpus, embedder)
            so_far = f"{number} of {len(corpora)}, {len(corpus.items)} items: {corpus.name}"
            _say(f"{board.name} on {backend}: {so_far}")
    return {
        "name": board.name,
        "about": board.about,
        "backend": backend,
        "embedder": result.embedder,
        **alike(result),
        "items": sum(len(corpus.items) for corpus in corpora),
        "held_back": held_back,
        "quarantine": settings.quarantine,
        **{arm: result.means(arm) for arm in result.arms()},
        **_environment(),
    }


async def suspicious(corpora: Iterable[Corpus]) -> dict[str, int]:
    """Return how many items a service as shipped would hold back, by the reason."""
    async with InMemoryMemoryService(settings=ServiceSettings(embedder=None)) as service:
        held_back = []
        for corpus in corpora:
            await remember(service, corpus.name, as_held(corpus).items)
            held_back += await service.quarantined(corpus.name)
    return dict(Counter(str(each.details[SUSPICION]) for each in held_back).most_common())


def alike(result: Result) -> Report:
    """Return on what share of the questions both arms agree, and where they do not."""
    arms = [[each for each in result.answers if each.arm == arm] for arm in ("recall", "service")]
    pairs = list(zip(*arms, strict=True))
    differ = [one for one, other in pairs if one.ranked[:FIRST] != other.ranked[:FIRST]]
    others = [one for one, other in pairs if {*one.ranked[:FIRST]} != {*other.ranked[:FIRST]}]
    return {
        "questions": len(pairs),
        f"same_first_{FIRST}": 1 - len(differ) / len(pairs),
        f"same_first_{FIRST}_in_any_order": 1 - len(others) / len(pairs),
        "same_all": sum(one.ranked == other.ranked for one, other in pairs) / len(pairs),
        "differ": [each.question for each in differ[:NAMED]],
    }


@asynccontextmanager
async def opened(backend: str, settings: ServiceSettings) -> AsyncIterator[StoredMemoryService]:
    """Yield a started service on a backend of its own, which is gone afterwards."""
    server = servers.start(SERVERS[backend]) if backend in SERVERS else None
    try:
        with TemporaryDirectory() as folder:
            place = f"sqlite+aiosqlite:///{folder}/memory.db" if server is None else server.url
            async with _MAKERS[backend](place, settings) as service:
                yield service
    finally:
        if server is not None:
            server.remove()


_MAKERS: dict[str, Callable[[str, ServiceSettings], StoredMemoryService]] = {
    "memory": lambda _, settings: InMemoryMemoryService(settings=settings),
    "sqlite": lambda url, settings: SQLMemoryService(url, settings=settings),
    "redis": lambda url, settings: RedisMemoryService(url, settings=settings),
    "postgres-server": lambda url, settings: SQLMemoryService(
        url, search="server", settings=settings
    ),
}


def _environment() -> dict[str, str]:
    return {
        "memoryspace": version("memoryspace"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


# -- the report ------------------------------------------------------------------------------------


def keep(report: Report, path: Path) -> None:
    """Put a run in the place of an earlier one of its kind; write the table of all."""
    runs: list[Report] = json.loads(path.read_bytes()) if path.exists() else []
    runs = [each for each in runs if _kind(each) != _kind(report)] + [report]
    runs.sort(key=_kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, (json.dumps(runs, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomic(path.with_suffix(".md"), page(runs).encode())


def _kind(report: Report) -> tuple[str, str, str]:
    return report["name"], report["embedder"] or "", report["backend"]


ABOUT = f"""# Recall through the service

By `bench/service_recall.py`; raw figures in `service_recall.json`. On how many of the questions
`service.search` returns the same first {FIRST} in the same order as a `Recall` that holds the same
corpus, both with shipped defaults; then how good each is (recall / service). A service dates what
it remembers and puts it in a session: items that have neither get both, each a session of its own,
in the recall too; in brackets stands what a recall comes to without. Where a service as shipped
holds items back as suspicious, it is compared with `quarantine=False`.

"""


def page(runs: Iterable[Report]) -> str:
    """Return all runs as a page in Markdown."""
    heads = ["data set", "embedder", "backend", "n", f"same first {FIRST}", *SHOWN, "held back"]
    lines = [_row(heads), "|---" * len(heads) + "|", *map(_row, map(_cells, runs))]
    return ABOUT + "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(run: Report) -> list[str]:
    return [
        run["about"],
        run["embedder"] or "none: words alone",
        run["backend"],
        str(run["questions"]),
        f"{100 * run[f'same_first_{FIRST}']:.2f} %",
        *(_figures(run, name) for name in SHOWN),
        f"{sum(run['held_back'].values())} of {run['items']}",
    ]


def _figures(run: Report, name: str) -> str:
    both = f"{run['recall'][name]:.3f} / {run['service'][name]:.3f}"
    return f"{both} ({run['board'][name]:.3f})" if "board" in run else both


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    options = _options()
    for name in options.boards:
        if name == "zh" and options.embedder in ENGLISH_ONLY:
            _say(f"zh: left out, {options.embedder} reads no Chinese")
            continue
        board, started = BY_NAME[name], time.process_time()
        embedder = _embedder(options.embedder, options.cache)
        corpora = board.load(options.data_path)
        report = asyncio.run(compare(board, corpora, embedder, options.backend))
        keep(report, options.out)
        print(_row(_cells(report)), flush=True)
        _say(f"{time.process_time() - started:.0f} s of CPU")


def _embedder(name: str, cache: Path | None) -> Embedder | None:
    if name == "none":
        return None
    chosen = {"static": StaticEmbedder, "minilm": MiniLMEmbedder, "e5": E5Embedder}[name]()
    return chosen if cache is None else CachedEmbedder(chosen, VectorFiles(cache))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--embedder", choices=["none", "static", "minilm", "e5"], default="none")
    parser.add_argument("--boards", type=_boards, default=["locomo", "zh"])
    parser.add_argument("--backend", choices=BACKENDS, default="memory")
    parser.add_argument("--cache", type=Path, help="keeps vectors for the next time")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "service_recall.json")
    return parser.parse_args()


def _boards(names: str) -> list[str]:
    unknown = [name for name in names.split(",") if name not in BY_NAME]
    if unknown:
        there = ", ".join(BY_NAME)
        raise argparse.ArgumentTypeError(f"there is no board {unknown[0]!r}; there are {there}")
    return names.split(",")


if __name__ == "__main__":
    main()
