"""Baseline memories to compare a real one with.

``SlidingWindowMemory`` keeps the newest items, ``ReservoirMemory`` a uniform sample of all. Both
search with the same word index as ``Recall``, so a comparison measures what was kept.

They have no lock; allow one caller at a time.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..errors import InvalidInput
from .sparse.index import SparseIndex
from .text.analysis import text_of


class StoredItem(NamedTuple):
    """A stored payload, unchanged, with the number of its arrival as id."""

    id: str
    payload: Any


class BaselineMemory(ABC):
    """At most ``max_items`` items, searched by words. Subclasses choose which item to evict."""

    def __init__(self, max_items: int) -> None:
        if type(max_items) is not int:
            raise TypeError(f"max_items must be an int, got {type(max_items).__name__}")
        if max_items < 1:
            raise InvalidInput(f"max_items must be 1 or more, got {max_items}")
        self.max_items = max_items
        self._kept: dict[int, StoredItem] = {}  # arrival → item
        self._index = SparseIndex(any_word=True)
        self._arrivals = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} of at most {self.max_items} items>"

    def __len__(self) -> int:
        return len(self._kept)

    def store(self, payload: Any) -> StoredItem:
        """Store a str or a JSON-like value, and evict an item if the memory is full.

        The evicted item may be the new one; it is returned all the same.
        """
        arrival = self._arrivals
        item = StoredItem(str(arrival), payload)
        text = text_of(payload)
        self._arrivals += 1
        victim = self._victim(arrival) if len(self._kept) == self.max_items else None
        if victim == arrival:
            return item
        if victim is not None:
            self._index.remove(victim)
            del self._kept[victim]
        self._kept[arrival] = item
        self._index.add(arrival, text)
        return item

    def retrieve(self, query: str, top_k: int = 5) -> list[tuple[StoredItem, float]]:
        """Return the items that match best with their scores, the best first, then the newest."""
        return [(self._kept[key], score) for key, score in self._index.search(query, top_k)]

    def stats(self) -> dict[str, int]:
        """Return the counts ``items`` (kept), ``max_items``, ``stored`` and ``dropped``."""
        return {
            "items": len(self._kept),
            "max_items": self.max_items,
            "stored": self._arrivals,
            "dropped": self._arrivals - len(self._kept),
        }

    @abstractmethod
    def _victim(self, arrival: int) -> int:
        """Return the arrival number of the item to evict: a stored one, or the new one itself."""


class SlidingWindowMemory(BaselineMemory):
    """A memory of the newest items.

    Args:
        max_items: The most items to keep.

    Example::

        memory = SlidingWindowMemory(100)
        memory.store("tea at five")
    """

    def _victim(self, arrival: int) -> int:
        oldest: int = next(iter(self._kept))
        return oldest


class ReservoirMemory(BaselineMemory):
    """A memory of a sample in which every stored item is equally likely (Vitter's Algorithm R).

    Args:
        max_items: The size of the sample.
        seed: The seed of the random choice.
    """

    def __init__(self, max_items: int, seed: int = 0) -> None:
        super().__init__(max_items)
        self._random = random.Random(seed)
        self._places = list(range(max_items))  # arrivals: the first ones fill the places

    def _victim(self, arrival: int) -> int:
        place = self._random.randrange(arrival + 1)
        if place >= self.max_items:
            return arrival
        victim, self._places[place] = self._places[place], arrival
        return victim


SlidingWindow = SlidingWindowMemory
Reservoir = ReservoirMemory
