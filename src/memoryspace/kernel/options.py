"""Option values of a space, validated when they are made.

Callers pass ``Quotas`` and ``Runtime`` to a manager. ``EngineOptions`` is everything an engine is
built from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..errors import InvalidInput
from ..events import EventStream
from .gc.collectors import GarbageCollector
from .gc.policies import GCPolicy
from .heap.allocators import Allocator
from .index.searching import Retriever
from .locks import ReadWriteLock


@dataclass(frozen=True)
class Quotas:
    """Limits of a space besides its capacity. By default there are none.

    Args:
        by_tenant: The most bytes that the objects of each tenant may take.
        default: The same for tenants that ``by_tenant`` does not name.
        budget: The largest sum of the ``size`` that callers declare for their objects.

    Raises:
        InvalidInput: A limit is not a whole number of 0 or more.

    Example::

        quotas = Quotas({"ann": 1 << 20}, default=1 << 16)
        space = MemoryManager(1 << 24, quotas=quotas)
    """

    by_tenant: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_tenant", dict(self.by_tenant))
        for tenant, quota in self.by_tenant.items():
            _check_limit(f"the quota of tenant {tenant!r}", quota)
        _check_limit("the default quota", self.default)
        _check_limit("budget", self.budget)

    @property
    def are_set(self) -> bool:
        """Whether there is any limit to check."""
        return bool(self.by_tenant) or self.default is not None or self.budget is not None

    def of(self, tenant: str) -> int | None:
        """Return the quota of a tenant in bytes, or ``None`` if it has none."""
        return self.by_tenant.get(tenant, self.default)


@dataclass(frozen=True)
class Runtime:
    """The surroundings of a space: its clock, its events, its lock and its pauses.

    Args:
        clock: Returns the time in seconds since the epoch.
        events: The stream to emit events to. By default each space has a stream of its own.
        lock: A reader-writer lock to use instead of the space's own mutex.
        pause: How many seconds one slice of collection or of a checkpoint may take.

    Raises:
        InvalidInput: ``pause`` is not above 0.

    Example::

        space = MemoryManager(1 << 20, runtime=Runtime(clock=lambda: 0.0, pause=0.005))
    """

    clock: Callable[[], float] = time.time
    events: EventStream | None = None
    lock: ReadWriteLock | None = None
    pause: float = 0.001

    def __post_init__(self) -> None:
        if not self.pause > 0:
            raise InvalidInput(f"pause must be above 0 seconds, got {self.pause}")

    def with_events(self) -> Runtime:
        """Return the same runtime with an event stream, a new one if it has none."""
        if self.events is not None:
            return self
        return replace(self, events=EventStream(clock=self.clock))


@dataclass(frozen=True)
class EngineOptions:
    """Everything an engine is built from, except its files."""

    capacity: int
    allocator: Allocator | None = None
    collectors: tuple[GarbageCollector, ...] = ()
    policies: tuple[GCPolicy, ...] = ()
    retriever: Retriever | Literal["sparse"] | None = None
    quotas: Quotas = field(default_factory=Quotas)
    runtime: Runtime = field(default_factory=Runtime)
    checkpoint_bytes: int | None = None

    @property
    def pause(self) -> float:
        """How many seconds one slice of work may take."""
        return self.runtime.pause


def _check_limit(name: str, limit: int | None) -> None:
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise InvalidInput(f"{name} must be a whole number of 0 or more, got {limit!r}")
