"""The live feed: what happens in the memory as server-sent events, to be resumed by id.

The newest events are kept for readers that come back. A reader sees what its key may see: events of
its users and, if it is bound to none, those of the memory space as well. No event holds what users
said.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ..events import Event, EventStream
from ..portable import portable
from ..record import RESERVED_PREFIX, Scope
from .access.keys import Caller

KEPT = 2000  # events
_WAITING = 1000  # events that a slow reader may be behind
_HEARTBEAT = 15.0  # seconds

# Events of these names are too many to be of use to people.
_UNTOLD = frozenset({"load", "allocation", "retrieve_hit", "retrieve_complete", "free"})


class Told(Struct, frozen=True):
    """An event as it is sent: its number, its name, whose it is, and its data as JSON."""

    number: int
    name: str
    user: str | None
    text: str


class Feed:
    """Keeps the newest events of a stream and passes new ones on to readers."""

    def __init__(self, events: EventStream) -> None:
        self._kept: deque[Told] = deque(maxlen=KEPT)
        # A server that starts anew goes on with higher numbers, unless it told 1,000 events a
        # second all its life: so a reader that comes back misses nothing that is kept.
        self._number = int(time.time() * 1000)
        self._readers: set[_Reader] = set()
        self._lock = threading.Lock()  # events come from any thread
        self._is_closed = False
        self._stop = events.subscribe(self._hear)

    def close(self) -> None:
        """Stop listening and end all readers."""
        self._stop()
        with self._lock:
            self._is_closed = True
            readers = [*self._readers]
        for reader in readers:
            reader.end()

    async def read(
        self,
        caller: Caller,
        after: int | None,
        *,
        still: Callable[[], Awaitable[bool]],
    ) -> AsyncIterator[str]:
        """Yield server-sent events, from the one after a number on; heartbeats in between.

        Args:
            caller: Who reads.
            after: The number of the last event that the caller has seen.
            still: Says whether the caller's key is still valid; asked before events are told.
        """
        reader = _Reader(caller, asyncio.get_running_loop())
        self._add(reader, after)
        try:
            yield "retry: 2000\n\n"
            while (found := await reader.next(_HEARTBEAT)) is not None and await still():
                yield "".join(map(_line, found)) if found else ": still here\n\n"
        finally:
            self._readers.discard(reader)

    def _add(self, reader: _Reader, after: int | None) -> None:
        with self._lock:
            self._readers.add(reader)
            if after is not None:
                for told in self._kept:
                    if told.number > after:
                        reader.offer(told)
            if self._is_closed:
                reader.end()

    def _hear(self, event: Event) -> None:
        if event.name in _UNTOLD or _is_own(event):
            return
        with self._lock:
            self._number += 1
            told = _told(self._number, event)
            self._kept.append(told)
            for reader in self._readers:
                reader.offer(told)


class _Reader:
    """One reader and what it has not read yet. Events may come from any thread."""

    def __init__(self, caller: Caller, loop: asyncio.AbstractEventLoop) -> None:
        self._caller = caller
        self._loop = loop
        self._waiting: asyncio.Queue[Told] = asyncio.Queue()

    def offer(self, told: Told) -> None:
        if told.user is None and self._caller.users is not None:
            return
        if told.user is not None and not self._caller.may_use(told.user):
            return
        self._soon(self._put, told)

    def end(self) -> None:
        self._soon(self._waiting.put_nowait, _END)

    def _soon(self, put: Callable[[Told], None], told: Told) -> None:
        with suppress(RuntimeError):  # the reader's loop has ended, and the reader with it
            self._loop.call_soon_threadsafe(put, told)

    async def next(self, seconds: float) -> list[Told] | None:
        """Return the events that wait, none if none comes in time; ``None`` at the end."""
        try:
            found = [await asyncio.wait_for(self._waiting.get(), seconds)]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            found.append(self._waiting.get_nowait())
        return None if found[0] is _END else [each for each in found if each is not _END]

    def _put(self, told: Told) -> None:
        if self._waiting.qsize() < _WAITING:
            self._waiting.put_nowait(told)
        elif self._waiting.qsize() == _WAITING:  # it is too slow: let it come back and resume
            self._waiting.put_nowait(_END)


_END = Told(-1, "end", None, "")


def _is_own(event: Event) -> bool:
    """Return whether an event is about the server's own records, such as keys."""
    scope = event.data.get("scope")
    return isinstance(scope, Scope) and scope.user.startswith(RESERVED_PREFIX)


def _told(number: int, event: Event) -> Told:
    scope = event.data.get("scope")
    user = scope.user if isinstance(scope, Scope) else None
    data = {name: _plain(value) for name, value in event.data.items() if name != "error"}
    if isinstance(event.data.get("error"), str):
        data["error"] = event.data["error"]  # the name of a class
    text = json.dumps({"name": event.name, "at": event.at, "data": data})
    return Told(number, event.name, user, text)


def _plain(value: Any) -> Any:
    if isinstance(value, Scope):
        return {"user": value.user, "session": value.session}
    try:
        return portable(value)
    except TypeError:
        return type(value).__name__


def _line(told: Told) -> str:
    return f"id: {told.number}\nevent: {told.name}\ndata: {told.text}\n\n"
