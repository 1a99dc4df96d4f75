"""What deriving personal facts costs, in milliseconds of CPU a message, as more is known.

    python bench/deriving_speed.py [--facts 1000] [--messages 200]

The rules read a message, and compare what they find with all that is known of a user. ``kept`` is
adding without deriving, the same messages to a service that only keeps them; the difference is what
deriving costs. Each message is added alone, as a chat does it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence

from memoryspace.service import InMemoryMemoryService, PersonalMemoryService, ServiceSettings
from memoryspace.service.stored import StoredMemoryService

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
    """Return messages that differ: most state a fact."""
    return [
        _SAID[n % len(_SAID)].format(
            n=n, thing=_THINGS[n % len(_THINGS)], place=_PLACES[n // 5 % len(_PLACES)]
        )
        for n in range(first, first + count)
    ]


def likes(count: int) -> list[str]:
    """Return messages of one fact each, none of which ends another."""
    return [f"My friend Known{n} lives in Town{n}." for n in range(count)]


async def cost(service: StoredMemoryService, known: int, messages: Sequence[str]) -> float:
    """Return the CPU milliseconds of adding a message to what is known."""
    async with service:
        before = likes(known)
        for begin in range(0, known, 100):
            await service.add_memory("u", before[begin : begin + 100])
        began = time.process_time()
        for text in messages:
            await service.add_memory("u", text)
        return (time.process_time() - began) / len(messages) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=1000, help="what is known at most")
    parser.add_argument("--messages", type=int, default=200)
    args = parser.parse_args()
    settings, messages = ServiceSettings(embedder=None), said(0, args.messages)
    print(f"{'facts':>6} {'derived':>9} {'kept':>7} {'deriving':>9}   ms of CPU a message")
    for known in (0, args.facts // 10, args.facts):
        derived = asyncio.run(cost(PersonalMemoryService(settings=settings), known, messages))
        kept = asyncio.run(cost(InMemoryMemoryService(settings=settings), known, messages))
        print(f"{known:6} {derived:9.2f} {kept:7.2f} {derived - kept:9.2f}")


if __name__ == "__main__":
    main()
