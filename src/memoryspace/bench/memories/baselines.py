"""Baselines under a byte budget: the newest texts, a random sample, a bag of words."""

from __future__ import annotations

import bisect
import math
import random
import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping

from ...errors import InvalidInput
from ...kernel import Retriever
from ...retrieval import SparseIndex
from .footprint import Footprint, reachable_bytes

_WORD = re.compile(r"[a-z0-9]+")


class OldestFirst(ABC):
    """Texts within a byte budget; the oldest are dropped for a new one. Subclasses search."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._sizes: deque[tuple[int, int]] = deque()  # number and bytes of each text, oldest first
        self._used = 0
        self._stored = 0

    def store(self, text: str) -> None:
        """Store a text."""
        size = len(text.encode())
        if size > self.budget:
            raise InvalidInput(f"a text of {size} bytes does not fit into {self.budget}")
        while self._used + size > self.budget:
            number, freed = self._sizes.popleft()
            self._remove(number)
            self._used -= freed
        self._add(self._stored, text)
        self._sizes.append((self._stored, size))
        self._used += size
        self._stored += 1

    @abstractmethod
    def retrieve(self, query: str, k: int) -> list[str]:
        """Return at most ``k`` texts, best first."""

    @property
    def bytes_used(self) -> int:
        """Return the bytes of the texts."""
        return self._used

    def figures(self) -> Mapping[str, float]:
        """Return how many texts are stored."""
        return {"kept": len(self._sizes)}

    def footprint(self) -> Footprint:
        """Return the memory footprint of its objects."""
        return Footprint(reachable_bytes(self))

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Release all resources."""

    @abstractmethod
    def _add(self, number: int, text: str) -> None:
        """Index a text under its number."""

    @abstractmethod
    def _remove(self, number: int) -> None:
        """Remove a text from the index."""


class SlidingMemory(OldestFirst):
    """The newest texts, searched with our index or another one."""

    def __init__(self, budget: int, index: Retriever | None = None) -> None:
        super().__init__(budget)
        self._texts: dict[int, str] = {}
        self._index: Retriever = INDEXES["bm25"]() if index is None else index

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search by words."""
        return [self._texts[number] for number, _ in self._index.search(query, k)]

    def footprint(self) -> Footprint:
        """Return the footprint, and the index's part of it."""
        return Footprint(reachable_bytes(self), reachable_bytes(self._index))

    def _add(self, number: int, text: str) -> None:
        self._texts[number] = text
        self._index.add(number, text)

    def _remove(self, number: int) -> None:
        del self._texts[number]
        self._index.remove(number)


class SampleMemory(SlidingMemory):
    """A uniform sample of all texts: each gets a random number, and the highest are dropped."""

    def __init__(self, budget: int, seed: int) -> None:
        super().__init__(budget)
        self._random = random.Random(seed)
        self._order: list[tuple[float, int, int]] = []  # random number, number, bytes; sorted

    def store(self, text: str) -> None:
        """Store a text, if its random number is low enough."""
        size = len(text.encode())
        bisect.insort(self._order, (self._random.random(), self._stored, size))
        self._add(self._stored, text)
        self._stored += 1
        self._used += size
        while self._used > self.budget:
            _, number, freed = self._order.pop()
            self._remove(number)
            self._used -= freed

    def figures(self) -> Mapping[str, float]:
        """Return how many texts are stored."""
        return {"kept": len(self._order)}


class WordCounts:
    """An index by the cosine of word counts: the prototype's retriever.

    It has no weights for rare words and no stemming, and every query scans every text. A kernel
    accepts it as its retriever.
    """

    def __init__(self) -> None:
        self._bags: dict[int, tuple[Counter[str], float]] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._bags

    def add(self, key: int, text: str) -> None:
        """Index a text."""
        bag = Counter(_WORD.findall(text.lower()))
        self._bags[key] = (bag, math.sqrt(sum(count * count for count in bag.values())))

    def remove(self, key: int) -> bool:
        """Remove a text."""
        return self._bags.pop(key, None) is not None

    def search(
        self, text: str, top_k: int = 5, *, allow: Callable[[int], bool] | None = None
    ) -> list[tuple[int, float]]:
        """Scan every text; ties go to the newest."""
        wanted = Counter(_WORD.findall(text.lower()))
        scored = [
            (score / length, key)
            for key, (bag, length) in self._bags.items()
            if (score := _dot(wanted, bag)) and (allow is None or allow(key))
        ]
        return [(key, score) for score, key in sorted(scored, reverse=True)[:top_k]]


def _dot(one: Counter[str], other: Counter[str]) -> int:
    return sum(count * other[word] for word, count in one.items() if word in other)


INDEXES: Mapping[str, Callable[[], Retriever]] = {
    "word counts": WordCounts,  # the prototype's
    "bm25": lambda: SparseIndex(any_word=True),  # ours, as in a space
}
