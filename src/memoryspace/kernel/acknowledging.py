"""Acknowledgement of changes: change under the lock, then wait for the journal without it.

A change is journalled and applied while the caller holds the engine's lock. The caller then waits,
without the lock, until the journal's policy calls the change safe; others may work meanwhile. The
blocking and the awaitable form of a method (``desk``) differ in who waits, and where.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from .manager import MemoryManager

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="MemoryManager")


def durable(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Run a manager's method under the lock and return when its changes are safe."""

    @wraps(method)
    def call(manager: M, /, *args: P.args, **options: P.kwargs) -> R:
        engine = manager.engine
        with engine.writing:
            before = engine.heap.lsn
            result = method(manager, *args, **options)
            engine.do_upkeep()
            lsn = engine.heap.lsn
        if lsn != before:
            engine.wait_for(lsn)
        return result

    return call
