"""The cost of moving in and out: messages a second of CPU, and how much memory it takes.

Each step runs in a process of its own, at two sizes: if memory is flat, its peak does not grow with
the size. An import reads the file twice, once to check it and once to import it; both are counted.
Chats of another program go through a service, which reads, screens and indexes every message.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...moving import Moved, export_memories, import_foreign, import_memories
from ...service import ServiceSettings
from ...service.deriving.personal import PersonalDeriver
from ...service.stored import StoredMemoryService
from ...store import open_store
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option

BATCH = 500
PER_SESSION = 5000
GOAL = 5000  # messages a second of CPU
WORDS = ServiceSettings(embedder=None)
TARGETS = {"memory": "memory:", "folder": "space", "SQLite": "sqlite:///target.db"}
_CHILD = "import sys; from memoryspace.bench.speed.moving import child; child(sys.argv[1])"


class Meter:
    """CPU seconds of a step, by what a move says that it does."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        self._last = self._cpu
        self.phases: dict[str, float] = {}

    def note(self, moved: Moved) -> None:
        """Count the time since the last note for this step."""
        now = time.process_time()
        self.phases[moved.step] = self.phases.get(moved.step, 0.0) + now - self._last
        self._last = now

    def reading(self) -> Raw:
        """Return what was measured."""
        return {
            "cpu": time.process_time() - self._cpu,
            "wall": time.perf_counter() - self._wall,
            "phases": self.phases,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def texts(count: int) -> Iterator[str]:
    """Yield different messages of about a hundred characters."""
    for number in range(count):
        yield (
            f"Message {number}: the ferry to island {number % 97} leaves at {number % 24}, "
            f"said Ann, and the soup of house {number % 1009} was good."
        )


async def _fill(count: int) -> Raw:
    async with StoredMemoryService("sqlite:///source.db", settings=WORDS) as service:
        said = [{"role": "user", "content": text} for text in texts(count)]
        for start in range(0, count, BATCH):
            session = f"session {start // PER_SESSION}"
            await service.add_memory("ann", said[start : start + BATCH], session)
    return {}


async def _export(name: str) -> Raw:
    async with open_store("sqlite:///source.db") as store:
        meter = Meter()
        await export_memories(store, Path(name), progress=meter.note)
        return {**meter.reading(), "bytes": Path(name).stat().st_size}  # noqa: ASYNC240


async def _import(target: str) -> Raw:
    async with open_store(TARGETS[target]) as store:
        meter = Meter()
        report = await import_memories(store, Path("all.jsonl"), progress=meter.note)
        return {**meter.reading(), "added": report.added}


async def _chats(count: int, *, derive: bool) -> Raw:
    talks = [
        {
            "uuid": f"talk {start}",
            "chat_messages": [
                {"uuid": f"{start}-{n}", "sender": "human", "text": text}
                for n, text in enumerate(texts(BATCH))
            ],
        }
        for start in range(0, count, BATCH)
    ]
    Path("conversations.json").write_text(json.dumps(talks), "utf-8")  # noqa: ASYNC240
    deriver = PersonalDeriver() if derive else None
    async with StoredMemoryService(
        "sqlite:///chats.db", settings=WORDS, deriver=deriver
    ) as service:
        meter = Meter()
        report = await import_foreign(service, "claude", "conversations.json", user="ann")
        return {**meter.reading(), "added": report.added}


def child(work: str) -> None:
    """Do one step and print what was measured; called in a process of its own."""
    name, argument = json.loads(work)
    steps = {
        "fill": lambda: _fill(int(argument)),
        "export": lambda: _export(argument),
        "import": lambda: _import(argument),
        "chats": lambda: _chats(int(argument), derive=False),
        "chats, deriving": lambda: _chats(int(argument), derive=True),
    }
    sys.stdout.write(json.dumps(asyncio.run(steps[name]())))


def step(folder: str, name: str, argument: str) -> Raw:
    """Run one step in a process of its own."""
    command = [sys.executable, "-c", _CHILD, json.dumps([name, argument])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: Raw = json.loads(done.stdout)
    return found


@dataclass(frozen=True)
class MovingOptions(Flags):
    """How much is moved."""

    messages: int = option(100_000, "messages; everything also runs with a quarter", quick=2000)
    chats: int = option(20_000, "messages of a chat program", quick=500)


def measure(options: MovingOptions, run: Run) -> Raw:
    """Fill a store, export it, and import it into each backend; at two sizes."""
    rows: list[Raw] = []
    for count in (options.messages // 4, options.messages):
        with TemporaryDirectory() as folder:
            run.say(f"{count} messages")
            step(folder, "fill", str(count))
            works = [("export", "all.jsonl"), ("export", "all.jsonl.gz")]
            for name, argument in [*works, *(("import", target) for target in TARGETS)]:
                found = step(folder, name, argument)
                rows.append({"step": name, "what": argument, "messages": count, **found})
    with TemporaryDirectory() as folder:
        for name, count in (("chats", options.chats), ("chats, deriving", options.chats // 10)):
            run.say(f"{name}: {count} messages")
            found = step(folder, name, str(count))
            rows.append({"step": name, "what": "claude", "messages": count, **found})
    return {"rows": rows}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the speed and the memory of each step."""
    rows = tuple(
        (
            f"{row['step']} {row['what']}",
            f"{row['messages']:,}",
            f"{row['messages'] / row['cpu']:,.0f}",
            f"{row['messages'] / row['wall']:,.0f}",
            _share_of_checking(row["phases"]),
            f"{row['peak_mb']:.0f} MB",
        )
        for row in raw["rows"]
    )
    head = ("step", "messages", "a second of CPU", "a second", "checking", "peak memory")
    note = (
        f"The goal is {GOAL:,} imported messages a second of CPU. “Checking” is the share of an "
        "import's CPU that checks the file before anything is written. Peak memory is that of the "
        "whole process; “memory” keeps all it imports."
    )
    return [Grid("Moving in and out", 1, head, rows, note)]


def _share_of_checking(phases: Mapping[str, float]) -> str:
    total = sum(phases.values())
    return f"{phases['checking'] / total:.0%}" if "checking" in phases and total else ""


BENCHMARK = Benchmark(
    "import",
    "exports and imports: messages a second of CPU, and memory",
    MovingOptions,
    measure,
    tables,
    packages=("memoryspace", "msgspec", "sqlalchemy"),
)
