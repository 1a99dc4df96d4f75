"""The worker: derives in the background, one job of a user at a time, and again what failed.

Nothing of it need survive: every job stands in the store until it is done. Whoever does a job
while another process does the same one loses nothing but its effort. Jobs of derivers that are not
among the worker's stay as they are, for the service that has them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace as change

from ...errors import ModelFailed, StoreError
from ...loops import PerLoop, finish
from ...record import Record, Scope, Where
from ..search import Searcher
from ..values.envelope import record_of
from ..values.kinds import OUTBOX
from ..values.memory import RAW, MemoryItem
from ..values.results import Status
from ..writing.erasing import Eraser
from ..writing.repository import Edit, MemoryRepository
from ..writing.secrecy import purged, without_secrets
from .carrying import Carrier, Judge
from .choosing import concerned
from .contract import BadDecision, Deriver, Job
from .jobs import (
    MOST_ERROR,
    Jobs,
    Meant,
    Stored,
    Task,
    digest,
    is_for,
    known_as,
    numbered,
    without,
)
from .knowing import KnownMemories

logger = logging.getLogger(__name__)

FIRST_PAUSE = 1.0  # seconds before a failed job is tried again; each time twice as long
LONGEST_PAUSE = 300.0
ROUNDS = 10  # of deciding, while what is thought about is being changed
CANCEL_AGAIN = 0.5  # seconds
AT_ONCE = 8  # users whose left jobs are done at the same time
NOTE_GRACE = 60.0  # seconds after which a note whose job is not there means nothing

T = TypeVar("T")


class Outcome(Enum):
    """What came of trying a job."""

    DONE = "done"  # by whomever
    FAILED = "failed"  # and given up
    LEFT = "left"  # to be tried again


class Recorded(NamedTuple):
    """The ids that are new, and for each deriver they concern, by its name, how far it is."""

    added: list[str]
    jobs: Sequence[tuple[str, Outcome]]


class Handed(NamedTuple):
    """A job and its memories, by whoever has just stored them."""

    job: Stored
    memories: Sequence[MemoryItem]


Attempted = asyncio.Future[Outcome]
Begun = Sequence[tuple[Deriver, Attempted]]  # jobs in the background, with whose they are
Afterwards = Callable[[Scope], Awaitable[None]]  # what is to be done when a job of a session is


class Worker:
    """Does the jobs of a service."""

    def __init__(
        self,
        repository: MemoryRepository,
        searcher: Searcher,
        eraser: Eraser,
        derivers: Sequence[Deriver],
        *,
        judge: Judge,
        max_attempts: int,
        afterwards: Afterwards,
    ) -> None:
        self._derivers = {known_as(each.name): each for each in derivers}
        self.jobs = Jobs(repository.store)
        self._repository = repository
        self._searcher = searcher
        self._eraser = eraser
        self._judge = judge
        self._max_attempts = max_attempts
        self._afterwards = afterwards
        self._turns = PerLoop[WeakValueDictionary[str, asyncio.Lock]](WeakValueDictionary)
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopped = True

    def start(self) -> None:
        """Begin to work, first on what a process that is gone has left."""
        self._is_stopped = False
        self._run(self._heal())

    async def stop(self) -> None:
        """Leave off. What was not done stands in the store."""
        self._is_stopped = True
        while self._running:  # a driver may swallow a cancellation: then it is told again
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running, timeout=CANCEL_AGAIN)

    async def record(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> Recorded:
        """Store raw memories with the jobs to derive from them, and begin with these."""
        added, begun = await finish(self._recorded(scope, memories, details))
        await self._wait_for_quick(begun)
        return Recorded(added, [(each.name, _outcome(attempted)) for each, attempted in begun])

    async def edit(
        self, scope: Scope, memory_id: str, edit: Edit, *, version: int | None = None
    ) -> MemoryItem:
        """Change a memory; if it says something else then, derive anew from what it says."""
        new, begun = await finish(self._edited(scope, memory_id, edit, version))
        await self._wait_for_quick(begun)
        return new

    async def is_waited_for(self, scope: Scope) -> bool:
        """Tell whether something of a session is still to be thought about, by whomever."""
        return any(not each.task.is_given_up for each in await self.jobs.of(scope))

    async def status(self, user: str) -> Status:
        """Return how far derivation is for a user."""
        stored = await self._own(user)
        failed = [each for each in stored if each.task.is_given_up]
        errors = {each.id: each.task.error or "" for each in stored if each.task.error}
        return Status(len(stored) - len(failed), len(failed), errors)

    async def retry(self, user: str) -> int:
        """Begin again with jobs that were given up; return how many."""
        failed = [each for each in await self._own(user) if each.task.is_given_up]
        for job in failed:
            if await self.jobs.revise(job, change(job.task, attempts=0, is_given_up=False)):
                begun = self._begin(job.scope, job.id)
                await self._wait_for_quick([(self._deriver_for(job), begun)])
        return len(failed)

    async def settle(self, user: str) -> None:
        """Do now everything that waits for a user, each thing once."""
        for job in await self._own(user):
            if not job.task.is_given_up:
                await self._do(job.scope, job.id)

    # -- beginning ---------------------------------------------------------------------------------

    async def _recorded(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> tuple[list[str], Begun]:
        records = [record_of(each) for each in memories]
        names = [known_as(each.name) for each in self._concerned(memories, details)]
        if not names:
            return await self._repository.store.append(scope, records), []
        written = await self.jobs.add(scope, records, details, names)
        handed = {each.id: Handed(each, memories) for each in written.jobs}
        return written.added, self._begun(scope, written.ids, handed)

    def _concerned(
        self, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> list[Deriver]:
        return concerned(tuple(self._derivers.values()), memories, details)

    async def _edited(
        self, scope: Scope, memory_id: str, edit: Edit, version: int | None
    ) -> tuple[MemoryItem, Begun]:
        ids = await self.jobs.announce(scope.user, self._derivers)

        def beside(seen: MemoryItem, new: MemoryItem) -> list[Record]:
            if new.kind != RAW or new.text == seen.text:
                return []
            meant = {new.id: Meant(seen.version + 1, digest(new.text))}
            return [
                self.jobs.record(job_id, Task(meant, deriver, is_anew=True))
                for job_id, deriver in ids.items()
            ]

        try:
            new = await self._repository.edit(
                scope, memory_id, edit, version=version, beside=beside
            )
        except BaseException:
            await self.jobs.forget_notes(scope.user, ids)
            raise
        return new, self._begun(Scope(scope.user, new.session_id), ids)

    def _begun(
        self, scope: Scope, ids: Mapping[str, str], handed: Mapping[str, Handed] | None = None
    ) -> Begun:
        """Begin with jobs; each has a deriver's name beside its id."""
        known: Mapping[str, Handed] = {} if handed is None else handed
        return [
            (self._derivers[name], self._begin(scope, job_id, known.get(job_id)))
            for job_id, name in ids.items()
        ]

    def _begin(self, scope: Scope, job_id: str, handed: Handed | None = None) -> Attempted:
        """Do a job in the background; what is returned is done when it was tried once."""
        attempted: Attempted = asyncio.get_running_loop().create_future()
        if self._is_stopped:  # it stands in the store, for whoever starts next
            attempted.set_result(Outcome.LEFT)
        else:
            self._run(self._do_until_done(scope, job_id, attempted, handed))
        return attempted

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _wait_for_quick(self, begun: Begun) -> None:
        for deriver, attempted in begun:
            if deriver.is_quick:
                await attempted  # whoever gives up waiting leaves the work going on

    def _deriver_of(self, stored: Stored) -> Deriver | None:
        """Return whose of ours a job is, if it is."""
        for deriver in self._derivers.values():
            if is_for(stored.task, deriver):
                return deriver
        return None

    async def _own(self, user: str) -> list[Stored]:
        jobs = await self.jobs.of(Scope(user))
        return [each for each in jobs if self._deriver_of(each) is not None]

    async def _heal(self) -> None:
        """Take up what a process that is gone has left, some users at a time."""
        users = asyncio.Semaphore(AT_ONCE)

        async def heal_one(user: str) -> None:
            async with users:
                await self._until_reached(lambda: self._heal_user(user))

        async with asyncio.TaskGroup() as group:
            for user in await self._until_reached(self.jobs.users):
                group.create_task(heal_one(user))

    async def _until_reached(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something with the store, again while it cannot be reached."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await work()
            except StoreError as error:
                logger.warning("what was left to derive waits for the store: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _heal_user(self, user: str) -> None:
        stored = await self.jobs.of(Scope(user))
        for job in stored:
            if job.task.is_given_up or self._deriver_of(job) is None:
                continue
            if await self._do(job.scope, job.id) is Outcome.LEFT:
                self._begin(job.scope, job.id)
        await self._forget_empty_notes(user, {each.id for each in stored})

    async def _do_until_done(
        self, scope: Scope, job_id: str, attempted: Attempted, handed: Handed | None
    ) -> None:
        pause, outcome = FIRST_PAUSE, Outcome.LEFT
        try:
            while (outcome := await self._do(scope, job_id, handed)) is Outcome.LEFT:
                handed = None
                if not attempted.done():
                    attempted.set_result(outcome)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            if not attempted.done():
                attempted.set_result(outcome)

    # -- doing -------------------------------------------------------------------------------------

    async def _do(self, scope: Scope, job_id: str, handed: Handed | None = None) -> Outcome:
        """Do a job; tell what came of it. Who has to wait does not go by what was handed over."""
        turn = self._turn(scope.user)
        if turn.locked():
            handed = None
        async with turn:
            try:
                return await self._step(scope, job_id, handed)
            except StoreError as error:
                logger.warning("job %s waits for the store: %s", job_id, error)
                return Outcome.LEFT

    async def _step(self, scope: Scope, job_id: str, handed: Handed | None) -> Outcome:
        stored = await self.jobs.find(scope, job_id) if handed is None else handed.job
        if stored is None:
            await self.jobs.forget_notes(scope.user, [job_id])
            return Outcome.DONE
        if stored.task.is_given_up:
            return Outcome.FAILED
        try:
            if await self._go_on_with(stored, () if handed is None else handed.memories):
                return Outcome.DONE
        except StoreError:
            raise
        except asyncio.CancelledError as error:
            if self._is_stopped:
                raise
            await self._note_failure(stored, error)  # somebody's inside the deriver, not ours
        except Exception as error:  # whatever a deriver does, what was said is safe
            await self._note_failure(stored, error)
        left = await self.jobs.find(scope, job_id)
        if left is None:
            return Outcome.DONE
        return Outcome.FAILED if left.task.is_given_up else Outcome.LEFT

    async def _go_on_with(self, stored: Stored, handed: Sequence[MemoryItem]) -> bool:
        """Decide; carry out what was decided, once it is sure to be about the same words.

        Tells whether it is done. ``handed`` are its memories if they were stored this very moment,
        which need not be read; a deriver that takes its time finds out whether they are still so.
        """
        known = KnownMemories(stored.scope.user, self._repository, self._searcher)
        for _ in range(ROUNDS):
            there = handed if handed else await self._meant(stored)
            changed = set(stored.task.memories) - {each.id for each in there}
            if changed:  # or deleted; whoever changed them has made a job of it
                stored = await self._revised(stored, without(stored.task, changed))
            elif stored.task.decisions is None:
                meant, is_quick = stored.task.memories, self._deriver_for(stored).is_quick
                stored = await self._decided(stored, there, known)
                handed = handed if is_quick and stored.task.memories == meant else ()
            else:
                carrier = self._carrier(stored, known.seen, handed)
                return await self._carry_out(stored, carrier, stored.task.decisions)
        return False

    async def _decided(
        self, stored: Stored, memories: Sequence[MemoryItem], known: KnownMemories
    ) -> Stored:
        """Have the deriver decide, and write that down before any of it is done.

        It sees no secrets; should it make one up, that is not written down either.
        """
        deriver = self._deriver_for(stored)
        if stored.task.is_anew:
            await self._forget_outdated(stored)
        job = Job(
            id=stored.id,
            user_id=stored.scope.user,
            session_id=stored.scope.session or "",
            memories=without_secrets(memories),
            details=stored.task.details,
            now=self._repository.now(),
        )
        is_chosen = not stored.task.is_anew or deriver in self._concerned(memories, job.details)
        decisions = await deriver.derive(job, known) if memories and is_chosen else []
        plan = purged(numbered(stored, decisions))
        self._carrier(stored).check(plan)
        return await self._revised(stored, change(stored.task, decisions=plan))

    async def _forget_outdated(self, stored: Stored) -> None:
        """Delete what comes from earlier words; who made it and is not here has a job of it."""
        versions = {key: meant.version for key, meant in stored.task.memories.items()}
        outdated = await self._eraser.outdated(stored.scope, versions)
        authors = {each.origin.author for each in outdated if each.origin is not None}
        makers = {known_as(author) for author in authors if author is not None}
        await self.jobs.hand_on(stored, makers - self._derivers.keys())
        await self._eraser.forget(stored.scope.user, outdated)

    async def _revised(self, stored: Stored, task: Task) -> Stored:
        """Write a task down and return it; as somebody else has left it, if they were quicker."""
        there = await self.jobs.revise(stored, task)
        if there is None:
            there = await self.jobs.find(stored.scope, stored.id)
        return there if there is not None else change(stored, task=_NOTHING_LEFT)

    def _carrier(
        self,
        stored: Stored,
        seen: Mapping[str, MemoryItem] | None = None,
        handed: Sequence[MemoryItem] = (),
    ) -> Carrier:
        deriver = self._deriver_for(stored)
        return Carrier(self._repository, stored, deriver, self._judge, seen=seen, handed=handed)

    def _deriver_for(self, stored: Stored) -> Deriver:
        deriver = self._deriver_of(stored)
        assert deriver is not None  # others' jobs are not begun
        return deriver

    async def _carry_out(
        self, stored: Stored, carrier: Carrier, plan: Sequence[Mapping[str, Any]]
    ) -> bool:
        records = await carrier.carry_out(plan)
        is_done = await self.jobs.finish(stored, records)
        if is_done:
            self._searcher.expect(stored.scope, [each.id for each in records])
            await self._eraser.drop_orphans(stored.scope, records, _is_meant(stored))
            self._repository.store.events.emit(
                "memories_derived", scope=stored.scope, count=len(records)
            )
        else:  # somebody has taken the job away, or done it
            await self._eraser.undo(stored.scope, records)
        await self._afterwards(stored.scope)
        return is_done

    async def _meant(self, stored: Stored) -> list[MemoryItem]:
        """Return the memories of a job that still say what they said."""
        where = Where(ids=frozenset(stored.task.memories), kind=RAW)
        records = await self._repository.store.select(stored.scope, where)
        return self._repository.read(stored.scope.user, filter(_is_meant(stored), records))

    async def _note_failure(self, stored: Stored, error: BaseException) -> None:
        """Count a failure. Few errors are quoted: others may hold what a user said."""
        stored = await self._present(stored)
        attempts = stored.task.attempts + 1
        is_given_up = attempts >= self._max_attempts
        name = type(error).__name__
        said = f"{name}: {error}" if isinstance(error, ModelFailed | BadDecision) else name
        await self.jobs.revise(
            stored,
            change(
                stored.task, attempts=attempts, error=said[:MOST_ERROR], is_given_up=is_given_up
            ),
        )
        level = logging.ERROR if is_given_up else logging.WARNING
        logger.log(level, "job %s failed, attempt %d: %s", stored.id, attempts, name)
        self._repository.store.events.emit(
            "derivation_failed", scope=stored.scope, id=stored.id, attempts=attempts, error=name
        )

    async def _present(self, stored: Stored) -> Stored:
        there = await self.jobs.find(stored.scope, stored.id)
        return stored if there is None else there

    async def _forget_empty_notes(self, user: str, known: set[str]) -> None:
        """Remove notes whose jobs are done; a fresh one may belong to a job about to be written."""
        notes = await self._repository.store.select(Scope(OUTBOX, user))
        settled = self._repository.now() - NOTE_GRACE
        for note in notes:
            if note.id not in known and note.created_at < settled:
                await self.jobs.forget_notes(user, [note.id])

    def _turn(self, user: str) -> asyncio.Lock:
        """Return the lock under which a user's jobs are done, so that each knows the one before."""
        return self._turns.get().setdefault(user, asyncio.Lock())


def _outcome(attempted: Attempted) -> Outcome:
    return attempted.result() if attempted.done() else Outcome.LEFT


_NOTHING_LEFT = Task({}, decisions=[])


def _is_meant(stored: Stored) -> Callable[[Record], bool]:
    """Return the test that a record is as the job means it; what is not of the job always is."""
    session, own = stored.scope.session, stored.task.memories

    def test(record: Record) -> bool:
        if record.kind != RAW or record.id not in own:
            return True
        return record.session == session and own[record.id].digest == digest(record.text)

    return test
