"""``operation``: one line around a piece of work tells whoever listens how it went.

When the work is over, an event ``operation`` goes to the stream of the object that did it and to
those of everything around it: of the operation it is part of, and of ``observed`` blocks. It says
what was done (``name``, ``on``), for whom (``scope``), how long it took (``seconds``), how much
there was of it (``counts``), how it ended (``outcome``, ``error``) and what it was part of
(``parent``, ``root``). It never holds what anybody said: numbers, ids, names of classes and models.

Where nobody listens, an operation is one look at a context variable.
"""

from __future__ import annotations

import os
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypeAlias

from .events import EventStream

OPERATION = "operation"
Outcome: TypeAlias = Literal["done", "failed", "cancelled"]


class Operation:
    """A piece of work, from ``with`` to the end of its block. This one is told to nobody."""

    __slots__ = ()

    def count(self, **counts: int) -> None:
        """Say how much there was: what was given, what came back, tokens."""

    @property
    def is_told(self) -> bool:
        """Whether anybody will hear of it."""
        return False

    def stay_open(self) -> None:
        """Go on beyond the block, until ``end``; what happens after it is no part of this."""

    def end(self, error: BaseException | None = None) -> None:
        """End what was to stay open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class _Around(NamedTuple):
    """What is going on around a line of code: who is to be told, and what it is part of."""

    streams: tuple[EventStream, ...]
    operation: _Told | None


_around: ContextVar[_Around | None] = ContextVar("memoryspace_around", default=None)
_UNTOLD = Operation()

around = _around.get  # ``None`` where only the stream of whoever does something might be told


def operation(
    name: str,
    *,
    on: str,
    scope: object = None,
    events: EventStream | None = None,
    owner: object = None,
) -> Operation:
    """Return an operation to be used with ``with``.

    ``on`` is what does it: a class or a model. ``events`` is its stream, if it has one. What an
    ``owner`` does as part of an operation of its own is not told as another one.
    """
    surroundings = _around.get()
    if surroundings is None:
        if events is None or not events.hears(OPERATION):
            return _UNTOLD
        return _Told(name, on, scope, owner, (events,), None)
    streams = _with(surroundings.streams, events)
    parent = _running(surroundings)
    if _is_part(parent, owner) or not any(each.hears(OPERATION) for each in streams):
        return _UNTOLD
    return _Told(name, on, scope, owner, streams, parent)


@contextmanager
def observed(events: EventStream) -> Iterator[None]:
    """Tell ``events`` of every operation inside the block, whatever does it.

    Models and embedders have no stream of their own: this, or the operation of a service or a
    window that they are part of, is where they are heard.
    """
    outside = _around.get() or _Around((), None)
    token = _around.set(_Around(_with(outside.streams, events), outside.operation))
    try:
        yield
    finally:
        _around.reset(token)


class _Told(Operation):
    __slots__ = (
        "_began",
        "_counts",
        "_name",
        "_on",
        "_owner",
        "_scope",
        "_stays_open",
        "_streams",
        "_token",
        "has_ended",
        "id",
        "parent",
        "root",
    )

    def __init__(
        self,
        name: str,
        on: str,
        scope: object,
        owner: object,
        streams: tuple[EventStream, ...],
        parent: _Told | None,
    ) -> None:
        self.id = os.urandom(8).hex()
        self.parent = None if parent is None else parent.id
        self.root: str = self.id if parent is None else parent.root
        self.has_ended = self._stays_open = False
        self._name, self._on, self._scope, self._owner = name, on, scope, owner
        self._streams = streams
        self._counts: dict[str, int] = {}

    def count(self, **counts: int) -> None:
        self._counts.update(counts)

    @property
    def is_told(self) -> bool:
        return True

    def stay_open(self) -> None:
        self._stays_open = True

    def end(self, error: BaseException | None = None) -> None:
        seconds = self._streams[0].timer() - self._began
        self.has_ended = True
        for stream in self._streams:
            stream.emit(
                "operation",
                name=self._name,
                on=self._on,
                scope=self._scope,
                seconds=seconds,
                counts=dict(self._counts),
                outcome=_outcome(error),
                error=None if error is None else type(error).__name__,
                id=self.id,
                parent=self.parent,
                root=self.root,
            )

    def __enter__(self) -> Self:
        self._token = _around.set(_Around(self._streams, self))
        self._began = self._streams[0].timer()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _around.reset(self._token)
        if error is not None or not self._stays_open:
            self.end(error)

    def is_of(self, owner: object) -> bool:
        """Tell whether somebody does this."""
        return self._owner is owner


def _with(streams: tuple[EventStream, ...], more: EventStream | None) -> tuple[EventStream, ...]:
    if more is None or any(each is more for each in streams):
        return streams
    return (*streams, more)


def _running(surroundings: _Around) -> _Told | None:
    """Return what is going on; a task may outlive the operation in which it was begun."""
    found = surroundings.operation
    return None if found is None or found.has_ended else found


def _is_part(parent: _Told | None, owner: object) -> bool:
    return owner is not None and parent is not None and parent.is_of(owner)


def _outcome(error: BaseException | None) -> Outcome:
    if error is None:
        return "done"
    return "cancelled" if isinstance(error, CancelledError | GeneratorExit) else "failed"
