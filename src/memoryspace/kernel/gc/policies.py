"""When to collect: four answers to one question, asked now and then while the program runs.

A policy sees the manager's figures and the last cycle's report, and says yes or no. It never
collects by itself.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...errors import InvalidInput

_REMEMBERED = 10_000  # decisions of a bandit


class Heapwatch(Protocol):
    """What a policy may look at: a ``MemoryManager`` has all of it."""

    @property
    def now(self) -> float:
        """The manager's clock."""

    @property
    def live_objects(self) -> int:
        """How many objects there are."""

    @property
    def capacity(self) -> int:
        """How many bytes the heap has."""

    def fragmentation(self) -> float:
        """How badly the free bytes are scattered, from 0 to 1."""


class CycleReport(Protocol):
    """What a policy may learn from a finished cycle: a ``GCEvent`` has all of it."""

    @property
    def freed_bytes(self) -> int:
        """How many bytes the cycle gave back."""

    @property
    def duration(self) -> float:
        """How many seconds of work it took, all slices together."""


class GCPolicy(ABC):
    """Says when a cycle should start."""

    @abstractmethod
    def should_trigger(self, manager: Heapwatch, reason: str) -> bool:
        """Tell whether to collect now; ``reason`` says on what occasion it is asked."""

    def notify_gc(self, manager: Heapwatch, event: CycleReport) -> None:  # noqa: B027  # may ignore
        """A cycle has ended, whoever asked for it."""


class PeriodicGCPolicy(GCPolicy):
    """Every so many seconds."""

    def __init__(self, interval: float = 60.0) -> None:
        if not interval > 0:
            raise InvalidInput(f"interval must be above 0 seconds, got {interval}")
        self.interval = interval
        self._last: float | None = None

    def should_trigger(self, manager: Heapwatch, reason: str) -> bool:
        if self._last is None:
            self._last = manager.now
        return manager.now - self._last >= self.interval

    def notify_gc(self, manager: Heapwatch, event: CycleReport) -> None:
        self._last = manager.now


class AdaptiveFragmentationPolicy(GCPolicy):
    """When the free bytes are too scattered, but not again at once."""

    def __init__(self, threshold: float = 0.4, min_interval_s: float = 5.0) -> None:
        if not 0 <= threshold <= 1:
            raise InvalidInput(f"threshold must be from 0 to 1, got {threshold}")
        self.threshold = threshold
        self.min_interval_s = min_interval_s
        self._last = float("-inf")

    def should_trigger(self, manager: Heapwatch, reason: str) -> bool:
        waited = manager.now - self._last >= self.min_interval_s
        return waited and manager.fragmentation() > self.threshold

    def notify_gc(self, manager: Heapwatch, event: CycleReport) -> None:
        self._last = manager.now


class ObjectGrowthPolicy(GCPolicy):
    """When there are so many more objects than after the last cycle: a ratio, and a number."""

    def __init__(self, growth_ratio: float = 0.5, window: int = 100) -> None:
        if not growth_ratio > 0 or window < 1:
            raise InvalidInput(
                f"growth_ratio must be above 0 and window 1 or more, got {growth_ratio}, {window}"
            )
        self.growth_ratio = growth_ratio
        self.window = window
        self._base: int | None = None

    def should_trigger(self, manager: Heapwatch, reason: str) -> bool:
        if self._base is None:
            self._base = manager.live_objects
        grown = manager.live_objects - self._base
        return grown >= max(self.window, self.growth_ratio * self._base)

    def notify_gc(self, manager: Heapwatch, event: CycleReport) -> None:
        self._base = manager.live_objects


class Decision(NamedTuple):
    """A cycle that a bandit started: which policy had the say, and what came of it."""

    at: float
    arm: int
    explored: bool
    reward: float
    freed_bytes: int
    seconds: float


class BanditGCPolicy(GCPolicy):
    """Learns which of several policies to listen to: ε-greedy over their mean rewards.

    The reward of a cycle has no unit: the part of the heap it freed, minus ``pause_penalty`` times
    the part of the time since the last cycle that it took. Every decision is kept in ``decisions``.
    """

    def __init__(
        self,
        policies: Sequence[GCPolicy],
        epsilon: float = 0.1,
        pause_penalty: float = 0.1,
        *,
        rng: random.Random | None = None,
    ) -> None:
        if not policies:
            raise InvalidInput("a bandit needs at least one policy to choose from")
        if not 0 <= epsilon <= 1 or pause_penalty < 0:
            raise InvalidInput(
                "epsilon must be from 0 to 1 and pause_penalty 0 or more, "
                f"got {epsilon} and {pause_penalty}"
            )
        self.policies = list(policies)
        self.epsilon = epsilon
        self.pause_penalty = pause_penalty
        self.pulls = [0] * len(self.policies)
        self.values = [0.0] * len(self.policies)
        self.decisions: deque[Decision] = deque(maxlen=_REMEMBERED)
        self._rng = random.Random(0) if rng is None else rng
        self._last: float | None = None
        self._pending: tuple[int, bool] | None = None
        self._choose()

    def should_trigger(self, manager: Heapwatch, reason: str) -> bool:
        if self._last is None:
            self._last = manager.now
        asked = [policy.should_trigger(manager, reason) for policy in self.policies]
        if asked[self.arm]:
            self._pending = (self.arm, self._explored)
        return asked[self.arm]

    def notify_gc(self, manager: Heapwatch, event: CycleReport) -> None:
        for policy in self.policies:
            policy.notify_gc(manager, event)
        since = 0.0 if self._last is None else manager.now - self._last
        self._last = manager.now
        if self._pending is None:
            return  # somebody else asked for this cycle: no arm earned it
        arm, explored = self._pending
        self._pending = None
        reward = self.reward(event, manager.capacity, since)
        self.pulls[arm] += 1
        self.values[arm] += (reward - self.values[arm]) / self.pulls[arm]
        self.decisions.append(
            Decision(manager.now, arm, explored, reward, event.freed_bytes, event.duration)
        )
        self._choose()

    def reward(self, event: CycleReport, capacity: int, since: float) -> float:
        """Return what a cycle was worth, ``since`` seconds after the one before."""
        busy = min(1.0, event.duration / since) if since > 0 else 1.0
        return event.freed_bytes / capacity - self.pause_penalty * busy

    def _choose(self) -> None:
        untried = [arm for arm, pulls in enumerate(self.pulls) if not pulls]
        self._explored = self._rng.random() < self.epsilon
        if self._explored:
            self.arm = self._rng.randrange(len(self.policies))
        elif untried:
            self.arm = untried[0]
        else:
            self.arm = max(range(len(self.policies)), key=self.values.__getitem__)
