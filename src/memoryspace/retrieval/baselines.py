"""The simplest memories that could work: what a real one has to beat.

``SlidingWindowMemory`` keeps the newest items, ``ReservoirMemory`` a fair sample of all. Both find
what they keep by the same words as the real index, so that a comparison is about what was kept.

One caller at a time: they have no lock of their own.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..errors import InvalidInput
from .sparse.index import SparseIndex
from .text.analysis import text_of


class Item(NamedTuple):
    """Something stored, by the number of its arrival; the payload is kept as it was given."""

    id: str
    payload: Any


class BaselineMemory(ABC):
    """At most ``max_items`` items, searched by words. Who goes is for the subclass to say."""

    def __init__(self, max_items: int) -> None:
        if type(max_items) is not int:
            raise TypeError(f"max_items must be an int, got {type(max_items).__name__}")
        if max_items < 1:
            raise InvalidInput(f"max_items must be 1 or more, got {max_items}")
        self.max_items = max_items
        self._kept: dict[int, Item] = {}  # arrival → item
        self._index = SparseIndex(any_word=True)
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._kept)

    def store(self, payload: Any) -> Item:
        """Remember a str or a JSON-like value, unless it is this one that has to go."""
        arrival = self._arrivals
        item = Item(str(arrival), payload)
        text = text_of(payload)
        self._arrivals += 1
        leaving = self._leaving(arrival) if len(self._kept) == self.max_items else None
        if leaving == arrival:
            return item
        if leaving is not None:
            self._index.remove(leaving)
            del self._kept[leaving]
        self._kept[arrival] = item
        self._index.add(arrival, text)
        return item

    def retrieve(self, query: str, top_k: int = 5) -> list[tuple[Item, float]]:
        """Return the items that match best with their scores, the best first, then the newest."""
        return [(self._kept[key], score) for key, score in self._index.search(query, top_k)]

    def stats(self) -> dict[str, int]:
        """Return how much was stored, is kept and may be kept."""
        return {
            "items": len(self._kept),
            "max_items": self.max_items,
            "stored": self._arrivals,
            "dropped": self._arrivals - len(self._kept),
        }

    @abstractmethod
    def _leaving(self, arrival: int) -> int:
        """Choose which of the kept ones goes for the one that arrives, or that one itself."""


class SlidingWindowMemory(BaselineMemory):
    """Keeps the newest items."""

    def _leaving(self, arrival: int) -> int:
        oldest: int = next(iter(self._kept))
        return oldest


class ReservoirMemory(BaselineMemory):
    """Keeps a sample in which every item ever stored is equally likely (Vitter's Algorithm R)."""

    def __init__(self, max_items: int, seed: int = 0) -> None:
        super().__init__(max_items)
        self._random = random.Random(seed)
        self._places = list(range(max_items))  # arrivals: the first ones fill the places

    def _leaving(self, arrival: int) -> int:
        place = self._random.randrange(arrival + 1)
        if place >= self.max_items:
            return arrival
        leaving, self._places[place] = self._places[place], arrival
        return leaving


SlidingWindow = SlidingWindowMemory
Reservoir = ReservoirMemory
