"""The second hop: who is named in a question, who is named in the best, who names the best.

What a candidate names counts by how good it is itself, squared: a weak candidate is no bridge. And
no bridge leads past the best: what is found through another comes at most halfway from who names it
to the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Rows
from .names import Name, Names
from .pool import Floats

TextOf = Callable[[int], str]

_MOST_NAMESAKES = 20
_BEHIND = 0.999  # of the best total: what a bridge from the best brings a row up to


class Bridges:
    """Names within texts, for one question."""

    def __init__(self, names: Names, text_of: TextOf) -> None:
        self._names, self._text_of = names, text_of

    def named_in(self, text: str) -> dict[int, float]:
        """Return the rows that a text calls by name."""
        return dict.fromkeys(self._rows(self._names.within(text)), 1.0) if len(self._names) else {}

    def named_by(self, trust: dict[int, float]) -> dict[int, float]:
        """Return the rows that trusted rows call by name, by the most trusted of these."""
        found: dict[int, float] = {}
        if not len(self._names):
            return found
        for seed, trusted in trust.items():
            for row in self._rows(self._names.within_row(seed, self._text_of)) - {seed}:
                found[row] = max(found.get(row, 0.0), trusted)
        return found

    def naming(self, rows: Iterable[int], trust: dict[int, float]) -> dict[int, float]:
        """Return those of the rows that call a trusted row by name."""
        found: dict[int, float] = {}
        if not len(self._names):
            return found
        for row in rows:
            said = self._rows(self._names.within_row(row, self._text_of)) - {row}
            best = max((trust[seed] for seed in trust.keys() & said), default=0.0)
            if best:
                found[row] = best
        return found

    def _rows(self, names: Iterable[Name]) -> set[int]:
        """Return who is called so; a name that too many have ("Diary") tells nobody apart."""
        called = map(self._names.rows, names)
        return {row for rows in called if len(rows) <= _MOST_NAMESAKES for row in rows}


def trust_in(rows: Rows, totals: Floats, seeds: int) -> dict[int, float]:
    """Return the best so many rows, each with how far it can be trusted, from 0 to 1."""
    order = np.argsort(-totals, kind="stable")[:seeds]
    best = max(float(totals[order[0]]), 1e-9) if len(order) else 1.0
    return {int(rows[at]): (max(float(totals[at]), 0.0) / best) ** 2 for at in order.tolist()}


def bounded(gains: Floats, trust: Floats, others: Floats, best: float) -> Floats:
    """Return what bridges add to rows that have ``others`` without them.

    ``trust`` is of who names a row: its share of the ``best`` total, squared. So its fourth root is
    in the middle, as factors go, between that share and the whole.
    """
    found: Floats = np.clip(_BEHIND * best * np.sqrt(np.sqrt(trust)) - others, 0.0, gains)
    return found


def by_row(rows: Rows, values: dict[int, float]) -> NDArray[np.float64]:
    """Return values in the order of rows, which rise; 0 for who has none."""
    found = np.zeros(len(rows))
    if values and len(rows):
        wanted = np.fromiter(values, np.int64, len(values))
        places = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
        are_here = rows[places] == wanted
        found[places[are_here]] = np.fromiter(values.values(), np.float64, len(values))[are_here]
    return found
