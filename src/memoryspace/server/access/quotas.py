"""What a tenant may store: bytes and records, by default and by user."""

from __future__ import annotations

import msgspec

from ...portable import Portable
from ...record import Record, Where
from ...record import Scope as Place
from ...store import Store
from ..problems import Problem
from .keys import SERVER

_PLACE = Place(SERVER, "quotas")
_KIND = "quota"


class Quota(Portable, frozen=True, kw_only=True):
    """What a user may store; 0 stands for no limit.

    Attributes:
        max_bytes: The most bytes.
        max_records: The most records, with old versions, working memory, and two for a day for each
            request with an idempotency key.
    """

    max_bytes: int = 0
    max_records: int = 0


class Quotas:
    """The quotas of a server's users.

    They are checked before a write, so writes that are under way at once may pass a limit by as
    much as they hold.

    Args:
        store: Where they are stored.
        measured: The store whose usage they limit.
        max_bytes: The default of all users.
        max_records: The same for records.
    """

    def __init__(
        self, store: Store, measured: Store, *, max_bytes: int = 0, max_records: int = 0
    ) -> None:
        self._store = store
        self._measured = measured
        self._default = Quota(max_bytes=max_bytes, max_records=max_records)

    async def of(self, user: str) -> Quota:
        """Return a user's quota."""
        found = await self._store.select(_PLACE, Where(ids=frozenset({user}), kind=_KIND))
        return msgspec.convert(found[0].value, Quota) if found else self._default

    async def put(self, user: str, quota: Quota) -> None:
        """Set a user's quota."""
        now = self._store.clock()
        record = Record(user, quota.to_dict(), kind=_KIND, created_at=now, pinned=True)
        await self._store.replace(_PLACE, Where(ids=frozenset({user}), kind=_KIND), [record])

    async def drop(self, user: str) -> None:
        """Let a user have the default quota again."""
        await self._store.delete(_PLACE, Where(ids=frozenset({user}), kind=_KIND))

    async def check(self, user: str) -> None:
        """Raise a ``Problem`` if a user has used up a quota."""
        quota = await self.of(user)
        if not quota.max_bytes and not quota.max_records:
            return
        usage = await self._measured.usage(user)
        for what, used, most in (
            ("bytes", usage.bytes, quota.max_bytes),
            ("records", usage.records, quota.max_records),
        ):
            if most and used >= most:
                raise Problem(
                    507,
                    "quota-exceeded",
                    f"this user has {used} {what}, and {most} are allowed; delete some, or ask "
                    "for a larger quota",
                    more={"quota": most, "used": used, "of": what},
                )
