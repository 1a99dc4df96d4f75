"""API keys: made, checked, rotated and revoked; only their hashes are stored.

A key is ``ms_<id>_<secret>``. The id finds the stored hash, the secret is compared with it in
constant time. A secret has 256 random bits, so a plain SHA-256 is enough: there is nothing to guess
it from. Every check reads the store, so a key that was revoked is refused at once in every worker.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import InvalidInput, UnknownKey
from ...portable import Portable
from ...record import RESERVED_PREFIX, Record, Where, check_id
from ...record import Scope as Place
from ...store import Store

Scope: TypeAlias = Literal["read", "write", "admin"]

PREFIX = "ms_"
SERVER = RESERVED_PREFIX + "server"  # the user whose records belong to the server

_PLACE = Place(SERVER, "keys")
_KIND = "api_key"
_SCOPES = get_args(Scope)
_MOST = 10_000  # keys
_NAME_MOST = 200  # characters


class Caller(Struct, frozen=True):
    """Who makes a request, as its key says.

    Attributes:
        key: The id of the key.
        scopes: What it may do; ``admin`` may do everything.
        users: Whose memory it may use; ``None`` for everybody's.
    """

    key: str
    scopes: frozenset[str]
    users: frozenset[str] | None

    def may(self, scope: Scope) -> bool:
        """Return whether the caller has a scope."""
        return scope in self.scopes or "admin" in self.scopes

    def may_use(self, user: str) -> bool:
        """Return whether the caller may use a user's memory."""
        return self.users is None or user in self.users

    @property
    def only_user(self) -> str | None:
        """The user whose key it is, if it is bound to a single one."""
        return next(iter(self.users)) if self.users is not None and len(self.users) == 1 else None


class KeyInfo(Portable, frozen=True, kw_only=True):
    """What is known of a key; never the key itself.

    Attributes:
        id: Names the key; it is the part after ``ms_``.
        name: What it is for, in words.
        scopes: What it may do: ``read``, ``write``, ``admin``.
        users: Whose memory it may use; ``None`` for everybody's.
        created_at: When it was made, in seconds.
        expires_at: When it ends; ``None`` for never.
        revoked_at: When it was revoked; ``None`` if it was not.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    users: tuple[str, ...] | None
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None


class IssuedKey(Portable, frozen=True):
    """A new key: the only time that the key itself is shown."""

    key: str
    info: KeyInfo


class _StoredKey(Struct, frozen=True):
    info: KeyInfo
    digest: str


class KeyRing:
    """The keys of a server, in its store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def issue(
        self,
        *,
        name: str = "",
        scopes: Collection[Scope] = ("read", "write"),
        users: Sequence[str] | None = None,
        expires_at: float | None = None,
    ) -> IssuedKey:
        """Make a key. It is shown in the answer and nowhere else.

        Raises:
            InvalidInput: An argument is not valid, or there are too many keys.
        """
        wanted = _checked_scopes(scopes)
        if len(name) > _NAME_MOST:
            raise InvalidInput(f"the name of a key may have {_NAME_MOST} characters at most")
        if users is not None and not users:
            raise InvalidInput("users is empty: name at least one user, or leave it out for all")
        now = self._store.clock()
        if expires_at is not None and expires_at <= now:
            raise InvalidInput("expires_at is in the past")
        if await self._store.count(_PLACE) >= _MOST:
            raise InvalidInput(f"there are {_MOST} keys; delete revoked ones first")
        info = KeyInfo(
            id=secrets.token_hex(8),
            name=name,
            scopes=wanted,
            users=None if users is None else tuple(check_id("user", each) for each in users),
            created_at=now,
            expires_at=expires_at,
        )
        secret = secrets.token_urlsafe(32)
        await self._store.append(_PLACE, [_record(_StoredKey(info, _digest(secret)))])
        return IssuedKey(f"{PREFIX}{info.id}_{secret}", info)

    async def caller(self, key: str) -> Caller | None:
        """Return who a key belongs to; ``None`` if it is unknown, expired or revoked."""
        key_id, _, secret = key.removeprefix(PREFIX).partition("_")
        stored = await self._find(key_id) if key.startswith(PREFIX) and key_id.isalnum() else None
        digest = _NOBODY if stored is None else stored.digest
        is_right = hmac.compare_digest(_digest(secret), digest)
        if stored is None or not is_right or not self._is_valid(stored.info):
            return None
        users = None if stored.info.users is None else frozenset(stored.info.users)
        return Caller(key_id, frozenset(stored.info.scopes), users)

    async def is_valid(self, key_id: str) -> bool:
        """Return whether there is such a key, and it has not ended."""
        stored = await self._find(key_id)
        return stored is not None and self._is_valid(stored.info)

    async def list(self) -> list[KeyInfo]:
        """Return all keys, oldest first."""
        return [_read(record).info for record in await self._store.select(_PLACE)]

    async def revoke(self, key_id: str) -> KeyInfo:
        """End a key at once; ``UnknownKey`` if there is none."""
        stored = await self._known(key_id)
        if stored.info.revoked_at is not None:
            return stored.info
        info = change(stored.info, revoked_at=self._store.clock())
        await self._replace(change(stored, info=info))
        return info

    async def rotate(self, key_id: str, *, keep_seconds: float = 0.0) -> IssuedKey:
        """Make a key that may do the same, and end the old one, at once or a little later.

        Raises:
            InvalidInput: The key has ended already.
            UnknownKey: There is no such key.
        """
        old = (await self._known(key_id)).info
        if not self._is_valid(old):
            raise InvalidInput(f"the key {key_id!r} has ended; make a new one")
        new = await self.issue(
            name=old.name,
            scopes=old.scopes,  # type: ignore[arg-type]  # they were checked when it was issued
            users=old.users,
            expires_at=old.expires_at,
        )
        if keep_seconds > 0:
            ends = self._store.clock() + keep_seconds
            await self._end_at(key_id, ends)
        else:
            await self.revoke(key_id)
        return new

    async def _end_at(self, key_id: str, ends: float) -> None:
        """Let a key end at a time, unless it ends before."""
        stored = await self._known(key_id)
        if stored.info.expires_at is None or stored.info.expires_at > ends:
            await self._replace(change(stored, info=change(stored.info, expires_at=ends)))

    async def has_any(self) -> bool:
        """Return whether a key was ever made."""
        return await self._store.count(_PLACE) > 0

    def _is_valid(self, info: KeyInfo) -> bool:
        ends = info.expires_at
        return info.revoked_at is None and (ends is None or ends > self._store.clock())

    async def _known(self, key_id: str) -> _StoredKey:
        stored = await self._find(key_id)
        if stored is None:
            raise UnknownKey(f"there is no key {key_id!r}; list the keys to see their ids")
        return stored

    async def _find(self, key_id: str) -> _StoredKey | None:
        found = await self._store.select(_PLACE, Where(ids=frozenset({key_id}), kind=_KIND))
        return _read(found[0]) if found else None

    async def _replace(self, stored: _StoredKey) -> None:
        where = Where(ids=frozenset({stored.info.id}), kind=_KIND)
        await self._store.replace(_PLACE, where, [_record(stored)], if_found=True)


def _checked_scopes(scopes: Collection[str]) -> tuple[str, ...]:
    unknown = sorted(set(scopes).difference(_SCOPES))
    if unknown or not scopes:
        known = ", ".join(map(repr, _SCOPES))
        what = repr(unknown[0]) if unknown else "none"
        raise InvalidInput(f"scopes must be some of {known}, got {what}")
    return tuple(each for each in _SCOPES if each in scopes)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


_NOBODY = _digest("nobody has this key")


def _record(stored: _StoredKey) -> Record:
    value = {"info": stored.info.to_dict(), "digest": stored.digest}
    return Record(stored.info.id, value, kind=_KIND, created_at=stored.info.created_at, pinned=True)


def _read(record: Record) -> _StoredKey:
    return msgspec.convert(record.value, _StoredKey)
