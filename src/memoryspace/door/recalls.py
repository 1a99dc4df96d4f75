"""The recall log: what was asked, what was found, and whether it helped.

A user's log is stored with the user's records, so that it is erased with them. It is a log, not a
ledger: entries are written in the background, and a crash may lose the last ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace as change

from ..errors import InvalidInput, MemorySpaceError, UnknownMemory
from ..loops import PerLoop
from ..message import new_id
from ..portable import Portable
from ..record import RESERVED_PREFIX, Record, Scope, Where
from ..service.values.kinds import RECALL
from ..store import Store

MAX_QUESTION = 2000  # characters of a question that are kept

_SESSION = RESERVED_PREFIX + "recalls"
_SLACK = 100  # entries over the limit before the oldest are dropped
_LOGGED = Where(kind=RECALL)

logger = logging.getLogger(__name__)


class Recall(Portable, frozen=True, kw_only=True):
    """One search or context.

    Attributes:
        id: Names it; pass it to ``feedback``.
        question: What was asked.
        at: When, in seconds since the epoch.
        ids: The memories that were returned, best first.
        used: Those that helped, as told by ``feedback``; ``None`` if it was never told.
    """

    id: str
    question: str
    at: float
    ids: tuple[str, ...] = ()
    used: tuple[str, ...] | None = None


class Recalls(Portable, frozen=True, kw_only=True):
    """A user's recall log in short.

    Attributes:
        newest: The newest entries, newest first.
        count: How many entries there are.
        silent: How many found nothing.
        answered: How many got feedback.
        helped: How many of these used something.
    """

    newest: tuple[Recall, ...]
    count: int
    silent: int
    answered: int
    helped: int


class RecallLog:
    """The recall logs of all users of a store.

    Args:
        store: Where the logs are stored.
        most: How many entries of each user are kept; 0 logs nothing.
    """

    def __init__(self, store: Store, *, most: int) -> None:
        self._store = store
        self._most = most
        self._waiting: dict[str, list[Recall]] = defaultdict(list)
        self._extra: dict[str, int] = defaultdict(int)  # written since the log was last cut
        self._lock = PerLoop(asyncio.Lock)
        self._task: asyncio.Task[None] | None = None

    def note(self, user: str, question: str, ids: Sequence[str]) -> str:
        """Log a recall in the background and return its id; "" if nothing is logged."""
        if not self._most:
            return ""
        recall = Recall(
            id=new_id(), question=question[:MAX_QUESTION], at=self._store.clock(), ids=tuple(ids)
        )
        self._waiting[user].append(recall)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_waiting())
        return recall.id

    async def tell(self, user: str, recall_id: str, used: Sequence[str]) -> Recall:
        """Add to an entry which of its memories helped.

        Raises:
            UnknownMemory: The log has no such entry, or no longer.
            InvalidInput: A memory was not among those returned.
        """
        await self.flush(user)
        where = Where(ids=frozenset({recall_id}), kind=RECALL)
        found = [_read(record) for record in await self._store.select(_place(user), where)]
        if not found:
            raise UnknownMemory(f"no recall {recall_id!r} in the log; the oldest are dropped")
        foreign = [each for each in used if each not in found[0].ids]
        if foreign:
            raise InvalidInput(
                f"recall {recall_id!r} did not return {foreign[0]!r}; name ids that it returned"
            )
        told = change(found[0], used=tuple(used))
        await self._store.replace(_place(user), where, [_record(told)], if_found=True)
        return told

    async def read(self, user: str, limit: int) -> Recalls:
        """Return a user's log in short, with its newest entries."""
        entries = await self.entries(user)
        told = [each for each in entries if each.used is not None]
        return Recalls(
            newest=tuple(sorted(entries, key=lambda each: -each.at)[:limit]),
            count=len(entries),
            silent=sum(not each.ids for each in entries),
            answered=len(told),
            helped=sum(bool(each.used) for each in told),
        )

    async def entries(self, user: str) -> list[Recall]:
        """Return all entries of a user."""
        await self.flush(user)
        return [_read(record) for record in await self._store.select(_place(user), _LOGGED)]

    async def flush(self, user: str) -> None:
        """Write a user's waiting entries now."""
        async with self._lock.get():
            await self._write(user)

    async def forget(self, user: str) -> None:
        """Drop a user's waiting entries: an erased user's log must not come back."""
        async with self._lock.get():
            self._waiting.pop(user, None)
            self._extra.pop(user, None)

    async def close(self) -> None:
        """Write what is waiting, and wait for what is being written."""
        await self._write_waiting()
        async with self._lock.get():
            pass

    async def _write_waiting(self) -> None:
        while self._waiting:
            user = next(iter(self._waiting))
            try:
                await self.flush(user)
            except MemorySpaceError as error:  # a search must not fail for want of its log
                logger.warning("recalls could not be logged: %s", error)

    async def _write(self, user: str) -> None:
        waiting = self._waiting.pop(user, [])
        if not waiting:
            return
        await self._store.append(_place(user), [_record(each) for each in waiting])
        self._extra[user] += len(waiting)
        if self._extra[user] >= _SLACK:
            await self._cut(user)

    async def _cut(self, user: str) -> None:
        """Drop a user's oldest entries beyond the limit."""
        self._extra.pop(user, None)
        too_many = await self._store.count(_place(user), _LOGGED) - self._most
        if too_many > 0:
            oldest = await self._store.select(_place(user), change(_LOGGED, limit=too_many))
            ids = frozenset(record.id for record in oldest)
            await self._store.delete(_place(user), Where(ids=ids, kind=RECALL))


def _place(user: str) -> Scope:
    return Scope(user, _SESSION)


def _record(recall: Recall) -> Record:
    return Record(recall.id, recall.to_dict(), kind=RECALL, created_at=recall.at)


def _read(record: Record) -> Recall:
    return msgspec.convert(record.value, Recall)
