"""``MemoryWriter``: adds messages to a store, changes memories, and enforces session limits.

With derivers, each write also stores the jobs that derive memories from it. The receipt says what
happened to every message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...record import Origin, Record, Scope, Where
from ..deriving.contract import Deriver
from ..deriving.worker import JobOutcome, Recorded, Worker
from ..review.rejections import REBUILT, all_sources, rejection_of
from ..search import Searcher
from ..settings import ServiceSettings
from ..values.envelope import record_of
from ..values.memory import RAW, MemoryItem, Said
from ..values.receipt import Receipt
from .admission import SUSPICION, Admission, own_marks, remarked
from .erasing import Eraser
from .repository import MemoryRepository
from .secrecy import purged


class MemoryWriter:
    """Writes memories of a service. ``worker`` runs its derivers; it is ``None`` without any."""

    def __init__(
        self,
        repository: MemoryRepository,
        searcher: Searcher,
        eraser: Eraser,
        settings: ServiceSettings,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        self._repository = repository
        self._store = repository.store
        self._searcher = searcher
        self._settings = settings
        self._admission = Admission(settings)
        self.worker = self._worker_for(eraser, derivers) if derivers else None

    async def add(
        self,
        scope: Scope,
        messages: Sequence[Said] | Said,
        details: Mapping[str, Any],
        marks: frozenset[str],
    ) -> Receipt:
        """Store messages in a session, with details for the derivers."""
        given = await self._admission.admit(scope, messages, self._repository.now(), marks)
        is_marked = any(each.marks for each in given)
        new = await self._new_among(scope, given) if is_marked else given
        recorded = await self._recorded(scope, new, details) if new else Recorded([], [])
        if new:
            self._searcher.expect(scope, recorded.added)
            await self.keep_newest(scope)
        return receipt_of(given, recorded, is_durable=self._store.is_durable)

    async def update(
        self,
        scope: Scope,
        memory_id: str,
        *,
        value: Said | None,
        metadata: Mapping[str, Any] | None,
        importance: float | None,
        marks: str | Sequence[str] | None,
        version: int | None,
    ) -> MemoryItem:
        """Change a memory; what is ``None`` stays. A new value is derived from again."""

        def edit(memory: MemoryItem) -> MemoryItem:
            edited = self._admission.edited(memory, value, metadata)
            if marks is not None:
                edited = remarked(edited, own_marks(marks))
            edited = _corrected(memory, edited)
            return edited if importance is None else change(edited, importance=importance)

        if self.worker is None or value is None:
            return await self._repository.edit(
                scope, memory_id, edit, version=version, beside=self._beside
            )
        return await self.worker.edit(scope, memory_id, edit, version=version, beside=self._beside)

    def _beside(self, seen: MemoryItem, new: MemoryItem) -> list[Record]:
        """Return the rejection of what a derived memory said before it was corrected."""
        if seen.kind in REBUILT or seen.text == new.text:
            return []
        rejection = rejection_of(seen, self._repository.now(), is_kept=False)
        return [] if rejection is None else [rejection]

    async def keep_newest(self, scope: Scope) -> None:
        """Delete the oldest messages beyond the session's limit, once they are derived from.

        The deletion names the last seq to delete, not a number of messages, so several processes
        may do it at once. Old versions are deleted first: if this is interrupted, the memories are
        still there and the next call deletes them.
        """
        most = self._settings.max_messages_per_session
        if most is None:
            return
        beyond = Where(kind=RAW, limit=1, newest=True, skip=most)
        last = await self._store.select(scope, beyond)
        if not last or (self.worker is not None and await self.worker.is_waited_for(scope)):
            return
        too_old = Where(kind=RAW, before=last[0].seq + 1)
        found = [each.id for each in await self._store.select(scope, too_old)]
        await self._repository.forget_versions(scope, found)
        deleted = await self._store.delete(scope, too_old)
        self._store.events.emit("memories_evicted", scope=scope, ids=deleted)

    async def _recorded(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> Recorded:
        if self.worker is not None:
            return await self.worker.record(scope, memories, purged(details))
        records = [record_of(each) for each in memories]
        return Recorded(await self._store.append(scope, records), [])

    async def _new_among(self, scope: Scope, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return the memories whose ids are not in the session yet.

        A store adds the marks of a repeated record to the one it has. Without this check, adding a
        suspicious message under a known id would quarantine the memory of that id.
        """
        there = await self._store.select(scope, Where(ids=frozenset(each.id for each in memories)))
        known = {each.id for each in there}
        new = [each for each in memories if each.id not in known]
        held_back = [each.id for each in new if each.is_quarantined]
        if held_back:
            self._store.events.emit("memories_quarantined", scope=scope, ids=held_back)
        return new

    def _worker_for(self, eraser: Eraser, derivers: Sequence[Deriver]) -> Worker:
        return Worker(
            self._repository,
            self._searcher,
            eraser,
            derivers,
            judge=self._admission.judged,
            max_attempts=self._settings.max_attempts,
            afterwards=self.keep_newest,
            reviewed=self._settings.reviewed,
        )


def _corrected(memory: MemoryItem, edited: MemoryItem) -> MemoryItem:
    """Return a derived memory with another text as one whose value is that text.

    Its sources stay; what confirmed the old text is one of them.
    """
    if memory.kind in REBUILT or memory.text == edited.text:
        return edited
    details = dict(edited.details)
    if "value" in details:
        details |= {"value": edited.text, "confirmations": 0, "confirmed_by": []}
    author = None if memory.origin is None else memory.origin.author
    return change(edited, details=details, origin=Origin(author, all_sources(memory)))


def receipt_of(
    given: Sequence[MemoryItem], recorded: Recorded, *, is_durable: bool | None
) -> Receipt:
    """Return the receipt for memories that were given to be stored."""
    new = frozenset(recorded.added)
    held_back = [each for each in given if each.is_quarantined and each.id in new]
    jobs: dict[JobOutcome, list[str]] = {}
    for name, outcome in recorded.jobs:
        jobs.setdefault(outcome, []).append(name)
    return Receipt(
        recorded.added,
        ids=[each.id for each in given],
        held_back={each.id: str(each.details.get(SUSPICION, "")) for each in held_back},
        is_durable=is_durable,
        derived=jobs.get(JobOutcome.DONE, ()),
        pending=jobs.get(JobOutcome.LEFT, ()),
        failed=jobs.get(JobOutcome.FAILED, ()),
    )
