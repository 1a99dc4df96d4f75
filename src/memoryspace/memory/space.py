"""``SpaceMemory``: working memory in a folder. Durable, with no server and nothing to install."""

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

    Memories of one process on the same folder share one store, which is closed with the last of
    them; the settings of the first hold. A ``store`` that is handed in stays open.
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
        """Close the store if no other memory uses it; this one opens it anew when used again."""
        if self._shared is not None:
            self._shared.members.discard(self)
            if not self._shared.members:
                _unclosed.discard(self._shared)
                await super().close()


class _SharedStore:
    """A store on a folder, and the memories that use it."""

    def __init__(self, store: SpaceStore) -> None:
        self.store = store
        self.members: weakref.WeakSet[SpaceMemory] = weakref.WeakSet()


_open: weakref.WeakValueDictionary[Path, _SharedStore] = weakref.WeakValueDictionary()
_unclosed: set[_SharedStore] = set()  # a memory that was dropped, not closed, leaves its store open
_opening = threading.Lock()


def _shared_store(home: Path, hot_capacity: int, durability: Durability | None) -> _SharedStore:
    """Return whoever uses a folder in this process; a store opens its folder on first use."""
    with _opening:
        shared = _open.get(home)
        if shared is None:
            store = SpaceStore(home, hot_capacity=hot_capacity, durability=durability)
            shared = _open[home] = _SharedStore(store)
        return shared
