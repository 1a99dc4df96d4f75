"""Python's garbage collector, at rest while much is made at once that is all kept.

It looks at everything there is each time that a share of it is new. Where ten thousand messages are
read or written and none of them is garbage, that is most of the work.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Rest:
    """Counts those for whom the collector rests: the first stops it, the last lets it go on."""

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


_rest = _Rest()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the collector rest for a while, never over an ``await``; one that was off stays off."""
    _rest.begin()
    try:
        yield
    finally:
        _rest.end()
