"""The second hop over names anywhere: who speaks of somebody that a better one speaks of, too.

A question may need two entries of which neither calls the other by its title: one is like the
question, and names somebody; the other tells of this somebody what the question asks besides. So
what the best few name and the question does not is looked up among all, and who has such a name
counts by three shares: how far the better one is trusted, how rare the name is, and how much of the
question it has that the better one lacks. A better one that has all of the question's words leads
nowhere: what needs no second entry costs nothing and loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from ..catalogue import Rows
from ..sparse.index import SparseIndex
from .names import Name, Spoken, telling
from .pool import Floats, Pool

TextOf = Callable[[int], str]
Links = dict[int, dict[int, float]]  # better one → who shares a name with it → how rare that is

BETTER = 2  # how many of the best are read for names
_MOST_SHARERS = 20  # of a name: it says little if more have it
_MOST_READ = 40  # that have the words of a name, and are read whether they have the name


class SharedNames:
    """What entries name, looked up among all of them."""

    def __init__(self, spoken: Spoken, sparse: SparseIndex, text_of: TextOf) -> None:
        self._spoken, self._sparse, self._text_of = spoken, sparse, text_of

    def links(self, better: Iterable[int], question: str) -> Links:
        """Return who else speaks of those whom these rows name and the question does not."""
        asked = frozenset(telling(question))
        named = [(row, *each) for row in better for each in self._news_of(row, asked)]
        if not named:
            return {}
        holders = self._sparse.holders([parts for _, _, parts in named], _MOST_READ)
        found: Links = {}
        for (row, name, _), may in zip(named, holders, strict=True):
            others = [other for other in may if other != row and name in self._text_of(other)]
            if 0 < len(others) < _MOST_SHARERS:
                _link(found.setdefault(row, {}), others, self._rarity(len(others) + 1))
        return found

    def _news_of(self, row: int, asked: frozenset[str]) -> list[tuple[str, Name]]:
        spoken = self._spoken.within_row(row, self._text_of)
        return [each for each in spoken.items() if not asked.issuperset(each[1])]

    def _rarity(self, sharers: int) -> float:
        """1 for a name that nobody else has, 0 for one that all have."""
        return 1 - math.log(sharers) / math.log(max(len(self._sparse), 2))


def incomplete(rows: Iterable[int], pool: Pool) -> list[int]:
    """Return those of the rows that lack a word of the question: another may have it."""
    some = list(rows)
    lacks = (pool.gains_at(0)[_places(pool, some)] == 0).any(axis=1)
    return [row for row, is_lacking in zip(some, lacks.tolist(), strict=True) if is_lacking]


def helpful(links: Links, pool: Pool, gains_of: Callable[[Rows], Floats]) -> Links:
    """Return those of the links that lead to a word of the question which the better one lacks.

    ``gains_of`` rows are what the words of the question give in them, row by row.
    """
    if not links:
        return links
    everyone = np.unique(np.fromiter(chain(*links.values()), np.int64))
    has, own = gains_of(everyone) > 0, pool.gains_at(0) > 0
    found: Links = {}
    for better, sharers in links.items():
        lacks = ~own[_places(pool, [better])[0]]
        helps = dict(zip(everyone.tolist(), (has & lacks).any(axis=1).tolist(), strict=True))
        kept = {row: rarity for row, rarity in sharers.items() if helps[row]}
        if kept:
            found[better] = kept
    return found


def shared(links: Links, trust: dict[int, float], pool: Pool) -> Floats:
    """For each candidate how much it counts that it shares a name with a better one."""
    has = pool.gains_at(0) > 0  # candidate × word
    worth = pool.gains.max(axis=1, initial=0.0)
    found = np.zeros(len(pool))
    for better, sharers in links.items():
        lacking = np.where(has[_places(pool, [better])[0]], 0.0, worth)
        places = _places(pool, sharers)
        rarity = np.fromiter(sharers.values(), np.float64, len(sharers))
        gain = trust[better] * rarity * (has[places] @ lacking) / max(lacking.sum(), 1e-9)
        found[places] = np.maximum(found[places], gain)
    return found


def _link(known: dict[int, float], others: Iterable[int], rarity: float) -> None:
    for other in others:
        known[other] = max(known.get(other, 0.0), rarity)


def _places(pool: Pool, rows: Iterable[int]) -> Rows:
    return np.searchsorted(pool.rows, np.fromiter(rows, np.int64))
