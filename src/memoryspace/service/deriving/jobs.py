"""Jobs: what is still to be derived, written down beside the raw memories it is to be derived from.

A job is appended together with its memories, in one step: there is no moment in which something
was said and will never be thought about. It is removed in the same step that adds what was derived:
there is no moment in which that could happen twice. A note in the outbox, written before, tells a
process that starts whose jobs to look for; a note without a job means nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import CorruptData
from ...message import new_id
from ...record import RESERVED_PREFIX, Origin, Record, Scope, Where
from ...store import Store
from ...store.codec import clean_text
from ..forms import body_of, said_from
from ..kinds import JOB, NOTE, OUTBOX
from ..memory import Draft
from ..shelf import version_at
from .contract import Add, Adjust, Decision, Drop, Supersede

MOST_ERROR = 300  # characters


class Meant(Struct, frozen=True, array_like=True):
    """Which words of a memory are meant."""

    version: int
    digest: str


class Task(Struct, frozen=True, omit_defaults=True):
    """A job as it is stored: of which memories, and how far it is.

    ``memories`` are their ids, each with its version and a digest of the words that are meant: a
    memory that says something else by now is another job's. With ``is_anew`` what was derived from
    earlier versions is forgotten first. ``decisions`` are there once they were made, ``round``
    counts how often they had to be made; ``error`` says what went wrong the last time.
    """

    memories: dict[str, Meant]
    details: dict[str, Any] = {}
    is_anew: bool = False
    round: int = 0
    attempts: int = 0
    error: str | None = None
    is_given_up: bool = False
    decisions: list[dict[str, Any]] | None = None


class Stored(Struct, frozen=True):
    """A task and where it stands."""

    id: str
    scope: Scope
    seq: int
    task: Task


class Jobs:
    """The jobs in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def announce(self, user: str) -> str:
        """Note that a job will be there, and return its id."""
        job_id = f"{RESERVED_PREFIX}job:{new_id()}"
        await self.store.append(Scope(OUTBOX, user), [self._record(job_id, NOTE, {})])
        return job_id

    def record(self, job_id: str, task: Task) -> Record:
        """Return a job as the record that holds it, to be added beside its memories."""
        return self._record(job_id, JOB, msgspec.to_builtins(task))

    async def add(
        self, scope: Scope, records: Sequence[Record], details: Mapping[str, Any]
    ) -> tuple[str, list[str]]:
        """Store raw memories and the job to derive from them; return its id and the new ids."""
        job_id = await self.announce(scope.user)
        task = Task(_first_of_each(records), dict(details))
        added = set(await self.store.append(scope, [*records, self.record(job_id, task)]))
        known = [each for each in task.memories if each not in added]
        if known:  # they were thought about before
            await self._leave_out(scope, job_id, known)
        return job_id, [each for each in task.memories if each in added]

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

    async def revise(self, stored: Stored, task: Task) -> bool:
        """Write down how far a job is, if nobody else has; tell whether it was so."""
        return await self._replace(stored, [self.record(stored.id, task)])

    async def finish(self, stored: Stored, records: Sequence[Record]) -> bool:
        """Put what was derived in the place of its job; tell whether it was still there."""
        if records:
            done = await self._replace(stored, records)
        else:
            done = bool(await self.store.delete(stored.scope, version_at(stored.id, stored.seq)))
        await self.forget_note(stored.scope.user, stored.id)
        return done

    async def forget_note(self, user: str, job_id: str) -> None:
        """Take a note out of the outbox."""
        await self.store.delete(Scope(OUTBOX, user), Where(ids=frozenset({job_id})))

    async def forget_notes(self, user: str) -> None:
        """Take all of a user's notes out of the outbox."""
        await self.store.delete(Scope(OUTBOX, user))

    async def _replace(self, stored: Stored, records: Sequence[Record]) -> bool:
        here = version_at(stored.id, stored.seq)
        return bool(await self.store.replace(stored.scope, here, records, if_found=True))

    def _record(self, record_id: str, kind: str, value: dict[str, Any]) -> Record:
        return Record(record_id, value, "", kind=kind, created_at=self.store.clock())


def _stored(user: str, record: Record) -> Stored:
    """Return a job; one that does not read back is given up, and says so."""
    try:
        task = msgspec.convert(record.value, Task)
    except msgspec.ValidationError:
        task = Task({}, error="the job does not read back", is_given_up=True)
    return Stored(record.id, Scope(user, record.session), record.seq, task)


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
