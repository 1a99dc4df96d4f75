"""The signal ``shares a name``: entries that mention a name which a better entry mentions, too.

Some questions need two entries that meet in a name: one resembles the question and mentions the
name; the other says about it what else the question asks. So names that the best few entries
mention and the question does not are looked up in all texts. An entry with such a name gains by
three factors: the trust in the better entry, the rarity of the name, and the share of the
question's words that it has and the better entry lacks. A better entry with all of the question's
words leads nowhere, so questions that need no second entry are unaffected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from ..catalogue import Rows
from ..sparse.index import SparseIndex
from .names import Mentions, Name, telling
from .pool import CandidatePool, Floats

TextOf = Callable[[int], str]
Links = dict[int, dict[int, float]]  # better row → rows that share a name with it → its rarity

BETTER = 2  # how many of the best entries are read for names
_MOST_SHARERS = 20  # a name that more entries have says little
_MOST_READ = 40  # entries with the words of a name that are checked for the name itself


class SharedNames:
    """Looks up the names that entries mention in all other entries."""

    def __init__(self, spoken: Mentions, sparse: SparseIndex, text_of: TextOf) -> None:
        self._spoken, self._sparse, self._text_of = spoken, sparse, text_of

    def links(self, better: Iterable[int], question: str) -> Links:
        """Return the rows that share with these a name which the question does not mention."""
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
        """Return 1 for a name in one entry, 0 for a name in all."""
        return 1 - math.log(sharers) / math.log(max(len(self._sparse), 2))


def incomplete(rows: Iterable[int], pool: CandidatePool) -> list[int]:
    """Return the rows that lack a word of the question, which another row may have."""
    some = list(rows)
    lacks = (pool.gains_at(0)[_places(pool, some)] == 0).any(axis=1)
    return [row for row, is_lacking in zip(some, lacks.tolist(), strict=True) if is_lacking]


def helpful(links: Links, pool: CandidatePool, gains_of: Callable[[Rows], Floats]) -> Links:
    """Return the links to rows with a word of the question that the better row lacks.

    ``gains_of`` returns the gains of the question's words in some rows, row by row.
    """
    if not links:
        return links
    linked = np.unique(np.fromiter(chain(*links.values()), np.int64))
    has, own = gains_of(linked) > 0, pool.gains_at(0) > 0
    found: Links = {}
    for better, sharers in links.items():
        lacks = ~own[_places(pool, [better])[0]]
        helps = dict(zip(linked.tolist(), (has & lacks).any(axis=1).tolist(), strict=True))
        kept = {row: rarity for row, rarity in sharers.items() if helps[row]}
        if kept:
            found[better] = kept
    return found


def shared(links: Links, trust: dict[int, float], pool: CandidatePool) -> Floats:
    """Return the signal for each candidate: how much sharing a name with a better one counts."""
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


def _places(pool: CandidatePool, rows: Iterable[int]) -> Rows:
    return np.searchsorted(pool.rows, np.fromiter(rows, np.int64))
