"""``Shelf``: memories in a store. Reading them back, changing one, keeping its old versions.

Every change of a memory is a compare-and-set: its record is replaced only if it is still the one
that was read, and the new one gets a new ``seq``. So whoever follows the store sees every change.
The old version is kept beside it, in the same step: a change that did not happen leaves nothing.
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

MAX_VERSIONS = 100  # of a memory, before its oldest go

_ALL = 2**31  # as a limit

Edit = Callable[[MemoryItem], MemoryItem | None]
Heard = Callable[[Scope, Sequence[str]], None]
Beside = Callable[[MemoryItem, MemoryItem], Sequence[Record]]


class Shelf:
    """A store, seen as memories. ``heard`` is told of those that were changed."""

    def __init__(
        self, store: Store, *, max_versions: int = MAX_VERSIONS, heard: Heard | None = None
    ) -> None:
        self.store = store
        self._max_versions = max_versions
        self._heard = heard

    def now(self) -> float:
        """Return the store's time."""
        return self.store.clock()

    def read(self, user: str, records: Iterable[Record]) -> list[MemoryItem]:
        """Return the memories that records hold; those that cannot be read are reported."""
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
        """Return memories in the order they were said."""
        return self.read(scope.user, await self.store.select(scope, where))

    async def find(self, scope: Scope, memory_id: str) -> MemoryItem | None:
        """Return a memory; of several sessions' with one id, the newest."""
        if not isinstance(memory_id, str):
            raise TypeError(f"a memory id must be a str, got {type(memory_id).__name__}")
        records = await self.store.select(scope, Where(ids=frozenset({memory_id})))
        found = self.read(scope.user, records)
        return found[-1] if found else None

    async def swap(
        self, seen: MemoryItem, new: MemoryItem, beside: Sequence[Record] = (), *, keep: bool = True
    ) -> bool:
        """Put a memory in the place of the very version that was seen; tell whether it was there.

        The old version is kept, unless it is not to be; of very many the oldest go, also such as
        were left when that failed before. What is to stand ``beside`` the new one is added with it.
        """
        scope = Scope(seen.user_id, seen.session_id)
        new = change(new, version=seen.version + 1, updated_at=self.now())
        old = [_as_version(seen)] if keep else []
        records = [*old, record_of(new), *beside]
        swapped = bool(await self.store.replace(scope, at(seen), records, if_found=True))
        if swapped and self._heard is not None:
            self._heard(scope, [new.id])
        if swapped and keep and seen.version > self._max_versions:
            await self.store.delete(scope, self._too_old(seen.id))
        return swapped

    def _too_old(self, memory_id: str) -> Where:
        """Return the choice of all old versions but the newest; they stand in their order."""
        return change(_versions_of(memory_id), skip=self._max_versions, limit=_ALL)

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
        """Change a memory by a function of what it is, again if somebody else was quicker.

        With ``version``, only from that one. An edit that returns ``None`` leaves it as it is.
        ``beside`` tells, for what it was and will be, what else is to be added in the same step.
        What only counts need not ``keep`` what it was.
        """
        while True:
            seen = await self._present(scope, memory_id)
            if version is not None and seen.version != version:
                raise VersionConflict(
                    f"memory {memory_id!r} is at version {seen.version}, not at {version}; "
                    "read it again and decide"
                )
            new = edit(seen)
            if new is None:
                return seen
            others = () if beside is None else beside(seen, new)
            if await self.swap(seen, new, others, keep=keep):
                changed = await self.find(Scope(scope.user, seen.session_id), memory_id)
                return changed if changed is not None else new  # somebody has deleted it since

    async def amend(
        self,
        scope: Scope,
        memory_id: str,
        edit: Edit,
        *,
        seen: MemoryItem | None = None,
        keep: bool = True,
    ) -> None:
        """Change a memory like ``edit``; one that was ``seen`` is not read if it is still so."""
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
        """Return the old versions of a memory that are kept, the oldest first."""
        scope = Scope(memory.user_id, memory.session_id)
        where = change(_versions_of(memory.id), limit=self._max_versions)
        records = await self.store.select(scope, where)
        old = self.read(memory.user_id, map(_as_it_was, records))
        return sorted((each for each in old if each.version < memory.version), key=_version)

    async def remove(self, scope: Scope, memory_ids: Sequence[str]) -> tuple[list[str], int]:
        """Delete memories; return the ids that were there, and how many old versions went too.

        Those go first: should it break off, whoever repeats it finds the memories still. And once
        more afterwards, for what somebody has changed meanwhile.
        """
        versions = await self.forget_versions(scope, memory_ids)
        removed = await self.store.delete(scope, Where(ids=frozenset(memory_ids)))
        return removed, versions + await self.forget_versions(scope, memory_ids)

    async def forget_versions(self, scope: Scope, memory_ids: Sequence[str]) -> int:
        """Delete all old versions of memories of a session."""
        removed = 0
        for start in range(0, len(memory_ids), MAX_MARKS):
            marks = frozenset(map(_mark, memory_ids[start : start + MAX_MARKS]))
            removed += len(await self.store.delete(scope, Where(kind=VERSION, marks=marks)))
        return removed


def at(memory: MemoryItem) -> Where:
    """Return the choice of this very version of a memory."""
    return version_at(memory.id, memory.seq)


def version_at(record_id: str, seq: int) -> Where:
    """Return the choice of the record of this id, if it is still the one of this seq."""
    return Where(ids=frozenset({record_id}), after=seq - 1, before=seq + 1)


def _versions_of(memory_id: str) -> Where:
    return Where(kind=VERSION, marks=frozenset({_mark(memory_id)}), newest=True)


def _as_version(memory: MemoryItem) -> Record:
    """Return a memory as a record of what it was."""
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


def _as_it_was(record: Record) -> Record:
    """Return the record that ``_as_version`` was given, as far as it can be told."""
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
    """Return the mark of a memory's old versions: a memory's id may be as long as a mark's."""
    return f"{RESERVED_PREFIX}was:{blake2b(memory_id.encode(), digest_size=16).hexdigest()}"


def _version(memory: MemoryItem) -> int:
    return memory.version
