"""Who is in which session: the index that shelves in this process keep in RAM.

Each session is a dict of entries in conversation order, so adding, finding and removing one costs
the same at any size. An entry is a record, or anything else with the same few fields.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from typing import Generic, Protocol, TypeVar

from ..record import Scope, Where
from .contract import limited


class Entry(Protocol):
    """What an index needs to know of a record: its fields of the same names, to be read."""

    # ruff: noqa: D102  # the names say it
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


E = TypeVar("E", bound=Entry)


class Sessions(Generic[E]):
    """Users, their sessions, and the entries in them. Not thread-safe."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, Session[E]]] = {}
        self._changes = count(1)  # never repeats, also not for a session that comes again

    def find(self, user: str, name: str) -> Session[E] | None:
        """Return a session that exists."""
        return self._users.get(user, {}).get(name)

    def open(self, user: str, name: str) -> Session[E]:
        """Return a session, new if need be."""
        sessions = self._users.setdefault(user, {})
        session = sessions.get(name)
        if session is None:
            session = sessions[name] = Session(self._changes)
        return session

    def of(self, user: str, entry: E) -> Session[E]:
        """Return the session that an entry stands in."""
        assert entry.session is not None  # every entry was put into one
        return self._users[user][entry.session]

    def choose(self, scope: Scope, where: Where, now: float) -> list[E]:
        """Return the matching entries in conversation order."""
        sessions = self._users.get(scope.user, {})
        if scope.session is not None:
            session = sessions.get(scope.session)
            found = [] if session is None else session.choose(where, now)
        else:
            found = [entry for each in sessions.values() for entry in each.choose(where, now)]
            found.sort(key=lambda entry: entry.seq)
        return limited(found, where)

    def count(self, scope: Scope, where: Where, now: float) -> int:
        """Return how many entries match; of a whole session or kind, without looking at them."""
        if scope.session is not None and where.is_only_kind:
            session = self.find(scope.user, scope.session)
            return 0 if session is None else session.count(where.kind, now)
        return len(self.choose(scope, where, now))

    def remove(self, user: str, entries: Iterable[E]) -> None:
        """Remove entries, and sessions and users that have none left."""
        sessions = self._users.get(user, {})
        for entry in entries:
            session = self.of(user, entry)
            session.remove(entry.id)
            if not session.records:
                del sessions[entry.session or ""]
        if not sessions:
            self._users.pop(user, None)


class Session(Generic[E]):
    """One session's entries in conversation order, and which of them carry which mark."""

    def __init__(self, changes: Iterator[int]) -> None:
        self.records: dict[str, E] = {}
        self._changes = changes
        self.last_change = next(changes)
        self.last_seq = 0
        self._of_kind: Counter[str] = Counter()
        self._marked: defaultdict[str, set[str]] = defaultdict(set)
        self._due: list[tuple[float, str]] = []

    def add(self, entry: E) -> None:
        """Put an entry at the end."""
        self.records[entry.id] = entry
        self.last_seq = entry.seq
        self._of_kind[entry.kind] += 1
        for mark in entry.marks:
            self._marked[mark].add(entry.id)
        if entry.expires_at is not None:
            heapq.heappush(self._due, (entry.expires_at, entry.id))

    def sort(self) -> None:
        """Bring entries that were added in any order into conversation order."""
        self.records = {
            entry.id: entry for entry in sorted(self.records.values(), key=lambda each: each.seq)
        }
        self.last_seq = max((entry.seq for entry in self.records.values()), default=0)

    def remove(self, entry_id: str) -> None:
        """Take an entry out."""
        entry = self.records.pop(entry_id)
        self._of_kind[entry.kind] -= 1
        self._unmark(entry_id, entry.marks)
        self.last_change = next(self._changes)

    def remark(self, entry: E, marked: E) -> None:
        """Let an entry be the same with other marks."""
        self._unmark(entry.id, entry.marks - marked.marks)
        for mark in marked.marks - entry.marks:
            self._marked[mark].add(entry.id)
        self.records[entry.id] = marked
        self.last_change = next(self._changes)

    def expire(self, now: float) -> None:
        """Take out whose time is over."""
        while self._due and self._due[0][0] <= now:
            due, entry_id = heapq.heappop(self._due)
            entry = self.records.get(entry_id)
            if entry is not None and entry.expires_at == due:  # else removed and added anew
                self.remove(entry_id)

    def count(self, kind: str | None, now: float) -> int:
        """Return how many entries there are, of one kind or of all."""
        self.expire(now)
        return len(self.records) if kind is None else self._of_kind[kind]

    def choose(self, where: Where, now: float) -> list[E]:
        """Return the matching entries in conversation order."""
        self.expire(now)
        matches: Callable[[E], bool] = where.matches  # type: ignore[assignment]  # needs these fields alone
        return [entry for entry in self._candidates(where) if matches(entry)]

    def _unmark(self, entry_id: str, marks: Iterable[str]) -> None:
        for mark in marks:
            self._marked[mark].discard(entry_id)
            if not self._marked[mark]:
                del self._marked[mark]

    def _candidates(self, where: Where) -> Iterable[E]:
        """Return the fewest entries that may match, in conversation order."""
        if where.ids is not None:
            return self._in_order(where.ids)
        if where.marks:
            marked = (self._marked.get(mark, ()) for mark in where.marks)
            return self._in_order({entry_id for ids in marked for entry_id in ids})
        if where.after is not None:
            return reversed(list(self._newest_down_to(where.after)))
        return self.records.values()

    def _in_order(self, ids: Collection[str]) -> list[E]:
        found = [self.records[entry_id] for entry_id in ids if entry_id in self.records]
        found.sort(key=lambda entry: entry.seq)
        return found

    def _newest_down_to(self, seq: int) -> Iterator[E]:
        for entry in reversed(self.records.values()):
            if entry.seq <= seq:
                return
            yield entry
