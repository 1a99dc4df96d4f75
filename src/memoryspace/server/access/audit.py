"""The audit log: who did what, when, to how many memories; never what was said.

Entries are only appended. Each holds the hash of the one before, so a change or a gap is found by
``check``. Several workers may append at once: each names the entry it follows, and of two that
name the same one, one appends again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator

import msgspec
from msgspec.structs import asdict

from ...errors import CorruptData, StoreError
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


class AuditLog:
    """The audit log of a server, in its store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(
        self, *, key: str, action: str, user: str | None, count: int, request: str
    ) -> AuditEntry:
        """Append an entry.

        Raises:
            StoreError: Others appended at the same time, again and again.
        """
        for _ in range(_ATTEMPTS):
            number, before = await self._head()
            entry = AuditEntry(
                number=number + 1,
                at=self._store.clock(),
                key=key,
                action=action,
                user=user,
                count=count,
                request=request,
                before=before,
            )
            entry = msgspec.structs.replace(entry, hash=_hash(entry))
            if await self._append(entry):
                return entry
        raise StoreError("the audit log is too busy; try again")

    async def entries(self, *, after: int = 0) -> AsyncIterator[AuditEntry]:
        """Yield the entries after a number, in order."""
        seen = 0
        while page := await self._store.select(_LOG, Where(after=seen, limit=_AT_ONCE)):
            for record in page:
                entry = msgspec.convert(record.value, AuditEntry)
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

    async def _append(self, entry: AuditEntry) -> bool:
        """Append an entry if nobody else has appended one with its number.

        The entry is written first: its id is its number, which the store accepts once.
        """
        record = Record(str(entry.number), entry.to_dict(), kind=_KIND, created_at=entry.at)
        if not await self._store.append(_LOG, [record]):
            await self._catch_up(entry.number)
            return False
        await self._move_head(entry)
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
            await self._move_head(msgspec.convert(found[0].value, AuditEntry))


def _hash(entry: AuditEntry) -> str:
    fields = {name: value for name, value in asdict(entry).items() if name != "hash"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
