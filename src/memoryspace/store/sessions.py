"""The in-memory index of users, sessions and entries, for backends that live in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Generic

from msgspec import Struct

from ..record import Scope, Where
from .contract import limited
from .paging import by_seq, page
from .session import E, Session
from .users import UserNames, UserPage, checked_limit, cursor_after, user_before
from .vectors import Place

FEW = 64  # removals that update the lists in place; more of them rebuild the lists when needed


class IndexState(Struct, frozen=True):
    """A state that ``Changes`` starts from: which index, and the revision of each session."""

    index: object
    revisions: dict[str, tuple[int, int]]


class ListedState(Struct, frozen=True):
    """A state of an earlier process: the entries that it knew, session → id → seq."""

    seqs: Mapping[str, Mapping[str, int]]


class News(Struct, Generic[E], frozen=True):
    """``Changes``, with entries instead of records."""

    state: IndexState
    entries: list[E]
    kept: dict[str, dict[str, int]]
    gone: frozenset[str]


class Sessions(Generic[E]):
    """Users, their sessions, and the entries of each session. Not thread-safe."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, Session[E]]] = {}
        self._names = UserNames()  # of the users, sorted
        self._changes = count(1)  # never repeats, even if a session is deleted and created again
        self._identity = object()  # revisions are meaningless to another index

    def find(self, user: str, name: str) -> Session[E] | None:
        """Return a session, or None if it does not exist."""
        return self._users.get(user, {}).get(name)

    def open(self, user: str, name: str) -> Session[E]:
        """Return a session; create it if it does not exist."""
        sessions = self._users.get(user)
        if sessions is None:
            sessions = self._users[user] = {}
            self._names.add(user)
        session = sessions.get(name)
        if session is None:
            session = sessions[name] = Session(self._changes)
        return session

    def of(self, user: str, entry: E) -> Session[E]:
        """Return the session of an entry."""
        assert entry.session is not None  # every stored entry has one
        return self._users[user][entry.session]

    def choose(self, scope: Scope, where: Where, now: float) -> list[E]:
        """Return the matching entries in conversation order."""
        sessions = self._within(scope)
        if where.limit is not None and where.ids is None and not where.marks:
            return page([each.run(where, now) for each in sessions], where.limit, where)
        found = [entry for each in sessions for entry in each.choose(where, now)]
        if len(sessions) > 1:
            found.sort(key=by_seq)
        return limited(found, where)

    def count(self, scope: Scope, where: Where, now: float) -> int:
        """Return how many entries match, without visiting them for whole sessions or kinds."""
        if where.is_only_kind:
            return sum(each.count(where.kind, now) for each in self._within(scope))
        return len(self.choose(scope, where, now))

    def size(self, scope: Scope, where: Where) -> int:
        """Estimate how many entries ``choose`` has to visit."""
        if where.ids is not None:
            return len(where.ids)
        sessions = self._within(scope)
        if where.limit is not None and not where.marks and not where.without:
            return where.limit + len(sessions)
        return sum(len(each.records) for each in sessions)

    def size_since(self, user: str, state: IndexState | ListedState | None) -> int:
        """Estimate how many entries ``since`` has to visit."""
        if isinstance(state, ListedState):
            return sum(len(each.records) for each in self._users.get(user, {}).values())
        known = {} if state is None or state.index is not self._identity else state.revisions
        return sum(
            1
            if known.get(name) == (session.last_change, session.last_seq)
            else len(session.records)
            for name, session in self._users.get(user, {}).items()
        )

    def standing_at(
        self, user: str, places: Iterable[Place], now: float
    ) -> Iterator[tuple[Place, Session[E]]]:
        """Yield the places whose version of an entry is current, each with its session."""
        for place in places:
            session = self.find(user, place.session)
            if session is None:
                continue
            session.expire(now)
            entry = session.records.get(place.id)
            if entry is not None and entry.seq == place.seq:
                yield place, session

    def living(self, user: str, now: float) -> list[Session[E]]:
        """Return the user's sessions that have live entries."""
        return [session for _, session in self._living(user, now)]

    def names(self, user: str, now: float) -> list[str]:
        """Return the names of the user's sessions that have live entries, sorted."""
        return sorted(name for name, _ in self._living(user, now))

    def users(self, cursor: str | None, limit: int, now: float) -> UserPage:
        """Return a page of the users that have live entries."""
        behind = self._names.after(user_before(cursor))
        looked_at = list(islice(behind, checked_limit(limit)))
        found = tuple(user for user in looked_at if any(True for _ in self._living(user, now)))
        is_last = len(looked_at) < limit or next(behind, None) is None
        return UserPage(found, None if is_last else cursor_after(looked_at[-1]))

    def entries(self, user: str, now: float) -> Iterator[E]:
        """Yield all live entries of a user, session by session."""
        for _, session in self._living(user, now):
            yield from session.records.values()

    def since(self, user: str, state: IndexState | ListedState | None, now: float) -> News[E]:
        """Return what changed since a state. For a state of another index, everything is new."""
        if isinstance(state, ListedState):
            return self._since_listed(user, state.seqs, now)
        known = {} if state is None else state.revisions
        is_ours = state is not None and state.index is self._identity
        entries: list[E] = []
        kept, revisions = {}, {}
        for name, session in self._living(user, now):
            change, last = known.get(name, (0, 0)) if is_ours else (0, 0)
            if name in known and change != session.last_change:
                kept[name] = {entry.id: entry.seq for entry in session.records.values()}
            entries += session.after(last)
            revisions[name] = (session.last_change, session.last_seq)
        entries.sort(key=by_seq)
        gone = frozenset(known.keys() - revisions.keys())
        return News(IndexState(self._identity, revisions), entries, kept, gone)

    def _since_listed(
        self, user: str, known: Mapping[str, Mapping[str, int]], now: float
    ) -> News[E]:
        entries: list[E] = []
        kept, revisions = {}, {}
        for name, session in self._living(user, now):
            had, left = known.get(name, {}), 0
            for entry in session.records.values():
                is_known = had.get(entry.id) == entry.seq
                left += is_known
                if not is_known:
                    entries.append(entry)
            if left < len(had):
                kept[name] = {entry.id: entry.seq for entry in session.records.values()}
            revisions[name] = (session.last_change, session.last_seq)
        entries.sort(key=by_seq)
        gone = frozenset(known.keys() - revisions.keys())
        return News(IndexState(self._identity, revisions), entries, kept, gone)

    def remove(self, user: str, entries: Collection[E]) -> None:
        """Remove entries, and the sessions and users that become empty."""
        sessions = self._users.get(user, {})
        if len(entries) > FEW:
            for session in sessions.values():
                session.forget_lists()
        for entry in entries:
            session = self.of(user, entry)
            session.remove(entry.id)
            if not session.records:
                del sessions[entry.session or ""]
        if not sessions and self._users.pop(user, None) is not None:
            self._names.remove(user)

    def take(self, scope: Scope, now: float) -> list[E]:
        """Remove whole sessions at once; return their entries in order."""
        sessions = self._users.get(scope.user, {})
        names = list(sessions) if scope.session is None else [scope.session]
        taken = [sessions.pop(name) for name in names if name in sessions]
        for session in taken:
            session.expire(now)
        if not sessions and self._users.pop(scope.user, None) is not None:
            self._names.remove(scope.user)
        found = [entry for session in taken for entry in session.records.values()]
        if len(taken) > 1:
            found.sort(key=by_seq)
        return found

    def _within(self, scope: Scope) -> Collection[Session[E]]:
        sessions = self._users.get(scope.user, {})
        if scope.session is None:
            return sessions.values()
        session = sessions.get(scope.session)
        return () if session is None else (session,)

    def _living(self, user: str, now: float) -> Iterator[tuple[str, Session[E]]]:
        """Yield the sessions that have entries after the expired ones are removed."""
        for name, session in self._users.get(user, {}).items():
            if session.count(None, now):
                yield name, session
