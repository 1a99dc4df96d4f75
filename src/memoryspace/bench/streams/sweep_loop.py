"""The prototype's loop over a long text: the newest chunks are roots, queries ask for the last.

Its memories are bounded by declared sizes, or by a number of chunks: see ``capacity_sweep``.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ...errors import OutOfSpace
from ...kernel import MemoryManager, Quotas, Retriever, Runtime
from ..harness.experiment import Asked, Cell, CellResult, integer
from ..memories.baselines import INDEXES
from ..memories.managed import COLLECTORS, Steps
from .asking import HITS, judged

WINDOW = 60  # chunks that a baseline holds; half as many are roots; collection interval
DECLARED = (64, 192)
ROOMY = 1 << 22  # heap bytes, where only declared sizes count
_WORD = re.compile(r"[^\W\d_]+")


def run_sweep(cell: Cell, texts: Sequence[str], tick: Callable[[int, int], None]) -> CellResult:
    """Store chunk after chunk in the memory of a cell, and query a word of the newest."""
    draw, memory = random.Random(f"sweep {cell['seed']}"), _seed_memory(cell)
    every = integer(cell, "every")
    asked: list[Asked] = []
    for number, text in enumerate(texts, 1):
        memory.step(text, draw.randint(*DECLARED))
        words = _WORD.findall(text.lower())
        if not number % every and words:
            word = draw.choice(words)
            found = memory.best(f"{word} scene")
            right = found is not None and word in found.lower()
            asked.append(Asked(word, ("top",) if right else (), ("top",) if found else ()))
        if not number % 1000:
            tick(number, len(texts))
    return judged(asked, {"hit@1": HITS["hit@1"]})


class SeedMemory(Protocol):
    """The interface that the prototype's loop needs."""

    def step(self, text: str, size: int) -> None:
        """Store a chunk of this declared size."""

    def best(self, query: str) -> str | None:
        """Return the top result."""


class RootedManager:
    """The manager as the prototype used it: the newest 30 are roots, a collection every 60."""

    def __init__(self, capacity: int, collectors: str, index: Retriever) -> None:
        self._clock = Steps()
        self._manager = MemoryManager(
            ROOMY,
            quotas=Quotas(budget=capacity),
            collectors=COLLECTORS[collectors](),
            retriever=index,
            runtime=Runtime(clock=self._clock),
        )
        self._roots: deque[str] = deque()
        self._steps = 0

    def step(self, text: str, size: int) -> None:
        """Store a chunk as a root."""
        self._clock.now += 1
        self._roots.append(self._stored(text, size))
        if len(self._roots) > WINDOW // 2:
            self._manager.remove_root(self._roots.popleft())
        self._steps += 1
        if not self._steps % WINDOW:
            self._manager.run_gc("periodic")

    def best(self, query: str) -> str | None:
        """Return the top result."""
        hits = self._manager.retrieve(query, 1)
        return hits[0].object.payload["text"] if hits else None

    def _stored(self, text: str, size: int) -> str:
        """Store it; if even a collection frees too little, the oldest roots go."""
        while True:
            try:
                return self._manager.store({"text": text}, size=size, root=True).id
            except OutOfSpace:
                if not self._roots:
                    raise
                self._manager.remove_root(self._roots.popleft())


class Baseline:
    """The newest 60 chunks, or a random sample of 60. Sizes are ignored, an unfair advantage."""

    def __init__(self, index: Retriever, sample: random.Random | None = None) -> None:
        self._index = index
        self._sample = sample
        self._texts: dict[int, str] = {}
        self._places: list[int] = []
        self._steps = 0

    def step(self, text: str, size: int) -> None:
        """Store a chunk in place of another."""
        number, self._steps = self._steps, self._steps + 1
        place = number % WINDOW if self._sample is None else self._sample.randrange(number + 1)
        if number < WINDOW:
            self._places.append(number)
        elif place < WINDOW:
            del self._texts[self._places[place]]
            self._index.remove(self._places[place])
            self._places[place] = number
        else:
            return
        self._texts[number] = text
        self._index.add(number, text)

    def best(self, query: str) -> str | None:
        """Return the top result."""
        found = self._index.search(query, 1)
        return self._texts[found[0][0]] if found else None


def _seed_memory(cell: Cell) -> SeedMemory:
    capacity, index = integer(cell, "capacity"), INDEXES[str(cell["index"])]()
    if cell["system"] == "manager":
        return RootedManager(capacity, str(cell["collectors"]), index)
    sampled = random.Random(f"sample {cell['seed']}") if cell["system"] == "reservoir" else None
    return Baseline(index, sampled)
