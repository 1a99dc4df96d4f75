"""``MemoryRepository``: reads, changes and deletes memories in a store, with their old versions.

Every change of a memory is a compare-and-set: its record is replaced only if it is still the one
that was read, and the new record gets a new ``seq``, so indexes that follow the store see every
change. The old version is stored in the same step, so a failed change leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from msgspec.structs import replace as change

from ...errors import CorruptData, UnknownMemory, VersionConflict
from ...record import MAX_MARKS, RESERVED_PREFIX, Record, Scope, Where
from ...store import Store
from ..values.envelope import memory_of, record_of
from ..values.kinds import NO_MEMORIES, VERSION
from ..values.memory import MemoryItem

MAX_VERSIONS = 100  # old versions kept of one memory

_NO_LIMIT = 2**31

Edit = Callable[[MemoryItem], MemoryItem | None]
OnChange = Callable[[Scope, Sequence[str]], None]
Beside = Callable[[MemoryItem, MemoryItem], Sequence[Record]]


class MemoryRepository:
    """The memories in a store. ``on_change`` is called with the ids of those that changed."""

    def __init__(
        self, store: Store, *, max_versions: int = MAX_VERSIONS, on_change: OnChange | None = None
    ) -> None:
        self.store = store
        self._max_versions = max_versions
        self._on_change = on_change

    def now(self) -> float:
        """Return the current time by the store's clock."""
        return self.store.clock()

    def read(self, user: str, records: Iterable[Record]) -> list[MemoryItem]:
        """Return the memories in ``records``; report those that cannot be read and skip them."""
        found = []
        for record in records:
            if record.kind in NO_MEMORIES:
                continue
            try:
                found.append(memory_of(user, record))
            except CorruptData as error:
                self.store.report_corrupt(Scope(user, record.session), record.id, error)
        return found

    async def select(self, scope: Scope, where: Where) -> list[MemoryItem]:
        """Return matching memories, oldest first."""
        return self.read(scope.user, await self.store.select(scope, where))

    async def find(self, scope: Scope, memory_id: str) -> MemoryItem | None:
        """Return a memory, or ``None``; if several sessions have that id, the newest."""
        if not isinstance(memory_id, str):
            raise TypeError(f"a memory id must be a str, got {type(memory_id).__name__}")
        records = await self.store.select(scope, Where(ids=frozenset({memory_id})))
        found = self.read(scope.user, records)
        return found[-1] if found else None

    async def swap(
        self, seen: MemoryItem, new: MemoryItem, beside: Sequence[Record] = (), *, keep: bool = True
    ) -> bool:
        """Replace exactly the version that was ``seen``; return whether it was still there.

        With ``keep``, the old version is stored too, and versions beyond the limit are deleted,
        including any left over from an earlier failure. Records ``beside`` are added in the same
        step.
        """
        scope = Scope(seen.user_id, seen.session_id)
        new = change(new, version=seen.version + 1, updated_at=self.now())
        old = [_as_version(seen)] if keep else []
        records = [*old, record_of(new), *beside]
        swapped = bool(await self.store.replace(scope, at(seen), records, if_found=True))
        if swapped and self._on_change is not None:
            self._on_change(scope, [new.id])
        if swapped and keep and seen.version > self._max_versions:
            await self.store.delete(scope, self._too_old(seen.id))
        return swapped

    def _too_old(self, memory_id: str) -> Where:
        """Select the old versions beyond ``max_versions``, counted from the newest."""
        return change(_versions_of(memory_id), skip=self._max_versions, limit=_NO_LIMIT)

    async def edit(
        self,
        scope: Scope,
        memory_id: str,
        edit: Edit,
        *,
        version: int | None = None,
        beside: Beside | None = None,
        keep: bool = True,
    ) -> MemoryItem:
        """Apply ``edit`` to a memory and retry if another writer changed it first.

        With ``version``, change only that version. An ``edit`` that returns ``None`` leaves the
        memory as it is. ``beside(old, new)`` returns further records to add in the same step.
        With ``keep=False`` no old version is stored; use it for counters.
        """
        while True:
            seen = await self._present(scope, memory_id)
            if version is not None and seen.version != version:
                raise VersionConflict(
                    f"memory {memory_id!r} is at version {seen.version}, not at {version}; "
                    "read it again before you change it"
                )
            new = edit(seen)
            if new is None:
                return seen
            others = () if beside is None else beside(seen, new)
            if await self.swap(seen, new, others, keep=keep):
                changed = await self.find(Scope(scope.user, seen.session_id), memory_id)
                return changed if changed is not None else new  # deleted meanwhile

    async def amend(
        self,
        scope: Scope,
        memory_id: str,
        edit: Edit,
        *,
        seen: MemoryItem | None = None,
        keep: bool = True,
    ) -> None:
        """Change a memory like ``edit``; skip the first read if ``seen`` is given."""
        while True:
            seen = await self._present(scope, memory_id) if seen is None else seen
            new = edit(seen)
            if new is None or await self.swap(seen, new, keep=keep):
                return
            seen = None

    async def _present(self, scope: Scope, memory_id: str) -> MemoryItem:
        found = await self.find(scope, memory_id)
        if found is None:
            raise UnknownMemory(f"user {scope.user!r} has no memory {memory_id!r}")
        return found

    async def versions(self, memory: MemoryItem) -> list[MemoryItem]:
        """Return the stored old versions of a memory, oldest first."""
        scope = Scope(memory.user_id, memory.session_id)
        where = change(_versions_of(memory.id), limit=self._max_versions)
        records = await self.store.select(scope, where)
        old = self.read(memory.user_id, map(_from_version, records))
        return sorted((each for each in old if each.version < memory.version), key=_version)

    async def remove(self, scope: Scope, memory_ids: Sequence[str]) -> tuple[list[str], int]:
        """Delete memories; return the ids that existed and the number of old versions deleted.

        Versions are deleted first: if this is interrupted, the memories are still there for a
        retry. They are deleted again afterwards, in case a memory was changed meanwhile.
        """
        versions = await self.forget_versions(scope, memory_ids)
        removed = await self.store.delete(scope, Where(ids=frozenset(memory_ids)))
        return removed, versions + await self.forget_versions(scope, memory_ids)

    async def forget_versions(self, scope: Scope, memory_ids: Sequence[str]) -> int:
        """Delete all old versions of these memories; return how many."""
        removed = 0
        for start in range(0, len(memory_ids), MAX_MARKS):
            marks = frozenset(map(_mark, memory_ids[start : start + MAX_MARKS]))
            removed += len(await self.store.delete(scope, Where(kind=VERSION, marks=marks)))
        return removed


def at(memory: MemoryItem) -> Where:
    """Select exactly this version of a memory."""
    return version_at(memory.id, memory.seq)


def version_at(record_id: str, seq: int) -> Where:
    """Select the record with this id, if it still has this seq."""
    return Where(ids=frozenset({record_id}), after=seq - 1, before=seq + 1)


def _versions_of(memory_id: str) -> Where:
    return Where(kind=VERSION, marks=frozenset({_mark(memory_id)}), newest=True)


def _as_version(memory: MemoryItem) -> Record:
    """Return the record of an old version of a memory."""
    was = record_of(memory)
    value = {
        "was": was.value,
        "id": memory.id,
        "kind": memory.kind,
        "marks": sorted(memory.marks),
    }
    return change(
        was,
        id=_version_id(memory.id, memory.version),
        kind=VERSION,
        marks=frozenset({_mark(memory.id)}),
        value=value,
    )


def _from_version(record: Record) -> Record:
    """Return the original record of an old version, as far as it can be read."""
    held = record.value if isinstance(record.value, dict) else {}
    return change(
        record,
        id=str(held.get("id", record.id)),
        kind=str(held.get("kind", record.kind)),
        marks=frozenset(map(str, held.get("marks", ()))),
        value=held.get("was", {}),
    )


def _version_id(memory_id: str, version: int) -> str:
    return f"{_mark(memory_id)}:{version}"


def _mark(memory_id: str) -> str:
    """Return the mark of a memory's old versions; hashed, since an id may be as long as a mark."""
    return f"{RESERVED_PREFIX}was:{blake2b(memory_id.encode(), digest_size=16).hexdigest()}"


def _version(memory: MemoryItem) -> int:
    return memory.version
