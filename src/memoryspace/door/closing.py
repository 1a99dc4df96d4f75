"""Closing at the end: memories that are still open are closed when the program ends.

Nothing acknowledged is lost without it: writes are safe when a call returns. What closing adds is
an index and a recall log written out, so that the next start is quick.

It happens at the interpreter's exit and, if the program left SIGTERM to the system, on SIGTERM.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from ..loops import wait_for

_SECONDS = 10.0  # for closing all of them at the end; a server may not answer any more

logger = logging.getLogger(__name__)


class Closable(Protocol):
    """What can be closed on an event loop."""

    async def close(self) -> None:
        """Close it."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def closed_at_exit(memory: Closable) -> None:
    """Close a memory at the end of the program, if it is still open then."""
    _open.add(memory)
    _watch_the_end()


def no_longer_open(memory: Closable) -> None:
    """Forget a memory that was closed."""
    _open.discard(memory)


def close_all() -> None:
    """Close what is still open. One that fails is logged and does not keep the others open."""
    for memory in list(_open):
        no_longer_open(memory)
        try:
            wait_for(memory.close(), timeout=_SECONDS)
        except Exception as error:  # the program ends: there is nobody to raise it to
            logger.warning("%r could not be closed at the end: %s", memory, error)


@cache
def _watch_the_end() -> None:
    # Threads are still to be had then, unlike when functions of ``atexit`` are called.
    register: Callable[[Callable[[], None]], Any] = getattr(
        threading, "_register_atexit", atexit.register
    )
    register(close_all)
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: object) -> None:
    """Close everything, then end as the signal would have ended the program."""
    close_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if hasattr(os, "register_at_fork"):  # what the parent opened is the parent's to close
    os.register_at_fork(after_in_child=_open.clear)
