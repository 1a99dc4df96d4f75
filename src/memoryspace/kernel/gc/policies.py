"""Collection policies: each decides when a collection should start.

The engine asks its policies now and then while the program runs. A policy sees the space's figures
and the report of the last cycle. It never collects by itself.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...errors import InvalidInput

_REMEMBERED = 10_000  # decisions of a bandit


class HeapFigures(Protocol):
    """The figures of a space that a policy may use. Managers and engines have all of them."""

    @property
    def now(self) -> float:
        """The time on the space's clock."""

    @property
    def live_objects(self) -> int:
        """How many objects there are."""

    @property
    def capacity(self) -> int:
        """How many bytes the heap has."""

    def fragmentation(self) -> float:
        """Return how scattered the free bytes are, from 0 to 1."""


class CycleReport(Protocol):
    """What a policy may learn from a finished cycle. A ``GCEvent`` has all of it."""

    @property
    def freed_bytes(self) -> int:
        """How many bytes the cycle freed."""

    @property
    def duration(self) -> float:
        """How many seconds of work it took, all slices together."""


class GCPolicy(ABC):
    """Decides when a collection should start. Subclass it for a policy of your own."""

    @abstractmethod
    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        """Return whether to collect now; ``reason`` names the occasion of the question."""

    def notify_gc(self, manager: HeapFigures, event: CycleReport) -> None:  # noqa: B027  # may ignore
        """Learn that a cycle has ended, whatever started it."""


class PeriodicGCPolicy(GCPolicy):
    """Collects every ``interval`` seconds.

    Args:
        interval: Seconds between two collections, above 0.
    """

    def __init__(self, interval: float = 60.0) -> None:
        if not interval > 0:
            raise InvalidInput(f"interval must be above 0 seconds, got {interval}")
        self.interval = interval
        self._last: float | None = None

    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        if self._last is None:
            self._last = manager.now
        return manager.now - self._last >= self.interval

    def notify_gc(self, manager: HeapFigures, event: CycleReport) -> None:
        self._last = manager.now


class AdaptiveFragmentationPolicy(GCPolicy):
    """Collects when the free bytes are too scattered.

    Args:
        threshold: The fragmentation, from 0 to 1, above which it collects.
        min_interval_s: Seconds that must pass between two collections.
    """

    def __init__(self, threshold: float = 0.4, min_interval_s: float = 5.0) -> None:
        if not 0 <= threshold <= 1:
            raise InvalidInput(f"threshold must be from 0 to 1, got {threshold}")
        self.threshold = threshold
        self.min_interval_s = min_interval_s
        self._last = float("-inf")

    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        waited = manager.now - self._last >= self.min_interval_s
        return waited and manager.fragmentation() > self.threshold

    def notify_gc(self, manager: HeapFigures, event: CycleReport) -> None:
        self._last = manager.now


class ObjectGrowthPolicy(GCPolicy):
    """Collects when the number of objects has grown enough since the last cycle.

    Args:
        growth_ratio: By which share of the objects after the last cycle it must have grown.
        window: By how many objects it must have grown at least.
    """

    def __init__(self, growth_ratio: float = 0.5, window: int = 100) -> None:
        if not growth_ratio > 0 or window < 1:
            raise InvalidInput(
                f"growth_ratio must be above 0 and window 1 or more, got {growth_ratio}, {window}"
            )
        self.growth_ratio = growth_ratio
        self.window = window
        self._base: int | None = None

    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        if self._base is None:
            self._base = manager.live_objects
        grown = manager.live_objects - self._base
        return grown >= max(self.window, self.growth_ratio * self._base)

    def notify_gc(self, manager: HeapFigures, event: CycleReport) -> None:
        self._base = manager.live_objects


class Decision(NamedTuple):
    """A cycle that a bandit started: the policy that decided (``arm``), and the outcome."""

    at: float
    arm: int
    explored: bool
    reward: float
    freed_bytes: int
    seconds: float


class BanditGCPolicy(GCPolicy):
    """Learns which of several policies to follow: ε-greedy over their mean rewards.

    The reward of a cycle is the share of the heap that it freed, minus ``pause_penalty`` times the
    share of the time since the last cycle that it took. ``decisions`` keeps the latest decisions.

    Args:
        policies: The policies to choose from.
        epsilon: How often to try a policy at random, from 0 to 1.
        pause_penalty: The weight of the time that a cycle takes.
        rng: The source of randomness (default: seeded with 0).
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

    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        if self._last is None:
            self._last = manager.now
        asked = [policy.should_trigger(manager, reason) for policy in self.policies]
        if asked[self.arm]:
            self._pending = (self.arm, self._explored)
        return asked[self.arm]

    def notify_gc(self, manager: HeapFigures, event: CycleReport) -> None:
        for policy in self.policies:
            policy.notify_gc(manager, event)
        since = 0.0 if self._last is None else manager.now - self._last
        self._last = manager.now
        if self._pending is None:
            return  # no policy started this cycle, so no arm is rewarded
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
        """Return the reward of a cycle that ended ``since`` seconds after the one before."""
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
