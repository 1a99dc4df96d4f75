"""The audit log: who did what, when, to how many memories; never what was said.

Entries are only appended. Each holds the hash of the one before, so a change or a gap is found by
``check``. Several workers may append at once: each names the entry it follows, and of two that
name the same one, one appends again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import TypeAlias

import msgspec
from msgspec.structs import asdict
from msgspec.structs import replace as change

from ...errors import CorruptData, StoreError
from ...loops import PerLoop, finish
from ...portable import Portable
from ...record import Record, Scope, Where
from ...store import Store
from .keys import SERVER

_HEAD = Scope(SERVER, "audit head")
_LOG = Scope(SERVER, "audit")
_KIND = "audit"
_HEAD_ID = "head"
_START = "0" * 64
_ATTEMPTS = 50
_AT_ONCE = 500


class AuditEntry(Portable, frozen=True, kw_only=True):
    """One thing that was done.

    Attributes:
        number: Its place in the log, from 1.
        at: When, in seconds.
        key: The id of the key that did it.
        action: What was done, such as ``memories.delete``.
        user: Whose memory it was about.
        count: How many memories it was about.
        request: The id of the request.
        before: The hash of the entry before.
        hash: The hash of this entry.
    """

    number: int
    at: float
    key: str
    action: str
    user: str | None
    count: int
    request: str
    before: str
    hash: str = ""


_Place: TypeAlias = tuple[AuditEntry, "asyncio.Future[AuditEntry]"]


class AuditLog:
    """The audit log of a server, in its store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines = PerLoop(_Line)

    async def note(
        self, *, key: str, action: str, user: str | None, count: int, request: str
    ) -> AuditEntry:
        """Append an entry. Those that wait at the same time are appended together.

        Raises:
            StoreError: Others appended at the same time, again and again.
        """
        entry = AuditEntry(
            number=0,
            at=self._store.clock(),
            key=key,
            action=action,
            user=user,
            count=count,
            request=request,
            before="",
        )
        line = self._lines.get()
        place = line.join(entry)
        async with line.lock:
            if not place.done():
                await finish(self._append_all(line.leave()))
        return await place

    async def _append_all(self, waiting: list[_Place]) -> None:
        try:
            entries = await self._appended([entry for entry, _ in waiting])
        except Exception as error:
            for _, place in waiting:
                place.set_exception(error)
        else:
            for (_, place), entry in zip(waiting, entries, strict=True):
                place.set_result(entry)

    async def _appended(self, entries: list[AuditEntry]) -> list[AuditEntry]:
        for _ in range(_ATTEMPTS):
            chained = _chain(entries, *await self._head())
            if await self._append(chained):
                return chained
        raise StoreError("the audit log is too busy; try again")

    async def entries(self, *, after: int = 0) -> AsyncIterator[AuditEntry]:
        """Yield the entries after a number, in order."""
        seen = 0
        while page := await self._store.select(_LOG, Where(after=seen, limit=_AT_ONCE)):
            for record in page:
                for entry in _read(record):
                    if entry.number > after:
                        yield entry
            seen = page[-1].seq

    async def check(self) -> int:
        """Return how many entries there are; ``CorruptData`` if one was changed or is missing."""
        last, hash_then = await self._head()
        number, before = 0, _START
        async for entry in self.entries():
            number += 1
            if entry.number != number or entry.before != before or entry.hash != _hash(entry):
                raise CorruptData(f"the audit log was changed at entry {number}")
            before = entry.hash
            if number == last and before != hash_then:
                raise CorruptData(f"the audit log was written anew up to entry {number}")
        if number < last:
            raise CorruptData(f"the audit log ends after entry {number}, but {last} were written")
        return number

    async def _head(self) -> tuple[int, str]:
        found = await self._store.select(_HEAD)
        if not found:
            return 0, _START
        value = found[0].value
        assert isinstance(value, dict)  # as _append wrote it
        return int(value["number"]), str(value["hash"])

    async def _append(self, entries: list[AuditEntry]) -> bool:
        """Append entries if nobody else has appended one with the number of the first.

        They are written first, in one record: its id is that number, which the store accepts once.
        """
        first = entries[0]
        value = [entry.to_dict() for entry in entries]
        record = Record(str(first.number), value, kind=_KIND, created_at=first.at)
        if not await self._store.append(_LOG, [record]):
            await self._catch_up(first.number)
            return False
        await self._move_head(entries[-1])
        return True

    async def _move_head(self, entry: AuditEntry) -> None:
        head = Record(
            _HEAD_ID,
            {"number": entry.number, "hash": entry.hash},
            kind=_KIND,
            created_at=entry.at,
            pinned=True,
        )
        await self._store.replace(_HEAD, Where(ids=frozenset({_HEAD_ID})), [head])

    async def _catch_up(self, number: int) -> None:
        """Move the head on, in place of a writer that was cut off before it did."""
        found = await self._store.select(_LOG, Where(ids=frozenset({str(number)})))
        if found and (await self._head())[0] < number:
            await self._move_head(_read(found[0])[-1])


class _Line:
    """The entries that wait to be appended, and who appends them."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._waiting: list[_Place] = []

    def join(self, entry: AuditEntry) -> asyncio.Future[AuditEntry]:
        """Add an entry; the future is done when it is stored."""
        place: asyncio.Future[AuditEntry] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, place))
        return place

    def leave(self) -> list[_Place]:
        """Return everything that waits, and let nothing wait."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _chain(entries: list[AuditEntry], number: int, before: str) -> list[AuditEntry]:
    chained = []
    for entry in entries:
        number += 1
        linked = change(entry, number=number, before=before)
        chained.append(change(linked, hash=_hash(linked)))
        before = chained[-1].hash
    return chained


def _read(record: Record) -> list[AuditEntry]:
    try:
        return msgspec.convert(record.value, list[AuditEntry])
    except msgspec.ValidationError:
        raise CorruptData(f"the audit log was changed at entry {record.id}") from None


def _hash(entry: AuditEntry) -> str:
    fields = {name: value for name, value in asdict(entry).items() if name != "hash"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
