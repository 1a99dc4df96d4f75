"""How sure a mean is: Student's interval over seeds, a bootstrap over queries."""

from __future__ import annotations

import math
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
_DRAWN = 100  # rounds of a bootstrap at once


def student(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of these; one value has none."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    half = _t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def bootstrap(values: Sequence[float], *, rounds: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean, drawing as many with replacement."""
    if not values:
        raise InvalidInput("there is nothing to draw from")
    import numpy as np

    array, rng = np.asarray(values, np.float64), np.random.default_rng(seed)
    means: list[float] = []
    for at in range(0, rounds, _DRAWN):
        drawn = rng.integers(0, len(array), (min(_DRAWN, rounds - at), len(array)))
        means += array[drawn].mean(axis=1).tolist()
    means.sort()
    return means[int(rounds * 0.025)], means[min(rounds - 1, int(rounds * 0.975))]


def _t(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * freedom)  # Cornish and Fisher's first term
