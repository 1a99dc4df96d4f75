"""Means of unrelated texts, by script, taken away from vectors.

All vectors of multilingual-e5-small point roughly the same way, those of one language still more:
unrelated texts have a cosine of about 0.8. Without the mean of their script it is about 0, so that
a cosine says something, and texts of two languages can be compared. ``tools/e5_means.py`` measured
the means, on everyday sentences and questions of our own. Both kinds lose the same mean: what a
question has of its own points to answers, and losing it made rankings worse.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from .contract import Vectors
from .scripts import script_shares

FILE = Path(__file__).with_name("e5_means.npy")
SCRIPTS = ("latin", "han", "kana", "hangul", "cyrillic", "arabic", "devanagari", "thai")

_JAPANESE = 0.2  # of the letters kana: then the Han characters are Japanese, too


def mean_of(text: str) -> Vectors:
    """Return what unrelated texts of this text's scripts have in common, each by its share.

    A script that was not measured has the mean of all; a text without letters counts as Latin.
    """
    shares = script_shares(text)
    if shares.get("kana", 0.0) >= _JAPANESE:
        shares["kana"] += shares.pop("han", 0.0)
    means = _means()
    found = np.zeros(means.shape[1], np.float32)
    for script, share in shares.items() if shares else (("latin", 1.0),):
        mean = means[SCRIPTS.index(script)] if script in SCRIPTS else means.mean(axis=0)
        found += np.float32(share) * mean
    return found


@cache
def _means() -> Vectors:
    """Read the means, a row for each script."""
    means: Vectors = np.load(FILE, allow_pickle=False).astype(np.float32)
    return means
