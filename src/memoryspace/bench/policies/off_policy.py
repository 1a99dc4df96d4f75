"""What another policy would have earned, told from the log of the one that ran.

A bandit listens to one arm at a time and tries the others now and then. How likely it was to choose
as it did (the propensity) follows from its rule, ε-greedy, and from what it knew. Weighting each
reward by the inverse gives what an arm is worth (inverse propensity); a model of the rewards, here
the mean of those before, makes that steadier (doubly robust).

Both take what an arm earns for its own. In a heap it is not quite: what one cycle leaves is there
for the next to free. So an estimate is worth something only beside a replay of the arm alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

_NORMAL = 1.959964


class Chosen(Protocol):
    """What is needed of a decision: the bandit keeps more."""

    @property
    def arm(self) -> int:
        """Which arm was listened to."""

    @property
    def reward(self) -> float:
        """What came of it."""


@dataclass(frozen=True)
class Weighed:
    """A decision with how likely it was, and what was known of each arm before it."""

    arm: int
    reward: float
    propensity: float
    expected: tuple[float, ...]


@dataclass(frozen=True)
class Value:
    """An estimate of the mean reward, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def holds(self, truth: float) -> bool:
        """Tell whether the truth lies in the interval."""
        return self.low <= truth <= self.high


def weighed(decisions: Iterable[Chosen], arms: int, epsilon: float) -> list[Weighed]:
    """Follow an ε-greedy bandit through all its decisions, from the first."""
    pulls, values = [0] * arms, [0.0] * arms
    total, found = 0.0, list[Weighed]()
    for number, each in enumerate(decisions):
        mean = total / number if number else 0.0
        expected = tuple(values[arm] if pulls[arm] else mean for arm in range(arms))
        greedy = _greedy(pulls, values)
        chance = epsilon / arms + (1 - epsilon) * (each.arm == greedy)
        found.append(Weighed(each.arm, each.reward, chance, expected))
        pulls[each.arm] += 1
        values[each.arm] += (each.reward - values[each.arm]) / pulls[each.arm]
        total += each.reward
    return found


def inverse_propensity(log: Sequence[Weighed], arm: int) -> Value:
    """Estimate what an arm earns, from when it was chosen."""
    return _value([each.reward / each.propensity * (each.arm == arm) for each in log])


def self_normalised(log: Sequence[Weighed], arm: int) -> float:
    """Estimate it with weights that add up to one: less spread, and a little bias."""
    weights = [(each.arm == arm) / each.propensity for each in log]
    total = sum(weights)
    earned = sum(weight * each.reward for weight, each in zip(weights, log, strict=True))
    return earned / total if total else 0.0


def doubly_robust(log: Sequence[Weighed], arm: int) -> Value:
    """Estimate it from the model, corrected where the arm was chosen."""
    return _value(
        [
            each.expected[arm]
            + (each.arm == arm) / each.propensity * (each.reward - each.expected[arm])
            for each in log
        ]
    )


def _greedy(pulls: Sequence[int], values: Sequence[float]) -> int:
    """The arm that an ε-greedy bandit takes when it does not explore: untried ones first."""
    untried = [arm for arm, count in enumerate(pulls) if not count]
    return untried[0] if untried else max(range(len(values)), key=values.__getitem__)


def _value(terms: Sequence[float]) -> Value:
    """Return the mean; each term is unforeseen given those before, so their spread tells."""
    if len(terms) < 2:
        raise ValueError("an estimate needs two decisions at least")
    mean = statistics.fmean(terms)
    half = _NORMAL * statistics.stdev(terms) / math.sqrt(len(terms))
    return Value(mean, mean - half, mean + half)
