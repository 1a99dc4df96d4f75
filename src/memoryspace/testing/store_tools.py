"""Helpers shared by the checks of the store contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..errors import InvalidInput
from ..message import Msg
from ..record import Record, text_of
from ..store import Store
from ..store.contract import Changes, session_in

StoreMaker = Callable[..., Store]
StoreCheck = Callable[[StoreMaker], Awaitable[None]]


class Mirror:
    """A copy of a user's records, updated only from ``changes``."""

    def __init__(self) -> None:
        self.state: object = None
        self._sessions: dict[str, dict[int, Record]] = {}

    async def catch_up(self, store: Store, user: str) -> Changes:
        """Read the changes and apply them."""
        changes = await store.changes(user, self.state)
        for name in changes.gone:
            self._sessions.pop(name, None)
        for name, kept in changes.kept.items():
            held = self._sessions.get(name, {})
            self._sessions[name] = {s: each for s, each in held.items() if kept.get(each.id) == s}
        for each in changes.records:
            self._sessions.setdefault(session_in(each), {})[each.seq] = each
        self.state = changes.state
        return changes

    def held(self, now: float = 0.0) -> list[tuple[int, str, str]]:
        """Return seq, session and id of the records that have not expired, in order."""
        every = [each for session in self._sessions.values() for each in session.values()]
        living = [each for each in every if each.expires_at is None or each.expires_at > now]
        return sorted((each.seq, session_in(each), each.id) for each in living)


def record(text: str = "hello", *marks: str, id: str | None = None) -> Record:
    """Return a record of a new message."""
    msg = Msg("Ann", text, "user")
    if id is not None:
        msg.id = id
    return Record(msg.id, msg, text_of(msg), frozenset(marks), created_at=1.5)


def records(count: int) -> list[Record]:
    """Return ``count`` records of new messages."""
    return [record(f"message {number}") for number in range(count)]


def ids(found: list[Record]) -> list[str]:
    """Return the ids of records in order."""
    return [each.id for each in found]


async def assert_refused(call: Awaitable[object]) -> None:
    """Await a call and check that it raises ``InvalidInput``."""
    try:
        await call
    except InvalidInput:
        return
    raise AssertionError("the call must raise InvalidInput")
