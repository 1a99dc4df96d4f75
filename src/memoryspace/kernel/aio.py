"""``AsyncMemoryManager``: a space for asyncio, without a thread in between.

A call does its work at once, on the event loop. Only the journal's sync is awaited, and many
callers share one. How much that gains depends on how slow the disk is compared with the work.

Some calls still block the loop: a tiered space writes to its cold tier when it demotes, and closing
a space syncs its files.
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


class _Awaitable(Protocol[P, R_co]):
    async def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


class _Awaited(Generic[P, R]):
    """A descriptor: the awaitable form of one of the manager's durable methods."""

    def __init__(self, method: Callable[Concatenate[MemoryManager, P], R]) -> None:
        self._body: Callable[Concatenate[MemoryManager, P], R] = method.__wrapped__  # type: ignore[attr-defined]  # by durable
        self.__doc__ = method.__doc__

    def __get__(self, owner: AsyncMemoryManager[Any], kind: type | None = None) -> _Awaitable[P, R]:
        if owner is None:
            return self  # accessed on the class, by help() and the like
        manager, body = owner.manager, self._body

        async def call(*args: P.args, **options: P.kwargs) -> R:
            result, lsn = changed(body, manager, *args, **options)
            if lsn:
                await manager.engine.wait_for_async(lsn)
            return result

        return call


class AsyncMemoryManager(Closing, Generic[M]):
    """A manager whose changes can be awaited. Reads are the manager's own, and as fast.

    Args:
        manager: The space to change. ``close`` closes it.

    Example:
        >>> async with AsyncMemoryManager(MemoryManager(1 << 20, folder="space")) as space:
        ...     note = await space.store({"text": "Ann is allergic to peanuts"})
    """

    def __init__(self, manager: M) -> None:
        self.manager = manager

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.manager!r}>"

    store = _Awaited(MemoryManager.store)
    store_many = _Awaited(MemoryManager.store_many)
    store_existing = _Awaited(MemoryManager.store_existing)
    update = _Awaited(MemoryManager.update)
    free_object = _Awaited(MemoryManager.free_object)
    free_many = _Awaited(MemoryManager.free_many)
    add_root = _Awaited(MemoryManager.add_root)
    remove_root = _Awaited(MemoryManager.remove_root)
    pin = _Awaited(MemoryManager.pin)
    unpin = _Awaited(MemoryManager.unpin)
    add_reference = _Awaited(MemoryManager.add_reference)
    remove_reference = _Awaited(MemoryManager.remove_reference)
    gc_step = _Awaited(MemoryManager.gc_step)

    async def load(self, object_id: str) -> MemoryObject:
        """Return an object and count a use; ``UnknownObject`` if there is none."""
        return self.manager.load(object_id)

    async def retrieve(self, query: str, top_k: int = 5, *, tenant: str | None = None) -> list[Hit]:
        """Return the objects that match a text best and count a use of each."""
        return self.manager.retrieve(query, top_k, tenant=tenant)

    async def close(self) -> None:
        """Close the manager."""
        self.manager.close()
