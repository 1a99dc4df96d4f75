"""Requests that may be sent again: one ``Idempotency-Key``, one effect, one answer.

A key is claimed for its request before anything is written, so another request with it is refused.
Messages that are added under a key get ids that follow from the key, so the store itself adds them
once, however often and wherever the request is repeated, also if a server died in between. The
answer is stored with the user's records and returned to a repeated request; of requests that are
answered at the same time, the first one's answer is everybody's. If a server died before the answer
was stored, the repeated request makes it again from the same ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ...record import RESERVED_PREFIX, Record, Where
from ...record import Scope as Place
from ...service.values.kinds import ANSWER
from ...store import Store
from ..problems import Problem

KEYED = "key-"  # what such ids begin with

_SESSION = RESERVED_PREFIX + "answers"
_KEY = re.compile(r"[!-~]{1,128}")
_SECONDS = 86400.0  # for which an answer is kept


class Repeats:
    """The answers to requests with a key, by user."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, user: str, key: str, fingerprint: str) -> Any | None:
        """Claim a key for a request; return the answer that it had already, or ``None``.

        Raises:
            Problem: The key was used for another request.
        """
        if await self._append(user, _claim(key), {"fingerprint": fingerprint}):
            return None
        return await self.find(user, key, fingerprint)

    async def find(self, user: str, key: str, fingerprint: str) -> Any | None:
        """Return the answer to an earlier request with this key, or ``None``.

        Raises:
            Problem: The key was used for another request.
        """
        found = await self._find(user, _claim(key), _answer(key))
        claim = found.get(_claim(key))  # it is gone if it was dropped just now
        if claim is not None and claim["fingerprint"] != fingerprint:
            raise Problem(
                422,
                "key-reused",
                "this Idempotency-Key was used for another request; use a new one",
            )
        answer = found.get(_answer(key))
        return None if answer is None else answer["answer"]

    async def keep(self, user: str, key: str, answer: Any) -> Any:
        """Store the answer to a request; return it, or the one that was there before."""
        if await self._append(user, _answer(key), {"answer": answer}):
            return answer
        return (await self._find(user, _answer(key)))[_answer(key)]["answer"]

    async def drop(self, user: str, key: str) -> None:
        """Give a key back: its request was refused, and nothing was written."""
        where = Where(ids=frozenset({_claim(key)}), kind=ANSWER)
        await self._store.delete(Place(user, _SESSION), where)

    async def _append(self, user: str, record_id: str, value: dict[str, Any]) -> bool:
        now = self._store.clock()
        record = Record(record_id, value, kind=ANSWER, created_at=now, expires_at=now + _SECONDS)
        return bool(await self._store.append(Place(user, _SESSION), [record]))

    async def _find(self, user: str, *ids: str) -> dict[str, Any]:
        where = Where(ids=frozenset(ids), kind=ANSWER)
        found = await self._store.select(Place(user, _SESSION), where)
        return {record.id: record.value for record in found}


def checked_key(key: str | None) -> str | None:
    """Return an idempotency key, if it can be one."""
    if key is not None and not _KEY.fullmatch(key):
        raise Problem(
            422, "invalid-input", "an Idempotency-Key has 1 to 128 visible ASCII characters"
        )
    return key


def fingerprint_of(path: str, body: Any) -> str:
    """Return what tells one request from another."""
    text = json.dumps([path, body], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def message_id(user: str, key: str, number: int) -> str:
    """Return the id of a message that is added under a key."""
    text = json.dumps([user, key, number])
    return KEYED + hashlib.sha256(text.encode()).hexdigest()[:32]


def _claim(key: str) -> str:
    return "claim-" + hashlib.sha256(key.encode()).hexdigest()


def _answer(key: str) -> str:
    return "answer-" + hashlib.sha256(key.encode()).hexdigest()
