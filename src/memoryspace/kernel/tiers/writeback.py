"""``WriteBack``: a thread that writes missing cold copies at intervals."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Protocol

from ...errors import StoreError

logger = logging.getLogger(__name__)


class Flushable(Protocol):
    """Something with missing cold copies: a tiered engine."""

    def flush_some(self) -> None:
        """Write a batch of them."""


class WriteBack:
    """Flushes every ``interval`` seconds until it is stopped or the space is garbage collected."""

    def __init__(self, space: Flushable, interval: float) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=_flush_every,
            args=(weakref.ref(space), self._stopping, interval),
            name="memoryspace-flusher",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()


def _flush_every(space: weakref.ref[Flushable], stopping: threading.Event, interval: float) -> None:
    while not stopping.wait(interval):
        found = space()
        if found is None:
            return
        try:
            found.flush_some()
        except StoreError as error:
            logger.warning("the cold tier could not be written and is retried: %s", error)
        del found
