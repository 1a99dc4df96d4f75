"""The live feed: what happens in the memory as server-sent events, to be resumed by id.

The newest events are kept for readers that come back. A reader sees what its key may see: events of
its users and, if it is bound to none, those of the memory space as well. No event holds what users
said.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
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
        self._number = 0
        self._readers: set[_Reader] = set()
        self._stop = events.subscribe(self._hear)

    def close(self) -> None:
        """Stop listening and end all readers."""
        self._stop()
        for reader in [*self._readers]:
            reader.end()

    async def read(self, caller: Caller, after: int | None) -> AsyncIterator[str]:
        """Yield server-sent events, from the one after a number on; heartbeats in between."""
        reader = _Reader(caller, asyncio.get_running_loop())
        self._readers.add(reader)
        try:
            yield "retry: 2000\n\n"
            if after is not None:
                for told in [each for each in self._kept if each.number > after]:
                    reader.offer(told)
            while True:
                found = await reader.next(_HEARTBEAT)
                if found is _END:
                    return
                yield ": still here\n\n" if found is None else _line(found)
        finally:
            self._readers.discard(reader)

    def _hear(self, event: Event) -> None:
        if event.name in _UNTOLD:
            return
        self._number += 1
        told = _told(self._number, event)
        self._kept.append(told)
        for reader in [*self._readers]:
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
        self._loop.call_soon_threadsafe(self._put, told)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._waiting.put_nowait, _END)

    async def next(self, seconds: float) -> Told | None:
        """Return the next event, or ``None`` if none comes in time."""
        try:
            return await asyncio.wait_for(self._waiting.get(), seconds)
        except TimeoutError:
            return None

    def _put(self, told: Told) -> None:
        if self._waiting.qsize() < _WAITING:
            self._waiting.put_nowait(told)
        elif self._waiting.qsize() == _WAITING:  # it is too slow: let it come back and resume
            self._waiting.put_nowait(_END)


_END = Told(-1, "end", None, "")


def _told(number: int, event: Event) -> Told:
    scope = event.data.get("scope")
    user = scope.user if isinstance(scope, Scope) else None
    if user is not None and user.startswith(RESERVED_PREFIX):
        user = None  # the server's own: for those who may see everything
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
