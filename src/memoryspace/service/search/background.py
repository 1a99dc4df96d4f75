"""Background embedding: new records are embedded after a write, so that no search has to.

Nothing of this needs to survive a crash. The first search that misses a vector makes it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from ...errors import MemorySpaceError
from ...loops import PerLoop
from ...record import Scope, Where
from ...store import Store
from .caching import CachingEmbedder
from .contract import EntryOf
from .keeping import RecordText, VectorKeeper, texts_of

logger = logging.getLogger(__name__)

AT_ONCE = 64  # memories embedded in one call: a search waits for one call at most
USERS_AT_ONCE = 2
STOP_SECONDS = 5.0  # grace period for running tasks when a service stops


class BackgroundEmbedding:
    """Embeds and stores new records, one batch at a time for each user."""

    def __init__(self, store: Store, keeper: VectorKeeper, entry_of: EntryOf) -> None:
        self._store = store
        self._keeper = keeper
        self._entry_of = entry_of
        # user → (session, id) of the records to embed, in order
        self._waiting: dict[str, dict[tuple[str | None, str], None]] = {}
        self._tasks: dict[asyncio.Task[None], str] = {}  # task → user
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._lock = threading.Lock()  # guards these three, never held for long
        self._locks = PerLoop(WeakValueDictionary[str, asyncio.Lock])
        self._limit = PerLoop(partial(asyncio.Semaphore, USERS_AT_ONCE))

    def lock_of(self, user: str) -> asyncio.Lock:
        """Return the lock that keeps a user's texts from being embedded twice."""
        return self._locks.get().setdefault(user, asyncio.Lock())

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:
        """Schedule records that were just written for embedding."""
        with self._lock:
            waiting = self._waiting.setdefault(scope.user, {})
            waiting.update(((scope.session, each), None) for each in ids)
            if waiting and not _is_alive(self._workers.get(scope.user)):
                self._workers[scope.user] = self._start(scope.user, self._work(scope.user))

    def start(self, user: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run other work for a user in the background."""
        with self._lock:
            return self._start(user, work)

    async def embed(self, user: str, texts: Sequence[RecordText]) -> bool:
        """Embed and store the texts that have no vector yet; return whether that succeeded."""
        async with self._limit.get(), self.lock_of(user):
            return await self._embed(user, texts)

    async def settle(self, user: str) -> None:
        """Wait until none of a user's tasks runs in this loop."""
        while tasks := [
            each for each in self._tasks_in_this_loop() if self._tasks.get(each) == user
        ]:
            await asyncio.wait(tasks)

    def forget(self, user: str) -> None:
        """Discard what waits to be embedded for a user. Later records are scheduled as usual."""
        with self._lock:
            self._waiting.pop(user, None)

    async def stop(self) -> None:
        """Stop within a few seconds. The next search embeds what is left."""
        if tasks := self._tasks_in_this_loop():
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        with self._lock:
            self._waiting.clear()

    def _start(self, user: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = user
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        with self._lock:
            user = self._tasks.pop(task, None)
            if user is not None and self._workers.get(user) is task:
                del self._workers[user]

    def _tasks_in_this_loop(self) -> list[asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        with self._lock:
            return [task for task in self._tasks if task.get_loop() is loop]

    async def _work(self, user: str) -> None:
        while waiting := self._next(user):
            try:
                texts = await self._read(user, waiting)
            except (MemorySpaceError, OSError) as error:
                logger.info("new records will be embedded by the next search: %s", error)
                continue
            await self.embed(user, texts)

    def _next(self, user: str) -> list[tuple[str | None, str]]:
        """Take the next batch. If there is none, this worker ends and ``expect`` starts another."""
        with self._lock:
            waiting = self._waiting.get(user, {})
            batch = list(waiting)[:AT_ONCE]
            for each in batch:
                del waiting[each]
            if not batch:
                self._waiting.pop(user, None)
                self._workers.pop(user, None)
            return batch

    async def _read(
        self, user: str, waiting: Collection[tuple[str | None, str]]
    ) -> list[RecordText]:
        texts: list[RecordText] = []
        for session in dict.fromkeys(session for session, _ in waiting):
            ids = frozenset(each for place, each in waiting if place == session)
            records = await self._store.select(Scope(user, session), Where(ids=ids))
            texts += texts_of(records, self._entry_of)
        return texts

    async def _embed(self, user: str, texts: Sequence[RecordText]) -> bool:
        known = await self._keeper.known(user, texts)
        caching = CachingEmbedder(self._keeper.embedder)
        caching.set_known(known.vectors)
        missing = self._keeper.missing(texts, known)
        try:
            rows = await asyncio.to_thread(caching.embed, [each.text for each in missing])
        except Exception as error:  # any error: a search tries again and reports the failure
            logger.info("the embedder %s failed in the background: %r", caching.name, type(error))
            return False
        if missing:
            await self._keeper.keep(user, dict(zip(missing, rows, strict=True)))
        return True


def _is_alive(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done() and not task.get_loop().is_closed()
