"""The event stream that profilers, metrics and dashboards subscribe to.

Emitting without a listener costs one attribute check. A listener that raises is logged and skipped:
observing a memory must never break it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

logger = logging.getLogger(__name__)


class Event(Struct, frozen=True):
    """An event: its name, its time in seconds since the epoch, and its data."""

    name: str
    at: float
    data: dict[str, Any]


Listener: TypeAlias = Callable[[Event], None]


class EventStream:
    """Passes every event to every listener, in the order of subscription.

    Listeners run synchronously, in the thread or event loop that emits the event: keep them short.

    Args:
        clock: Source of the events' time stamps.
        timer: Source of the durations of operations.

    Examples:
        >>> stream = EventStream(clock=lambda: 0.0)
        >>> stop = stream.subscribe(lambda event: print(event.name), "gc")
        >>> stream.emit("gc", freed=3)
        gc
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self.timer = timer  # measures operations
        self.has_listeners = False  # check it only where the event's data is expensive
        self._listeners: dict[object, tuple[Listener, frozenset[str] | None]] = {}

    def __repr__(self) -> str:
        return f"EventStream(listeners={len(self._listeners)})"

    def hears(self, name: str) -> bool:
        """Return whether any listener would receive an event of this name."""
        return any(names is None or name in names for _, names in self._listeners.values())

    def subscribe(self, listener: Listener, *names: str) -> Callable[[], None]:
        """Call ``listener`` for every event, or only for events of these names.

        Returns:
            A function that ends the subscription.
        """
        subscription = object()
        wanted = frozenset(names) if names else None
        self._set_listeners({**self._listeners, subscription: (listener, wanted)})

        def unsubscribe() -> None:
            left = {key: each for key, each in self._listeners.items() if key is not subscription}
            self._set_listeners(left)

        return unsubscribe

    def _set_listeners(
        self, listeners: dict[object, tuple[Listener, frozenset[str] | None]]
    ) -> None:
        self._listeners = listeners
        self.has_listeners = bool(listeners)

    def emit(self, name: str, /, **data: Any) -> None:
        """Send an event to the listeners. The keywords are its data, as in a structured log."""
        if not self.has_listeners:
            return
        listeners = [
            each for each, names in self._listeners.values() if names is None or name in names
        ]
        if not listeners:
            return
        event = Event(name, self._clock(), data)
        for listener in listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed on event %r and was skipped", name)
