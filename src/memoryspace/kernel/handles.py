"""``ObjectHandles``: objects of a space by handle, for stores that keep an index of their own.

A handle names one object and is never used again. Everything here is called with ``lock`` held; a
``Desk`` holds it around the work it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from .engine import Engine
from .heap.drafts import NewObject
from .heap.ops import FreeOp, Op, TuneOp
from .heap.table import FOREVER, PINNED
from .manager import MemoryManager


class Placed(NamedTuple):
    """A stored object: its handle, and the stamp of the write, which grows with every write."""

    handle: int
    stamp: int


class LivingObject(NamedTuple):
    """An object as the table knows it, without its body."""

    handle: int
    stamp: int
    tenant: str
    tags: frozenset[str]
    expires_at: float | None


class ObjectHandles:
    """The verbs of a space for callers that know its objects by handle.

    Args:
        manager: The space. ``lock`` is its lock, to hold around everything else.

    Example::

        objects = ObjectHandles(space)
        with objects.lock:
            (new,) = objects.insert([NewObject({"n": 2})], free=[old.handle])
    """

    __slots__ = ("_engine", "lock")

    def __init__(self, manager: MemoryManager) -> None:
        self._engine: Engine = manager.engine
        self.lock: AbstractContextManager[Any] = self._engine.writing

    @property
    def last_lsn(self) -> int:
        """The number of the last change."""
        return self._engine.heap.lsn

    @property
    def has_files(self) -> bool:
        """Whether anything is written to disk."""
        return self._engine.wal is not None or self._engine.checkpoint_manager is not None

    def expect(self, steps: int, size: int = 0) -> None:
        """Raise ``WouldWait`` if so many objects or bytes take too long for an event loop."""
        self._engine.expect(steps, size)

    # -- writing -----------------------------------------------------------------------------------

    def fits(self, objects: Sequence[NewObject]) -> bool:
        """Return whether objects can be stored without collecting others."""
        return self._engine.fits(objects)

    def insert(
        self,
        objects: Sequence[NewObject],
        *,
        free: Sequence[int] = (),
        tags: Mapping[int, Iterable[str]] | None = None,
    ) -> list[Placed]:
        """Store objects, free others and retag others in one step of the journal: all or nothing.

        Args:
            objects: What to store; may be empty.
            free: Handles of living objects to free.
            tags: New tags by handle.

        Raises:
            OutOfSpace: The objects do not fit.
            UnknownObject: A handle names no living object.
        """
        ops = self._retagged(tags) if tags else []
        if free:
            ops.append(FreeOp(list(free), "replaced"))
        if not objects:
            if ops:
                self._engine.change(ops)
            return []
        slots = self._engine.insert(objects, ops)
        table = self._engine.heap.table
        return [Placed(table.handle[slot], table.stamp[slot]) for slot in slots]

    def retag(self, tags: Mapping[int, Iterable[str]]) -> None:
        """Replace the tags of living objects in one step; importance and expiry stay."""
        self._engine.change(self._retagged(tags))

    def free(self, handles: Sequence[int], reason: str) -> None:
        """Free living objects in one step."""
        self._engine.free(list(handles), reason)

    def _retagged(self, tags: Mapping[int, Iterable[str]]) -> list[Op]:
        table, ops = self._engine.heap.table, list[Op]()
        for handle, new in tags.items():
            slot = table.slot_of(handle)
            ops.append(
                TuneOp(handle, table.importance[slot], table.expires[slot], tuple(sorted(new)))
            )
        return ops

    # -- reading -----------------------------------------------------------------------------------

    def bodies(self, handles: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects and count a use of each; may promote some."""
        table = self._engine.heap.table
        return self._engine.bodies([table.slot_of(handle) for handle in handles])

    def body(self, handle: int) -> bytes:
        """Return the bytes of an object without counting a use."""
        return self._engine.body(self._slot(handle))

    def is_living(self, handle: int) -> bool:
        """Return whether an object is still there."""
        return self._slot(handle) >= 0

    def raw(self, handle: int) -> bytes | None:
        """Return an object's bytes as they are stored, damaged or not; ``None`` for none."""
        return self._engine.raw(self._slot(handle))

    def size(self, handle: int) -> int:
        """Return how many bytes an object's body takes."""
        return self._engine.heap.table.size[self._slot(handle)]

    def id(self, handle: int) -> str:
        """Return the id of an object."""
        return self._engine.heap.id_of(self._slot(handle))

    def retention(self, handle: int) -> tuple[float, bool]:
        """Return the importance of an object, and whether it is pinned."""
        table = self._engine.heap.table
        slot = table.slot_of(handle)
        return table.importance[slot], bool(table.flags[slot] & PINNED)

    def living(self) -> Iterator[LivingObject]:
        """Yield every object in the table, also those that have expired but are not freed yet."""
        heap = self._engine.heap
        table, tenants, tags = heap.table, heap.tenants.names.values, heap.tags.values
        for slot in table.living():
            expires = table.expires[slot]
            yield LivingObject(
                table.handle[slot],
                table.stamp[slot],
                tenants[table.tenant[slot]],
                frozenset(tags[table.tags[slot]]),
                None if expires == FOREVER else expires,
            )

    def _slot(self, handle: int) -> int:
        return self._engine.heap.table.slot_of(handle)

    # -- following ---------------------------------------------------------------------------------

    def follow(self, on_freed: Callable[[int], None], on_reload: Callable[[], None]) -> None:
        """Call ``on_freed(handle)`` for each object that is freed, for whatever reason.

        Call ``on_reload()`` when the space was restored to another moment: everything may be
        different then, and nothing was reported as freed.
        """

        def listen() -> None:
            heap = self._engine.heap
            heap.on_freed.append(lambda slot: on_freed(heap.table.handle[slot]))

        def reloaded() -> None:
            on_reload()
            listen()  # to the heap that took the old one's place

        listen()
        self._engine.on_reload.append(reloaded)
