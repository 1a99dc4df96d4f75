"""Working memory compared with AgentScope 1.0.16: ``make bench``.

Both sides do the same work on the same machine in turns; every figure is a time per call, the ratio
is theirs over ours, and the median of the rounds counts. Work in RAM alone is measured in CPU time,
the rest in wall time.
"""

from __future__ import annotations

import asyncio
import copy
import json
import statistics
import sys
import tempfile
import time
import warnings
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

warnings.filterwarnings("ignore")  # of AgentScope's own dependencies

import agentscope.formatter as their_formatter  # noqa: E402  # after the warnings
import agentscope.memory as their_memory  # noqa: E402
import agentscope.message as their_message  # noqa: E402
from redis.asyncio import Redis  # noqa: E402
from sqlalchemy.ext.asyncio import create_async_engine  # noqa: E402

from ... import formatter as our_formatter  # noqa: E402
from ... import memory as our_memory  # noqa: E402
from ... import message as our_message  # noqa: E402
from ..harness.benchmark import Benchmark, Grid, Raw, Run, compared_grid  # noqa: E402
from ..harness.options import Flags, option  # noqa: E402
from ..harness.timing import CPU, Case, Timed, duration, per_call, side_by_side  # noqa: E402
from . import servers  # noqa: E402


@dataclass(frozen=True)
class Side:
    """One of the two packages: same names, other root."""

    name: str
    memory: Any
    msg: Any
    formatter: Any

    def says(self, count: int) -> list[Any]:
        return [
            self.msg("Ann", f"message number {n} of the conversation", "user") for n in range(count)
        ]

    def works(self, count: int) -> list[Any]:
        """Return an agent's work: a question, a thought, a tool call, and an answer."""
        steps = [step for n in range(count // 4) for step in _steps(n)]
        return [self.msg(name, content, role) for name, content, role in steps]


def _steps(number: int) -> list[tuple[str, Any, str]]:
    call = {"type": "tool_use", "id": f"call-{number}", "name": "look", "input": {"at": number}}
    seen = [{"type": "text", "text": f"There is nothing to see at number {number}."}]
    result = {"type": "tool_result", "id": f"call-{number}", "name": "look", "output": seen}
    return [
        ("Ann", f"What is to be seen at number {number} of the street?", "user"),
        ("bot", [{"type": "text", "text": "I shall have a look."}, call], "assistant"),
        ("system", [result], "system"),
        ("bot", f"At number {number} of the street there is nothing to see.", "assistant"),
    ]


OURS = Side("memoryspace", our_memory, our_message.Msg, our_formatter)
THEIRS = Side("agentscope", their_memory, their_message.Msg, their_formatter)


async def _cpuper_call(calls: list[Callable[[], Awaitable[object]]]) -> float:
    """Return CPU time: work in RAM alone waits for nothing but other programs."""
    return await per_call(calls, CPU)


async def _filled(side: Side, memory: Any, count: int, marked: int = 0) -> list[Any]:
    messages = side.says(count)
    if marked:
        await memory.add(messages[:marked], marks="compressed")
    if marked < count:
        await memory.add(messages[marked:])
    return messages


def _adds(
    side: Side, memory: Any, count: int, **options: Any
) -> list[Callable[[], Awaitable[object]]]:
    return [partial(memory.add, msg, **options) for msg in side.says(count)]


# -- in memory -----------------------------------------------------------------------------------


def ram_add_at(size: int, calls: int) -> Timed:
    async def run(side: Side) -> float:
        memory = side.memory.InMemoryMemory()
        await _filled(side, memory, size)
        return await _cpuper_call(_adds(side, memory, calls))

    return run


async def ram_get_excluding(side: Side) -> float:
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000, marked=5_000)
    return await _cpuper_call([lambda: memory.get_memory(exclude_mark="compressed")] * 50)


async def ram_get_after_each_add(side: Side) -> float:
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000, marked=5_000)
    total = 0.0
    for msg in side.says(50):
        await memory.add(msg)
        start = time.process_time()
        await memory.get_memory(exclude_mark="compressed")
        total += time.process_time() - start
    return total / 50


async def ram_get_and_read_all(side: Side) -> float:
    """Read the text of each message too, as a formatter does next."""
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000, marked=5_000)

    async def read() -> None:
        for msg in await memory.get_memory(exclude_mark="compressed"):
            msg.get_text_content()

    return await _cpuper_call([read] * 20)


async def ram_delete(side: Side) -> float:
    memory = side.memory.InMemoryMemory()
    messages = await _filled(side, memory, 10_000)
    return await _cpuper_call([lambda: memory.delete([msg.id for msg in messages[::10]])])


async def ram_hint_cycle(side: Side) -> float:
    """Do what an agent does around every model call: add a hint, read it, remove it."""
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000)
    hints = side.says(30)

    async def cycle(hint: Any) -> None:
        await memory.add(hint, marks="hint")
        await memory.get_memory()
        await memory.delete_by_mark("hint")

    await cycle(side.says(1)[0])
    return await _cpuper_call([partial(cycle, hint) for hint in hints])


async def ram_state(side: Side) -> float:
    memory, other = side.memory.InMemoryMemory(), side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000)

    async def move() -> None:
        other.load_state_dict(json.loads(json.dumps(memory.state_dict())))

    return await _cpuper_call([move] * 3)


async def ram_add_duplicates(side: Side) -> float:
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 1_000)
    return await _cpuper_call(_adds(side, memory, 5_000, allow_duplicates=True))


async def ram_first_get(side: Side) -> float:
    """Read a whole memory for the first time since the last add."""
    memory = side.memory.InMemoryMemory()
    await _filled(side, memory, 10_000)
    await memory.get_memory()
    total = 0.0
    for msg in side.says(50):
        await memory.add(msg)
        start = time.process_time()
        await memory.get_memory()
        total += time.process_time() - start
    return total / 50


async def copy_message(side: Side) -> float:
    messages = side.says(5_000)
    start = time.process_time()
    for msg in messages:
        copy.deepcopy(msg)
    return (time.process_time() - start) / len(messages)


async def format_for_openai(side: Side) -> float:
    """Format texts, tool calls and their results as an OpenAI prompt."""
    formatter, messages = side.formatter.OpenAIChatFormatter(), side.works(1_000)
    return await _cpuper_call([lambda: formatter.format(messages)] * 5)


async def import_package(side: Side) -> float:
    """Return the CPU time of the import alone, in a process of its own."""
    clock = "time.process_time()"
    code = f"import time; began = {clock}; import {side.name}; print({clock} - began)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
    printed, _ = await child.communicate()
    return float(printed.split()[-1])


# -- SQLite --------------------------------------------------------------------------------------


@asynccontextmanager
async def sqlite(side: Side) -> AsyncIterator[Callable[[str, str], Any]]:
    with tempfile.TemporaryDirectory() as folder:
        engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/memory.db")
        made = []

        def make(user: str, session: str) -> Any:
            made.append(side.memory.AsyncSQLAlchemyMemory(engine, session, user))
            return made[-1]

        yield make
        for memory in made:
            await memory.close()
        await engine.dispose()


async def sqlite_adds(side: Side) -> float:
    async with sqlite(side) as make:
        memory = make("user", "session")
        await memory.add(side.says(1))
        return await per_call(_adds(side, memory, 1_000))


async def sqlite_marked_add(side: Side) -> float:
    async with sqlite(side) as make:
        other = make("other", "other")
        await _filled(side, other, 40_000, marked=40_000)
        await other.close()
        memory = make("user", "session")
        await memory.add(side.says(1))
        return await per_call(_adds(side, memory, 10, marks="hint"))


async def sqlite_get(side: Side) -> float:
    async with sqlite(side) as make:
        memory = make("user", "session")
        await _filled(side, memory, 10_000)
        return await per_call([memory.get_memory] * 5)


# -- Redis ---------------------------------------------------------------------------------------


@asynccontextmanager
async def redis(side: Side, **options: Any) -> AsyncIterator[Any]:
    server = servers.redis(synced=True)
    port = int(server.rsplit(":", 1)[1].split("/")[0])
    client = Redis(port=port)
    await client.flushall()
    memory = side.memory.RedisMemory("session", "user", port=port, **options)
    yield memory
    await memory.close()
    await client.aclose()


def redis_add_at_10k(calls: int, foreign_keys: int = 0, **options: Any) -> Timed:
    async def run(side: Side) -> float:
        async with redis(side, **options) as memory:
            await _add_foreign_keys(memory.get_client(), foreign_keys)
            await _filled(side, memory, 10_000)
            return await per_call(_adds(side, memory, calls))

    return run


async def _add_foreign_keys(client: Redis, count: int) -> None:
    for start in range(0, count, 10_000):
        await client.mset({f"foreign:{n}": "x" for n in range(start, start + 10_000)})


async def redis_get_excluding(side: Side) -> float:
    async with redis(side) as memory:
        await _filled(side, memory, 10_000, marked=5_000)
        return await per_call([lambda: memory.get_memory(exclude_mark="compressed")] * 3)


async def redis_add_many(side: Side) -> float:
    async with redis(side) as memory:
        portions = [side.says(1_000) for _ in range(5)]
        adds = [lambda some=each: memory.add(some) for each in portions]
        return await per_call(adds) / 1_000


async def redis_get(side: Side) -> float:
    async with redis(side) as memory:
        await _filled(side, memory, 10_000)
        return await per_call([memory.get_memory] * 3)


CASES = [
    Case("in-memory: add, 1k stored", None, ram_add_at(1_000, 100)),
    Case("in-memory: add, 10k stored", 50, ram_add_at(10_000, 100)),
    Case("in-memory: get_memory(exclude_mark), 10k stored, 5k marked", 20, ram_get_excluding),
    Case("in-memory: the same, each after an add", None, ram_get_after_each_add),
    Case("in-memory: the same, and every text read", None, ram_get_and_read_all),
    Case("in-memory: delete 1k of 10k by id", 50, ram_delete),
    Case("in-memory: hint cycle (add, get, delete by mark), 10k stored", 20, ram_hint_cycle),
    Case("in-memory: state_dict, JSON and back, load, 10k stored", 1.5, ram_state),
    Case("in-memory: add, duplicates allowed", 1.5, ram_add_duplicates),
    Case("in-memory: get_memory of 10k, the first after an add", 10, ram_first_get),
    Case("copy.deepcopy of a message", 1.2, copy_message),
    Case("format 1,000 messages for OpenAI", 1.5, format_for_openai),
    Case("import of the package, CPU time", None, import_package),
    Case("SQLite: one of 1,000 single adds", 3, sqlite_adds),
    Case("SQLite: marked add, 40k marks of others", 100, sqlite_marked_add),
    Case("SQLite: get_memory of 10k", 5, sqlite_get),
    Case("Redis: add, 10k stored", 20, redis_add_at_10k(30)),
    Case("Redis: add with TTL, 10k stored", 20, redis_add_at_10k(20, key_ttl=600)),
    Case(
        "Redis: the same, 100k keys of others",
        None,
        redis_add_at_10k(10, foreign_keys=100_000, key_ttl=600),
    ),
    Case("Redis: one of 1,000 messages in one add", 1.5, redis_add_many),
    Case("Redis: get_memory of 10k", 4, redis_get),
    Case("Redis: get_memory(exclude_mark), 10k stored, 5k marked", 5, redis_get_excluding),
]

SIZES = [0, 1_000, 10_000, 100_000]


async def growth(rounds: int) -> list[dict[str, Any]]:
    """Return our cost per add at growing sizes; ideally flat."""
    rows = []
    for size in SIZES:
        times = [await ram_add_at(size, 2_000)(OURS) for _ in range(rounds)]
        rows.append({"stored": size, "seconds": times, "median": statistics.median(times)})
    return rows


@dataclass(frozen=True)
class WorkingMemoryOptions(Flags):
    """The number of rounds, and which cases."""

    rounds: int = option(3, "rounds per case", quick=1)
    only: str = option("", "only cases whose name contains this")


def measure(options: WorkingMemoryOptions, run: Run) -> Raw:
    """Run the cases in turns, and ours at growing sizes."""
    try:
        return asyncio.run(_measured(options, run))
    finally:
        servers.stop()


async def _measured(options: WorkingMemoryOptions, run: Run) -> Raw:
    chosen = [case for case in CASES if options.only in case.name]
    rows = []
    for number, case in enumerate(chosen, 1):
        run.say(f"[{number}/{len(chosen)}] {case.name}")
        rows.append(await side_by_side(case, THEIRS, OURS, options.rounds))
    return {"cases": rows, "growth": await growth(options.rounds) if not options.only else []}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cases, and ours at growing sizes."""
    grown = tuple((f"{row['stored']:,}", duration(row["median"])) for row in raw["growth"])
    return [
        compared_grid("Time per call", raw["cases"], THEIRS.name, OURS.name),
        Grid("An add, by how much is stored", 1, ("stored", "memoryspace, in-memory add"), grown),
    ]


BENCHMARK = Benchmark(
    "working-memory",
    "working memory beside AgentScope 1.0.16",
    WorkingMemoryOptions,
    measure,
    tables,
    notes="What is done in RAM alone is CPU time, the rest wall time. Ratios are theirs over ours.",
    packages=("memoryspace", "agentscope", "sqlalchemy", "aiosqlite", "redis", "msgspec"),
)
