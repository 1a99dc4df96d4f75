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
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, tzinfo
from functools import partial
from typing import Literal, TypeVar

from ...embedding import Embedder, best_embedder
from ...errors import InvalidInput
from ...record import Record, Scope
from ...retrieval.conditions import AllOf, AnyOf, Condition
from ...retrieval.entries import Only
from ...retrieval.hits import WhyNot
from ...retrieval.ranking import Ranking, Reranker
from ...retrieval.recall import Recall
from ...retrieval.vector_arm import EmbedderStatus
from ...store.contract import Changes, Clock, Store
from ...store.vectors import KeepsVectors
from .background import Ahead
from .contract import Found, Query, Searcher
from .keeping import Known, Text, VectorKeeper, here_or_in_thread, texts_of
from .known import Told
from .renewing import Renewal
from .slots import Seat, Vectors, Work
from .user_index import EntryOf, Made, UserIndex

MAX_BYTES = 1 << 30
MAX_USERS = 10_000  # also an empty index takes some room

SHORT = 300  # characters of a question that is soon answered
FEW = 100  # hits, of such a one

T = TypeVar("T")


class ResidentSearcher(Searcher):
    """Searches ``store`` through one ``Recall`` for each user, held in this process.

    ``entry_of`` says what of a record is searched, ``None`` for one that must not be found; an
    entry is known by its record's seq, and ``ids`` in a condition mean these. ``embedder``,
    ``ranking``, ``reranker``, ``zone`` and ``personal`` are those of ``Recall``; ``clock`` (the
    store's, unless given) tells when a question is asked. Beyond ``max_bytes`` of RAM, about,
    over all users, those not asked for longest are dropped (event ``index_dropped``; ``dropped``
    counts them); the user who is asked always stays.

    If the store keeps vectors (and ``keep_vectors`` is not false), they are read from there before
    anything is embedded, and written there after; what ``expect`` tells of is embedded ahead. What
    a ``former_embedder`` has made serves until ``embedder`` has made it anew: see ``renewing``.
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
        max_bytes: int = MAX_BYTES,
        personal: bool = False,
        keep_vectors: bool = True,
        former_embedder: Embedder | None = None,
    ) -> None:
        if isinstance(max_bytes, bool) or max_bytes < 1:
            raise InvalidInput(f"max_bytes must be 1 or more, got {max_bytes}")
        self._embedder = best_embedder() if embedder == "best" else embedder
        self._make_recall = partial(
            Recall,
            ranking=ranking,
            reranker=reranker,
            zone=zone,
            clock=store.clock if clock is None else clock,
            personal=personal,
        )
        self.dropped = 0
        self._store = store
        self._entry_of = entry_of
        self._keeper: VectorKeeper | None = None
        self._ahead: Ahead | None = None
        self._renewal: Renewal | None = None
        self._renewing: set[str] = set()  # the users for whom it is under way
        if keep_vectors and self._embedder is not None and isinstance(store, KeepsVectors):
            self._keeper = VectorKeeper(store, self._embedder)
            self._ahead = Ahead(store, self._keeper, entry_of)
            if former_embedder is not None and former_embedder.name != self._embedder.name:
                former = VectorKeeper(store, former_embedder)
                self._renewal = Renewal(former, self._keeper, self._ahead)
        self._max_bytes = max_bytes
        self._seats: OrderedDict[str, Seat] = OrderedDict()  # who was asked last comes last
        self._bytes = 0  # the sum of what was counted
        self._lock = threading.Lock()  # around these two, never held for long

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return the best for a user, the best first, equals the newest first."""
        return await self._ask(user, Work(lambda index: index.search(query), _is_quick(query)))

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Say where a memory falls out of a search."""
        return await self._ask(user, Work(lambda index: index.why_not(query, seq)))

    async def embed_waiting(self, most: int = 1000) -> int:
        """Embed up to so many entries of each user that the embedder failed for before.

        Return how many still wait.
        """
        left = 0
        for user, seat in list(self._seats.items()):
            work = partial(seat.alone, lambda index: (index.embed_waiting(most), index.take_made()))
            waiting, made = await seat.in_turn(partial(asyncio.to_thread, work))
            self._keep(user, made)
            left += waiting
        return left

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Tell who embeds a user's entries, how often that failed, and how many wait for it."""
        seat = self._seats.get(user)
        if seat is None or not len(seat.index):
            return EmbedderStatus(None if self._embedder is None else self._embedder.name)
        work = partial(seat.alone, lambda index: index.recall.embedder_status())
        return await seat.in_turn(partial(asyncio.to_thread, work))

    async def refresh(self, user: str) -> None:
        """Let what is held of a user be no older than the store; who is not held, is not."""
        if user in self._seats:
            await self._ask(user, Work(lambda index: None, is_quick=True))

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:
        """Embed records soon that were just written, where their vectors can be kept."""
        if self._ahead is not None:
            self._ahead.expect(scope, ids)

    async def settle(self, user: str) -> None:
        """Wait until what was expected of a user is embedded, and written down.

        A change of the embedder is completed for that user, if the embedder does not fail.
        """
        if self._renewal is not None:
            await self._ask(user, Work(lambda index: None, is_quick=True))
        if self._ahead is not None:
            await self._ahead.settle(user)

    async def forget(self, user: str) -> None:
        """Drop all that is held of a user."""
        if self._ahead is not None:
            self._ahead.forget(user)
        with self._lock:
            self._let_go(user)

    async def traces(self, user: str) -> int:
        """Return how many entries of a user are held."""
        seat = self._seats.get(user)
        return 0 if seat is None else len(seat.index)

    async def close(self) -> None:
        """Drop everything that is held. The next search builds what it needs anew."""
        if self._ahead is not None:
            await self._ahead.stop()
        with self._lock:
            self._seats.clear()
            self._bytes = 0

    async def _ask(self, user: str, work: Work[T]) -> T:
        seat = self._seat_of(user)
        return await seat.in_turn(lambda: self._refreshed(user, seat, work))

    async def _refreshed(self, user: str, seat: Seat, work: Work[T]) -> T:
        """Read what changed, apply it and do the work; again, if another loop was quicker."""
        while True:
            seen = seat.index.state
            changes, now = await self._store.changes(user, seen), self._store.clock()
            is_quick = work.is_quick and seat.index.is_quick(changes, now)
            async with self._embedding(user, changes):
                known = await self._known(user, seat, changes.records)
                bring = partial(seat.brought_up_to_date, seen, changes, now, work.do, known)
                done = await seat.in_thread(bring, unless_quick=is_quick)
                if done is not None:
                    self._keep(user, done[1])
            if done is not None:
                self._make_room(user, seat)
                self._go_on_renewing(user, seat)
                return done[0]

    def _embedding(self, user: str, changes: Changes) -> AbstractAsyncContextManager[object]:
        """Wait for what is being embedded ahead, if it may be what is needed."""
        return self._embedding_alone(user) if changes.records else nullcontext()

    def _embedding_alone(self, user: str) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._ahead is None else self._ahead.turn(user)

    async def _known(self, user: str, seat: Seat, records: Sequence[Record]) -> Vectors:
        """Read what is kept of records: in the beginning, by whoever has made more of it.

        Records may come after others that have a higher seq; those are then added again behind
        them, and are not to be embedded again.
        """
        if self._keeper is None or not records:
            return Vectors({})
        index = seat.index
        read = partial(texts_of, records, self._entry_of)
        texts = await here_or_in_thread(len(records), read)
        if late := index.late(records):
            behind = partial(UserIndex.texts_behind, seq=min(late))
            texts += await asyncio.to_thread(seat.alone, behind)
        if self._renewal is not None and index.state is None:
            keeper, known = await self._renewal.choose(user, texts)
        else:
            keeper = self._keeper_of(index.embedder)
            known = await keeper.known(user, texts)
        vectors = known.vectors
        lent = [each for each in texts if each.place.seq not in known.seqs and each.text in vectors]
        self._keep(user, Made(keeper.embedder, {each: vectors[each.text] for each in lent}))
        return Vectors(vectors, keeper.embedder)

    def _keeper_of(self, embedder: Embedder | None) -> VectorKeeper:
        assert self._keeper is not None  # else nobody asks
        return self._keeper if self._renewal is None else self._renewal.keeper_of(embedder)

    def _keep(self, user: str, made: Made) -> None:
        """Have what was embedded for a search written down, which it does not wait for."""
        if made.vectors and self._ahead is not None:
            self._ahead.begin(user, self._keeper_of(made.by).keep(user, made.vectors))

    def _go_on_renewing(self, user: str, seat: Seat) -> None:
        """Begin, or begin again, to embed anew what the former embedder serves."""
        if self._renewal is None or self._ahead is None or user in self._renewing:
            return
        if self._renewal.serves(seat.index.embedder):
            work = self._renewal.run(user, _Held(self, user, seat))
            self._renewing.add(user)
            self._ahead.begin(user, work).add_done_callback(lambda _: self._renewing.discard(user))

    def _make_index(self) -> UserIndex:
        if self._keeper is None:
            return UserIndex(partial(self._make_recall, embedder=self._embedder), self._entry_of)
        told = Told(self._keeper.embedder)
        return UserIndex(partial(self._make_recall, embedder=told), self._entry_of, told)

    def _seat_of(self, user: str) -> Seat:
        with self._lock:
            seat = self._seats.get(user)
            if seat is None:
                seat = self._seats[user] = Seat(self._make_index)
            self._seats.move_to_end(user)
            return seat

    def _make_room(self, user: str, seat: Seat) -> None:
        """Count what a user has now; drop others while there is too much."""
        with self._lock:
            if self._seats.get(user) is seat:  # else it was forgotten meanwhile
                self._bytes += seat.held - seat.counted
                seat.counted = seat.held
            dropped = self._dropped_for(user)
        for each, let_go in dropped:
            entries, size = len(let_go.index), let_go.counted
            self._store.events.emit("index_dropped", user=each, entries=entries, bytes=size)

    def _dropped_for(self, user: str) -> list[tuple[str, Seat]]:
        dropped: list[tuple[str, Seat]] = []
        while self._bytes > self._max_bytes or len(self._seats) > MAX_USERS:
            oldest = next((each for each in self._seats if each != user), None)
            if oldest is None:
                break
            dropped.append((oldest, self._seats[oldest]))
            self._let_go(oldest)
        self.dropped += len(dropped)
        return dropped

    def _let_go(self, user: str) -> None:
        """Forget a user, with the lock held."""
        seat = self._seats.pop(user, None)
        if seat is not None:
            self._bytes -= seat.counted


class _Held:
    """One user's index as what can be renewed."""

    def __init__(self, searcher: ResidentSearcher, user: str, seat: Seat) -> None:
        self._searcher = searcher
        self._user = user
        self._seat = seat

    async def texts(self) -> Sequence[Text] | None:
        if self._searcher._seats.get(self._user) is not self._seat:
            return None
        return await asyncio.to_thread(self._seat.alone, UserIndex.texts)

    async def go_over(self, keeper: VectorKeeper, known: Known) -> bool:
        return await self._seat.in_turn(partial(self._go_over, keeper, known))

    async def _go_over(self, keeper: VectorKeeper, known: Known) -> bool:
        """While this goes on nobody embeds ahead: who comes after finds what was made here."""

        def change(index: UserIndex) -> tuple[bool, Made]:
            return index.go_over(keeper.embedder, known.vectors), index.take_made()

        async with self._searcher._embedding_alone(self._user):
            texts = await asyncio.to_thread(self._seat.alone, UserIndex.texts)
            late = await keeper.known(self._user, keeper.lacking(texts, known))
            known.vectors.update(late.vectors)
            done, made = await asyncio.to_thread(self._seat.alone, change)
            self._searcher._keep(self._user, made)
        return done


def _is_quick(query: Query) -> bool:
    """Tell whether a question asks for little, and for nothing that must be compared one by one."""
    is_little = len(query.text) <= SHORT and query.top_k <= FEW and not query.explain
    return is_little and _is_simple(query.only)


def _is_simple(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return len(condition.parts) <= FEW and all(map(_is_simple, condition.parts))
    return isinstance(condition, Only) and condition.metadata is None and condition.ids is None
