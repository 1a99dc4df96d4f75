"""A pause for Python's garbage collector while many long-lived objects are created at once.

The collector scans the heap each time the number of objects has grown by a share. While ten
thousand messages are read or written, and none of them is garbage, those scans are most of the
work.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pause:
    """Counts the open pauses: the first stops the collector, the last starts it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_on = False

    def begin(self) -> None:
        with self._lock:
            if self._count == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._was_on:
                gc.enable()


_pause = _Pause()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Pause the garbage collector in this block. A collector that was off stays off.

    Never hold the block open across an ``await``.
    """
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()
