"""The store contract: a small set of atomic operations, each on the records of one user.

* ``append`` stores a record once per session. If the id exists already, the record is skipped and
  its marks are merged into the stored one. It returns the ids that were added.
* ``select`` returns records in conversation order, regardless of when they were marked.
* The store gives each record a ``seq`` that grows over all sessions of a user, and is never given
  twice to that user. There is no order between users: a cluster has no counter for all of them.
* ``replace`` removes the matching records and appends the given ones in one step. With
  ``if_found`` it does nothing unless a record matches, so only one of two concurrent writers that
  change the same record succeeds.
* ``mark`` and ``delete`` report only what they changed.
* ``changes`` returns what was added and removed since the previous call, by any process.
* ``users`` lists, page by page, every user that has a live record. A user present throughout the
  listing appears exactly once. ``usage`` returns how much one user has stored.
* A record past its ``expires_at`` does not exist for any operation.
* Values are isolated: changing one before or after a call never changes the store.
* A stored record that cannot be decoded is reported (event ``record_corrupt``) and skipped.

Writing requires a session. Reading, marking, counting and deleting can span all of a user's
sessions.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ..errors import CorruptData, InvalidInput
from ..events import EventStream
from ..lifecycle import Closing
from ..message import Msg
from ..record import EVERYTHING, MESSAGE, Record, Scope, Value, Where, as_marks, check_id, is_number
from ..verbs import Observed
from .codec import size_of
from .erasures import ErasureLedger
from .users import USERS_AT_ONCE, Usage, UserPage

RECORDS_AT_ONCE = 500  # read per call to measure usage

logger = logging.getLogger(__name__)

Clock = Callable[[], float]
T = TypeVar("T")


class Changes(Struct, frozen=True):
    """The changes to a user's records since an earlier state.

    To catch up, drop the records of the sessions in ``kept`` that it does not list, drop the
    sessions in ``gone``, then add ``records``.

    Attributes:
        state: An opaque token. Pass it to the next ``changes`` call.
        records: The records added since the earlier state.
        kept: For each session changed by more than appends, its current records as id → seq.
        gone: The sessions that have no records left.
    """

    state: Any
    records: list[Record]
    kept: dict[str, dict[str, int]]
    gone: frozenset[str]


class Store(Observed, Closing, ABC):
    """The abstract base of all store backends.

    Implement the six abstract methods, and ``close`` if there is anything to close. The other
    methods have defaults that a backend may override to be faster; only ``users`` has none.
    ``memoryspace.testing`` checks a backend against this contract. Every call emits an
    ``operation`` event on ``events``.

    Args:
        clock: Returns the current time in seconds since the epoch.
        events: The stream to emit events on; a new one by default.

    Example::

        async with open_store("memory:") as store:
            await store.append(Scope("alice", "s1"), [Record("r1", "Tea.", kind="note")])
    """

    operations = "store"
    erasures: ErasureLedger | None = None
    """Where services note what they erase, so that a restored backup does not bring it back."""

    def __init__(self, *, clock: Clock = time.time, events: EventStream | None = None) -> None:
        self.clock = clock
        self.events = EventStream(clock=clock) if events is None else events

    @property
    def is_durable(self) -> bool | None:
        """Whether acknowledged writes survive this process and a crash of the machine.

        ``None`` if only the server knows.
        """
        return None

    @abstractmethod
    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """Append records to a session.

        Args:
            scope: The user and session to write to.
            records: The records; one with a known id only adds its marks to the stored record.

        Returns:
            The ids that were added.

        Raises:
            InvalidInput: The scope has no session, or a record is invalid.
            NotSerializable: The backend cannot encode a value.
        """

    @abstractmethod
    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """Return the matching records in conversation order.

        Args:
            scope: The user, and optionally one session; without one, all sessions are searched.
            where: Which records to return.
        """

    async def values(self, scope: Scope, where: Where = EVERYTHING) -> list[Value]:
        """Return only the values of the matching records. Some backends do this faster."""
        return [record.value for record in await self.select(scope, where)]

    @abstractmethod
    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        """Remove the matching records and append the given ones, in one atomic step.

        Args:
            scope: The user and session to write to.
            where: Which records to remove.
            records: The records to append.
            if_found: Do nothing unless a live record matches (compare-and-set).

        Returns:
            The ids that were added.

        Raises:
            InvalidInput: The scope has no session, or a record is invalid.
            NotSerializable: The backend cannot encode a value.
        """

    @abstractmethod
    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        """Remove marks from the matching records, then add marks; return how many changed."""

    @abstractmethod
    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        """Delete the matching records and return their ids."""

    @abstractmethod
    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        """Return how many records match."""

    async def sessions(self, user: str) -> list[str]:
        """Return the names of the user's sessions that have live records, sorted."""
        return sorted({session_in(record) for record in await self.select(Scope(user))})

    async def changes(self, user: str, state: Any = None) -> Changes:
        """Return what changed in a user's records since ``state``.

        Without a state, every record is new. Changed marks are not reported: the record keeps its
        seq. This default returns all records every time; backends override it to return less.
        """
        records = await self.select(Scope(user))
        kept: dict[str, dict[str, int]] = {}
        for record in records:
            kept.setdefault(session_in(record), {})[record.id] = record.seq
        known = frozenset[str]() if state is None else state
        return Changes(frozenset(kept), records, kept, known - kept.keys())

    def dump_state(self, state: Any) -> Any:
        """Return a state of ``changes`` as plain data for ``load_state``, also after a restart.

        Return ``None`` if the records of this store do not outlive the process, or cannot be told
        from others. Then nothing that was derived from them is saved.
        """
        return None

    def load_state(self, kept: Any, listed: Mapping[str, Mapping[str, int]]) -> Any:
        """Return the state in plain data; ``listed`` are the records of that time.

        Args:
            kept: What ``dump_state`` returned.
            listed: Session → id → seq.

        Raises:
            CorruptData: It is not the data of a state.
        """
        raise CorruptData(f"{type(self).__name__} keeps no states")

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        """Return one page of the users that have live records, in the backend's own order.

        A page can be short or empty before the end. Users that come or go between two calls never
        cause another one to be skipped.

        Args:
            cursor: The cursor of the previous page; ``None`` to start. The last page has none.
            limit: How many users to return at most.

        Raises:
            InvalidInput: The cursor or the limit is invalid.
            NotImplementedError: The backend cannot list its users.
        """
        raise NotImplementedError(f"{type(self).__name__} does not list its users")

    async def usage(self, user: str) -> Usage:
        """Return how many records and sessions a user has, and their size in bytes.

        This default reads all records in batches; backends override it to read less.
        """
        found, size, last = 0, 0, 0  # every seq is above 0
        sessions: set[str] = set()
        while page := await self.select(Scope(user), Where(after=last, limit=RECORDS_AT_ONCE)):
            found, last = found + len(page), page[-1].seq
            size += sum(map(size_of, page))
            sessions.update(map(session_in, page))
        return Usage(found, len(sessions), size)

    def report_corrupt(self, scope: Scope, record_id: str, error: Exception) -> None:
        """Log and emit that a stored record cannot be decoded; the caller skips it."""
        logger.warning(
            "skipped record %r of user %r, session %r, which cannot be decoded: %s",
            record_id,
            scope.user,
            scope.session,
            error,
        )
        self.events.emit("record_corrupt", scope=scope, id=record_id, error=error)


def session_of(scope: Scope) -> str:
    """Return the session to write to; raise ``InvalidInput`` if the scope has none."""
    if scope.session is None:
        raise InvalidInput(
            f"writing for user {scope.user!r} needs a session; pass Scope(user, session)"
        )
    return scope.session


def state_in(kept: Any, kind: Any) -> Any:
    """Return the state of a type in plain data; raise ``CorruptData`` if it is none."""
    try:
        return msgspec.convert(kept, kind)
    except msgspec.ValidationError as error:
        raise CorruptData(f"this is not a state of the store ({error})") from error


def session_in(record: Record) -> str:
    """Return the session of a stored record."""
    assert record.session is not None  # set by the store
    return record.session


def admit(records: Sequence[Record]) -> list[Record]:
    """Validate new records; merge those with the same id into the first, with all marks."""
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
    """Return the page of ordered records that ``where`` selects."""
    if where.limit is None:
        return found
    first, end = page_of(len(found), where.limit, where)
    return found[first:end]


def page_of(total: int, limit: int, where: Where) -> tuple[int, int]:
    """Return the start and end index of the page among ``total`` matching records."""
    if where.newest:
        end = max(0, total - where.skip)
        return max(0, end - limit), end
    return min(where.skip, total), min(where.skip + limit, total)


def check_new(record: Record) -> Record:
    """Validate a new record and return it with its marks as plain strings."""
    check_id("record id", record.id)
    if record.kind is not MESSAGE:
        check_id("kind", record.kind)
    if isinstance(record.value, Msg) is not (record.kind == MESSAGE):
        raise InvalidInput(
            f"record {record.id!r}: a Msg must have kind {MESSAGE!r}, and nothing else may; "
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
