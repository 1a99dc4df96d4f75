"""``stale_reads``: lets reads be answered by a copy of the data that may be a little old."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# The task that may read old data. Tasks that it starts inherit the variable, not the permission.
_reader: ContextVar[asyncio.Task[Any] | None] = ContextVar("memoryspace_stale_reader", default=None)


@contextmanager
def stale_reads() -> Iterator[None]:
    """Allow the reads inside this block to come from a read replica, if the store has one.

    They still show everything that this process wrote for the same user. What others wrote a moment
    ago may be missing, so never decide a change by such a read. Tasks started inside read from the
    store itself.

    Example::

        store = SQLStore("postgresql://primary/app", replica="postgresql://replica/app")
        with stale_reads():
            print(await store.count(Scope("alice")))
    """
    token = _reader.set(asyncio.current_task())
    try:
        yield
    finally:
        _reader.reset(token)


def may_be_stale() -> bool:
    """Return whether the current task is inside ``stale_reads``."""
    reader = _reader.get()
    return reader is not None and reader is asyncio.current_task()
