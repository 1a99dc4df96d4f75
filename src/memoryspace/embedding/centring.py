"""Centring of e5 vectors: subtracts the mean of unrelated texts, by script.

All vectors of multilingual-e5-small point in roughly the same direction, those of one language even
more so: unrelated texts have a cosine of about 0.8. Without the mean of their script it is about 0,
so cosines are meaningful and texts of two languages can be compared.
``tools/e5_means.py`` measured the means on everyday sentences and questions. Passages and questions
lose the same mean: the mean of questions points to answers, and removing it made rankings worse.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from .contract import Vectors
from .scripts import script_shares

FILE = Path(__file__).with_name("e5_means.npy")
SCRIPTS = ("latin", "han", "kana", "hangul", "cyrillic", "arabic", "devanagari", "thai")

_JAPANESE = 0.2  # share of kana from which Han characters count as Japanese


def mean_of(text: str) -> Vectors:
    """Return the mean vector of a text's scripts, weighted by their shares.

    A script without its own mean uses the mean of all; a text without letters counts as Latin.
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
    """Return the means, one row per script."""
    means: Vectors = np.load(FILE, allow_pickle=False).astype(np.float32)
    return means
