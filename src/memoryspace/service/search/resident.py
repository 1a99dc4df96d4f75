"""``ResidentSearcher``: an index for each user in this process, over whatever store.

Before each search it asks the store what changed, so it sees what other processes wrote. It is
bounded: who was not asked for longest is dropped, and built anew from the store when needed.

Work on an index runs in a thread, to its end: the event loop is not held up, and a caller who is
cancelled leaves at once and leaves nothing half done. What takes about a millisecond is done at
once: a short question, put to words alone when nothing has changed, would wait longer for a thread
than for its answer. Callers of one loop take turns; callers of different loops may read changes of
one user at the same time, but then only those of the first are applied, and the others read again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from ...embedding import Embedder
from ...errors import InvalidInput
from ...loops import PerLoop
from ...retrieval.conditions import AllOf, AnyOf, Condition
from ...retrieval.entries import Only
from ...retrieval.hits import WhyNot
from ...retrieval.ranking import Ranking, Reranker
from ...retrieval.recall import Recall
from ...store.contract import Changes, Clock, Store
from .contract import Found, Query, Searcher
from .user_index import EntryOf, UserIndex

MAX_ENTRIES = 500_000
MAX_USERS = 10_000  # also an empty index takes some room

SHORT = 300  # characters of a question that is soon answered
FEW = 100  # hits, of such a one

T = TypeVar("T")


class _Work(NamedTuple, Generic[T]):
    """Something to be done with an index; ``is_quick`` if it takes no time to speak of."""

    do: Callable[[UserIndex], T]
    is_quick: bool = False


class _Seat:
    """One user's index, and whose turn it is. ``counted`` are its entries as last counted."""

    def __init__(self, make_index: Callable[[], UserIndex]) -> None:
        self._make_index = make_index
        self.index = make_index()
        self.counted = 0
        self._turns = PerLoop(asyncio.Lock)
        self._lock = threading.RLock()  # whoever touches the index holds it, in whichever thread
        self._begun: set[asyncio.Future[Any]] = set()  # a loop alone would not hold on to a task

    async def in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work when nobody else of this loop does; once begun, it is done to the end."""
        turn = self._turns.get()
        await turn.acquire()
        task = asyncio.ensure_future(work())
        self._begun.add(task)
        task.add_done_callback(partial(self._hand_on, turn))
        return await asyncio.shield(task)

    def _hand_on(self, turn: asyncio.Lock, done: asyncio.Future[Any]) -> None:
        self._begun.discard(done)
        turn.release()
        if not done.cancelled():
            done.exception()  # looked at: whoever waited for it may have been cancelled

    def alone(self, work: Callable[[UserIndex], T]) -> T:
        """Do something with the index while no other thread does."""
        with self._lock:
            return work(self.index)

    def brought_up_to_date(
        self, seen: object, changes: Changes, now: float, do: Callable[[UserIndex], T]
    ) -> tuple[T] | None:
        """Apply what changed since ``seen`` and do the work; ``None`` if that is not the state.

        Then another loop has applied its changes first, and these may be older.
        """
        with self._lock:
            if self.index.state is not seen:
                return None
            try:
                self.index.apply(changes)
                self.index.expire(now)
            except BaseException:  # half applied: nobody may see it
                self.index = self._make_index()
                raise
            return (do(self.index),)

    async def in_thread(self, work: Callable[[], T], *, unless_quick: bool) -> T:
        """Do some work in a thread; here, if it is quick and no other thread has its turn."""
        if unless_quick and self._lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self._lock.release()
        return await asyncio.to_thread(work)


class ResidentSearcher(Searcher):
    """Searches ``store`` through one ``Recall`` for each user, held in this process.

    ``entry_of`` says what of a record is searched, ``None`` for one that must not be found; an
    entry is known by its record's seq, and ``ids`` in a condition mean these. ``embedder``,
    ``ranking``, ``reranker``, ``zone`` and ``personal`` are those of ``Recall``; ``clock`` (the
    store's, unless given) tells when a question is asked. Beyond ``max_entries`` over all users,
    those not asked for longest are dropped (event ``index_dropped``; ``dropped`` counts them); the
    user who is asked always stays.
    """

    def __init__(
        self,
        store: Store,
        entry_of: EntryOf,
        *,
        embedder: Embedder | Literal["best"] | None = "best",
        ranking: Ranking | None = None,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
        clock: Clock | None = None,
        max_entries: int = MAX_ENTRIES,
        personal: bool = False,
    ) -> None:
        if isinstance(max_entries, bool) or max_entries < 1:
            raise InvalidInput(f"max_entries must be 1 or more, got {max_entries}")
        make_recall = partial(
            Recall,
            embedder=embedder,
            ranking=ranking,
            reranker=reranker,
            zone=zone,
            clock=store.clock if clock is None else clock,
            personal=personal,
        )
        self.dropped = 0
        self._store = store
        self._make_index = partial(UserIndex, make_recall, entry_of)
        self._max_entries = max_entries
        self._seats: OrderedDict[str, _Seat] = OrderedDict()  # who was asked last comes last
        self._entries = 0  # the sum of what was counted
        self._lock = threading.Lock()  # around these two, never held for long

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return the best for a user, the best first, equals the newest first."""
        return await self._ask(user, _Work(lambda index: index.search(query), _is_quick(query)))

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Say where a memory falls out of a search."""
        return await self._ask(user, _Work(lambda index: index.why_not(query, seq)))

    async def embed_waiting(self, most: int = 1000) -> int:
        """Embed up to so many entries of each user that the embedder failed for before.

        Return how many still wait.
        """
        left = 0
        for seat in list(self._seats.values()):
            work = partial(seat.alone, lambda index: index.embed_waiting(most))
            left += await seat.in_turn(partial(asyncio.to_thread, work))
        return left

    async def refresh(self, user: str) -> None:
        """Let what is held of a user be no older than the store; who is not held, is not."""
        if user in self._seats:
            await self._ask(user, _Work(lambda index: None, is_quick=True))

    async def forget(self, user: str) -> None:
        """Drop all that is held of a user."""
        with self._lock:
            self._let_go(user)

    async def traces(self, user: str) -> int:
        """Return how many entries of a user are held."""
        seat = self._seats.get(user)
        return 0 if seat is None else len(seat.index)

    async def close(self) -> None:
        """Drop everything that is held. The next search builds what it needs anew."""
        with self._lock:
            self._seats.clear()
            self._entries = 0

    async def _ask(self, user: str, work: _Work[T]) -> T:
        seat = self._seat_of(user)
        return await seat.in_turn(lambda: self._refreshed(user, seat, work))

    async def _refreshed(self, user: str, seat: _Seat, work: _Work[T]) -> T:
        """Read what changed, apply it and do the work; again, if another loop was quicker."""
        while True:
            seen = seat.index.state
            changes, now = await self._store.changes(user, seen), self._store.clock()
            is_quick = work.is_quick and seat.index.is_quick(changes, now)
            bring = partial(seat.brought_up_to_date, seen, changes, now, work.do)
            done = await seat.in_thread(bring, unless_quick=is_quick)
            if done is not None:
                self._make_room(user, seat)
                return done[0]

    def _seat_of(self, user: str) -> _Seat:
        with self._lock:
            seat = self._seats.get(user)
            if seat is None:
                seat = self._seats[user] = _Seat(self._make_index)
            self._seats.move_to_end(user)
            return seat

    def _make_room(self, user: str, seat: _Seat) -> None:
        """Count what a user has now; drop others while there is too much."""
        with self._lock:
            if self._seats.get(user) is seat:  # else it was forgotten meanwhile
                held = len(seat.index)
                self._entries += held - seat.counted
                seat.counted = held
            dropped = self._dropped_for(user)
        for each, entries in dropped:
            self._store.events.emit("index_dropped", user=each, entries=entries)

    def _dropped_for(self, user: str) -> list[tuple[str, int]]:
        dropped: list[tuple[str, int]] = []
        while self._entries > self._max_entries or len(self._seats) > MAX_USERS:
            oldest = next((each for each in self._seats if each != user), None)
            if oldest is None:
                break
            dropped.append((oldest, self._let_go(oldest)))
        self.dropped += len(dropped)
        return dropped

    def _let_go(self, user: str) -> int:
        """Forget a user, with the lock held; return how many entries were counted."""
        seat = self._seats.pop(user, None)
        if seat is None:
            return 0
        self._entries -= seat.counted
        return seat.counted


def _is_quick(query: Query) -> bool:
    """Tell whether a question asks for little, and for nothing that must be compared one by one."""
    is_little = len(query.text) <= SHORT and query.top_k <= FEW and not query.explain
    return is_little and _is_simple(query.only)


def _is_simple(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return len(condition.parts) <= FEW and all(map(_is_simple, condition.parts))
    return isinstance(condition, Only) and condition.metadata is None and condition.ids is None
