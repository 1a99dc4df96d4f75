"""``AsyncMemoryManager``: a space for asyncio, with a thread between only where it must be.

A call does its work at once, on the loop, if that takes no time to speak of. The wait for the
journal's sync is awaited, and many callers share one. What would wait for the disk otherwise, or
takes long (demoting, reading what is cold, a checkpoint, many objects, closing), is done in a
thread: the loop goes on. See ``Desk``.
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


class _Awaited(Protocol[P, R_co]):
    async def __call__(self, *args: P.args, **options: P.kwargs) -> R_co: ...


def _to_be_read_twice(argument: Any) -> Any:
    return list(argument) if isinstance(argument, Iterator) else argument


class _Durable(Generic[P, R]):
    """The awaitable form of a durable method of the manager."""

    def __init__(self, method: Callable[Concatenate[MemoryManager, P], R]) -> None:
        self._body: Callable[Concatenate[MemoryManager, P], R] = method.__wrapped__  # type: ignore[attr-defined]  # by durable
        self.__doc__ = method.__doc__

    def __get__(self, owner: AsyncMemoryManager[Any], kind: type | None = None) -> _Awaited[P, R]:
        if owner is None:
            return self  # asked for on the class, by help() and the like
        change, body = owner.change, self._body

        async def call(*args: P.args, **options: P.kwargs) -> R:
            given = [_to_be_read_twice(each) for each in args]
            named = {name: _to_be_read_twice(each) for name, each in options.items()}
            return await change(lambda manager: body(manager, *given, **named))

        return call


class AsyncMemoryManager(Closing, Generic[M]):
    """The awaitable form of a manager's changes and reads."""

    def __init__(self, manager: M) -> None:
        self.manager = manager
        self._desk = Desk()

    async def change(self, work: Callable[[M], R]) -> R:
        """Do some work that changes the manager, under its lock; return when it is safe.

        It may be begun, and begun again in a thread: let it do nothing but ask the manager.
        """
        return await self._desk.change(self.manager, self._the_manager, work)

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
        return await self._do(lambda manager: manager.load(object_id))

    async def retrieve(self, query: str, top_k: int = 5, *, tenant: str | None = None) -> list[Hit]:
        """Return the objects that match a text best."""

        def work(manager: M) -> list[Hit]:
            manager.expect(manager.live_objects)
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
