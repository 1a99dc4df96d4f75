"""A thread that brings the cold tier up to date now and then, while the program goes on."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Protocol

from ...errors import StoreError

logger = logging.getLogger(__name__)


class Dirty(Protocol):
    """Something with cold copies to be written: a tiered space."""

    def flush_some(self) -> None:
        """Write some of them."""


class WriteBack:
    """Flushes every ``interval`` seconds until it is stopped, or the space is forgotten."""

    def __init__(self, space: Dirty, interval: float) -> None:
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


def _flush_every(space: weakref.ref[Dirty], stopping: threading.Event, interval: float) -> None:
    while not stopping.wait(interval):
        found = space()
        if found is None:
            return
        try:
            found.flush_some()
        except StoreError as error:
            logger.warning("the cold tier could not be written, it is tried again: %s", error)
        del found
