"""The store contract: a few verbs, each of them atomic, each of them about one tenant.

* ``append`` keeps a record once per session: a known id is skipped and its marks are united with
  the new ones. It returns the ids it really added.
* ``select`` answers in conversation order, whatever order things were marked in.
* ``replace`` removes what matches and appends the given records, in one step; with ``if_found``
  only where something matches, so that of two who change the same record one is told it was late.
* ``mark`` and ``delete`` count and return what they really changed.
* ``changes`` tells what came and went since it was last asked, whichever process did it.
* ``users`` names, page by page, everybody who has a living record: who is there all the while is
  named once. ``usage`` tells how much one of them has.
* A record past its ``expires_at`` is gone for every verb.
* What callers do to values before or after a call never reaches the store.
* A stored record that no longer reads back is reported (event ``record_corrupt``) and skipped.

Writing needs a session; reading, marking, counting and deleting may span a user's sessions.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace as change

from ..errors import InvalidInput
from ..events import EventStream
from ..lifecycle import Closing
from ..message import Msg
from ..record import EVERYTHING, MESSAGE, Record, Scope, Value, Where, as_marks, check_id, is_number
from ..verbs import Observed
from .codec import size_of
from .users import USERS_AT_ONCE, Usage, UserPage

RECORDS_AT_ONCE = 500  # that are read to be weighed

logger = logging.getLogger(__name__)

Clock = Callable[[], float]
T = TypeVar("T")


class Changes(Struct, frozen=True):
    """What happened to a user's records since a state that was seen before.

    ``records`` came since; ``kept`` names, for each session in which anything but appending
    happened, all that is there now as id → seq; ``gone`` are sessions that have no records left.
    Whoever drops what ``kept`` does not name and then takes in ``records`` is up to date.
    ``state`` is opaque: hand it back to learn what happens from here on.
    """

    state: Any
    records: list[Record]
    kept: dict[str, dict[str, int]]
    gone: frozenset[str]


class Store(Observed, Closing, ABC):
    """A shelf that records stand on. ``memoryspace.testing`` checks one against this contract.

    Its verbs are operations: whoever listens to ``events`` hears of each call.
    """

    operations = "store"

    def __init__(self, *, clock: Clock = time.time, events: EventStream | None = None) -> None:
        self.clock = clock
        self.events = EventStream(clock=clock) if events is None else events

    @property
    def is_durable(self) -> bool | None:
        """Whether what was acknowledged outlives this process, and a crash of the machine.

        ``None`` where only the server that keeps it can tell.
        """
        return None

    @abstractmethod
    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """Add records at the end of a session; return the ids that were new."""

    @abstractmethod
    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """Return the matching records in conversation order."""

    async def values(self, scope: Scope, where: Where = EVERYTHING) -> list[Value]:
        """Return only the values of the matching records, which a shelf may do faster."""
        return [record.value for record in await self.select(scope, where)]

    @abstractmethod
    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        """Remove the matching records and append the given ones; return the ids added.

        With ``if_found`` nothing happens unless a living record matches: compare and set.
        """

    @abstractmethod
    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        """Take marks off and put marks on the matching records; return how many changed."""

    @abstractmethod
    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        """Remove the matching records; return their ids."""

    @abstractmethod
    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        """Return how many records match."""

    async def sessions(self, user: str) -> list[str]:
        """Return the names of the user's sessions that have living records, sorted."""
        return sorted({session_in(record) for record in await self.select(Scope(user))})

    async def changes(self, user: str, state: Any = None) -> Changes:
        """Tell what happened to a user's records since ``state``; without one, all is new.

        Marks put on or taken off a stored record are not told: it has the same seq as before.
        This one simply tells everything. A shelf that knows more tells less.
        """
        records = await self.select(Scope(user))
        kept: dict[str, dict[str, int]] = {}
        for record in records:
            kept.setdefault(session_in(record), {})[record.id] = record.seq
        known = frozenset[str]() if state is None else state
        return Changes(frozenset(kept), records, kept, known - kept.keys())

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        """Return up to ``limit`` users who have living records, in an order of the shelf's own.

        Begin without a cursor and go on with the page's until it is ``None``: a page may be short,
        or empty, before the end. Nobody is passed over because others come or go meanwhile.
        """
        raise NotImplementedError(f"{type(self).__name__} does not tell its users")

    async def usage(self, user: str) -> Usage:
        """Return how many records a user has, in how many sessions, and their bytes.

        This one reads them, some at a time. A shelf that knows more reads less.
        """
        found, size, last = 0, 0, 0  # seqs begin above that
        sessions: set[str] = set()
        while page := await self.select(Scope(user), Where(after=last, limit=RECORDS_AT_ONCE)):
            found, last = found + len(page), page[-1].seq
            size += sum(map(size_of, page))
            sessions.update(map(session_in, page))
        return Usage(found, len(sessions), size)

    def report_corrupt(self, scope: Scope, record_id: str, error: Exception) -> None:
        """Say that a stored record does not read back; the caller goes on without it."""
        logger.warning(
            "record %r of user %r, session %r cannot be read and was skipped: %s",
            record_id,
            scope.user,
            scope.session,
            error,
        )
        self.events.emit("record_corrupt", scope=scope, id=record_id, error=error)


def session_of(scope: Scope) -> str:
    """Return the session to write to."""
    if scope.session is None:
        raise InvalidInput(f"writing for user {scope.user!r} needs a session; the scope names none")
    return scope.session


def session_in(record: Record) -> str:
    """Return the session a stored record stands in."""
    assert record.session is not None  # the store has given it
    return record.session


def admit(records: Sequence[Record]) -> list[Record]:
    """Check the ids and marks of new records; of those with one id keep the first, marks united."""
    if len(records) == 1:
        return [check_new(records[0])]
    admitted: dict[str, Record] = {}
    for record in records:
        known = admitted.get(record.id)
        if known is None:
            admitted[record.id] = check_new(record)
        elif not record.marks <= known.marks:
            admitted[record.id] = change(known, marks=known.marks | as_marks(record.marks))
    return list(admitted.values())


def limited(found: list[T], where: Where) -> list[T]:
    """Return the page that ``where`` asks for of records in order."""
    if where.limit is None:
        return found
    first, end = page_of(len(found), where.limit, where)
    return found[first:end]


def page_of(total: int, limit: int, where: Where) -> tuple[int, int]:
    """Return from which to before which of so many matching records the page goes."""
    if where.newest:
        end = max(0, total - where.skip)
        return max(0, end - limit), end
    return min(where.skip, total), min(where.skip + limit, total)


def check_new(record: Record) -> Record:
    """Return a record that every store can take, its marks as plain strings."""
    check_id("record id", record.id)
    if record.kind is not MESSAGE:
        check_id("kind", record.kind)
    if isinstance(record.value, Msg) is not (record.kind == MESSAGE):
        raise InvalidInput(
            f"record {record.id!r}: a Msg is of kind {MESSAGE!r} and nothing else is, "
            f"got a {type(record.value).__name__} of kind {record.kind!r}"
        )
    if not is_number(record.created_at) or not is_number(record.importance):
        raise _no_number(record, "importance" if is_number(record.created_at) else "created_at")
    if record.expires_at is not None and not is_number(record.expires_at):
        raise _no_number(record, "expires_at")
    if not record.marks:
        return record
    marks = as_marks(record.marks)
    return record if marks == record.marks else change(record, marks=marks)


def _no_number(record: Record, name: str) -> InvalidInput:
    number = getattr(record, name)
    return InvalidInput(f"record {record.id!r}: {name} must be a number, got {number!r}")
