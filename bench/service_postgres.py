"""How quick a search inside PostgreSQL is, alone and beside many records of other users.

    python bench/service_postgres.py --data-path novels.txt.xz     50k messages, 500k of others
    python bench/service_postgres.py --messages 5000 --others 20000    a quick look, made-up words

One user has so many messages in 20 sessions, others together have so many more; all go through the
store, and are indexed by the first search of each user. The same questions are asked before the
others come and after, one at a time, top_k=10, with words alone and with static vectors: wall time
of the whole call, and the CPU time that it takes here and in the server, which does not depend on
what else the machine does. Raw figures go to results/service_postgres.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import asyncio
import json
import platform
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recall_speed import words_of
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memoryspace import Record, Scope, SQLStore
from memoryspace.embedding import StaticEmbedder
from memoryspace.retrieval import Entry
from memoryspace.retrieval.text.stopwords import STOP_WORDS
from memoryspace.service.search import Query
from memoryspace.service.search.postgres.searcher import PostgresSearcher

from kernel_measuring import SEED, percentile

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402  # after the path

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
        """Let each searcher bring the index up to date; return how long that takes."""
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
            "p50": percentile(times, 50),
            "p99": percentile(times, 99),
            "least": min(times),
            "cpu_here": 1e3 * here / len(asked),
            "cpu_server": there / len(asked),
        }

    async def server_ms(self) -> float:
        """Return the CPU time that the server's processes have used (on Linux, else 0)."""
        async with self.engine.connect() as on:
            mine = (await on.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        return _siblings_ms(str(mine))

    async def tidy(self) -> dict[str, int]:
        """Do what autovacuum does sooner or later; return how large the index is, in bytes."""
        sizes = {}
        on_its_own = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        async with on_its_own.connect() as on:
            for table in ("record", "search", "search_progress", "search_vector"):
                name = f"memoryspace_{table}"
                await on.execute(text(f"VACUUM ANALYZE {name}"))
                size = text("SELECT pg_total_relation_size(to_regclass(:name))")
                sizes[table] = int((await on.execute(size, {"name": name})).scalar_one())
        return sizes


def _siblings_ms(process: str) -> float:
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


async def run(options: argparse.Namespace, url: str) -> Report:
    engine = create_async_engine(url)
    bench = Bench(engine, words_of(options.data_path))
    questions = bench.questions(options.rounds)
    await bench.fill(USER, options.messages, SESSIONS)
    report: Report = {"messages": options.messages, "index_s": await bench.index(USER)}
    report["bytes"] = [await bench.tidy()]
    await bench.ask({"warm": questions["a sentence"][:10]})
    report["alone_ms"] = await bench.ask(questions)
    for number in range(options.others // PER_OTHER):
        await bench.fill(f"somebody else {number}", PER_OTHER, SESSIONS)
        await bench.index(f"somebody else {number}")
    report |= {"others": options.others // PER_OTHER * PER_OTHER}
    report["bytes"].append(await bench.tidy())
    report["beside_others_ms"] = await bench.ask(questions)
    await engine.dispose()
    return report


def table(report: Report) -> str:
    lines = [f"{'ms: p50 / p99 (CPU here + server)':34}{'alone':>30}{'beside others':>30}"]
    for name, kinds in report["alone_ms"].items():
        for kind, alone in kinds.items():
            both = (alone, report["beside_others_ms"][name][kind])
            lines.append(f"{name + ', ' + kind:34}" + "".join(f"{_shown(one):>30}" for one in both))
    return "\n".join(lines)


def _shown(one: dict[str, float]) -> str:
    cpu = f"({one['cpu_here']:.1f} + {one['cpu_server']:.1f})"
    return f"{one['p50']:.1f} / {one['p99']:.1f} {cpu}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data-path", type=Path, help="a text, *.txt or *.txt.xz, to cut")
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--others", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="questions of each kind")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "service_postgres.json")
    options = parser.parse_args()
    server = servers.start("postgres")
    try:
        report = asyncio.run(run(options, server.url))
    finally:
        server.remove()
    report["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    report["python"] = platform.python_version()
    report["texts"] = "made up" if options.data_path is None else options.data_path.name
    print(table(report))
    options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
