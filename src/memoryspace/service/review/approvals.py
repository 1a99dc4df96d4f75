"""``Approvals``: what waits for approval, and the decisions about it.

A decision is one atomic write, a compare-and-set of the one memory it is about, so of several
concurrent decisions one wins. Beside an approval, or the undoing of one, the same write stores a
job for what follows: what the memory supersedes, and what is derived from it. The job is done in
the same call, or at the next start or decision if the process dies in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Protocol

from msgspec.structs import replace as change

from ...errors import InvalidInput, UnknownMemory
from ...loops import finish
from ...record import RESERVED_PREFIX, Record, Scope, Where
from ..deriving.jobs import Jobs, JobState, StoredJob
from ..values.envelope import record_of, sources_of
from ..values.kinds import DECIDED, INSIGHT, RETIRES, SUPERSEDED
from ..values.memory import QUARANTINED, WAITING, MemoryItem
from ..values.review import Decided, Proposal, Proposals
from ..writing.erasing import Eraser, is_source, own_sources
from ..writing.repository import MemoryRepository, at, version_at
from ..writing.superseding import holding
from .lineage import Lineage, links_in, settle
from .proposing import relinked
from .rejections import claims_of, is_rejection_of, record_in, rejection_of, rejections_of

REVIEWER = RESERVED_PREFIX + "review"  # owns the jobs that follow a decision

_ABOUT, _AFFECTED = "memory", "affected"  # in the details of such a job


class _Outcome(Enum):
    DONE = "done"
    ALREADY = "already"
    OTHERWISE = "otherwise"


class Renewer(Protocol):
    """Replaces a job by jobs that sum up memories again, and runs them."""

    async def renew(self, user: str, stored: StoredJob, memory_ids: Iterable[str]) -> bool:
        """Return whether the job still existed."""


_Decision = Callable[[str, str, str], Awaitable[_Outcome]]  # user, memory id, job id


class Approvals:
    """Lists, approves and rejects what waits in a store, and undoes decisions."""

    def __init__(
        self, repository: MemoryRepository, eraser: Eraser, renewer: Renewer | None
    ) -> None:
        self._repository = repository
        self._store = repository.store
        self._eraser = eraser
        self._renewer = renewer
        self._jobs = Jobs(repository.store)

    # -- reading -----------------------------------------------------------------------------------

    async def count(self, user: str) -> int:
        """Return how many memories wait."""
        return await self._store.count(Scope(user), _waiting())

    async def page(self, user: str, after: int | None, limit: int) -> Proposals:
        """Return what waits after a seq, oldest first. What is in quarantine is left out."""
        where = change(_waiting(), after=after, limit=limit + 1)
        records = await self._store.select(Scope(user), where)
        lineage = await Lineage.read(self._repository, user) if records else Lineage(())
        shown = records[:limit]
        memories = self._repository.read(user, shown)
        ids = {each for record in shown for each in sources_of(record)}
        ids |= {each for memory in memories for each in lineage.retired(memory.id)}
        there = await self._store.select(Scope(user), Where(ids=frozenset(ids))) if ids else []
        cursor = str(shown[-1].seq) if len(records) > limit else None
        return Proposals(
            tuple(self._proposal(memory, shown, there, lineage) for memory in memories), cursor
        )

    def _proposal(
        self,
        memory: MemoryItem,
        shown: Sequence[Record],
        there: Sequence[Record],
        lineage: Lineage,
    ) -> Proposal:
        [record] = [each for each in shown if each.seq == memory.seq]
        retired, successor = lineage.retired(memory.id), lineage.successor(memory)
        read = partial(self._repository.read, memory.user_id)
        return Proposal(
            memory,
            tuple(read(each for each in there if _is_from(record, each))),
            tuple(filter(_holds, read(each for each in there if each.id in retired))),
            None if successor is None else successor[0],
        )

    # -- deciding ----------------------------------------------------------------------------------

    async def approve(self, user: str, memory_ids: Sequence[str]) -> Decided:
        """Approve memories: they hold from now on, and supersede what they say has ended."""
        return await self._decide(user, memory_ids, self._approve)

    async def reject(self, user: str, memory_ids: Sequence[str]) -> Decided:
        """Reject memories: they are not derived again from the same messages."""
        return await self._decide(user, memory_ids, self._reject)

    async def undo(self, user: str, memory_ids: Sequence[str]) -> Decided:
        """Undo the last decision about memories: they wait again."""
        return await self._decide(user, memory_ids, self._undo)

    async def resume(self, user: str) -> None:
        """Do what follows from decisions that were interrupted."""
        jobs = [each for each in await self._jobs.of(Scope(user)) if _is_own(each)]
        if not jobs:
            return
        about = [str(each.state.details.get(_ABOUT)) for each in jobs]
        affected = [one for each in jobs for one in each.state.details.get(_AFFECTED, ())]
        settled = await settle(self._repository, user, about, map(str, affected))
        await self._withdraw(user, settled)
        ids = [each.id for each in settled]
        for job in jobs[1:]:
            await self._jobs.finish(job, [])
        if self._renewer is None:
            await self._jobs.finish(jobs[0], [])
        else:
            await self._renewer.renew(user, jobs[0], ids)

    async def _decide(self, user: str, memory_ids: Sequence[str], decide: _Decision) -> Decided:
        ids = list(dict.fromkeys(memory_ids))
        await self._check_known(user, ids)
        return await finish(self._decide_each(user, ids, decide))

    async def _decide_each(self, user: str, ids: Sequence[str], decide: _Decision) -> Decided:
        outcomes: dict[_Outcome, list[str]] = {each: [] for each in _Outcome}
        notes = list(await self._jobs.announce(user, [REVIEWER] * len(ids)))
        try:
            for memory_id, job_id in zip(ids, notes, strict=True):
                outcomes[await decide(user, memory_id, job_id)].append(memory_id)
        finally:
            await self.resume(user)
        await self._jobs.forget_notes(user, notes)
        return Decided(*(tuple(outcomes[each]) for each in _Outcome))

    async def _check_known(self, user: str, ids: Sequence[str]) -> None:
        for memory_id in ids:
            memory = await self._repository.find(Scope(user), memory_id)
            is_gone = memory is None and not await rejections_of(self._store, user, memory_id)
            if is_gone:
                raise UnknownMemory(f"user {user!r} has no memory {memory_id!r} to decide about")
            if memory is not None and not memory.is_waiting and DECIDED not in memory.details:
                raise InvalidInput(
                    f"memory {memory_id!r} was never up for review; delete() or update() it"
                )

    async def _approve(self, user: str, memory_id: str, job_id: str) -> _Outcome:
        while True:
            memory = await self._repository.find(Scope(user), memory_id)
            if memory is None:
                return _Outcome.OTHERWISE
            if not memory.is_waiting:
                return _Outcome.ALREADY
            lineage = await Lineage.read(self._repository, user)
            details = {**memory.details, DECIDED: self._repository.now()}
            new = change(memory, marks=memory.marks - {WAITING}, details=details)
            placed = lineage.placed(new)
            new = new if placed is None else placed
            job = self._job(job_id, memory, lineage)
            if await self._repository.swap(memory, new, [job]):
                return self._told(memory, "approved")

    async def _reject(self, user: str, memory_id: str, job_id: str) -> _Outcome:
        while True:
            memory = await self._repository.find(Scope(user), memory_id)
            if memory is None:
                there = await rejections_of(self._store, user, memory_id)
                return _Outcome.ALREADY if there else _Outcome.OTHERWISE
            if not memory.is_waiting:
                return _Outcome.OTHERWISE
            rejection = rejection_of(memory, self._repository.now(), is_kept=True)
            scope = Scope(user, memory.session_id)
            await self._repository.forget_versions(scope, [memory_id])
            kept = [] if rejection is None else [rejection]
            if await self._replaced(scope, at(memory), kept):
                dependents = await self._eraser.derived_from(Scope(user), {memory_id})
                await self._eraser.forget(user, dependents)
                return self._told(memory, "rejected")

    async def _replaced(self, scope: Scope, where: Where, records: Sequence[Record]) -> bool:
        if not records:
            return bool(await self._store.delete(scope, where))
        return bool(await self._store.replace(scope, where, records, if_found=True))

    async def _undo(self, user: str, memory_id: str, job_id: str) -> _Outcome:
        while True:
            memory = await self._repository.find(Scope(user), memory_id)
            if memory is None:
                outcome = await self._restore(user, memory_id)
                if outcome is not None:
                    return outcome
                continue
            if memory.is_waiting:
                return _Outcome.ALREADY
            details = {key: value for key, value in memory.details.items() if key != DECIDED}
            new = change(memory, details=details)
            new = holding(new) if SUPERSEDED in memory.marks else new
            new = change(new, marks=new.marks | {WAITING})
            lineage = await Lineage.read(self._repository, user)
            job = self._job(job_id, memory, lineage)
            if await self._repository.swap(memory, new, [job]):
                return self._told(memory, "undone")

    async def _restore(self, user: str, memory_id: str) -> _Outcome | None:
        """Let a rejected memory wait again; ``None`` if it was changed meanwhile."""
        rejections = await rejections_of(self._store, user, memory_id)
        kept = [(each, record_in(each)) for each in rejections]
        found = [(each, record) for each, record in kept if record is not None]
        if not found:
            return _Outcome.OTHERWISE
        rejection, record = found[-1]
        scope = Scope(user, rejection.session)
        [memory] = self._repository.read(user, [change(record, session=rejection.session)])
        out = frozenset({QUARANTINED})
        others = await self._repository.select(Scope(user), Where(kind=memory.kind, without=out))
        restored = record_of(relinked(memory, others))
        if not await self._replaced(scope, version_at(rejection.id, rejection.seq), [restored]):
            return None
        return self._told(memory, "undone")

    def _job(self, job_id: str, memory: MemoryItem, lineage: Lineage) -> Record:
        affected = sorted({memory.id, *_retires(memory), *lineage.retired(memory.id)})
        details = {_ABOUT: memory.id, _AFFECTED: affected}
        return self._jobs.record(job_id, JobState({}, REVIEWER, details))

    def _told(self, memory: MemoryItem, decision: str) -> _Outcome:
        scope = Scope(memory.user_id, memory.session_id)
        self._store.events.emit("memory_reviewed", scope=scope, id=memory.id, decision=decision)
        return _Outcome.DONE

    # -- what follows ------------------------------------------------------------------------------

    async def _withdraw(self, user: str, settled: Sequence[MemoryItem]) -> None:
        """Delete insights into what no longer holds; what else stands on what waits, waits too."""
        out = {each.id for each in settled if not _holds(each)}
        waiting = {each.id for each in settled if each.is_waiting}
        if not out:
            return
        dependents = await self._eraser.derived_from(Scope(user), out)
        await self._eraser.forget(user, [each for each in dependents if each.kind == INSIGHT])
        for each in dependents:
            if each.kind != INSIGHT and not waiting.isdisjoint(sources_of(each)):
                await self._hold_back(Scope(user, each.session), each)

    async def _hold_back(self, scope: Scope, record: Record) -> None:
        for memory in self._repository.read(scope.user, [record]):
            if not memory.is_waiting:
                await self._repository.swap(memory, change(memory, marks=memory.marks | {WAITING}))

    async def corrected(self, user: str, memory_id: str) -> None:
        """Delete insights into a memory that was corrected, and derive them again.

        What it says now is no longer rejected, if it was before.
        """
        [job_id] = await self._jobs.announce(user, [REVIEWER])
        memory = await self._repository.find(Scope(user), memory_id)
        if memory is None:
            await self._jobs.forget_notes(user, [job_id])
            return
        await self._admit(memory)
        dependents = await self._eraser.derived_from(Scope(user), {memory_id})
        await self._eraser.forget(user, [each for each in dependents if each.kind == INSIGHT])
        state = JobState({}, REVIEWER, {_ABOUT: memory_id, _AFFECTED: [memory_id]})
        record = self._jobs.record(job_id, state)
        await self._store.append(Scope(user, memory.session_id), [record])
        await self.resume(user)

    async def _admit(self, memory: MemoryItem) -> None:
        """Delete the rejections of what a memory says."""
        claims = claims_of(memory.kind, memory.text, memory.details)
        for each in await rejections_of(self._store, memory.user_id, memory.id):
            if is_rejection_of(each, claims):
                scope = Scope(memory.user_id, each.session)
                await self._store.delete(scope, version_at(each.id, each.seq))


def _waiting() -> Where:
    return Where(marks=frozenset({WAITING}), without=frozenset({QUARANTINED}))


def _retires(memory: MemoryItem) -> set[str]:
    return set(links_in(memory.details, RETIRES))


def _holds(memory: MemoryItem) -> bool:
    return not memory.is_waiting and SUPERSEDED not in memory.marks


def _is_from(record: Record, source: Record) -> bool:
    own = own_sources(record)
    return source.id in sources_of(record) and is_source(source, record.session, own)


def _is_own(stored: StoredJob) -> bool:
    return stored.state.deriver == REVIEWER
