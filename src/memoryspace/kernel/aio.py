"""``AsyncMemoryManager``: a space for asyncio, with a thread in between only where needed.

A quick call does its work at once, on the event loop. The journal's sync is awaited, and many
callers share one. Work that would otherwise wait for the disk or take long (demoting, reading cold
objects, a checkpoint, many objects, closing) runs in a thread while the loop goes on. See ``Desk``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from ..lifecycle import Closing
from .desk import Desk
from .heap.object import MemoryObject
from .manager import Hit, MemoryManager

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound=MemoryManager)


class _Awaitable(Protocol[P, R_co]):
    async def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


def _to_be_read_twice(argument: Any) -> Any:
    return list(argument) if isinstance(argument, Iterator) else argument


class _Awaited(Generic[P, R]):
    """A descriptor: the awaitable form of one of the manager's durable methods."""

    def __init__(self, method: Callable[Concatenate[MemoryManager, P], R]) -> None:
        self._body: Callable[Concatenate[MemoryManager, P], R] = method.__wrapped__  # type: ignore[attr-defined]  # by durable
        self.__doc__ = method.__doc__

    def __get__(self, owner: AsyncMemoryManager[Any], kind: type | None = None) -> _Awaitable[P, R]:
        if owner is None:
            return self  # accessed on the class, by help() and the like
        change, body = owner.change, self._body

        async def call(*args: P.args, **options: P.kwargs) -> R:
            given = [_to_be_read_twice(each) for each in args]
            named = {name: _to_be_read_twice(each) for name, each in options.items()}
            return await change(lambda manager: body(manager, *given, **named))

        return call


class AsyncMemoryManager(Closing, Generic[M]):
    """A manager whose changes and reads can be awaited.

    Args:
        manager: The space to change. ``close`` closes it.

    Example::

        async with AsyncMemoryManager(MemoryManager(1 << 20, folder="space")) as space:
            note = await space.store({"text": "Ann is allergic to peanuts"})
    """

    def __init__(self, manager: M) -> None:
        self.manager = manager
        self._desk = Desk()

    async def change(self, work: Callable[[M], R]) -> R:
        """Do some work that changes the manager, under its lock; return when it is safe.

        It may be begun, and begun again in a thread: let it do nothing but ask the manager.
        """
        return await self._desk.change(self.manager, self._the_manager, work)

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
        return await self._do(lambda manager: manager.load(object_id))

    async def retrieve(self, query: str, top_k: int = 5, *, tenant: str | None = None) -> list[Hit]:
        """Return the objects that match a text best and count a use of each."""

        def work(manager: M) -> list[Hit]:
            manager.engine.expect(manager.live_objects)
            return manager.retrieve(query, top_k, tenant=tenant)

        return await self._do(work)

    async def close(self) -> None:
        """Close the manager."""
        await self._desk.aside(self.manager.close)
        self._desk.rest()

    async def _do(self, work: Callable[[M], R]) -> R:
        return await self._desk.do(self.manager, self._the_manager, work)

    def _the_manager(self) -> M:
        return self.manager
