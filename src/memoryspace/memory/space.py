"""``SpaceMemory``: durable working memory in a folder, without a server or extra packages."""

from __future__ import annotations

import threading
import weakref
from os import PathLike
from pathlib import Path

from ..kernel import Durability
from ..record import Scope
from ..store.space import HOT_CAPACITY, SpaceStore
from .in_memory import DEFAULT_SESSION, DEFAULT_USER
from .stored import StoredMemory


class SpaceMemory(StoredMemory):
    """Working memory in a memory space on disk.

    Memories of one process on the same folder share one store. It has the settings of the first and
    closes with the last.

    Args:
        folder: The folder of the space; created when first used.
        session_id: The session of the user.
        user_id: The user the messages belong to.
        store: An open store to use instead; it is never closed here.
        hot_capacity: Bytes of the hot tier.
        durability: When writes reach the disk.

    Example::

        async with SpaceMemory("./memory", "garden", "alice") as memory:
            await memory.add(Msg("Alice", "Plan a garden.", "user"))
    """

    def __init__(
        self,
        folder: str | PathLike[str] = "memory",
        session_id: str = DEFAULT_SESSION,
        user_id: str = DEFAULT_USER,
        *,
        store: SpaceStore | None = None,
        hot_capacity: int = HOT_CAPACITY,
        durability: Durability | None = None,
    ) -> None:
        scope = Scope(user_id, session_id)
        self._shared: _SharedStore | None = None
        if store is None:
            self._shared = _shared_store(Path(folder).resolve(), hot_capacity, durability)
            self._shared.members.add(self)
            _unclosed.add(self._shared)
            store = self._shared.store
        super().__init__(store, scope)

    async def close(self) -> None:
        """Close the store if no other memory uses it. It reopens when this one is used again."""
        if self._shared is not None:
            self._shared.members.discard(self)
            if not self._shared.members:
                _unclosed.discard(self._shared)
                await super().close()


class _SharedStore:
    """The store of a folder and the memories that use it."""

    def __init__(self, store: SpaceStore) -> None:
        self.store = store
        self.members: weakref.WeakSet[SpaceMemory] = weakref.WeakSet()


_open: weakref.WeakValueDictionary[Path, _SharedStore] = weakref.WeakValueDictionary()
_unclosed: set[_SharedStore] = set()  # keeps the stores of memories that were never closed
_opening = threading.Lock()


def _shared_store(home: Path, hot_capacity: int, durability: Durability | None) -> _SharedStore:
    """Return this process's store for a folder; it opens the folder on first use."""
    with _opening:
        shared = _open.get(home)
        if shared is None:
            store = SpaceStore(home, hot_capacity=hot_capacity, durability=durability)
            shared = _open[home] = _SharedStore(store)
        return shared
