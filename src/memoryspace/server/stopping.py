"""Streams end when the server is told to stop: it waits for its requests before it closes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .feed import Feed

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_signals(feed: Feed) -> Iterator[None]:
    """End the streams of a feed when a signal asks the server to stop, then let it stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def stop(number: int, frame: FrameType | None) -> None:
        # In a thread: the signal may have come while this one holds the feed's lock.
        threading.Thread(target=feed.close).start()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in _SIGNALS:
        if callable(before[number]):
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
