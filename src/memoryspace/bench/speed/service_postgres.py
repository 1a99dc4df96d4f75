"""The speed of a search inside PostgreSQL, alone and beside many records of other users.

One user has a number of messages in 20 sessions, and others have many more together. All go through
the store and are indexed by each user's first search. The same questions are asked before and after
the others are added, one at a time, top_k=10, with words alone and with static vectors. Figures are
the wall time of the whole call, and the CPU time here and in the server, which does not depend on
other load. ``MEMORYSPACE_BENCH_POSTGRES`` names the server; texts are cut from the file that
``--data-path`` names, or invented.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...embedding import StaticEmbedder
from ...record import Record, Scope
from ...retrieval import Entry
from ...retrieval.text.stopwords import STOP_WORDS
from ...service.search import Query
from ...service.search.postgres import PostgresSearcher
from ...store import SQLStore
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.measuring import percentile
from ..harness.options import Flags, option
from ..memories.backends import place_of
from .recall_speed import words_of

SEED = 20261116
USER = "the one who asks"
SESSIONS = 20
PER_OTHER = 1000
BATCH = 1000
ROUNDS = 100
TICK_MS = 1e3 / os.sysconf("SC_CLK_TCK")
START = 1.7e9

Report = dict[str, Any]
Questions = dict[str, list[str]]


def entry_of(record: Record) -> Entry:
    return Entry(str(record.seq), record.text, session=record.session, time=record.created_at)


class Bench:
    def __init__(self, engine: AsyncEngine, words: Sequence[str]) -> None:
        self.engine, self.words, self.rng = engine, words, random.Random(SEED)
        self.store = SQLStore(engine)
        self.searchers = {
            "words": PostgresSearcher(engine, entry_of, embedder=None),
            "words and vectors": PostgresSearcher(engine, entry_of, embedder=StaticEmbedder()),
        }

    def span(self, least: int, most: int) -> str:
        start = self.rng.randrange(len(self.words) - most)
        return " ".join(self.words[start : start + self.rng.randint(least, most)])

    async def fill(self, user: str, count: int, sessions: int) -> None:
        for first in range(0, count, BATCH):
            size = min(BATCH, count - first)
            said = [
                Record(f"{first + n}", {}, self.span(8, 30), kind="memory", created_at=START + n)
                for n in range(size)
            ]
            await self.store.append(Scope(user, f"session {first // BATCH % sessions}"), said)

    async def index(self, user: str) -> dict[str, float]:
        """Let each searcher update the index; return how long that takes."""
        seconds = {}
        for name, searcher in self.searchers.items():
            started = time.perf_counter()
            await searcher.search(user, Query(text="anything", top_k=1, now=START))
            seconds[name] = time.perf_counter() - started
        return seconds

    def questions(self, rounds: int) -> Questions:
        telling = [word for word in self.words[:200_000] if word.lower() not in STOP_WORDS]
        return {
            "one word": self.rng.sample(telling, rounds),
            "four words": [" ".join(self.rng.sample(telling, 4)) for _ in range(rounds)],
            "a sentence": [self.span(8, 12) for _ in range(rounds)],
        }

    async def ask(self, questions: Questions) -> dict[str, dict[str, dict[str, float]]]:
        return {
            name: {kind: await self._timed(each, asked) for kind, asked in questions.items()}
            for name, each in self.searchers.items()
        }

    async def _timed(self, searcher: PostgresSearcher, asked: list[str]) -> dict[str, float]:
        times: list[float] = []
        here, there = time.process_time(), await self.server_ms()
        for question in asked:
            started = time.perf_counter()
            await searcher.search(USER, Query(text=question, top_k=10, now=START))
            times.append(1e3 * (time.perf_counter() - started))
        here, there = time.process_time() - here, await self.server_ms() - there
        return {
            "p50": percentile(sorted(times), 50),
            "p99": percentile(sorted(times), 99),
            "least": min(times),
            "cpu_here": 1e3 * here / len(asked),
            "cpu_server": there / len(asked),
        }

    async def server_ms(self) -> float:
        """Return the CPU time that the server's processes have used (on Linux, else 0)."""
        async with self.engine.connect() as on:
            mine = (await on.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        return siblings_ms(str(mine))

    async def tidy(self) -> dict[str, int]:
        """Do what autovacuum does sooner or later; return the size of the index in bytes."""
        sizes = {}
        on_its_own = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        async with on_its_own.connect() as on:
            for table in ("record", "search", "search_progress", "search_vector"):
                name = f"memoryspace_{table}"
                await on.execute(text(f"VACUUM ANALYZE {name}"))
                size = text("SELECT pg_total_relation_size(to_regclass(:name))")
                sizes[table] = int((await on.execute(size, {"name": name})).scalar_one())
        return sizes


def siblings_ms(process: str) -> float:
    stats = [_stat(each) for each in Path("/proc").glob("[0-9]*/stat")]
    parent = next((stat[1] for stat in stats if stat[:1] == [process]), None)
    return TICK_MS * sum(int(stat[2]) + int(stat[3]) for stat in stats if stat[1:2] == [parent])


def _stat(path: Path) -> list[str]:
    """Return id, parent, user and system time of a process; nothing if it has ended."""
    try:
        before, _, behind = path.read_text().rpartition(")")
    except OSError:
        return []
    fields = behind.split()
    return [before.split()[0], fields[1], fields[11], fields[12]]


@dataclass(frozen=True)
class PostgresOptions(Flags):
    """How much is stored, and how often it is queried."""

    messages: int = option(50_000, "messages of the searching user", quick=5000)
    others: int = option(500_000, "messages of others", quick=20_000)
    rounds: int = option(100, "questions of each kind", quick=10)


def measure(options: PostgresOptions, run: Run) -> Raw:
    """Query before and after others are added."""
    found = asyncio.run(_measured(options, run, place_of("postgres", "")))
    found["texts"] = "made up" if run.data_path is None else run.data_path.name
    return found


async def _measured(options: PostgresOptions, run: Run, url: str) -> Raw:
    engine = create_async_engine(url)
    bench = Bench(engine, words_of(run.data_path))
    questions = bench.questions(options.rounds)
    await bench.fill(USER, options.messages, SESSIONS)
    found: Raw = {"messages": options.messages, "index_s": await bench.index(USER)}
    found["bytes"] = [await bench.tidy()]
    await bench.ask({"warm": questions["a sentence"][:10]})
    found["alone_ms"] = await bench.ask(questions)
    run.say("others come")
    for number in range(options.others // PER_OTHER):
        await bench.fill(f"somebody else {number}", PER_OTHER, SESSIONS)
        await bench.index(f"somebody else {number}")
    found["others"] = options.others // PER_OTHER * PER_OTHER
    found["bytes"].append(await bench.tidy())
    found["beside_others_ms"] = await bench.ask(questions)
    await engine.dispose()
    return found


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return each kind of question, alone and beside others."""
    rows = tuple(
        (name, kind, _shown(alone), _shown(raw["beside_others_ms"][name][kind]))
        for name, kinds in raw["alone_ms"].items()
        for kind, alone in kinds.items()
    )
    note = (
        f"ms: p50 / p99 (CPU here + in the server). {raw['messages']:,} messages of one user, "
        f"{raw['others']:,} of others. Texts: {raw['texts']}."
    )
    head = ("searched by", "question", "alone", "beside others")
    return [Grid("A search inside PostgreSQL", 2, head, rows, note)]


def _shown(one: Mapping[str, float]) -> str:
    cpu = f"({one['cpu_here']:.1f} + {one['cpu_server']:.1f})"
    return f"{one['p50']:.1f} / {one['p99']:.1f} {cpu}"


BENCHMARK = Benchmark(
    "service-postgres",
    "a search inside PostgreSQL, alone and beside many records of others",
    PostgresOptions,
    measure,
    tables,
    packages=("memoryspace", "sqlalchemy", "asyncpg", "wordllama"),
)
