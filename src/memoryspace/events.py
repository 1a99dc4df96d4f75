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
    """Hands every emitted event to every listener, in the order they subscribed."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._listeners: dict[object, Listener] = {}

    @property
    def has_listeners(self) -> bool:
        """Whether anybody would hear; ask only where gathering the facts is dear."""
        return bool(self._listeners)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Start listening; call what this returns to stop."""
        subscription = object()
        self._listeners = {**self._listeners, subscription: listener}

        def unsubscribe() -> None:
            self._listeners = {
                key: each for key, each in self._listeners.items() if key is not subscription
            }

        return unsubscribe

    def emit(self, name: str, /, **data: Any) -> None:
        """Tell the listeners. The keywords are the event's facts, as in a structured log."""
        if not self._listeners:
            return
        event = Event(name, self._clock(), data)
        for listener in self._listeners.values():
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed on event %r and was skipped", name)
