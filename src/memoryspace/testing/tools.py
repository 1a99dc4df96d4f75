"""A manual clock, event capture, and unique scopes, for tests of memories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..events import Event, EventStream
from ..message import new_id
from ..record import Scope


class ManualClock:
    """A clock that moves only when told to.

    Args:
        now: The initial time in seconds since the epoch.

    Example::

        clock = ManualClock()
        store = MemoryStore(clock=clock)
        clock.advance(60)
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the current time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the time forward."""
        self.now += seconds


@contextmanager
def capture(events: EventStream, *names: str) -> Iterator[list[Event]]:
    """Collect the events emitted inside a ``with`` block.

    Args:
        events: The stream to listen to.
        *names: Collect only events of these names; all if none are given.

    Returns:
        A context manager that gives the list of events, which grows inside the block.

    Example::

        with capture(store.events, "operation") as seen:
            await store.count(Scope("alice"))
    """
    collected: list[Event] = []
    unsubscribe = events.subscribe(collected.append, *names)
    try:
        yield collected
    finally:
        unsubscribe()


def fresh_scope(session: str | None = "session") -> Scope:
    """Return a scope with a new unique user, so that tests can share one database."""
    return Scope(f"user-{new_id()}", session)
