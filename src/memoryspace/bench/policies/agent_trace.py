"""A simulated agent for recording traces: it stores passages of a text, searches and drops them.

The agent works in sessions. It stores each passage it reads. Seven times in ten it then searches by
a few words, for a passage of this session or, three times in ten, for one of its permanent
passages, and uses the three hits. Sessions are of two kinds; in a busy one, half of the passages
are needed only for a moment. At the end of a session nine passages in ten are dropped; the others
are kept until there are four hundred.
"""

from __future__ import annotations

import random
import re

from ...kernel import MemoryManager, Runtime
from ..memories.managed import Steps
from .traces import TraceRecorder, TraceStep

CAPACITY = 1 << 28
PASSAGES = (30, 120)  # passages of a session
KEPT = 400
LENGTHS = (120, 900)  # characters of a passage
GAP, PAUSE = 0.002, 0.05  # seconds between two passages, and between two sessions: a loaded server
_WORD = re.compile(r"[^\W\d_]{4,}")


class Agent:
    """The agent, its space, and the passages it still holds."""

    def __init__(self, text: str, seed: int) -> None:
        self._text, self._draw = text, random.Random(f"agent {seed}")
        self.clock = Steps()
        self.space = MemoryManager(CAPACITY, runtime=Runtime(clock=self.clock))
        self._kept: list[str] = []
        self._passages: dict[str, str] = {}

    def session(self) -> None:
        """Read, search, and drop."""
        draw = self._draw
        here: list[str] = []
        busy = draw.random() < 0.5
        for _ in range(draw.randint(*PASSAGES)):
            self.clock.now += draw.expovariate(1 / GAP)
            here.append(self._read())
            if draw.random() < 0.7:
                self._ask(draw.choice(self._kept if self._kept and draw.random() < 0.3 else here))
            if busy and len(here) > 3 and draw.random() < 0.5:
                self._give_up([here.pop(draw.randrange(len(here) - 1))])
        self.clock.now += draw.expovariate(1 / PAUSE)
        kept = [name for name in here if draw.random() < 0.1]
        self._give_up([name for name in here if name not in kept])
        self._kept += kept
        while len(self._kept) > KEPT:
            self._give_up([self._kept.pop(draw.randrange(len(self._kept) // 2))])

    def _read(self) -> str:
        length = self._draw.randint(*LENGTHS)
        start = self._draw.randrange(max(1, len(self._text) - length))
        passage = self._text[start : start + length]
        stored = self.space.store({"text": passage}, root=True)
        self._passages[stored.id] = passage
        return stored.id

    def _ask(self, name: str) -> None:
        words = _WORD.findall(self._passages[name])
        if words:
            self.space.retrieve(" ".join(self._draw.choices(words, k=4)), 3)

    def _give_up(self, names: list[str]) -> None:
        self.space.free_many(names)
        for name in names:
            del self._passages[name]


def recorded(text: str, steps: int, seed: int) -> list[TraceStep]:
    """Return a trace of an agent's memory with about this many steps."""
    agent = Agent(text, seed)
    with agent.space, TraceRecorder(agent.space.events) as recorder:
        while len(recorder.steps) < steps:
            agent.session()
    return recorder.steps
