"""The signals ``named``, ``bridge`` and ``names the best``: entries related by their titles.

An entry whose title a candidate mentions gains by that candidate's share of the best score,
squared: a weak candidate is no bridge. No bridge leads past the best: an entry found through
another gets at most halfway from that one to the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Rows
from .names import Name, TitleNames
from .pool import Floats

TextOf = Callable[[int], str]

_MOST_NAMESAKES = 20  # a title that more entries have identifies none
_BELOW_BEST = 0.999  # the share of the best total that a bridge from the best leads to


class Bridges:
    """Links between entries by the titles that texts mention."""

    def __init__(self, names: TitleNames, text_of: TextOf) -> None:
        self._names, self._text_of = names, text_of

    def named_in(self, text: str) -> dict[int, float]:
        """Return the rows whose title a text mentions."""
        return dict.fromkeys(self._rows(self._names.within(text)), 1.0) if len(self._names) else {}

    def named_by(self, trust: dict[int, float]) -> dict[int, float]:
        """Return the rows whose title trusted rows mention, with the highest trust among these."""
        found: dict[int, float] = {}
        if not len(self._names):
            return found
        for seed, trusted in trust.items():
            for row in self._rows(self._names.within_row(seed, self._text_of)) - {seed}:
                found[row] = max(found.get(row, 0.0), trusted)
        return found

    def naming(self, rows: Iterable[int], trust: dict[int, float]) -> dict[int, float]:
        """Return the rows, of those given, that mention the title of a trusted row."""
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
        """Return the rows with these titles, except titles that too many have ("Diary")."""
        called = map(self._names.rows, names)
        return {row for rows in called if len(rows) <= _MOST_NAMESAKES for row in rows}


def trust_in(rows: Rows, totals: Floats, seeds: int) -> dict[int, float]:
    """Return the best ``seeds`` rows, each with its trust from 0 to 1."""
    order = np.argsort(-totals, kind="stable")[:seeds]
    best = max(float(totals[order[0]]), 1e-9) if len(order) else 1.0
    return {int(rows[at]): (max(float(totals[at]), 0.0) / best) ** 2 for at in order.tolist()}


def bounded(gains: Floats, trust: Floats, others: Floats, best: float) -> Floats:
    """Return what bridges add to rows whose total without them is ``others``.

    ``trust`` belongs to the row that names them: its share of the ``best`` total, squared. The
    fourth root of it is the geometric mean of that share and 1.
    """
    found: Floats = np.clip(_BELOW_BEST * best * np.sqrt(np.sqrt(trust)) - others, 0.0, gains)
    return found


def by_row(rows: Rows, values: dict[int, float]) -> NDArray[np.float64]:
    """Return values in the order of rows, which must be rising; 0 for rows without one."""
    found = np.zeros(len(rows))
    if values and len(rows):
        wanted = np.fromiter(values, np.int64, len(values))
        places = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
        are_here = rows[places] == wanted
        found[places[are_here]] = np.fromiter(values.values(), np.float64, len(values))[are_here]
    return found
