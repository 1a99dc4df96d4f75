"""Jobs: what is still to be derived, written down beside the raw memories it is to be derived from.

A job is appended together with its memories, in one step: there is no moment in which something
was said and will never be thought about. It is removed in the same step that adds what was derived:
there is no moment in which that could happen twice. A note in the outbox, written before, tells a
process that starts whose jobs to look for; a note without a job means nothing.

Each job is one deriver's, and says so: several services may stand on one store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import CorruptData
from ...message import new_id
from ...record import RESERVED_PREFIX, Origin, Record, Scope, Where
from ...store import Store
from ...store.codec import clean_text
from ..values.forms import body_of, said_from
from ..values.kinds import JOB, NOTE, OUTBOX
from ..values.memory import Draft
from ..writing.repository import version_at
from .contract import Add, Adjust, Decision, Deriver, Drop, Supersede

MOST_ERROR = 300  # characters

_PERSONAL, _TASK, _TOOL = _OF_BEFORE = ("personal", "task memory", "tool memory")


class Meant(Struct, frozen=True, array_like=True):
    """Which words of a memory are meant."""

    version: int
    digest: str


class Task(Struct, frozen=True, omit_defaults=True):
    """A job as it is stored: of which memories, and how far it is.

    ``memories`` are their ids, each with its version and a digest of the words that are meant: a
    memory that says something else by now is another job's. With ``is_anew`` what was derived from
    earlier versions is forgotten first. ``decisions`` are there once they were made, ``round``
    counts how often they had to be made; ``error`` says what went wrong the last time. ``deriver``
    is whose job it is; one that was written before jobs said so has none.
    """

    memories: dict[str, Meant]
    deriver: str | None = None
    details: dict[str, Any] = {}
    is_anew: bool = False
    round: int = 0
    attempts: int = 0
    error: str | None = None
    is_given_up: bool = False
    decisions: list[dict[str, Any]] | None = None


class Stored(Struct, frozen=True):
    """A task and where it stands; ``here`` chooses it, while nobody has written it anew.

    By its seq, if it was read. Whoever wrote it knows it without reading by a mark that no other
    writing of it has.
    """

    id: str
    scope: Scope
    here: Where
    task: Task


class Written(NamedTuple):
    """Jobs by their ids, each with its deriver's name, and the ids of the memories that are new.

    ``jobs`` are the jobs as they stand, if nothing of what was given was there before.
    """

    ids: dict[str, str]
    added: list[str]
    jobs: Sequence[Stored]


class Jobs:
    """The jobs in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def announce(self, user: str, derivers: Iterable[str]) -> dict[str, str]:
        """Note that each of some derivers will have a job; return them by the jobs' ids."""
        ids = {f"{RESERVED_PREFIX}job:{new_id()}": deriver for deriver in derivers}
        await self._note(user, ids)
        return ids

    def record(self, job_id: str, task: Task) -> Record:
        """Return a job as the record that holds it, to be added beside its memories."""
        record = self._record(job_id, JOB, msgspec.to_builtins(task))
        return change(record, marks=frozenset({f"{RESERVED_PREFIX}written:{new_id()}"}))

    async def add(
        self,
        scope: Scope,
        records: Sequence[Record],
        details: Mapping[str, Any],
        derivers: Iterable[str],
    ) -> Written:
        """Store raw memories and each deriver's job on them."""
        ids = await self.announce(scope.user, derivers)
        meant = _first_of_each(records)
        tasks = {job_id: Task(meant, deriver, dict(details)) for job_id, deriver in ids.items()}
        jobs = [self.record(job_id, task) for job_id, task in tasks.items()]
        added = set(await self.store.append(scope, [*records, *jobs]))
        known = [each for each in meant if each not in added]
        if known:  # they were thought about before
            for job_id in ids:
                await self._leave_out(scope, job_id, known)
        is_all_new = len(meant) == len(records) and not known
        written = [_written(scope, job, tasks[job.id]) for job in jobs] if is_all_new else []
        return Written(ids, [each for each in meant if each in added], written)

    async def hand_on(self, stored: Stored, derivers: Collection[str]) -> None:
        """Give other derivers the same to think about as a job; doing so again changes nothing."""
        if not derivers:
            return
        ids = {f"{stored.id}:{digest(deriver)}": deriver for deriver in derivers}
        await self._note(stored.scope.user, ids)
        jobs = [
            self.record(job_id, Task(stored.task.memories, deriver, is_anew=True))
            for job_id, deriver in ids.items()
        ]
        await self.store.append(stored.scope, jobs)

    async def _leave_out(self, scope: Scope, job_id: str, memory_ids: Collection[str]) -> None:
        stored = await self.find(scope, job_id)
        if stored is not None:
            await self.revise(stored, without(stored.task, memory_ids))

    async def users(self) -> list[str]:
        """Return who may have jobs, all users over."""
        return await self.store.sessions(OUTBOX)

    async def of(self, scope: Scope) -> list[Stored]:
        """Return the jobs of a session, or of all of a user's, the oldest first."""
        records = await self.store.select(scope, Where(kind=JOB))
        return [_stored(scope.user, record) for record in records]

    async def find(self, scope: Scope, job_id: str) -> Stored | None:
        """Return a job, unless it is done."""
        records = await self.store.select(scope, Where(ids=frozenset({job_id}), kind=JOB))
        return _stored(scope.user, records[-1]) if records else None

    async def revise(self, stored: Stored, task: Task) -> Stored | None:
        """Write down how far a job is, and return that; ``None`` if somebody else has before."""
        record = self.record(stored.id, task)
        done = await self._replace(stored, [record])
        return _written(stored.scope, record, task) if done else None

    async def finish(self, stored: Stored, records: Sequence[Record]) -> bool:
        """Put what was derived in the place of its job; tell whether it was still there."""
        if records:
            done = await self._replace(stored, records)
        else:
            done = bool(await self.store.delete(stored.scope, stored.here))
        await self.forget_notes(stored.scope.user, [stored.id])
        return done

    async def forget_notes(self, user: str, job_ids: Iterable[str]) -> None:
        """Take the notes of jobs out of the outbox."""
        await self.store.delete(Scope(OUTBOX, user), Where(ids=frozenset(job_ids)))

    async def _note(self, user: str, job_ids: Iterable[str]) -> None:
        notes = [self._record(job_id, NOTE, {}) for job_id in job_ids]
        await self.store.append(Scope(OUTBOX, user), notes)

    async def _replace(self, stored: Stored, records: Sequence[Record]) -> bool:
        return bool(await self.store.replace(stored.scope, stored.here, records, if_found=True))

    def _record(self, record_id: str, kind: str, value: dict[str, Any]) -> Record:
        return Record(record_id, value, "", kind=kind, created_at=self.store.clock())


def _stored(user: str, record: Record) -> Stored:
    """Return a job; one that does not read back is given up, and says so."""
    try:
        task = msgspec.convert(record.value, Task)
    except msgspec.ValidationError:
        deriver = record.value.get("deriver") if isinstance(record.value, dict) else None
        task = Task(
            {},
            deriver if isinstance(deriver, str) else None,
            error="the job does not read back",
            is_given_up=True,
        )
    here = version_at(record.id, record.seq)
    return Stored(record.id, Scope(user, record.session), here, task)


def _written(scope: Scope, record: Record, task: Task) -> Stored:
    """Return a job that was just written."""
    return Stored(record.id, scope, Where(ids=frozenset({record.id}), marks=record.marks), task)


def known_as(name: str) -> str:
    """Return by which name a deriver's jobs know it: with another model it is the same one."""
    return name.partition("/")[0]


def is_for(task: Task, deriver: Deriver) -> bool:
    """Tell whether a job is a deriver's.

    What was written before jobs said so is whose decisions or memories it looks like; of which
    nothing can be told is everybody's.
    """
    name = known_as(deriver.name)
    if task.deriver is not None:
        return task.deriver == name
    if task.decisions is not None:
        return all(_makes(deriver, each.get("draft")) for each in task.decisions)
    if name not in _OF_BEFORE or not task.memories:
        return True
    return name == _deriver_of_before(task)


def _makes(deriver: Deriver, draft: object) -> bool:
    return not isinstance(draft, dict) or draft.get("kind") in deriver.kinds


def _deriver_of_before(task: Task) -> str:
    if "score" in task.details:
        return _TASK
    return _TOOL if all(each.startswith("call-") for each in task.memories) else _PERSONAL


def without(task: Task, memory_ids: Collection[str]) -> Task:
    """Return a task without some of its memories, to be decided anew."""
    left = {key: meant for key, meant in task.memories.items() if key not in memory_ids}
    return change(task, memories=left, decisions=None, round=task.round + 1)


def digest(text: str) -> str:
    """Return what tells one text from another, as a store keeps it."""
    return blake2b(clean_text(text).encode(), digest_size=12).hexdigest()


def _first_of_each(records: Iterable[Record]) -> dict[str, Meant]:
    """Return what is meant of new memories; of those with one id a store keeps the first."""
    meant: dict[str, Meant] = {}
    for record in records:
        meant.setdefault(record.id, Meant(1, digest(record.text)))
    return meant


def numbered(stored: Stored, decisions: Iterable[Decision]) -> list[dict[str, Any]]:
    """Return decisions as plain data; every draft has an id that is its own for good."""
    name = stored.id.removeprefix(f"{RESERVED_PREFIX}job:")
    prefix = f"{name}-{stored.task.round}" if stored.task.round else name
    return [_dumped(each, f"{prefix}-{number}") for number, each in enumerate(decisions, 1)]


def _dumped(decision: Decision, draft_id: str) -> dict[str, Any]:
    match decision:
        case Add(draft):
            return {"do": "add", "draft": _dumped_draft(draft, draft_id)}
        case Supersede(memory_id, draft, valid_to):
            new = _dumped_draft(draft, draft_id)
            return {"do": "supersede", "id": memory_id, "draft": new, "valid_to": valid_to}
        case Adjust():
            return {"do": "adjust", **msgspec.to_builtins(decision), "by": draft_id}
        case Drop():
            return {"do": "drop", **msgspec.to_builtins(decision)}


def _dumped_draft(draft: Draft, draft_id: str) -> dict[str, Any]:
    form, body = body_of(draft.value)
    named = draft if draft.id is not None else change(draft, id=draft_id)
    plain: dict[str, Any] = msgspec.to_builtins(change(named, value=""))
    return {**plain, "marks": sorted(draft.marks), "value": [form, body]}


def draft_from(data: Mapping[str, Any]) -> Draft:
    """Return the draft that ``numbered`` wrote."""
    try:
        form, body = data["value"]
        origin = data.get("origin")
        rest = {**data, "value": said_from(form, body), "marks": frozenset(data["marks"])}
        rest["origin"] = None if origin is None else msgspec.convert(origin, Origin)
        return Draft(**rest)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData("a decision that was written down does not read back") from error
