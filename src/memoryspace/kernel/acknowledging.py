"""Change first, wait afterwards: how a change is acknowledged.

A change is journalled and applied under the manager's lock. Only then, and without the lock, does
the caller wait until the journal's policy calls it safe; others may work meanwhile. The blocking
and the awaitable form of a method (``desk``) differ in who waits, and where.
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
    """Make a method run under the lock and return when the journal holds what it changed."""

    @wraps(method)
    def call(manager: M, /, *args: P.args, **options: P.kwargs) -> R:
        with manager.writing:
            before = manager.heap.lsn
            result = method(manager, *args, **options)
            manager.look_after()
            lsn = manager.heap.lsn
        if lsn != before:
            manager.wait_for(lsn)
        return result

    return call
