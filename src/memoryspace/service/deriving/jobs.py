"""Pending derivation jobs, stored beside the raw memories they are derived from.

A job is appended in the same step as its memories, so no message can miss its derivation. It is
removed in the same step that adds the derived memories, so nothing is derived twice. A note in the
outbox, written first, tells a starting process which users may have jobs; a note without a job
means nothing.

Each job names its deriver, so several services can share a store.
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


class SourceVersion(Struct, frozen=True, array_like=True):
    """The version of a memory's text that a job refers to."""

    version: int
    digest: str


class JobState(Struct, frozen=True, omit_defaults=True):
    """The stored state of a job: its memories and its progress.

    ``memories`` maps ids to the version and a digest of the text the job refers to; a memory whose
    text has changed since belongs to another job. With ``is_anew``, memories derived from earlier
    versions are deleted first. ``decisions`` is set once the deriver has decided, ``round`` counts
    how often it had to; ``error`` describes the last failure. ``deriver`` owns the job; it is
    missing in jobs written by versions that did not record it.
    """

    memories: dict[str, SourceVersion]
    deriver: str | None = None
    details: dict[str, Any] = {}
    is_anew: bool = False
    round: int = 0
    attempts: int = 0
    error: str | None = None
    is_given_up: bool = False
    decisions: list[dict[str, Any]] | None = None


class StoredJob(Struct, frozen=True):
    """A job and its place in the store. ``here`` selects it as long as nobody has rewritten it.

    A job that was read is selected by its seq. One that was just written is selected by a unique
    mark, which saves reading it back.
    """

    id: str
    scope: Scope
    here: Where
    state: JobState


class AddedJobs(NamedTuple):
    """Deriver names by job id, and the ids of the memories that are new.

    ``jobs`` holds the stored jobs if all memories were new; otherwise it is empty.
    """

    ids: dict[str, str]
    added: list[str]
    jobs: Sequence[StoredJob]


class Jobs:
    """The jobs in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def announce(self, user: str, derivers: Iterable[str]) -> dict[str, str]:
        """Write a note for one job of each deriver; return the derivers by job id."""
        ids = {f"{RESERVED_PREFIX}job:{new_id()}": deriver for deriver in derivers}
        await self._note(user, ids)
        return ids

    def record(self, job_id: str, state: JobState) -> Record:
        """Return the record of a job, to be appended beside its memories."""
        record = self._record(job_id, JOB, msgspec.to_builtins(state))
        return change(record, marks=frozenset({f"{RESERVED_PREFIX}written:{new_id()}"}))

    async def add(
        self,
        scope: Scope,
        records: Sequence[Record],
        details: Mapping[str, Any],
        derivers: Iterable[str],
    ) -> AddedJobs:
        """Store raw memories together with one job for each deriver."""
        ids = await self.announce(scope.user, derivers)
        versions = _source_versions(records)
        states = {
            job_id: JobState(versions, deriver, dict(details)) for job_id, deriver in ids.items()
        }
        jobs = [self.record(job_id, state) for job_id, state in states.items()]
        added = set(await self.store.append(scope, [*records, *jobs]))
        known = [each for each in versions if each not in added]
        if known:  # their jobs exist already
            for job_id in ids:
                await self._remove_memories(scope, job_id, known)
        is_all_new = len(versions) == len(records) and not known
        written = [_just_written(scope, job, states[job.id]) for job in jobs] if is_all_new else []
        return AddedJobs(ids, [each for each in versions if each in added], written)

    async def hand_on(self, stored: StoredJob, derivers: Collection[str]) -> None:
        """Create the same job for other derivers. Idempotent."""
        if not derivers:
            return
        ids = {f"{stored.id}:{digest(deriver)}": deriver for deriver in derivers}
        await self._note(stored.scope.user, ids)
        jobs = [
            self.record(job_id, JobState(stored.state.memories, deriver, is_anew=True))
            for job_id, deriver in ids.items()
        ]
        await self.store.append(stored.scope, jobs)

    async def _remove_memories(
        self, scope: Scope, job_id: str, memory_ids: Collection[str]
    ) -> None:
        stored = await self.find(scope, job_id)
        if stored is not None:
            await self.revise(stored, without_memories(stored.state, memory_ids))

    async def users(self) -> list[str]:
        """Return all users that may have jobs."""
        return await self.store.sessions(OUTBOX)

    async def of(self, scope: Scope) -> list[StoredJob]:
        """Return the jobs of a session, or of all sessions of a user, oldest first."""
        records = await self.store.select(scope, Where(kind=JOB))
        return [_stored(scope.user, record) for record in records]

    async def find(self, scope: Scope, job_id: str) -> StoredJob | None:
        """Return a job, or ``None`` if it is done."""
        records = await self.store.select(scope, Where(ids=frozenset({job_id}), kind=JOB))
        return _stored(scope.user, records[-1]) if records else None

    async def revise(self, stored: StoredJob, state: JobState) -> StoredJob | None:
        """Store a job's progress and return it; ``None`` if another process was first."""
        record = self.record(stored.id, state)
        done = await self._replace(stored, [record])
        return _just_written(stored.scope, record, state) if done else None

    async def finish(self, stored: StoredJob, records: Sequence[Record]) -> bool:
        """Replace a job by the records derived from it; return whether it still existed."""
        if records:
            done = await self._replace(stored, records)
        else:
            done = bool(await self.store.delete(stored.scope, stored.here))
        await self.forget_notes(stored.scope.user, [stored.id])
        return done

    async def forget_notes(self, user: str, job_ids: Iterable[str]) -> None:
        """Remove the notes of jobs from the outbox."""
        await self.store.delete(Scope(OUTBOX, user), Where(ids=frozenset(job_ids)))

    async def _note(self, user: str, job_ids: Iterable[str]) -> None:
        notes = [self._record(job_id, NOTE, {}) for job_id in job_ids]
        await self.store.append(Scope(OUTBOX, user), notes)

    async def _replace(self, stored: StoredJob, records: Sequence[Record]) -> bool:
        return bool(await self.store.replace(stored.scope, stored.here, records, if_found=True))

    def _record(self, record_id: str, kind: str, value: dict[str, Any]) -> Record:
        return Record(record_id, value, "", kind=kind, created_at=self.store.clock())


def _stored(user: str, record: Record) -> StoredJob:
    """Return a job; an unreadable one is marked as given up."""
    try:
        state = msgspec.convert(record.value, JobState)
    except msgspec.ValidationError:
        deriver = record.value.get("deriver") if isinstance(record.value, dict) else None
        state = JobState(
            {},
            deriver if isinstance(deriver, str) else None,
            error="the stored job is unreadable",
            is_given_up=True,
        )
    here = version_at(record.id, record.seq)
    return StoredJob(record.id, Scope(user, record.session), here, state)


def _just_written(scope: Scope, record: Record, state: JobState) -> StoredJob:
    """Return a job that was just written, without reading it back."""
    return StoredJob(record.id, scope, Where(ids=frozenset({record.id}), marks=record.marks), state)


def owner_name(name: str) -> str:
    """Return the name under which a deriver owns jobs: its name without the model."""
    return name.partition("/")[0]


def is_for(state: JobState, deriver: Deriver) -> bool:
    """Return whether a job belongs to a deriver.

    For a job that names no deriver, its decisions or memories tell; if they do not, it belongs to
    any deriver.
    """
    name = owner_name(deriver.name)
    if state.deriver is not None:
        return state.deriver == name
    if state.decisions is not None:
        return all(_makes(deriver, each.get("draft")) for each in state.decisions)
    if name not in _OF_BEFORE or not state.memories:
        return True
    return name == _deriver_of_before(state)


def _makes(deriver: Deriver, draft: object) -> bool:
    return not isinstance(draft, dict) or draft.get("kind") in deriver.kinds


def _deriver_of_before(state: JobState) -> str:
    if "score" in state.details:
        return _TASK
    return _TOOL if all(each.startswith("call-") for each in state.memories) else _PERSONAL


def without_memories(state: JobState, memory_ids: Collection[str]) -> JobState:
    """Return a job without some of its memories, to be decided again."""
    left = {key: version for key, version in state.memories.items() if key not in memory_ids}
    return change(state, memories=left, decisions=None, round=state.round + 1)


def digest(text: str) -> str:
    """Return the digest of a text as a store keeps it."""
    return blake2b(clean_text(text).encode(), digest_size=12).hexdigest()


def _source_versions(records: Iterable[Record]) -> dict[str, SourceVersion]:
    """Return the versions of new memories. Of records with the same id a store keeps the first."""
    versions: dict[str, SourceVersion] = {}
    for record in records:
        versions.setdefault(record.id, SourceVersion(1, digest(record.text)))
    return versions


def numbered(stored: StoredJob, decisions: Iterable[Decision]) -> list[dict[str, Any]]:
    """Return decisions as plain data, with a stable id for every draft."""
    name = stored.id.removeprefix(f"{RESERVED_PREFIX}job:")
    prefix = f"{name}-{stored.state.round}" if stored.state.round else name
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
    """Return a draft from the plain data that ``numbered`` wrote.

    Raises:
        CorruptData: The data is unreadable.
    """
    try:
        form, body = data["value"]
        origin = data.get("origin")
        rest = {**data, "value": said_from(form, body), "marks": frozenset(data["marks"])}
        rest["origin"] = None if origin is None else msgspec.convert(origin, Origin)
        return Draft(**rest)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData("a stored decision of a job is unreadable") from error
