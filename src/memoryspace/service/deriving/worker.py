"""``Worker``: background derivation, one job per user at a time, with retries.

The worker keeps no state that must survive: every job stays in the store until it is done. If two
processes run the same job, one of them only wastes its effort. Jobs of other derivers are left for
the service that has them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace as change

from ...errors import ModelFailed, StoreError
from ...loops import PerLoop, finish
from ...record import Record, Scope, Where
from ...retrying import Attempts, Backoff
from ..search import Searcher
from ..values.envelope import record_of
from ..values.kinds import OUTBOX
from ..values.memory import RAW, WAITING, MemoryItem
from ..values.results import Status
from ..writing.erasing import Eraser
from ..writing.repository import Beside, Edit, MemoryRepository
from ..writing.secrecy import purged, without_secrets
from .contract import BadDecision, Decision, Deriver, Job, Renewing
from .derivers import concerned
from .execution import Judge, PlanExecutor
from .jobs import (
    MOST_ERROR,
    Jobs,
    JobState,
    SourceVersion,
    StoredJob,
    digest,
    is_for,
    numbered,
    owner_name,
    without_memories,
)
from .known import KnownMemories

logger = logging.getLogger(__name__)

_BACKOFF = Backoff(first=1.0, longest=300.0, jitter=False)  # between attempts at a job
ROUNDS = 10  # of deciding, while the memories of the job keep changing
CANCEL_AGAIN = 0.5  # seconds
AT_ONCE = 8  # users whose leftover jobs run concurrently
RENEWED = "memoryspace:renewed"  # in a job's details: the memories to sum up again
NOTE_GRACE = 60.0  # seconds after which a note without a job is stale

T = TypeVar("T")


class JobOutcome(Enum):
    """The result of one attempt at a job."""

    DONE = "done"  # by this or another process
    FAILED = "failed"  # and given up
    LEFT = "left"  # to be retried


class Recorded(NamedTuple):
    """The ids that are new, and the name and outcome of each deriver that applies."""

    added: list[str]
    jobs: Sequence[tuple[str, JobOutcome]]


class FreshJob(NamedTuple):
    """A job and its memories, just stored, so that they need not be read back."""

    job: StoredJob
    memories: Sequence[MemoryItem]


Attempted = asyncio.Future[JobOutcome]
StartedJobs = Sequence[tuple[Deriver, Attempted]]  # background jobs and their derivers
Resumed = Callable[[str], Awaitable[None]]
Afterwards = Callable[[Scope], Awaitable[None]]  # called after each job, with its session


class Worker:
    """Runs the derivation jobs of a service."""

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
        reviewed: frozenset[str] = frozenset(),
    ) -> None:
        self._reviewed = reviewed
        self.on_resume: Resumed | None = None  # called for each user that may have jobs, at start
        self._derivers = {owner_name(each.name): each for each in derivers}
        self.jobs = Jobs(repository.store)
        self._repository = repository
        self._searcher = searcher
        self._eraser = eraser
        self._judge = judge
        self._max_attempts = max_attempts
        self._afterwards = afterwards
        self._user_locks = PerLoop[WeakValueDictionary[str, asyncio.Lock]](WeakValueDictionary)
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopped = True

    def start(self) -> None:
        """Start, beginning with jobs left by earlier processes."""
        self._is_stopped = False
        self._run(self._resume())

    async def stop(self) -> None:
        """Cancel running jobs. Unfinished jobs stay in the store."""
        self._is_stopped = True
        while self._running:  # a driver may swallow a cancellation, so cancel again
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running, timeout=CANCEL_AGAIN)

    async def record(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> Recorded:
        """Store raw memories with their jobs and start the jobs."""
        added, started = await finish(self._recorded(scope, memories, details))
        await self._wait_for_quick(started)
        return Recorded(added, [(each.name, _outcome(attempted)) for each, attempted in started])

    async def edit(
        self,
        scope: Scope,
        memory_id: str,
        edit: Edit,
        *,
        version: int | None = None,
        beside: Beside | None = None,
    ) -> MemoryItem:
        """Edit a memory; if its text changes, derive from it again."""
        new, started = await finish(self._edited(scope, memory_id, edit, version, beside))
        await self._wait_for_quick(started)
        return new

    async def renew(self, user: str, stored: StoredJob, memory_ids: Iterable[str]) -> bool:
        """Replace a job by those of derivers that sum up these memories, and start them.

        Return whether the job still existed.
        """
        names = [name for name, each in self._derivers.items() if isinstance(each, Renewing)]
        ids = await self.jobs.announce(user, names) if names else {}
        details = {RENEWED: sorted(memory_ids)}
        jobs = [self.jobs.record(each, JobState({}, name, details)) for each, name in ids.items()]
        done = await self.jobs.finish(stored, jobs)
        await self._wait_for_quick(self._start_all(stored.scope, ids))
        return done

    async def is_waited_for(self, scope: Scope) -> bool:
        """Return whether a session has pending jobs of any deriver."""
        return any(not each.state.is_given_up for each in await self.jobs.of(scope))

    async def status(self, user: str) -> Status:
        """Return the derivation status of a user."""
        stored = await self._own(user)
        failed = [each for each in stored if each.state.is_given_up]
        errors = {each.id: each.state.error or "" for each in stored if each.state.error}
        return Status(len(stored) - len(failed), len(failed), errors)

    async def retry(self, user: str) -> int:
        """Restart jobs that were given up; return how many."""
        failed = [each for each in await self._own(user) if each.state.is_given_up]
        for job in failed:
            if await self.jobs.revise(job, change(job.state, attempts=0, is_given_up=False)):
                started = self._start_job(job.scope, job.id)
                await self._wait_for_quick([(self._deriver_for(job), started)])
        return len(failed)

    async def settle(self, user: str) -> None:
        """Attempt every pending job of a user once, now."""
        for job in await self._own(user):
            if not job.state.is_given_up:
                await self._attempt_in_turn(job.scope, job.id)

    # -- starting jobs -----------------------------------------------------------------------------

    async def _recorded(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> tuple[list[str], StartedJobs]:
        records = [record_of(each) for each in memories]
        names = [owner_name(each.name) for each in self._concerned(memories, details)]
        if not names:
            return await self._repository.store.append(scope, records), []
        written = await self.jobs.add(scope, records, details, names)
        fresh = {each.id: FreshJob(each, memories) for each in written.jobs}
        return written.added, self._start_all(scope, written.ids, fresh)

    def _concerned(
        self, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> list[Deriver]:
        return concerned(tuple(self._derivers.values()), memories, details)

    async def _edited(
        self,
        scope: Scope,
        memory_id: str,
        edit: Edit,
        version: int | None,
        also: Beside | None,
    ) -> tuple[MemoryItem, StartedJobs]:
        ids = await self.jobs.announce(scope.user, self._derivers)

        def beside(seen: MemoryItem, new: MemoryItem) -> list[Record]:
            if new.kind != RAW or new.text == seen.text:
                return [] if also is None else list(also(seen, new))
            versions = {new.id: SourceVersion(seen.version + 1, digest(new.text))}
            return [
                self.jobs.record(job_id, JobState(versions, deriver, is_anew=True))
                for job_id, deriver in ids.items()
            ]

        try:
            new = await self._repository.edit(
                scope, memory_id, edit, version=version, beside=beside
            )
        except BaseException:
            await self.jobs.forget_notes(scope.user, ids)
            raise
        return new, self._start_all(Scope(scope.user, new.session_id), ids)

    def _start_all(
        self, scope: Scope, ids: Mapping[str, str], fresh: Mapping[str, FreshJob] | None = None
    ) -> StartedJobs:
        """Start jobs, given as deriver names by job id."""
        known: Mapping[str, FreshJob] = {} if fresh is None else fresh
        return [
            (self._derivers[name], self._start_job(scope, job_id, known.get(job_id)))
            for job_id, name in ids.items()
        ]

    def _start_job(self, scope: Scope, job_id: str, fresh: FreshJob | None = None) -> Attempted:
        """Run a job in the background; the returned future is done after the first attempt."""
        attempted: Attempted = asyncio.get_running_loop().create_future()
        if self._is_stopped:  # the job stays in the store for the next start
            attempted.set_result(JobOutcome.LEFT)
        else:
            self._run(self._do_until_done(scope, job_id, attempted, fresh))
        return attempted

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _wait_for_quick(self, started: StartedJobs) -> None:
        for deriver, attempted in started:
            if deriver.is_quick:
                await attempted  # cancelling this wait does not cancel the job

    def _deriver_of(self, stored: StoredJob) -> Deriver | None:
        """Return the deriver that owns a job, or ``None`` if the worker does not have it."""
        for deriver in self._derivers.values():
            if is_for(stored.state, deriver):
                return deriver
        return None

    async def _own(self, user: str) -> list[StoredJob]:
        jobs = await self.jobs.of(Scope(user))
        return [each for each in jobs if self._deriver_of(each) is not None]

    async def _resume(self) -> None:
        """Resume jobs left by earlier processes, a few users at a time."""
        users = asyncio.Semaphore(AT_ONCE)

        async def resume_one(user: str) -> None:
            async with users:
                await self._until_reached(lambda: self._resume_user(user))

        async with asyncio.TaskGroup() as group:
            for user in await self._until_reached(self.jobs.users):
                group.create_task(resume_one(user))

    async def _until_reached(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work``, retrying with backoff while the store cannot be reached."""
        async for _ in Attempts(_BACKOFF):
            try:
                return await work()
            except StoreError as error:
                logger.warning("leftover jobs wait for the store: %s", error)
        raise AssertionError("the attempts have no limit")

    async def _resume_user(self, user: str) -> None:
        if self.on_resume is not None:
            await self.on_resume(user)
        stored = await self.jobs.of(Scope(user))
        for job in stored:
            if job.state.is_given_up or self._deriver_of(job) is None:
                continue
            if await self._attempt_in_turn(job.scope, job.id) is JobOutcome.LEFT:
                self._start_job(job.scope, job.id)
        await self._forget_empty_notes(user, {each.id for each in stored})

    async def _do_until_done(
        self, scope: Scope, job_id: str, attempted: Attempted, fresh: FreshJob | None
    ) -> None:
        outcome = JobOutcome.LEFT
        try:
            async for _ in Attempts(_BACKOFF):
                outcome = await self._attempt_in_turn(scope, job_id, fresh)
                if outcome is not JobOutcome.LEFT:
                    break
                fresh = None
                if not attempted.done():
                    attempted.set_result(outcome)
        finally:
            if not attempted.done():
                attempted.set_result(outcome)

    # -- running jobs ------------------------------------------------------------------------------

    async def _attempt_in_turn(
        self, scope: Scope, job_id: str, fresh: FreshJob | None = None
    ) -> JobOutcome:
        """Attempt a job once. If it has to wait for its lock, it drops ``fresh`` as stale."""
        lock = self._user_lock(scope.user)
        if lock.locked():
            fresh = None
        async with lock:
            try:
                return await self._attempt(scope, job_id, fresh)
            except StoreError as error:
                logger.warning("job %s waits for the store: %s", job_id, error)
                return JobOutcome.LEFT

    async def _attempt(self, scope: Scope, job_id: str, fresh: FreshJob | None) -> JobOutcome:
        stored = await self.jobs.find(scope, job_id) if fresh is None else fresh.job
        if stored is None:
            await self.jobs.forget_notes(scope.user, [job_id])
            return JobOutcome.DONE
        if stored.state.is_given_up:
            return JobOutcome.FAILED
        try:
            if await self._advance(stored, () if fresh is None else fresh.memories):
                return JobOutcome.DONE
        except StoreError:
            raise
        except asyncio.CancelledError as error:
            if self._is_stopped:
                raise
            await self._note_failure(stored, error)  # raised inside the deriver, not by ``stop``
        except Exception as error:  # a deriver may raise anything; the messages are safe
            await self._note_failure(stored, error)
        left = await self.jobs.find(scope, job_id)
        if left is None:
            return JobOutcome.DONE
        return JobOutcome.FAILED if left.state.is_given_up else JobOutcome.LEFT

    async def _advance(self, stored: StoredJob, fresh: Sequence[MemoryItem]) -> bool:
        """Decide and execute; return whether the job is done.

        Decisions are executed only if they are about the current text of the memories. ``fresh``
        holds the memories if they were just stored, so that they need not be read; after a slow
        deriver they are read again.
        """
        known = KnownMemories(stored.scope.user, self._repository, self._searcher)
        for _ in range(ROUNDS):
            there = fresh if fresh else await self._current_memories(stored)
            changed = set(stored.state.memories) - {each.id for each in there}
            if changed:  # or deleted; the change created a job of its own
                stored = await self._revised(stored, without_memories(stored.state, changed))
            elif stored.state.decisions is None:
                before, is_quick = stored.state.memories, self._deriver_for(stored).is_quick
                stored = await self._decided(stored, there, known)
                fresh = fresh if is_quick and stored.state.memories == before else ()
            else:
                executor = self._executor(stored, known.seen, fresh)
                return await self._execute(stored, executor, stored.state.decisions)
        return False

    async def _decided(
        self, stored: StoredJob, memories: Sequence[MemoryItem], known: KnownMemories
    ) -> StoredJob:
        """Let the deriver decide, and store the decisions before any of them is executed.

        The deriver sees no secrets. If a decision looks like one, it is redacted before it is
        stored.
        """
        deriver = self._deriver_for(stored)
        if stored.state.is_anew:
            await self._forget_outdated(stored)
        job = Job(
            id=stored.id,
            user_id=stored.scope.user,
            session_id=stored.scope.session or "",
            memories=without_secrets(memories),
            details=stored.state.details,
            now=self._repository.now(),
            reviewed=self._reviewed,
        )
        is_chosen = not stored.state.is_anew or deriver in self._concerned(memories, job.details)
        if RENEWED in stored.state.details:
            decisions = await self._renewal(stored, job)
        else:
            decisions = await deriver.derive(job, known) if memories and is_chosen else []
        plan = purged(numbered(stored, decisions))
        self._executor(stored).check(plan)
        state = change(stored.state, decisions=plan)
        if not plan and deriver.is_quick:  # nothing that a second attempt could do otherwise
            return change(stored, state=state)
        return await self._revised(stored, state)

    async def _renewal(self, stored: StoredJob, job: Job) -> list[Decision]:
        """Let the deriver sum up again after memories were approved, superseded or undone."""
        deriver, user = self._deriver_for(stored), stored.scope.user
        if not isinstance(deriver, Renewing):
            return []
        ids = frozenset(map(str, stored.state.details[RENEWED]))
        changed = await self._repository.select(Scope(user), Where(ids=ids))
        known = KnownMemories(user, self._repository, self._searcher, is_approved=True)
        return await deriver.renew(job, known, [each for each in changed if each.kind != RAW])

    async def _forget_outdated(self, stored: StoredJob) -> None:
        """Delete memories derived from earlier text; derivers of other services get a job."""
        versions = {key: source.version for key, source in stored.state.memories.items()}
        outdated = await self._eraser.outdated(stored.scope, versions)
        authors = {each.origin.author for each in outdated if each.origin is not None}
        makers = {owner_name(author) for author in authors if author is not None}
        await self.jobs.hand_on(stored, makers - self._derivers.keys())
        await self._eraser.forget(stored.scope.user, outdated)

    async def _revised(self, stored: StoredJob, state: JobState) -> StoredJob:
        """Store a job's progress; return the job as it is stored, even if another was faster."""
        there = await self.jobs.revise(stored, state)
        if there is None:
            there = await self.jobs.find(stored.scope, stored.id)
        return there if there is not None else change(stored, state=_NOTHING_LEFT)

    def _executor(
        self,
        stored: StoredJob,
        seen: Mapping[str, MemoryItem] | None = None,
        fresh: Sequence[MemoryItem] = (),
    ) -> PlanExecutor:
        deriver = self._deriver_for(stored)
        return PlanExecutor(
            self._repository,
            stored,
            deriver,
            self._judge,
            seen=seen,
            fresh=fresh,
            reviewed=self._reviewed,
        )

    def _deriver_for(self, stored: StoredJob) -> Deriver:
        deriver = self._deriver_of(stored)
        assert deriver is not None  # jobs of other derivers are never started
        return deriver

    async def _execute(
        self, stored: StoredJob, executor: PlanExecutor, plan: Sequence[Mapping[str, Any]]
    ) -> bool:
        records = await executor.execute(plan)
        is_done = await self.jobs.finish(stored, records)
        if is_done:
            self._searcher.expect(stored.scope, [each.id for each in records])
            await self._eraser.drop_orphans(stored.scope, records, _is_current(stored))
            self._tell(stored.scope, records)
        else:  # another process has finished or removed the job
            await self._eraser.undo(stored.scope, records)
        await self._afterwards(stored.scope)
        return is_done

    def _tell(self, scope: Scope, records: Sequence[Record]) -> None:
        events = self._repository.store.events
        events.emit("memories_derived", scope=scope, count=len(records))
        waiting = [each.id for each in records if WAITING in each.marks]
        if waiting:
            events.emit("memories_waiting", scope=scope, ids=waiting)

    async def _current_memories(self, stored: StoredJob) -> list[MemoryItem]:
        """Return the memories of a job whose text is unchanged."""
        where = Where(ids=frozenset(stored.state.memories), kind=RAW)
        records = await self._repository.store.select(stored.scope, where)
        return self._repository.read(stored.scope.user, filter(_is_current(stored), records))

    async def _note_failure(self, stored: StoredJob, error: BaseException) -> None:
        """Record a failure. Only errors that cannot contain user text are quoted."""
        stored = await self._present(stored)
        attempts = stored.state.attempts + 1
        is_given_up = attempts >= self._max_attempts
        name = type(error).__name__
        said = f"{name}: {error}" if isinstance(error, ModelFailed | BadDecision) else name
        await self.jobs.revise(
            stored,
            change(
                stored.state, attempts=attempts, error=said[:MOST_ERROR], is_given_up=is_given_up
            ),
        )
        level = logging.ERROR if is_given_up else logging.WARNING
        logger.log(level, "job %s failed, attempt %d: %s", stored.id, attempts, name)
        self._repository.store.events.emit(
            "derivation_failed", scope=stored.scope, id=stored.id, attempts=attempts, error=name
        )

    async def _present(self, stored: StoredJob) -> StoredJob:
        there = await self.jobs.find(stored.scope, stored.id)
        return stored if there is None else there

    async def _forget_empty_notes(self, user: str, known: set[str]) -> None:
        """Remove notes without a job; a recent note may belong to a job not yet written."""
        notes = await self._repository.store.select(Scope(OUTBOX, user))
        settled = self._repository.now() - NOTE_GRACE
        for note in notes:
            if note.id not in known and note.created_at < settled:
                await self.jobs.forget_notes(user, [note.id])

    def _user_lock(self, user: str) -> asyncio.Lock:
        """Return the lock that runs a user's jobs one after another."""
        return self._user_locks.get().setdefault(user, asyncio.Lock())


def _outcome(attempted: Attempted) -> JobOutcome:
    return attempted.result() if attempted.done() else JobOutcome.LEFT


_NOTHING_LEFT = JobState({}, decisions=[])


def _is_current(stored: StoredJob) -> Callable[[Record], bool]:
    """Return a predicate that rejects records of the job whose text has changed."""
    session, own = stored.scope.session, stored.state.memories

    def test(record: Record) -> bool:
        if record.kind != RAW or record.id not in own:
            return True
        return record.session == session and own[record.id].digest == digest(record.text)

    return test
