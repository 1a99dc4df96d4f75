"""``operation``: a context manager that reports a piece of work as an event.

When the work ends, an ``operation`` event goes to the stream of the object that did it, to the
streams of the enclosing operations, and to those of ``observed`` blocks. It says what was done
(``name``, ``on``), for which user (``scope``), how long it took (``seconds``), how much was
processed (``counts``), how it ended (``outcome``, ``error``) and what it was part of (``parent``,
``root``). It never contains message text: only numbers, ids, and names of classes and models.

Without a listener, an operation costs one read of a context variable.
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
    """A piece of work, from ``with`` to the end of its block. This base class reports nothing."""

    __slots__ = ()

    def count(self, **counts: int) -> None:
        """Add counts to the report: what was passed, what was returned, tokens."""

    @property
    def is_reported(self) -> bool:
        """Whether any listener will receive the event."""
        return False

    def stay_open(self) -> None:
        """Keep the operation open after the block, until ``end``. Later work is not part of it."""

    def end(self, error: BaseException | None = None) -> None:
        """End an operation that stayed open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class _Context(NamedTuple):
    """What encloses the running code: the streams to report to, and the operation in progress."""

    streams: tuple[EventStream, ...]
    operation: _Reported | None


_context: ContextVar[_Context | None] = ContextVar("memoryspace_around", default=None)
_UNREPORTED = Operation()

current_context = _context.get  # ``None`` outside of operations and ``observed`` blocks


def operation(
    name: str,
    *,
    on: str,
    scope: object = None,
    events: EventStream | None = None,
    owner: object = None,
) -> Operation:
    """Return an operation to use in a ``with`` statement.

    Args:
        name: What is done, such as ``"store.append"``.
        on: The class or model that does it.
        scope: The user and session it is done for.
        events: The stream of the object that does it, if it has one.
        owner: That object. Its calls to itself are not reported as separate operations.

    Examples:
        >>> with operation("tool.call", on="search") as op:
        ...     op.count(returned=3)
    """
    context = _context.get()
    if context is None:
        if events is None or not events.hears(OPERATION):
            return _UNREPORTED
        return _Reported(name, on, scope, owner, (events,), None)
    streams = _with(context.streams, events)
    parent = _running(context)
    if _is_part(parent, owner) or not any(each.hears(OPERATION) for each in streams):
        return _UNREPORTED
    return _Reported(name, on, scope, owner, streams, parent)


@contextmanager
def observed(events: EventStream) -> Iterator[None]:
    """Send every operation inside the block to ``events``, whichever object does it.

    Models and embedders have no stream of their own: observe them with this block, or through the
    service or window that calls them.

    Examples:
        >>> with observed(EventStream()):
        ...     pass
    """
    outside = _context.get() or _Context((), None)
    token = _context.set(_Context(_with(outside.streams, events), outside.operation))
    try:
        yield
    finally:
        _context.reset(token)


class _Reported(Operation):
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
        parent: _Reported | None,
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
    def is_reported(self) -> bool:
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
        self._token = _context.set(_Context(self._streams, self))
        self._began = self._streams[0].timer()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _context.reset(self._token)
        if error is not None or not self._stays_open:
            self.end(error)

    def is_of(self, owner: object) -> bool:
        """Return whether ``owner`` does this operation."""
        return self._owner is owner


def _with(streams: tuple[EventStream, ...], more: EventStream | None) -> tuple[EventStream, ...]:
    if more is None or any(each is more for each in streams):
        return streams
    return (*streams, more)


def _running(context: _Context) -> _Reported | None:
    """Return the operation in progress; a task may outlive the operation that started it."""
    found = context.operation
    return None if found is None or found.has_ended else found


def _is_part(parent: _Reported | None, owner: object) -> bool:
    return owner is not None and parent is not None and parent.is_of(owner)


def _outcome(error: BaseException | None) -> Outcome:
    if error is None:
        return "done"
    return "cancelled" if isinstance(error, CancelledError | GeneratorExit) else "failed"
