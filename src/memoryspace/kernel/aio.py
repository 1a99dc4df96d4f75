"""``AsyncMemoryManager``: a space for asyncio, without a thread between.

A call does its work at once, on the loop. Only the wait for the journal's sync is awaited, and many
callers share one. How much that gains depends on how slow the disk is beside the work itself.

What still runs on the loop: a tiered space writes to its cold tier when it demotes, and closing a
space syncs. Both may wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from ..lifecycle import Closing
from .acknowledging import changed
from .heap.object import MemoryObject
from .manager import Hit, MemoryManager

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound=MemoryManager)


class _Awaited(Protocol[P, R_co]):
    async def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class _Durable(Generic[P, R]):
    """The awaitable form of a durable method of the manager."""

    def __init__(self, method: Callable[Concatenate[MemoryManager, P], R]) -> None:
        self._body: Callable[Concatenate[MemoryManager, P], R] = method.__wrapped__  # type: ignore[attr-defined]  # by durable
        self.__doc__ = method.__doc__

    def __get__(self, owner: AsyncMemoryManager[Any], kind: type | None = None) -> _Awaited[P, R]:
        if owner is None:
            return self  # asked for on the class, by help() and the like
        manager, body = owner.manager, self._body

        async def call(*args: P.args, **options: P.kwargs) -> R:
            result, lsn = changed(body, manager, *args, **options)
            if lsn:
                await manager.wait_for_async(lsn)
            return result

        return call


class AsyncMemoryManager(Closing, Generic[M]):
    """Awaitable changes of a manager; reads are the manager's own, and as fast."""

    def __init__(self, manager: M) -> None:
        self.manager = manager

    store = _Durable(MemoryManager.store)
    store_many = _Durable(MemoryManager.store_many)
    store_existing = _Durable(MemoryManager.store_existing)
    update = _Durable(MemoryManager.update)
    free_object = _Durable(MemoryManager.free_object)
    free_many = _Durable(MemoryManager.free_many)
    add_root = _Durable(MemoryManager.add_root)
    remove_root = _Durable(MemoryManager.remove_root)
    pin = _Durable(MemoryManager.pin)
    unpin = _Durable(MemoryManager.unpin)
    add_reference = _Durable(MemoryManager.add_reference)
    remove_reference = _Durable(MemoryManager.remove_reference)
    gc_step = _Durable(MemoryManager.gc_step)

    async def load(self, object_id: str) -> MemoryObject:
        """Return an object, counting a use."""
        return self.manager.load(object_id)

    async def retrieve(self, query: str, top_k: int = 5, *, tenant: str | None = None) -> list[Hit]:
        """Return the objects that match a text best."""
        return self.manager.retrieve(query, top_k, tenant=tenant)

    async def close(self) -> None:
        """Close the manager."""
        self.manager.close()
