"""The front door beside other memories with an embedded store: ``make bench-door``.

``Memory.add`` and ``Memory.search`` on a folder, at growing sizes, beside mem0 (open source,
``infer=False``, its local Qdrant), LangGraph's ``SqliteStore`` and Chroma, all in one process with
the same embedder, for one user. They work in turns: each adds a part of the texts, then each
answers a part of the questions, and so on. Work that goes on after an ``add`` has returned is
waited for, and counted apart, before the next one's turn.

``--data-path`` is a folder with LoCoMo (or its development part): its turns are what is remembered,
its questions are asked, and its words in random order fill the store. Without it, a sample is made.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from ...evaluation.datasets import Corpus, load_locomo
from ...evaluation.metrics import any_at, fraction_at, reciprocal_rank
from ..harness import samples
from ..harness.benchmark import Benchmark, Raw, Run
from ..harness.data import find_files
from ..harness.experiment import CannotRun
from ..harness.measuring import disk_bytes, percentile
from ..harness.options import Flags, option
from .door_page import SHOWN, tables
from .door_systems import SYSTEMS, CountedEmbedder, Opener, System

SEED = 20261118
FILE = "locomo.jsonl.gz"


@dataclass(frozen=True)
class DoorOptions(Flags):
    """How much is stored, and how often each call is made."""

    sizes: tuple[int, ...] = option((1_000, 10_000), "memories stored", quick=(60,))
    adds: int = option(200, "single adds at each size", quick=6)
    questions: int = option(200, "questions asked at each size", quick=6)
    rounds: int = option(5, "turns into which these are divided", quick=2)
    systems: tuple[str, ...] = option(
        tuple(SYSTEMS), "packages to measure, if installed", choices=tuple(SYSTEMS)
    )


@dataclass(frozen=True)
class Asked:
    """A question and the texts that answer it."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Work:
    """What is stored, what is added to it, and what is asked."""

    stored: Sequence[str]
    added: Sequence[str]
    asked: Sequence[Asked]


@dataclass
class Calls:
    """The seconds of one kind of call, by rounds."""

    rounds: list[list[float]] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)  # within each call
    cpu: float = 0.0  # with what goes on in the background
    until_settled: float = 0.0

    def figures(self) -> Raw:
        """Return percentiles over all calls, and the median of each round, in milliseconds."""
        every = [each for some in self.rounds for each in some]
        bare = [each - inside for each, inside in zip(every, self.embedding, strict=True)]
        count = len(every)
        return {
            "p50": 1e3 * percentile(sorted(every), 50),
            "p99": 1e3 * percentile(sorted(every), 99),
            "bare_p50": 1e3 * percentile(sorted(bare), 50),
            "cpu": 1e3 * self.cpu / count,
            "settled": 1e3 * self.until_settled / count,
            "rounds": [1e3 * median(some) for some in self.rounds],
        }


class Bench:
    """One system with its store, and what was measured."""

    def __init__(self, opener: Opener, folder: Path) -> None:
        self.embedder = CountedEmbedder()
        self.embedder.embed(["loads the weights"])
        self._open: Callable[[], System] = partial(opener, folder, self.embedder)
        self.folder = folder
        folder.mkdir()
        self.adds, self.searches = Calls(), Calls()
        self.found: list[list[str]] = []
        self.figures: Raw = {}

    def fill(self, texts: Sequence[str]) -> None:
        began = time.perf_counter()
        self.system: System = self._open()
        self.system.fill(texts)
        self.system.settle()
        self.system.search("Is everything there?", SHOWN)  # builds what is built on first use
        self.figures["fill"] = time.perf_counter() - began

    def add(self, texts: Sequence[str]) -> None:
        """Add one text after another, and wait for what follows."""
        in_call = self.system.embeds_in_add
        self._timed(self.adds, [partial(self.system.add, each) for each in texts], in_call)

    def ask(self, asked: Sequence[Asked]) -> None:
        """Ask one question after another, after one that does not count."""
        self.system.search("Who was there first?", SHOWN)
        self.system.settle()
        calls = [partial(self._search, each.text) for each in asked]
        self._timed(self.searches, calls, True)

    def reopen(self) -> None:
        """Close the store, open it again and ask once."""
        self.system.close()
        gc.collect()
        began = time.perf_counter()
        self.system = self._open()
        self.system.search("What is new?", SHOWN)
        self.figures["reopen"] = time.perf_counter() - began
        self.system.close()
        self.figures["disk_mb"] = disk_bytes(self.folder) / 1e6

    def _search(self, text: str) -> None:
        self.found.append(self.system.search(text, SHOWN))

    def _timed(self, into: Calls, calls: Sequence[Callable[[], None]], embeds: bool) -> None:
        gc.collect()
        times: list[float] = []
        cpu, began = time.process_time(), time.perf_counter()
        for call in calls:
            inside, started = self.embedder.seconds, time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
            into.embedding.append(self.embedder.seconds - inside if embeds else 0.0)
        self.system.settle()
        into.until_settled += time.perf_counter() - began
        into.cpu += time.process_time() - cpu
        into.rounds.append(times)


def measure(options: DoorOptions, run: Run) -> Raw:
    """Measure every system at each size; sizes that are not asked for keep their last figures."""
    corpora, named = corpora_of(run.data_path)
    sizes = {each["size"]: each for each in run.before.get("sizes", ())}
    left_out: dict[str, str] = {}
    for size in options.sizes:
        work = work_of(corpora, size, options)
        sizes[size] = at_size(work, options, run, left_out)
    return {
        "texts": named,
        "left_out": left_out,
        "sizes": [sizes[size] for size in sorted(sizes)],
    }


def at_size(work: Work, options: DoorOptions, run: Run, left_out: dict[str, str]) -> Raw:
    """Fill every system that is there, then let them add and search in turns."""
    load = os.getloadavg()[0]
    with TemporaryDirectory(prefix="memoryspace-bench-", ignore_cleanup_errors=True) as folder:
        benches: dict[str, Bench] = {}
        for name in options.systems:
            try:
                bench = Bench(SYSTEMS[name], Path(folder, name))
                bench.fill(work.stored)
            except CannotRun as error:
                left_out[name] = str(error)
                run.say(f"{name} is left out: {error}")
                continue
            benches[name] = bench
            run.say(f"{len(work.stored):,} in {name}: {bench.figures['fill']:.1f} s")
        for number in range(options.rounds):
            run.say(f"round {number + 1} of {options.rounds}")
            in_turn(list(benches.values()), work, number, options.rounds)
        for bench in benches.values():
            bench.reopen()
        found = {name: figures_of(bench, work.asked) for name, bench in benches.items()}
    size = {"size": len(work.stored), "asked": len(work.asked), "added": len(work.added)}
    return {**size, "load": load, "load_after": os.getloadavg()[0], "systems": found}


def in_turn(benches: Sequence[Bench], work: Work, number: int, rounds: int) -> None:
    """Let each system add and answer its part; another one begins each time."""
    begins = number % max(1, len(benches))
    order = [*benches[begins:], *benches[:begins]]
    for bench in order:
        bench.add(work.added[number::rounds])
    for bench in order:
        bench.ask(work.asked[number::rounds])


def figures_of(bench: Bench, asked: Sequence[Asked]) -> Raw:
    """Return what was measured of a system. Its answers are in the order of the rounds."""
    rounds = len(bench.searches.rounds)
    order = [each for number in range(rounds) for each in asked[number::rounds]]
    pairs = list(zip(bench.found, order, strict=True))
    scores = {
        "any": [any_at(SHOWN, found, each.gold) for found, each in pairs],
        "fraction": [fraction_at(SHOWN, found, each.gold) for found, each in pairs],
        "mrr": [reciprocal_rank(found, each.gold) for found, each in pairs],
    }
    return {
        **bench.figures,
        "add": bench.adds.figures(),
        "search": bench.searches.figures(),
        **{name: sum(each) / len(each) for name, each in scores.items()},
    }


# -- texts and questions -------------------------------------------------------------------------


def corpora_of(path: Path | None) -> tuple[Sequence[Corpus], str]:
    """Return conversations with questions, and what they are called."""
    if path is not None:
        files, label = find_files(path, [FILE])
        return load_locomo(files[FILE]), label
    with TemporaryDirectory() as folder:
        return load_locomo(samples.write([FILE], Path(folder))[FILE]), "made up"


def work_of(corpora: Sequence[Corpus], size: int, options: DoorOptions) -> Work:
    """Return the first conversations, filled up to ``size``; the last turns are added later."""
    texts = {
        (corpus.name, item.id): f"{item.speaker}: {item.text}"
        for corpus in corpora
        for item in corpus.items
    }
    keys = list(texts)
    first = keys[: min(size, len(keys) - options.adds)]
    there = set(first)
    asked = [
        Asked(question.text, frozenset(texts[corpus.name, each] for each in question.gold))
        for corpus in corpora
        for question in corpus.questions
        if all((corpus.name, each) in there for each in question.gold)
    ]
    rng = random.Random(SEED)
    words = " ".join(texts.values()).split()
    filler = [" ".join(rng.choices(words, k=rng.randint(8, 32))) for _ in range(size - len(first))]
    stored = [*(texts[key] for key in first), *filler]
    rng.shuffle(stored)
    some = rng.sample(asked, min(options.questions, len(asked)))
    return Work(stored, [texts[key] for key in keys[-options.adds :]], some)


BENCHMARK = Benchmark(
    "door",
    "Memory.add and Memory.search beside mem0, LangGraph and Chroma",
    DoorOptions,
    measure,
    tables,
    notes="One process, in turns, wall time; the same static embedder for all, one user. “Ours is” "
    "compares the medians of each round; the median of the rounds counts.",
    packages=(
        "memoryspace", "wordllama", "mem0ai", "qdrant-client", "langgraph-checkpoint-sqlite",
        "sqlite-vec", "chromadb",
    ),
)  # fmt: skip
