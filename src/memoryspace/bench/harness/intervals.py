"""Confidence intervals: Student's over seeds, bootstrap over queries or clusters."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

from ...errors import InvalidInput

# The 97.5 % points of Student's t for 1, 2, ... degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.959964
_DRAWN = 100  # bootstrap rounds computed at once
ROUNDS = 1000  # rounds of a bootstrap over clusters
LEAST = 3  # fewest seeds for which an interval is reported


_SHARE = re.compile(r"@|MRR|\bEM\b|\bF1\b|success|rate\b|share|resident|named|found")


def is_share(name: str) -> bool:
    """Return whether a figure's name says that it lies between 0 and 1."""
    return _SHARE.search(name) is not None


def interval(name: str, values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of a figure's mean over seeds, if it is meaningful.

    Two seeds have none, because Student's t with one degree of freedom says nothing. Nor does a
    non-negative figure whose interval would start below 0, or a share whose interval would end
    above 1.
    """
    found = student(values) if len(values) >= LEAST else None
    if found is None or (found[0] < 0 <= min(values)):
        return None
    return None if is_share(name) and max(values) <= 1 < found[1] else found


def student(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of the mean; a single value has none."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    half = _t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def bootstrap(values: Sequence[float], *, rounds: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean, resampling with replacement."""
    if not values:
        raise InvalidInput("a bootstrap needs at least one value")
    import numpy as np

    array, rng = np.asarray(values, np.float64), np.random.default_rng(seed)
    means: list[float] = []
    for at in range(0, rounds, _DRAWN):
        drawn = rng.integers(0, len(array), (min(_DRAWN, rounds - at), len(array)))
        means += array[drawn].mean(axis=1).tolist()
    means.sort()
    return means[int(rounds * 0.025)], means[min(rounds - 1, int(rounds * 0.975))]


def share(counts: Sequence[tuple[float, int]]) -> float:
    """Return the overall share, from (hits, total) counts by cluster."""
    return sum(had for had, _ in counts) / sum(of for _, of in counts)


def share_interval(counts: Sequence[tuple[float, int]], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of a share, resampling whole clusters with replacement."""
    import numpy as np

    rng = np.random.default_rng(seed)
    both = np.asarray(counts, np.float64)
    drawn = both[rng.integers(0, len(both), (ROUNDS, len(both)))].sum(axis=1)
    shares = np.sort(drawn[:, 0] / drawn[:, 1])
    return float(shares[int(ROUNDS * 0.025)]), float(shares[int(ROUNDS * 0.975)])


def over_queries(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean over queries.

    If all or none were hits, a bootstrap would show no uncertainty; then this is the exact interval
    of Clopper and Pearson.
    """
    bound = 0.025 ** (1 / max(1, len(values)))
    if set(values) == {1.0}:
        return bound, 1.0
    return (0.0, 1 - bound) if set(values) == {0.0} else bootstrap(values)


def _t(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * freedom)  # first Cornish-Fisher term
