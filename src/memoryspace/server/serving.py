"""``Serving``: what a server consists of, and the order in which it starts and stops."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from msgspec import Struct

from ..door import AsyncMemory
from ..events import EventStream
from ..store import Store
from ..store.space import SpaceStore
from .access.audit import AuditLog
from .access.keys import IssuedKey, KeyRing
from .access.quotas import Quotas
from .access.repeats import Repeats
from .config import ServerConfig

_ACCESS_CAPACITY = 8 << 20  # bytes of RAM


class Serving(Struct):
    """The parts of a server, all on the memory's store.

    Attributes:
        memory: The memory that is served.
        config: How the server is reached, and what it allows.
        keys: The API keys.
        quotas: What tenants may store.
        audit: The log of what was done.
        repeats: Answers to requests that may be sent again.
        access: The store of keys, quotas and the audit log.
        started_at: When the server started, in seconds.
    """

    memory: AsyncMemory
    config: ServerConfig
    keys: KeyRing
    quotas: Quotas
    audit: AuditLog
    repeats: Repeats
    access: Store
    started_at: float

    @classmethod
    def of(cls, memory: AsyncMemory, config: ServerConfig) -> Serving:
        """Return the parts of a server for a memory."""
        store, access = memory.store, _access_store(memory.store)
        return cls(
            memory=memory,
            config=config,
            keys=KeyRing(access),
            quotas=Quotas(
                access, store, max_bytes=config.max_bytes, max_records=config.max_records
            ),
            audit=AuditLog(access),
            repeats=Repeats(store),
            access=access,
            started_at=time.time(),
        )

    async def __aenter__(self) -> Self:
        await self.memory.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self.memory.close()
        finally:
            if self.access is not self.memory.store:
                await self.access.close()

    @property
    def events(self) -> EventStream:
        """The stream of everything that happens."""
        return self.memory.events

    async def first_key(self) -> IssuedKey | None:
        """Make an admin key if there is no key yet; ``None`` if there is one."""
        if await self.keys.has_any():
            return None
        return await self.keys.issue(name="admin", scopes=("read", "write", "admin"))


def _access_store(store: Store) -> Store:
    """Return where keys, quotas and the audit log are.

    A memory space can be restored to an earlier moment: then revoked keys must not come back. So
    beside a folder they have a space of their own.
    """
    if isinstance(store, SpaceStore) and store.folder is not None:
        return SpaceStore(Path(store.folder) / "access", hot_capacity=_ACCESS_CAPACITY)
    return store
