"""Off-policy evaluation: what another policy would have earned, estimated from a bandit's log.

A bandit follows one arm at a time and explores the others now and then. The probability of each
choice (the propensity) follows from its rule, ε-greedy, and from what it knew. Weighting each
reward by the inverse propensity estimates the value of an arm; a model of the rewards, here the
mean of the earlier ones, reduces the variance (doubly robust).

Both estimators attribute a reward to the arm alone. In a heap that is not quite true, because one
cycle leaves garbage for the next. So an estimate means something only beside a replay of the arm
alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

_NORMAL = 1.959964


class Chosen(Protocol):
    """The fields of a decision that are needed here; the bandit stores more."""

    @property
    def arm(self) -> int:
        """Return the arm that was followed."""

    @property
    def reward(self) -> float:
        """Return the reward it earned."""


@dataclass(frozen=True)
class Weighed:
    """A decision with its propensity, and what was known of each arm before it."""

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
        """Return whether the true value lies in the interval."""
        return self.low <= truth <= self.high


def weighed(decisions: Iterable[Chosen], arms: int, epsilon: float) -> list[Weighed]:
    """Replay all decisions of an ε-greedy bandit, from the first."""
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
    """Estimate an arm's reward from the decisions that chose it."""
    return _value([each.reward / each.propensity * (each.arm == arm) for each in log])


def self_normalised(log: Sequence[Weighed], arm: int) -> float:
    """Estimate it with weights that sum to one: less variance, slight bias."""
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
    """Return the arm that an ε-greedy bandit exploits: untried ones first."""
    untried = [arm for arm, count in enumerate(pulls) if not count]
    return untried[0] if untried else max(range(len(values)), key=values.__getitem__)


def _value(terms: Sequence[float]) -> Value:
    """Return the mean; the terms are martingale differences, so their spread gives the error."""
    if len(terms) < 2:
        raise ValueError("an estimate needs at least two decisions")
    mean = statistics.fmean(terms)
    half = _NORMAL * statistics.stdev(terms) / math.sqrt(len(terms))
    return Value(mean, mean - half, mean + half)
