"""Taking turns at a vector store that lives in this process.

mem0 calls its store from threads, several at once. Qdrant's local mode and FAISS are not made for
that: of forty memories added at the same moment a few were lost, and the collection was broken
from then on. So calls to a client with such a store wait for each other, whichever service of an
event loop makes them; those to a server, or to the platform, do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ...loops import PerLoop, finish

T = TypeVar("T")

_locks: WeakKeyDictionary[object, PerLoop[asyncio.Lock]] = WeakKeyDictionary()


class Turns:
    """Runs calls to a client: one after another if its store needs that."""

    def __init__(self, client: object) -> None:
        self._locks = _locks_of(client) if is_embedded(client) else None

    async def take(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call when it is its turn. Once begun it runs to its end: its threads would too."""
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
    """Tell whether a client keeps its vectors in this process."""
    store = getattr(client, "vector_store", None)
    inner = getattr(getattr(store, "client", None), "_client", None)  # Qdrant's, local or remote
    return type(inner).__name__ == "QdrantLocal" or type(store).__name__ == "FAISS"


def _locks_of(client: object) -> PerLoop[asyncio.Lock]:
    if client not in _locks:
        _locks[client] = PerLoop(asyncio.Lock)
    return _locks[client]
