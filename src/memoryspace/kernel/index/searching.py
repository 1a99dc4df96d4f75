"""The index beside a heap: a hint that follows the objects, never a reason for a change to fail.

An index of our own is kept in the folder of the space (``kept_index``) when the space is closed.
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
    from .kept import Kept, KeptIndex, SlotNumbers

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


@runtime_checkable
class Tidying(Protocol):
    """A retriever that leaves some of its work for later, and would do it in idle moments."""

    def step(self, seconds: float) -> bool:
        """Work for about so long; tell whether there is more to do."""


class Searching:
    """A retriever that follows a heap. What was recovered is indexed in slices, or when asked."""

    def __init__(
        self,
        retriever: Retriever,
        heap: Heap,
        events: EventStream,
        backlog: SlotNumbers | None = None,
    ) -> None:
        from ...retrieval import text_of  # numpy is loaded when something is to be searched
        from .kept import living_slots

        self.retriever = retriever
        self._tidying: Tidying | None = retriever if isinstance(retriever, Tidying) else None
        self._heap = heap
        self._events = events
        self._text_of = text_of
        self._backlog = living_slots(heap.table) if backlog is None else backlog
        self._next = 0  # in the backlog
        self._is_untidy = False  # something was removed that the retriever may still have to purge
        self._has_changed = False  # since it was saved
        self.has_failed = False  # what is found may be incomplete
        heap.on_freed.append(self._remove)
        heap.on_rewritten.append(self._remove_old)

    @property
    def has_backlog(self) -> bool:
        """Whether something is not indexed yet."""
        return self._next < len(self._backlog)

    def add(self, slot: int, payload: Mapping[str, Any]) -> None:
        """Index an object that is new or was rewritten."""
        self._has_changed = True
        try:
            self.retriever.add(self._heap.table.handle[slot], self._text_of(payload))
        except Exception as error:  # the object is stored; the index is only a hint
            self._failed(error)

    def find(self, query: str, top_k: int, allow: Callable[[int], bool]) -> list[tuple[int, float]]:
        """Return the handles that match best, with their scores."""
        self.catch_up(math.inf)
        return self.retriever.search(query, top_k, allow=allow)

    def catch_up(self, seconds: float) -> None:
        """Index what was recovered, for about so long."""
        deadline = time.perf_counter() + seconds
        table = self._heap.table
        while self.has_backlog and time.perf_counter() < deadline:
            slot = int(self._backlog[self._next])
            self._next += 1
            handle = table.handle[slot]
            if handle and handle not in self.retriever:
                body = self._heap.body_of(slot)
                self.add(slot, decode_body(body, self._heap.id_of(slot)).payload)

    def look_after(self, seconds: float) -> None:
        """Index what was recovered, or let the retriever tidy up, for about so long."""
        if self.has_backlog:
            self.catch_up(seconds)
        elif self._is_untidy:
            self._tidy(seconds)

    def clear(self) -> None:
        """Empty the retriever, which may be used by others as well: remove what is ours."""
        for slot in self._heap.table.living():
            self._remove(slot)

    def save(self) -> None:
        """Keep what is indexed; what was handed in is for others to keep."""

    def scrub(self) -> None:
        """Forget the dead for good; what was handed in is for others to scrub."""

    def check(self) -> None:
        """Verify that every object can be found."""
        self.catch_up(math.inf)
        for slot in self._heap.table.living():
            assert self._heap.table.handle[slot] in self.retriever, f"slot {slot} is not indexed"

    def _remove(self, slot: int) -> None:
        self._is_untidy = self._has_changed = True
        try:
            self.retriever.remove(self._heap.table.handle[slot])
        except Exception as error:  # a change that was journalled must happen
            self._failed(error)

    def _remove_old(self, slot: int, stamp: int, flags: int) -> None:
        """The text goes with the body it was of: no new one is ever found by old words."""
        self._remove(slot)

    def _tidy(self, seconds: float) -> None:
        try:
            self._is_untidy = self._tidying is not None and self._tidying.step(seconds)
        except Exception as error:  # the change that gave the occasion has happened
            self._is_untidy = False
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.has_failed = True
        logger.error("the retriever failed; what it finds may be incomplete: %r", error)
        self._events.emit("index_failed", error=error)


class OwnSearching(Searching):
    """With an index of our own, which outlives this heap, and the process if it has a place."""

    def __init__(
        self,
        kept: Kept,
        heap: Heap,
        events: EventStream,
        files: KeptIndex | None,
        *,
        is_saved: bool,
    ) -> None:
        from .kept import reconcile

        removed, backlog = reconcile(kept, heap.table)
        super().__init__(kept.texts, heap, events, backlog)
        self._index = kept.texts
        self._files = files
        self._has_changed = bool(removed) or not is_saved
        # It may still hold words of the dead: an index purges them when it merges, if ever.
        self._knows_the_dead = bool(len(kept.rows)) or bool(removed)

    def clear(self) -> None:
        """Leave everything: what the index knows is of use to the heap that comes next."""

    def scrub(self) -> None:
        """Remove the index that was kept, and begin anew if this one knows words of the dead."""
        from .kept import living_slots, new_index

        if self._files is not None:
            try:
                self._files.remove()
            except OSError as error:
                raise StoreUnavailable(
                    f"the index that was kept cannot be removed ({error}); make its folder "
                    "writable and scrub again"
                ) from error
        self._has_changed = True
        if self._knows_the_dead:
            self._backlog, self._next = living_slots(self._heap.table), 0
            self.retriever = self._tidying = self._index = new_index()
            self._knows_the_dead = False

    def _remove(self, slot: int) -> None:
        self._knows_the_dead = True
        super()._remove(slot)

    def kept(self) -> Kept:
        """Return the index with what it knows, for another heap to begin with."""
        from .kept import Kept, fingerprints

        return Kept(self._index, fingerprints(self._heap.table))

    def save(self) -> None:
        """Keep the index in its folder, if it has one, is sound and has changed; never fails."""
        if self._files is None or not self._has_changed or self.has_failed:
            return
        try:
            self._files.save(self._index, self._heap.table, self._heap.lsn)
        except Exception as error:  # the objects are safe without it
            logger.warning("the index was not saved, it will be built again: %r", error)


def open_search(
    retriever: Retriever | Literal["sparse"] | None,
    heap: Heap,
    events: EventStream,
    *,
    folder: Path | None = None,
    before: Searching | None = None,
) -> Searching | None:
    """Return what follows a heap, with an index of our own for ``"sparse"``.

    That one begins with what followed the heap ``before``, or with what is kept in the ``folder``.
    """
    if retriever is None:
        return None
    if retriever != "sparse":
        return Searching(retriever, heap, events)
    from .kept import KeptIndex, nothing_kept

    files = None if folder is None else KeptIndex(folder)
    if isinstance(before, OwnSearching) and not before.has_failed:
        return OwnSearching(before.kept(), heap, events, files, is_saved=False)
    kept = nothing_kept() if files is None else files.load(heap.lsn)
    search = OwnSearching(kept, heap, events, files, is_saved=True)
    if files is not None and search.has_backlog:
        logger.info("the index lacks some of the %d objects; they follow", heap.table.live)
    return search
