"""``ResidentSearcher``: an index for each user in this process, over any store.

Before each search it asks the store what changed, so it sees the writes of other processes. Memory
is bounded: the least recently used index is dropped, and rebuilt from the store when needed.

Work on an index runs in a thread and to its end. It does not block the event loop, and a cancelled
caller returns at once without leaving an index half updated. Work of about a millisecond runs
without a thread: a short question, searched by words alone with nothing changed, would wait longer
for the thread than for its answer. Callers in one loop run one at a time. Callers in different
loops may read the changes of one user at the same time; then only the first ones are applied and
the other callers read again.
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
from ...retrieval.ranking import Ranking, Reranker, default_ranking
from ...retrieval.recall import Recall
from ...retrieval.vector_arm import EmbedderStatus
from ...store.contract import Changes, Clock, Store
from ...store.vectors import KeepsVectors
from .background import BackgroundEmbedding
from .caching import CachingEmbedder
from .contract import EntryOf, Found, Query, Searcher
from .keeping import RecordText, StoredVectors, VectorKeeper, here_or_in_thread, texts_of
from .renewing import Renewal
from .saved import Opening, SavedIndexes
from .saving import IndexSaving
from .slots import IndexSlot, KnownVectors, Work
from .user_index import NewVectors, UserIndex

MAX_BYTES = 1 << 30
MAX_USERS = 10_000  # even an empty index takes some memory

SHORT = 300  # characters of a question that is answered without a thread
FEW = 100  # results of such a question

T = TypeVar("T")


class ResidentSearcher(Searcher):
    """Searches a store through one ``Recall`` for each user, held in this process.

    If the store can keep vectors, they are read from it before anything is embedded and written to
    it after. Records announced with ``expect`` are embedded in the background.

    Args:
        store: The store to search.
        entry_of: Returns the searchable entry of a record, or ``None`` if it must not be found. An
            entry's id is its record's seq, and ``ids`` in a condition are seqs too.
        embedder: As for ``Recall``.
        ranking: As for ``Recall``.
        reranker: As for ``Recall``.
        zone: As for ``Recall``.
        clock: The time of a question that does not give one; the store's clock by default.
        max_bytes: About how much RAM all indexes may take together. Beyond it the least recently
            used are dropped, except the one in use. Each drop emits the event ``index_dropped``,
            and ``dropped`` counts them.
        personal: As for ``Recall``.
        keep_vectors: Whether vectors are kept in a store that can keep them.
        saved: Where indexes are saved, so that the first search after a restart need not build
            one. A save runs in the background; a short change of the index waits for it.
        former_embedder: An embedder whose stored vectors are used until ``embedder`` has made its
            own (see the module ``renewing``).

    Raises:
        InvalidInput: If ``max_bytes`` is less than 1.
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
        saved: SavedIndexes | None = None,
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
        over = default_ranking() if ranking is None else ranking
        now = store.clock if clock is None else clock
        make = partial(Recall.over, ranking=over, reranker=reranker, zone=zone, clock=now)
        self._opening = Opening(make, self._embedder, zone, personal)
        self._saving = None if saved is None else IndexSaving(saved, store, entry_of, self._opening)
        self.dropped = 0
        self._store = store
        self._entry_of = entry_of
        self._keeper: VectorKeeper | None = None
        self._background: BackgroundEmbedding | None = None
        self._renewal: Renewal | None = None
        self._renewing: set[str] = set()  # users whose renewal is running
        if keep_vectors and self._embedder is not None and isinstance(store, KeepsVectors):
            self._keeper = VectorKeeper(store, self._embedder)
            self._background = BackgroundEmbedding(store, self._keeper, entry_of)
            if former_embedder is not None and former_embedder.name != self._embedder.name:
                former = VectorKeeper(store, former_embedder)
                self._renewal = Renewal(former, self._keeper, self._background)
        self._max_bytes = max_bytes
        self._slots: OrderedDict[str, IndexSlot] = OrderedDict()  # most recently used last
        self._bytes = 0  # the sum of every slot's ``counted``
        self._lock = threading.Lock()  # guards these two, never held for long

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return a user's best matches, best first, ties newest first."""
        return await self._ask(user, Work(lambda index: index.search(query), _is_quick(query)))

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Return why a search does not return a memory."""
        return await self._ask(user, Work(lambda index: index.why_not(query, seq)))

    async def embed_waiting(self, most: int = 1000) -> int:
        """Retry up to ``most`` entries of each user that the embedder failed for.

        Return how many still wait.
        """
        left = 0
        for user, slot in list(self._slots.items()):
            work = partial(
                slot.locked, lambda index: (index.embed_waiting(most), index.take_made())
            )
            waiting, made = await slot.serialized(partial(asyncio.to_thread, work))
            self._keep(user, made)
            left += waiting
        return left

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Return a user's embedder, how often it failed, and how many entries wait for it."""
        slot = self._slots.get(user)
        if slot is None or not len(slot.index):
            return EmbedderStatus(None if self._embedder is None else self._embedder.name)
        work = partial(slot.locked, lambda index: index.recall.embedder_status())
        return await slot.serialized(partial(asyncio.to_thread, work))

    async def refresh(self, user: str) -> None:
        """Bring a user's index up to date with the store. Do nothing if there is none."""
        if user in self._slots:
            await self._ask(user, Work(lambda index: None, is_quick=True))
        elif self._saving is not None:  # nobody knows what of it is deleted now
            await self._saving.forget(user)

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:
        """Schedule records for embedding, if the store keeps vectors."""
        if self._background is not None:
            self._background.expect(scope, ids)

    async def settle(self, user: str) -> None:
        """Wait until a user's expected records are embedded and stored.

        This also completes a change of embedder for the user, unless the new embedder fails.
        """
        if self._renewal is not None:
            await self._ask(user, Work(lambda index: None, is_quick=True))
        if self._background is not None:
            await self._background.settle(user)

    async def forget(self, user: str) -> None:
        """Drop a user's index and what waits to be embedded."""
        if self._background is not None:
            self._background.forget(user)
        with self._lock:
            self._remove(user)
        if self._saving is not None:
            await self._saving.forget(user)

    async def traces(self, user: str) -> int:
        """Return the number of entries in a user's index, and of saved indexes."""
        slot = self._slots.get(user)
        entries = 0 if slot is None else len(slot.index)
        if self._saving is None or entries:
            return entries
        return int(await self._saving.holds(user))

    async def scrub(self) -> None:
        """Remove all saved indexes, which may hold what was deleted elsewhere."""
        if self._saving is not None:
            await self._saving.remove()

    async def close(self) -> None:
        """Drop every index. The next search rebuilds what it needs."""
        if self._background is not None:
            await self._background.stop()
        if self._saving is not None:
            await self._saving.stop(list(self._slots.items()), self._is_current)
        with self._lock:
            self._slots.clear()
            self._bytes = 0

    async def _ask(self, user: str, work: Work[T]) -> T:
        slot = self._slot_of(user)
        return await slot.serialized(lambda: self._refreshed(user, slot, work))

    async def _refreshed(self, user: str, slot: IndexSlot, work: Work[T]) -> T:
        """Read the changes, apply them and run the work. Repeat if another loop was faster."""
        if self._saving is not None and slot.index.state is None:
            await self._saving.open(user, slot, self._make_index)
        while True:
            seen = slot.index.state
            changes, now = await self._store.changes(user, seen), self._store.clock()
            is_quick = work.is_quick and slot.index.is_quick(changes, now)
            async with self._embedding(user, changes):
                known = await self._known(user, slot, changes.records)
                update = partial(slot.update_and_run, seen, changes, now, work.do, known)
                done = await slot.in_thread(update, unless_quick=is_quick)
                if done is not None:
                    self._keep(user, done[1])
            if done is not None:
                self._enforce_limits(user, slot)
                if self._saving is not None:
                    await self._saving.changed(user, slot, self._is_current)
                self._continue_renewal(user, slot)
                return done[0]

    def _embedding(self, user: str, changes: Changes) -> AbstractAsyncContextManager[object]:
        """Wait for background embedding if it may be making the vectors that are needed."""
        return self._embedding_alone(user) if changes.records else nullcontext()

    def _embedding_alone(self, user: str) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._background is None else self._background.lock_of(user)

    async def _known(self, user: str, slot: IndexSlot, records: Sequence[Record]) -> KnownVectors:
        """Read the stored vectors of records. A new index chooses the embedder that made more.

        Records may arrive after others with a higher seq. Those are then added again behind them,
        so their vectors are read too.
        """
        if self._keeper is None or not records:
            return KnownVectors({})
        index = slot.index
        read = partial(texts_of, records, self._entry_of)
        texts = await here_or_in_thread(len(records), read)
        if late := index.late(records):
            behind = partial(UserIndex.texts_behind, seq=min(late))
            texts += await asyncio.to_thread(slot.locked, behind)
        if self._renewal is not None and index.state is None:
            keeper, known = await self._renewal.choose(user, texts)
        else:
            keeper = self._keeper_of(index.embedder)
            known = await keeper.known(user, texts)
        vectors = known.vectors
        # Records without a vector whose text is that of another record share its vector.
        shared = [
            each for each in texts if each.place.seq not in known.seqs and each.text in vectors
        ]
        self._keep(user, NewVectors(keeper.embedder, {each: vectors[each.text] for each in shared}))
        return KnownVectors(vectors, keeper.embedder)

    def _keeper_of(self, embedder: Embedder | None) -> VectorKeeper:
        assert self._keeper is not None  # callers have checked
        return self._keeper if self._renewal is None else self._renewal.keeper_of(embedder)

    def _keep(self, user: str, made: NewVectors) -> None:
        """Store the vectors made for a search, in the background."""
        if made.vectors and self._background is not None:
            self._background.start(user, self._keeper_of(made.by).keep(user, made.vectors))

    def _continue_renewal(self, user: str, slot: IndexSlot) -> None:
        """Start or resume the renewal of an index that uses the former embedder."""
        if self._renewal is None or self._background is None or user in self._renewing:
            return
        if self._renewal.is_former(slot.index.embedder):
            work = self._renewal.run(user, _RenewableSlot(self, user, slot))
            self._renewing.add(user)
            self._background.start(user, work).add_done_callback(
                lambda _: self._renewing.discard(user)
            )

    def _is_current(self, user: str, slot: IndexSlot) -> bool:
        return self._slots.get(user) is slot

    def _make_index(self) -> UserIndex:
        if self._keeper is None:
            return UserIndex(partial(self._make_recall, embedder=self._embedder), self._entry_of)
        caching = CachingEmbedder(self._keeper.embedder)
        return UserIndex(partial(self._make_recall, embedder=caching), self._entry_of, caching)

    def _slot_of(self, user: str) -> IndexSlot:
        with self._lock:
            slot = self._slots.get(user)
            if slot is None:
                slot = self._slots[user] = IndexSlot(self._make_index)
            self._slots.move_to_end(user)
            return slot

    def _enforce_limits(self, user: str, slot: IndexSlot) -> None:
        """Count the size of a user's index; drop others while the total is too large."""
        with self._lock:
            if self._slots.get(user) is slot:  # else it was dropped meanwhile
                self._bytes += slot.nbytes - slot.counted
                slot.counted = slot.nbytes
            dropped = self._evict_for(user)
        for each, gone in dropped:
            entries, size = len(gone.index), gone.counted
            self._store.events.emit("index_dropped", user=each, entries=entries, bytes=size)

    def _evict_for(self, user: str) -> list[tuple[str, IndexSlot]]:
        dropped: list[tuple[str, IndexSlot]] = []
        while self._bytes > self._max_bytes or len(self._slots) > MAX_USERS:
            oldest = next((each for each in self._slots if each != user), None)
            if oldest is None:
                break
            dropped.append((oldest, self._slots[oldest]))
            self._remove(oldest)
        self.dropped += len(dropped)
        return dropped

    def _remove(self, user: str) -> None:
        """Remove a user's slot; the caller holds the lock."""
        slot = self._slots.pop(user, None)
        if slot is not None:
            self._bytes -= slot.counted


class _RenewableSlot:
    """The ``RenewableIndex`` of one user's slot."""

    def __init__(self, searcher: ResidentSearcher, user: str, slot: IndexSlot) -> None:
        self._searcher = searcher
        self._user = user
        self._slot = slot

    async def texts(self) -> Sequence[RecordText] | None:
        if self._searcher._slots.get(self._user) is not self._slot:
            return None
        return await asyncio.to_thread(self._slot.locked, UserIndex.texts)

    async def switch_embedder(self, keeper: VectorKeeper, known: StoredVectors) -> bool:
        return await self._slot.serialized(partial(self._switch, keeper, known))

    async def _switch(self, keeper: VectorKeeper, known: StoredVectors) -> bool:
        """Switch while background embedding waits; afterwards it finds the vectors made here."""

        def change(index: UserIndex) -> tuple[bool, NewVectors]:
            return index.switch_embedder(keeper.embedder, known.vectors), index.take_made()

        async with self._searcher._embedding_alone(self._user):
            texts = await asyncio.to_thread(self._slot.locked, UserIndex.texts)
            late = await keeper.known(self._user, keeper.missing(texts, known))
            known.vectors.update(late.vectors)
            done, made = await asyncio.to_thread(self._slot.locked, change)
            self._searcher._keep(self._user, made)
        return done


def _is_quick(query: Query) -> bool:
    """Return whether a query is small and its condition needs no check of each entry."""
    is_small = len(query.text) <= SHORT and query.top_k <= FEW and not query.explain
    return is_small and _is_simple(query.only)


def _is_simple(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return len(condition.parts) <= FEW and all(map(_is_simple, condition.parts))
    return isinstance(condition, Only) and condition.metadata is None and condition.ids is None
