"""Memory services compared with agentscope-runtime 1.0.5: ``make bench-service``.

Both sides hold the same messages of one user (20 sessions, 8 to 30 words each, fixed seeds) and do
the same work in turns. A figure is a time per call, the ratio is theirs over ours, and the median
of the rounds counts. Ours search by words alone here, as theirs do. Redis runs with its defaults,
which keep data in memory; "synced" writes every change to disk before it answers, and a bare HSET
shows what that costs by itself.
"""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

warnings.filterwarnings("ignore")  # of the runtime's own dependencies

from agentscope_runtime.engine.schemas import agent_schemas as their_schema  # noqa: E402
from agentscope_runtime.engine.services import memory as their_services  # noqa: E402

from ... import service as our_services  # noqa: E402
from ...service import schema as our_schema  # noqa: E402
from ..harness.benchmark import Benchmark, Grid, Raw, Run, compared_grid  # noqa: E402
from ..harness.options import Flags, option  # noqa: E402
from ..harness.timing import Case, Timed, duration, median_call, side_by_side  # noqa: E402
from . import servers  # noqa: E402

FLAT_ROUNDS = 10
SESSIONS = 20
USER, SHORT, ALONE = "user", "short", "alone"  # users of 50k, 10k, and 10k messages in one session
BACKENDS = ("in-memory", "redis")
SYNCED = "redis-synced"
SYLLABLES = [
    "ba",
    "de",
    "fi",
    "go",
    "lu",
    "ma",
    "ne",
    "po",
    "ri",
    "su",
    "ta",
    "ve",
    "wo",
    "xi",
    "ya",
    "zu",
    "kro",
    "ple",
    "sti",
    "tra",
]
RARE = "quixotry"  # appears in one message of a thousand


@dataclass(frozen=True)
class Side:
    """One of the two packages: the same names under another root."""

    name: str
    services: Any
    schema: Any

    def message(self, text: str) -> Any:
        content = [self.schema.TextContent(type="text", text=text)]
        return self.schema.Message(role="user", content=content)

    def in_memory(self) -> Any:
        if self is THEIRS:
            return self.services.InMemoryMemoryService()
        return self.services.InMemoryMemoryService(settings=_words())

    def redis(self, url: str) -> Any:
        if self is THEIRS:
            return self.services.RedisMemoryService(redis_url=url)
        return self.services.RedisMemoryService(url, settings=_words())


OURS = Side("memoryspace", our_services, our_schema)
THEIRS = Side("agentscope-runtime", their_services, their_schema)


def _words() -> Any:
    return our_services.ServiceSettings(embedder=None)


class Texts:
    """Messages of invented words, some common and most rare, as in a language."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.words = ["".join(self._random.choices(SYLLABLES, k=3)) for _ in range(20_000)]
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self.words) + 1)))

    def many(self, count: int) -> list[str]:
        return [self._one(number) for number in range(count)]

    def question(self, words: int = 8) -> str:
        return " ".join(self._some(words))

    def _one(self, number: int) -> str:
        said = self._some(self._random.randint(8, 30))
        return " ".join([*said, RARE] if number % 1000 == 500 else said)

    def _some(self, count: int) -> list[str]:
        return self._random.choices(self.words, cum_weights=self._weights, k=count)


TEXTS = Texts(1)
SERVICES: dict[tuple[str, str], Any] = {}  # by side and backend: started and filled once


@asynccontextmanager
async def services(say: Callable[[str], None]) -> AsyncIterator[None]:
    """Start and fill a service for each side and backend: a user of 50k messages, two of 10k."""
    long, short = TEXTS.many(50_000), TEXTS.many(10_000)
    try:
        urls = {"redis": servers.redis(), SYNCED: servers.redis(synced=True)}
        for side in (THEIRS, OURS):
            for backend in (*BACKENDS, SYNCED):
                say(f"filling {backend} of {side.name}")
                service = side.redis(urls[backend]) if backend in urls else side.in_memory()
                await service.start()
                await _fill(side, service, USER, long if backend != SYNCED else [])
                await _fill(side, service, SHORT, short)
                await _fill(side, service, ALONE, short, sessions=1)
                SERVICES[side.name, backend] = service
        yield
        for service in SERVICES.values():
            await service.stop()
    finally:
        servers.stop()


async def _fill(
    side: Side, service: Any, user: str, texts: list[str], sessions: int = SESSIONS
) -> None:
    per_session = max(1, len(texts) // sessions)
    for start in range(0, len(texts), per_session):
        messages = [side.message(text) for text in texts[start : start + per_session]]
        await service.add_memory(user, messages, f"session-{start // per_session}")


def searching(backend: str, ask: Callable[[], str]) -> Timed:
    async def run(side: Side) -> float:
        service = SERVICES[side.name, backend]
        questions = [side.message(ask()) for _ in range(3 if side is THEIRS else 50)]
        return await median_call([_search(service, question) for question in questions])

    return run


def _search(service: Any, question: Any) -> Callable[[], Awaitable[object]]:
    return lambda: service.search_memory(USER, [question], {"top_k": 10})


def adding(backend: str, calls: int, user: str = SHORT) -> Timed:
    async def run(side: Side) -> float:
        service = SERVICES[side.name, backend]
        messages = [side.message(text) for text in TEXTS.many(calls + 1)]
        return await median_call(
            [partial(service.add_memory, user, [each], "session-0") for each in messages]
        )

    return run


def setting(backend: str, calls: int) -> Timed:
    """Return the least that storing one message in Redis can cost, for either side."""

    async def run(side: Side) -> float:
        client = SERVICES[OURS.name, backend].store.client
        texts = TEXTS.many(calls + 1)
        return await median_call([partial(client.hset, "bare", each[:20], each) for each in texts])

    return run


def listing(backend: str, page: int) -> Timed:
    async def run(side: Side) -> float:
        filters = {"page_num": page, "page_size": 10}
        service = SERVICES[side.name, backend]
        calls = 2 if side is THEIRS and backend == "redis" else 30
        return await median_call([lambda: service.list_memory(USER, filters)] * calls)

    return run


def rare() -> str:
    return RARE


def common() -> str:
    return TEXTS.words[2]


CASES = [
    Case("in-memory: search, 50k stored, rare word", 50, searching("in-memory", rare)),
    Case("in-memory: search, 50k stored, common word", 50, searching("in-memory", common)),
    Case("in-memory: search, 50k stored, 8 words", 50, searching("in-memory", TEXTS.question)),
    Case("Redis: search, 50k stored, rare word", 50, searching("redis", rare)),
    Case("Redis: search, 50k stored, 8 words", 50, searching("redis", TEXTS.question)),
    Case("in-memory: add, 10k stored", None, adding("in-memory", 500)),
    Case("Redis: add, 10k stored in 20 sessions", 50, adding("redis", 30)),
    Case("Redis: add, 10k stored in one session", 50, adding("redis", 30, ALONE)),
    Case("Redis, synced: add, 10k stored in 20 sessions", None, adding(SYNCED, 30)),
    Case("Redis, synced: a bare HSET of one message", None, setting(SYNCED, 30)),
    Case("in-memory: list, 50k stored, page 1 of 10", None, listing("in-memory", 1)),
    Case("in-memory: list, 50k stored, page 2500 of 10", None, listing("in-memory", 2500)),
    Case("Redis: list, 50k stored, page 1 of 10", 100, listing("redis", 1)),
    Case("Redis: list, 50k stored, page 2500 of 10", 100, listing("redis", 2500)),
]

OTHERS = [0, 50_000, 200_000]  # records of other users beside those of the searching user


async def flatness() -> list[dict[str, Any]]:
    """Return our search cost beside more and more records of others; ideally flat.

    There is nothing to compare with in turns, so the best of several rounds counts: other load on
    the machine can only add to it.
    """
    rows = []
    for backend in BACKENDS:
        service, there = SERVICES[OURS.name, backend], 0
        for others in OTHERS:
            for number in range(there, others, 1000):
                await _fill(OURS, service, f"other-{number}", TEXTS.many(1000))
            there = others
            asking = searching(backend, TEXTS.question)
            seconds = min([await asking(OURS) for _ in range(FLAT_ROUNDS)])
            rows.append({"backend": backend, "others": others, "seconds": seconds})
    return rows


@dataclass(frozen=True)
class ServiceOptions(Flags):
    """The number of rounds, and which cases."""

    rounds: int = option(5, "rounds per case", quick=1)
    only: str = option("", "only cases whose name contains this")


def measure(options: ServiceOptions, run: Run) -> Raw:
    """Run the cases in turns, and ours beside more and more records of others."""
    return asyncio.run(_measured(options, run))


async def _measured(options: ServiceOptions, run: Run) -> Raw:
    chosen = [case for case in CASES if options.only in case.name]
    rows = []
    async with services(run.say):
        for number, case in enumerate(chosen, 1):
            run.say(f"[{number}/{len(chosen)}] {case.name}")
            rows.append(await side_by_side(case, THEIRS, OURS, options.rounds))
        return {"cases": rows, "flatness": await flatness() if not options.only else []}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cases, and ours beside records of others."""
    flat = tuple(
        (row["backend"], f"{row['others']:,}", duration(row["seconds"])) for row in raw["flatness"]
    )
    head = ("backend", "records of others", "memoryspace, search of 8 words")
    return [
        compared_grid("Time per call", raw["cases"], THEIRS.name, OURS.name),
        Grid("A search, beside records of others", 2, head, flat),
    ]


BENCHMARK = Benchmark(
    "service",
    "memory services beside agentscope-runtime 1.0.5",
    ServiceOptions,
    measure,
    tables,
    notes="Wall time; both search by words alone. Ratios are theirs over ours.",
    packages=("memoryspace", "agentscope-runtime", "redis", "msgspec", "numpy"),
)
