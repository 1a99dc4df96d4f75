"""The search index beside a heap. It is a hint: an error in it never fails a change.

The built-in index is saved in the folder of the space (``saved``) when the space is closed.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from ...errors import StoreUnavailable
from ...events import EventStream
from ..heap.heap import Heap
from ..heap.object import decode_body

if TYPE_CHECKING:
    from .saved import CoveredIndex, SavedIndexes, SlotNumbers

logger = logging.getLogger(__name__)


class Retriever(Protocol):
    """A search index over texts by key, for ``MemoryManager(retriever=…)``."""

    def add(self, key: int, text: str) -> None:
        """Index a text."""

    def remove(self, key: int) -> bool:
        """Remove a text; return whether there was one."""

    def search(
        self, text: str, top_k: int = 5, *, allow: Callable[[int], bool] | None = None
    ) -> list[tuple[int, float]]:
        """Return the best keys with their scores, best first."""

    def __contains__(self, key: int) -> bool:
        """Return whether a key is indexed."""


@runtime_checkable
class DeferringRetriever(Protocol):
    """A retriever that defers some of its work and can do it in slices."""

    def step(self, seconds: float) -> bool:
        """Work for about ``seconds``; return whether there is more to do."""


class HeapIndex:
    """A retriever that follows a heap. Recovered objects are indexed in slices or on a search."""

    def __init__(
        self,
        retriever: Retriever,
        heap: Heap,
        events: EventStream,
        backlog: SlotNumbers | None = None,
    ) -> None:
        from ...retrieval import text_of  # loads numpy, so only for a space with an index
        from .saved import living_slots

        self.retriever = retriever
        self._deferring: DeferringRetriever | None = None
        if isinstance(retriever, DeferringRetriever):
            self._deferring = retriever
        self._heap = heap
        self._events = events
        self._text_of = text_of
        self._backlog = living_slots(heap.table) if backlog is None else backlog
        self._next = 0  # in the backlog
        self._has_deferred_work = False  # the retriever may still have to purge what was removed
        self._has_changed = False  # since the last save
        self.has_failed = False  # results may be incomplete
        heap.on_freed.append(self._remove)
        heap.on_rewritten.append(self._remove_old)

    @property
    def has_backlog(self) -> bool:
        """Whether any object is not indexed yet."""
        return self._next < len(self._backlog)

    def add(self, slot: int, payload: Mapping[str, Any]) -> None:
        """Index an object that is new or was rewritten."""
        self._has_changed = True
        try:
            self.retriever.add(self._heap.table.handle[slot], self._text_of(payload))
        except Exception as error:  # the object is stored; the index is only a hint
            self._failed(error)

    def find(self, query: str, top_k: int, allow: Callable[[int], bool]) -> list[tuple[int, float]]:
        """Return the handles that match best with their scores, best first."""
        self.catch_up(math.inf)
        return self.retriever.search(query, top_k, allow=allow)

    def catch_up(self, seconds: float) -> None:
        """Index recovered objects for about ``seconds``."""
        deadline = time.perf_counter() + seconds
        table = self._heap.table
        while self.has_backlog and time.perf_counter() < deadline:
            slot = int(self._backlog[self._next])
            self._next += 1
            handle = table.handle[slot]
            if handle and handle not in self.retriever:
                body = self._heap.body_of(slot)
                self.add(slot, decode_body(body, self._heap.id_of(slot)).payload)

    def do_upkeep(self, seconds: float) -> None:
        """Index recovered objects, or let the retriever do deferred work, for about ``seconds``."""
        if self.has_backlog:
            self.catch_up(seconds)
        elif self._has_deferred_work:
            self._do_deferred_work(seconds)

    def clear(self) -> None:
        """Remove the objects of this heap from the retriever, which others may use as well."""
        for slot in self._heap.table.living():
            self._remove(slot)

    def save(self) -> None:
        """Save the index; a retriever that was passed in is not ours to save."""

    def scrub(self) -> None:
        """Erase freed objects; a retriever that was passed in is not ours to scrub."""

    def check(self) -> None:
        """Verify that every object is indexed."""
        self.catch_up(math.inf)
        for slot in self._heap.table.living():
            assert self._heap.table.handle[slot] in self.retriever, f"slot {slot} is not indexed"

    def _remove(self, slot: int) -> None:
        self._has_deferred_work = self._has_changed = True
        try:
            self.retriever.remove(self._heap.table.handle[slot])
        except Exception as error:  # a change that was journalled must happen
            self._failed(error)

    def _remove_old(self, slot: int, stamp: int, flags: int) -> None:
        """Remove the text of the old body, so that its words no longer find the object."""
        self._remove(slot)

    def _do_deferred_work(self, seconds: float) -> None:
        try:
            self._has_deferred_work = self._deferring is not None and self._deferring.step(seconds)
        except Exception as error:  # the change that led here has happened
            self._has_deferred_work = False
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.has_failed = True
        logger.error("the retriever failed; search results may be incomplete: %r", error)
        self._events.emit("index_failed", error=error)


class BuiltInIndex(HeapIndex):
    """The built-in index. It outlives its heap, and the process if it has a folder."""

    def __init__(
        self,
        kept: CoveredIndex,
        heap: Heap,
        events: EventStream,
        files: SavedIndexes | None,
        *,
        is_saved: bool,
    ) -> None:
        from .saved import reconcile

        removed, backlog = reconcile(kept, heap.table)
        super().__init__(kept.texts, heap, events, backlog)
        self._index = kept.texts
        self._files = files
        self._has_changed = bool(removed) or not is_saved
        # It may still hold words of freed objects: an index purges them when it merges, if ever.
        self._holds_freed = bool(len(kept.rows)) or bool(removed)

    def clear(self) -> None:
        """Keep everything: the next heap starts from this index."""

    def scrub(self) -> None:
        """Remove the saved index, and start over if this one may hold words of freed objects."""
        from .saved import living_slots, new_index

        if self._files is not None:
            try:
                self._files.remove()
            except OSError as error:
                raise StoreUnavailable(
                    f"the saved index cannot be removed ({error}); make its folder "
                    "writable and scrub again"
                ) from error
        self._has_changed = True
        if self._holds_freed:
            self._backlog, self._next = living_slots(self._heap.table), 0
            self.retriever = self._deferring = self._index = new_index()
            self._holds_freed = False

    def _remove(self, slot: int) -> None:
        self._holds_freed = True
        super()._remove(slot)

    def covered(self) -> CoveredIndex:
        """Return the index and the rows it covers, for another heap to start from."""
        from .saved import CoveredIndex, fingerprints

        return CoveredIndex(self._index, fingerprints(self._heap.table))

    def save(self) -> None:
        """Save the index if it has a folder, is sound and has changed. Never raises."""
        if self._files is None or not self._has_changed or self.has_failed:
            return
        try:
            self._files.save(self._index, self._heap.table, self._heap.lsn)
        except Exception as error:  # the objects are safe without it
            logger.warning("the index was not saved and will be rebuilt: %r", error)


def open_index(
    retriever: Retriever | Literal["sparse"] | None,
    heap: Heap,
    events: EventStream,
    *,
    folder: Path | None = None,
    before: HeapIndex | None = None,
) -> HeapIndex | None:
    """Return the index that follows a heap: the built-in one for ``"sparse"``.

    The built-in one starts from the index ``before`` a reload, or from that in the ``folder``.
    """
    if retriever is None:
        return None
    if retriever != "sparse":
        return HeapIndex(retriever, heap, events)
    from .saved import SavedIndexes, empty_index

    files = None if folder is None else SavedIndexes(folder)
    if isinstance(before, BuiltInIndex) and not before.has_failed:
        return BuiltInIndex(before.covered(), heap, events, files, is_saved=False)
    kept = empty_index() if files is None else files.load(heap.lsn)
    search = BuiltInIndex(kept, heap, events, files, is_saved=True)
    if files is not None and search.has_backlog:
        logger.info("the saved index lacks some of %d objects, indexed later", heap.table.live)
    return search
