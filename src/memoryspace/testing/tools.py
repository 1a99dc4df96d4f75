"""Small things every test of a memory needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..events import Event, EventStream
from ..message import new_id
from ..record import Scope


class ManualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@contextmanager
def capture(events: EventStream, *names: str) -> Iterator[list[Event]]:
    """Collect what is emitted inside the ``with`` block, of these names if any are given."""
    collected: list[Event] = []
    unsubscribe = events.subscribe(collected.append, *names)
    try:
        yield collected
    finally:
        unsubscribe()


def fresh_scope(session: str | None = "session") -> Scope:
    """Return a scope of a user that nobody else has: tests may share one database."""
    return Scope(f"user-{new_id()}", session)
