"""Requests that may be sent again: one ``Idempotency-Key``, one effect, one answer.

Messages that are added under a key get ids that follow from the key, so the store itself adds them
once, however often and wherever the request is repeated, also if a server died in between. The
answer is stored with the user's records and returned to a repeated request. If a server died before
the answer was stored, the repeated request makes it again from the same ids.
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

    async def find(self, user: str, key: str, fingerprint: str) -> Any | None:
        """Return the answer to an earlier request with this key, or ``None``.

        Raises:
            Problem: The key was used for another request.
        """
        where = Where(ids=frozenset({_id(key)}), kind=ANSWER)
        found = await self._store.select(Place(user, _SESSION), where)
        if not found:
            return None
        value = found[0].value
        assert isinstance(value, dict)  # as keep() wrote it
        if value["fingerprint"] != fingerprint:
            raise Problem(
                422,
                "key-reused",
                "this Idempotency-Key was used for another request; use a new one",
            )
        return value["answer"]

    async def keep(self, user: str, key: str, fingerprint: str, answer: Any) -> None:
        """Store the answer to a request; the first one stays."""
        now = self._store.clock()
        record = Record(
            _id(key),
            {"fingerprint": fingerprint, "answer": answer},
            kind=ANSWER,
            created_at=now,
            expires_at=now + _SECONDS,
        )
        await self._store.append(Place(user, _SESSION), [record])


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


def _id(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
