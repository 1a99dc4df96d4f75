"""Embedding ahead: what was added is embedded in the background, so that no search has to.

Nothing of it need survive. What a process that is gone has not embedded, or not written down, is
embedded by the first search that misses it.
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
from .keeping import EntryOf, Text, VectorKeeper, texts_of
from .known import Told

logger = logging.getLogger(__name__)

AT_ONCE = 64  # memories embedded in one go: a search that comes meanwhile waits no longer
USERS_AT_ONCE = 2
STOP_SECONDS = 5.0  # given to what is under way when a service stops


class Ahead:
    """Embeds and writes down, one thing at a time for each user."""

    def __init__(self, store: Store, keeper: VectorKeeper, entry_of: EntryOf) -> None:
        self._store = store
        self._keeper = keeper
        self._entry_of = entry_of
        self._waiting: dict[str, dict[tuple[str | None, str], None]] = {}  # user → what, in order
        self._tasks: dict[asyncio.Task[None], str] = {}  # whose they are
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._lock = threading.Lock()  # around these three, never held for long
        self._turns = PerLoop(WeakValueDictionary[str, asyncio.Lock])
        self._places = PerLoop(partial(asyncio.Semaphore, USERS_AT_ONCE))

    def turn(self, user: str) -> asyncio.Lock:
        """Return the lock under which a user's texts are embedded, lest two embed the same."""
        return self._turns.get().setdefault(user, asyncio.Lock())

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:
        """Embed records soon that were just written."""
        with self._lock:
            waiting = self._waiting.setdefault(scope.user, {})
            waiting.update(((scope.session, each), None) for each in ids)
            if waiting and not _is_alive(self._workers.get(scope.user)):
                self._workers[scope.user] = self._begin(scope.user, self._work(scope.user))

    def begin(self, user: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something else done for a user in the background."""
        with self._lock:
            return self._begin(user, work)

    async def embed(self, user: str, texts: Sequence[Text]) -> bool:
        """Embed and write down what of some texts is not kept yet; tell whether that worked."""
        async with self._places.get(), self.turn(user):
            return await self._embed(user, texts)

    async def settle(self, user: str) -> None:
        """Wait until nothing of a user is under way in this loop."""
        while tasks := [each for each in self._here() if self._tasks.get(each) == user]:
            await asyncio.wait(tasks)

    def forget(self, user: str) -> None:
        """Embed nothing more of a user; what comes after this is expected anew."""
        with self._lock:
            self._waiting.pop(user, None)

    async def stop(self) -> None:
        """Come to an end, soon: what is not done then is left to the next search."""
        if tasks := self._here():
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        with self._lock:
            self._waiting.clear()

    def _begin(self, user: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = user
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        with self._lock:
            user = self._tasks.pop(task, None)
            if user is not None and self._workers.get(user) is task:
                del self._workers[user]

    def _here(self) -> list[asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        with self._lock:
            return [task for task in self._tasks if task.get_loop() is loop]

    async def _work(self, user: str) -> None:
        while waiting := self._next(user):
            try:
                texts = await self._read(user, waiting)
            except (MemorySpaceError, OSError) as error:
                logger.info("what was added is embedded when it is searched: %s", error)
                continue
            await self.embed(user, texts)

    def _next(self, user: str) -> list[tuple[str | None, str]]:
        """Take the next; without any, this worker is over, and the next to come needs another."""
        with self._lock:
            waiting = self._waiting.get(user, {})
            batch = list(waiting)[:AT_ONCE]
            for each in batch:
                del waiting[each]
            if not batch:
                self._waiting.pop(user, None)
                self._workers.pop(user, None)
            return batch

    async def _read(self, user: str, waiting: Collection[tuple[str | None, str]]) -> list[Text]:
        texts: list[Text] = []
        for session in dict.fromkeys(session for session, _ in waiting):
            ids = frozenset(each for place, each in waiting if place == session)
            records = await self._store.select(Scope(user, session), Where(ids=ids))
            texts += texts_of(records, self._entry_of)
        return texts

    async def _embed(self, user: str, texts: Sequence[Text]) -> bool:
        known = await self._keeper.known(user, texts)
        told = Told(self._keeper.embedder)
        told.hear(known.vectors)
        lacking = self._keeper.lacking(texts, known)
        try:
            rows = await asyncio.to_thread(told.embed, [each.text for each in lacking])
        except Exception as error:  # whatever it is: searches ask it again, and say that it fails
            logger.info("the embedder %s failed ahead of a search: %r", told.name, type(error))
            return False
        if lacking:
            await self._keeper.keep(user, dict(zip(lacking, rows, strict=True)))
        return True


def _is_alive(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done() and not task.get_loop().is_closed()
