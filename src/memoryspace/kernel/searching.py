"""The index beside a heap: a hint that follows the objects, never a reason for a change to fail."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from ..events import EventStream
from .heap import Heap
from .object import decode_body

logger = logging.getLogger(__name__)


class Retriever(Protocol):
    """An index over texts by key, kept up to date as objects come and go."""

    def add(self, key: int, text: str) -> None:
        """Index a text."""

    def remove(self, key: int) -> bool:
        """Forget a text."""

    def search(
        self, text: str, top_k: int = 5, *, allow: Callable[[int], bool] | None = None
    ) -> list[tuple[int, float]]:
        """Return the best keys with their scores, best first."""

    def __contains__(self, key: int) -> bool:
        """Tell whether a key is indexed."""


class Searching:
    """A retriever that follows a heap. What was recovered is indexed in slices, or when asked."""

    def __init__(self, retriever: Retriever, heap: Heap, events: EventStream) -> None:
        from ..retrieval import text_of  # numpy is loaded when something is to be searched

        self.retriever = retriever
        self._heap = heap
        self._events = events
        self._text_of = text_of
        self._backlog = deque(heap.table.living())
        heap.on_freed.append(self._remove)

    @property
    def has_backlog(self) -> bool:
        """Whether something is not indexed yet."""
        return bool(self._backlog)

    def add(self, slot: int, payload: Mapping[str, Any]) -> None:
        """Index an object."""
        try:
            self.retriever.add(self._heap.table.handle[slot], self._text_of(payload))
        except Exception as error:  # the object is stored; the index is only a hint
            self._failed(error)

    def update(self, slot: int, payload: Mapping[str, Any]) -> None:
        """Index another text for an object."""
        self._remove(slot)
        self.add(slot, payload)

    def find(self, query: str, top_k: int, allow: Callable[[int], bool]) -> list[tuple[int, float]]:
        """Return the handles that match best, with their scores."""
        self.catch_up(math.inf)
        return self.retriever.search(query, top_k, allow=allow)

    def catch_up(self, seconds: float) -> None:
        """Index what was recovered, for about so long."""
        deadline = time.perf_counter() + seconds
        table = self._heap.table
        while self._backlog and time.perf_counter() < deadline:
            slot = self._backlog.popleft()
            handle = table.handle[slot]
            if handle and handle not in self.retriever:
                body = self._heap.body_of(slot)
                self.add(slot, decode_body(body, self._heap.id_of(slot)).payload)

    def clear(self) -> None:
        """Empty the retriever, which may be used by others as well: remove what is ours."""
        for slot in self._heap.table.living():
            self._remove(slot)

    def check(self) -> None:
        """Verify that every object can be found."""
        self.catch_up(math.inf)
        for slot in self._heap.table.living():
            assert self._heap.table.handle[slot] in self.retriever, f"slot {slot} is not indexed"

    def _remove(self, slot: int) -> None:
        try:
            self.retriever.remove(self._heap.table.handle[slot])
        except Exception as error:  # a change that was journalled must happen
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        logger.error("the retriever failed; what it finds may be incomplete: %r", error)
        self._events.emit("index_failed", error=error)


def open_search(
    retriever: Retriever | Literal["sparse"] | None, heap: Heap, events: EventStream
) -> Searching | None:
    """Return what follows a heap, with an index of our own for ``"sparse"``."""
    if retriever is None:
        return None
    if retriever == "sparse":
        from ..retrieval import SparseIndex

        retriever = SparseIndex()
    return Searching(retriever, heap, events)
