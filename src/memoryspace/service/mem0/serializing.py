"""``CallSerializer``: runs calls to an in-process vector store one at a time.

mem0 calls its store from several threads at once. Qdrant's local mode and FAISS do not support
that: of forty memories added at the same time a few were lost, and the collection stayed broken.
So calls to a client with such a store wait for each other, from every service in an event loop.
Calls to a server or to the platform do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ...loops import PerLoop, finish

T = TypeVar("T")

_locks: WeakKeyDictionary[object, PerLoop[asyncio.Lock]] = WeakKeyDictionary()


class CallSerializer:
    """Runs calls to a client, one after another if its store needs that."""

    def __init__(self, client: object) -> None:
        self._locks = _locks_of(client) if is_embedded(client) else None

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call. Once started it runs to its end, as its threads would anyway."""
        if self._locks is None:
            return await call
        try:
            lock = self._locks.get()
            await lock.acquire()
        except BaseException:
            call.close()
            raise
        try:
            return await finish(call)
        finally:
            lock.release()


def is_embedded(client: object) -> bool:
    """Return whether a client keeps its vectors in this process."""
    store = getattr(client, "vector_store", None)
    inner = getattr(getattr(store, "client", None), "_client", None)  # Qdrant's, local or remote
    return type(inner).__name__ == "QdrantLocal" or type(store).__name__ == "FAISS"


def _locks_of(client: object) -> PerLoop[asyncio.Lock]:
    if client not in _locks:
        _locks[client] = PerLoop(asyncio.Lock)
    return _locks[client]
