"""The in-memory index of one session: entries in conversation order, with lookups by mark and kind.

Adding, finding and removing an entry takes the same time at any size. The sorted lists for paging
are built on first use. An entry is a record, or anything else with the same fields.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from ..record import Where
from .paging import SessionRun, by_seq


class SessionEntry(Protocol):
    """The fields of a record that an index reads."""

    # ruff: noqa: D102  # the names are self-explanatory
    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def marks(self) -> frozenset[str]: ...
    @property
    def seq(self) -> int: ...
    @property
    def session(self) -> str | None: ...
    @property
    def expires_at(self) -> float | None: ...


E = TypeVar("E", bound=SessionEntry)

MAX_LOGGED = 256  # changes; a reader that missed more reads everything again


class ChangeLog:
    """The most recent changes other than appends, each with the entry it changed."""

    def __init__(self, change: int) -> None:
        self._begin = change  # every later change is logged
        self._changes: deque[tuple[int, str, int]] = deque()

    def note(self, change: int, entry: SessionEntry) -> None:
        """Log a change of an entry."""
        if len(self._changes) == MAX_LOGGED:
            self._begin = self._changes.popleft()[0]
        self._changes.append((change, entry.id, entry.seq))

    def after(self, change: int) -> list[tuple[str, int]] | None:
        """Return the id and seq of entries changed after ``change``; None if some were dropped."""
        if change < self._begin:
            return None
        return [(id_, seq) for number, id_, seq in self._changes if number > change]


class Session(Generic[E]):
    """The entries of one session in conversation order, indexed by mark and kind."""

    def __init__(self, changes: Iterator[int]) -> None:
        self.records: dict[str, E] = {}
        self._changes = changes
        self.last_change = next(changes)
        self.last_seq = 0
        self._of_kind: Counter[str] = Counter()
        self._marked: defaultdict[str, set[str]] = defaultdict(set)
        self._due: list[tuple[float, str]] = []
        self._lists: dict[str | None, list[E]] = {}  # by kind, None for all; in order
        self._log: ChangeLog | None = None
        self.vectors: dict[str, dict[str, bytes]] = {}  # id → space → vector

    def add(self, entry: E) -> None:
        """Append an entry."""
        self.records[entry.id] = entry
        for entries in self._lists_of(entry):
            entries.append(entry)
        self.last_seq = entry.seq
        self._of_kind[entry.kind] += 1
        for mark in entry.marks:
            self._marked[mark].add(entry.id)
        if entry.expires_at is not None:
            heapq.heappush(self._due, (entry.expires_at, entry.id))

    def sort(self) -> None:
        """Sort entries that were added in arbitrary order."""
        self.records = {entry.id: entry for entry in sorted(self.records.values(), key=by_seq)}
        self.last_seq = max((entry.seq for entry in self.records.values()), default=0)
        self.forget_lists()

    def remove(self, entry_id: str) -> None:
        """Remove an entry."""
        entry = self.records.pop(entry_id)
        for entries in self._lists_of(entry):
            del entries[bisect_left(entries, entry.seq, key=by_seq)]
        self._of_kind[entry.kind] -= 1
        self._unmark(entry_id, entry.marks)
        self.vectors.pop(entry_id, None)
        self._changed(entry)

    def remark(self, entry: E, marked: E) -> None:
        """Replace an entry with the same one under other marks."""
        self._unmark(entry.id, entry.marks - marked.marks)
        for mark in marked.marks - entry.marks:
            self._marked[mark].add(entry.id)
        self.records[entry.id] = marked
        for entries in self._lists_of(entry):
            entries[bisect_left(entries, entry.seq, key=by_seq)] = marked
        self._changed(entry)

    def expire(self, now: float) -> None:
        """Remove the expired entries."""
        while self._due and self._due[0][0] <= now:
            due, entry_id = heapq.heappop(self._due)
            entry = self.records.get(entry_id)
            if entry is not None and entry.expires_at == due:  # else it was removed and added again
                self.remove(entry_id)

    def count(self, kind: str | None, now: float) -> int:
        """Return the number of entries, of one kind or of all."""
        self.expire(now)
        return len(self.records) if kind is None else self._of_kind[kind]

    def choose(self, where: Where, now: float) -> list[E]:
        """Return the matching entries in conversation order."""
        self.expire(now)
        matches: Callable[[E], bool] = where.matches  # type: ignore[assignment]  # reads only these fields
        return [entry for entry in self._candidates(where) if matches(entry)]

    def changed_after(self, change: int, now: float) -> list[tuple[int, E | None]] | None:
        """Return the seq of each entry changed after ``change``, and the entry if it still exists.

        Return None if the changes are unknown: logging starts with the first call, and old changes
        are dropped.
        """
        self.expire(now)
        if self._log is None:
            self._log = ChangeLog(self.last_change)
        changed = self._log.after(change)
        return None if changed is None else [(seq, self._at(id_, seq)) for id_, seq in changed]

    def after(self, seq: int) -> list[E]:
        """Return the entries after a seq, in conversation order."""
        return [*self._newest_down_to(seq)][::-1]

    def run(self, where: Where, now: float) -> SessionRun[E]:
        """Return the entries to page over, for a ``where`` without ids and marks."""
        self.expire(now)
        marked = {id_ for mark in where.without for id_ in self._marked.get(mark, ())}
        unwanted = (self.records[entry_id] for entry_id in marked)
        left_out = [each.seq for each in unwanted if where.kind in (None, each.kind)]
        return SessionRun(self._list_of(where.kind), left_out, where)

    def forget_lists(self) -> None:
        """Drop the sorted lists; they are rebuilt when next needed."""
        self._lists.clear()

    def _changed(self, entry: E) -> None:
        self.last_change = next(self._changes)
        if self._log is not None:
            self._log.note(self.last_change, entry)

    def _at(self, entry_id: str, seq: int) -> E | None:
        entry = self.records.get(entry_id)
        return entry if entry is not None and entry.seq == seq else None

    def _list_of(self, kind: str | None) -> list[E]:
        if kind is not None and not self._of_kind[kind]:
            return []
        if kind not in self._lists:
            every = self.records.values()
            self._lists[kind] = [each for each in every if kind in (None, each.kind)]
        return self._lists[kind]

    def _lists_of(self, entry: E) -> list[list[E]]:
        """Return the existing lists that contain an entry."""
        if not self._lists:
            return []
        return [self._lists[kind] for kind in (None, entry.kind) if kind in self._lists]

    def _unmark(self, entry_id: str, marks: Iterable[str]) -> None:
        for mark in marks:
            self._marked[mark].discard(entry_id)
            if not self._marked[mark]:
                del self._marked[mark]

    def _candidates(self, where: Where) -> Iterable[E]:
        """Return the smallest known set of entries that can match, in conversation order."""
        if where.ids is not None:
            return self._in_order(where.ids)
        if where.marks:
            marked = (self._marked.get(mark, ()) for mark in where.marks)
            return self._in_order({entry_id for ids in marked for entry_id in ids})
        if where.after is not None:
            return self.after(where.after)
        return self.records.values()

    def _in_order(self, ids: Collection[str]) -> list[E]:
        found = [self.records[entry_id] for entry_id in ids if entry_id in self.records]
        found.sort(key=by_seq)
        return found

    def _newest_down_to(self, seq: int) -> Iterator[E]:
        for entry in reversed(self.records.values()):
            if entry.seq <= seq:
                return
            yield entry
