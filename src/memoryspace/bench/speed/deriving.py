"""The cost of deriving personal facts, in CPU milliseconds per message, as facts accumulate.

The rules read a message and compare their findings with everything known of a user. ``kept`` adds
the same messages to a service that only stores them; the difference is the cost of deriving. Each
message is added alone, as in a chat.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...service import InMemoryMemoryService, PersonalMemoryService, ServiceSettings
from ...service.stored import StoredMemoryService
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option

_THINGS = [
    "tennis",
    "chess",
    "pottery",
    "rowing",
    "baking",
    "hiking",
    "opera",
    "jazz",
    "knitting",
    "sailing",
]
_PLACES = ["Oslo", "Ghent", "Porto", "Leeds", "Turin", "Lyon", "Cork", "Graz", "Bern", "Riga"]
_SAID = (
    "I really like {thing} number {n}, it calms me down.",
    "My cousin Name{n} lives in {place} and works as a nurse.",
    "I moved to {place} last week, the flat is small but it has a balcony.",
    "我喜欢第{n}种{thing}，每周三晚上都去。",
    "Can you suggest something for dinner? I don't eat pork number {n}.",
)


def said(first: int, count: int) -> list[str]:
    """Return distinct messages, most of which state a fact."""
    return [
        _SAID[n % len(_SAID)].format(
            n=n, thing=_THINGS[n % len(_THINGS)], place=_PLACES[n // 5 % len(_PLACES)]
        )
        for n in range(first, first + count)
    ]


def likes(count: int) -> list[str]:
    """Return messages with one fact each, none of which ends another."""
    return [f"My friend Known{n} lives in Town{n}." for n in range(count)]


async def cost(service: StoredMemoryService, known: int, messages: Sequence[str]) -> float:
    """Return the CPU milliseconds of adding one message."""
    async with service:
        before = likes(known)
        for begin in range(0, known, 100):
            await service.add_memory("u", before[begin : begin + 100])
        began = time.process_time()
        for text in messages:
            await service.add_memory("u", text)
        return (time.process_time() - began) / len(messages) * 1000


@dataclass(frozen=True)
class DerivingOptions(Flags):
    """How much is known, and how many messages are added."""

    facts: int = option(1000, "most facts known", quick=100)
    messages: int = option(200, "messages added", quick=20)


def measure(options: DerivingOptions, run: Run) -> Raw:
    """Add the same messages with and without deriving, as facts accumulate."""
    settings, messages = ServiceSettings(embedder=None), said(0, options.messages)
    rows = []
    for known in (0, options.facts // 10, options.facts):
        run.say(f"{known:,} facts")
        derived = asyncio.run(cost(PersonalMemoryService(settings=settings), known, messages))
        kept = asyncio.run(cost(InMemoryMemoryService(settings=settings), known, messages))
        rows.append({"facts": known, "derived_ms": derived, "kept_ms": kept})
    return {"rows": rows}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cost of a message."""
    rows = tuple(
        (f"{row['facts']:,}", *(f"{each:.2f} ms" for each in (
            row["derived_ms"], row["kept_ms"], row["derived_ms"] - row["kept_ms"])))
        for row in raw["rows"]
    )  # fmt: skip
    head = ("facts known", "added and derived", "only added", "deriving")
    return [Grid("CPU time of a message", 1, head, rows)]


BENCHMARK = Benchmark(
    "deriving-speed",
    "what deriving personal facts costs a message, as more is known",
    DerivingOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
