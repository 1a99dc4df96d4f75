"""What happens is emitted once, here; profilers, metrics and dashboards only listen.

Emitting without a listener costs one attribute test. A listener that fails is logged and skipped:
watching a memory must never break it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

logger = logging.getLogger(__name__)


class Event(Struct, frozen=True):
    """Something that happened: its name, when, and the facts."""

    name: str
    at: float
    data: dict[str, Any]


Listener: TypeAlias = Callable[[Event], None]


class EventStream:
    """Hands every emitted event to every listener, in the order they subscribed.

    A listener is called where the event happens, on that thread or loop: let it only take notes.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self.timer = timer  # by which operations are measured
        self.has_listeners = False  # ask only where gathering the facts is dear
        self._listeners: dict[object, tuple[Listener, frozenset[str] | None]] = {}

    def hears(self, name: str) -> bool:
        """Tell whether anybody would hear an event of this name."""
        return any(names is None or name in names for _, names in self._listeners.values())

    def subscribe(self, listener: Listener, *names: str) -> Callable[[], None]:
        """Start listening, to events of these names if any are given; call the answer to stop."""
        subscription = object()
        wanted = frozenset(names) if names else None
        self._hear({**self._listeners, subscription: (listener, wanted)})

        def unsubscribe() -> None:
            left = {key: each for key, each in self._listeners.items() if key is not subscription}
            self._hear(left)

        return unsubscribe

    def _hear(self, listeners: dict[object, tuple[Listener, frozenset[str] | None]]) -> None:
        self._listeners = listeners
        self.has_listeners = bool(listeners)

    def emit(self, name: str, /, **data: Any) -> None:
        """Tell the listeners. The keywords are the event's facts, as in a structured log."""
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
