"""What answers a question for an overview: entries of every stretch of a matter, in order of time.

The entries most like a question for an order or a summary come from one stretch of talk; what it
asks for is spread over many. So each entry is worth its score, and up to a quarter more the earlier
its stretch comes to the matter with it. Half of the places go to the best of each stretch that is
about the matter, the other half to who is worth most. What is chosen comes in order of time.
Unless the question is about what the user said, an answer comes along with what it answers.

All of it looks at the candidates alone: a few sorts, whatever the size of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Catalogue, Rows
from .asking import Question
from .fusion import Memory, Ranked
from .overview import asks_own_words, wants_newest_first
from .pool import Floats, Pool
from .signals import share_of_best
from .traits import BY_USER

Places = NDArray[np.int64]  # in the pool

WIDE = 300  # candidates of each arm: whoever wants an overview must look further than the best

_FIRST = 0.25  # of its score, that it adds to an entry to come first to the matter
_BEARING = 0.25  # of the most that anybody says of a matter: who says less is not about it
_SPREAD = 0.5  # of the places, for the best of each stretch
_STEP = 1e-6  # between two scores: in order of time nothing may be equal
_DAY = 86400.0


def covered(ranked: Ranked, question: Question, memory: Memory, most: int) -> Ranked:
    """Put so many entries first that together cover the matter.

    What bears on it comes in order of time; then, if that is less than ``most``, what else was
    worth most; then the rest as it was. The scores are given out anew and fall along the list:
    they tell the place, not who is best.
    """
    if not len(ranked):
        return ranked
    by_user = np.append(memory.profiles.traits[ranked.pool.known] & BY_USER > 0, False)
    only_own = question.of_user or asks_own_words(question.text)
    heads, bearing = _heads(ranked, by_user, only_own=only_own), _bearing(ranked.pool)
    stretches = _Stretches.of(ranked.pool, memory.catalogue)
    first = _FIRST * stretches.firsts(bearing, heads) * np.maximum(ranked.totals, 0.0)
    worth = (ranked.totals + first)[heads].round(9)
    best = heads[np.lexsort((stretches.ages[heads], -worth))]
    about, others = _parted(best, bearing)
    heads_wanted = most if only_own else most / 2  # an answer takes a place, too
    about = stretches.spread(about, math.ceil(_SPREAD * heads_wanted))
    fresh = _fresh((about, others), ranked.pool.rows, memory.indexed_text, most)
    if not only_own:
        fresh = [_with_answers(each, ranked, by_user) for each in fresh]
    about = _in_order(np.array(fresh[0][:most], np.int64), ranked.pool.rows, memory.catalogue)
    if wants_newest_first(question.text):
        about = about[::-1]
    chosen = np.concatenate([about, np.array(fresh[1], np.int64)])[:most]
    return _placed(ranked, chosen, first)


@dataclass(frozen=True)
class _Stretches:
    """Stretches of talk: a session, or a day of one that goes on for days."""

    numbers: NDArray[np.int64]  # by place in the pool
    ages: NDArray[np.int64]

    @classmethod
    def of(cls, pool: Pool, catalogue: Catalogue) -> _Stretches:
        days = np.floor_divide(np.nan_to_num(catalogue.times[pool.rows], nan=-_DAY), _DAY)
        pairs = np.stack([catalogue.sessions[pool.rows].astype(np.float64), days])
        numbers = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        return cls(numbers, catalogue.ages[pool.rows])

    def firsts(self, bearing: Floats, among: Places) -> Floats:
        """How much of what a stretch says of the matter is still to come: 1 where it begins."""
        order = among[np.lexsort((self.ages[among], self.numbers[among]))]
        starts, sizes = self._runs(order)
        upto = np.cumsum(bearing[order])
        before = upto - bearing[order]
        begun = np.repeat(before[starts], sizes)
        whole = np.repeat(upto[starts + sizes - 1], sizes) - begun
        found = np.zeros(len(bearing))
        found[order] = 1.0 - (before - begun) / np.maximum(whole, 1e-9)
        return found

    def spread(self, order: Places, most: int) -> Places:
        """Put the first of each stretch before the others, so many of them."""
        starts = np.sort(np.unique(self.numbers[order], return_index=True)[1])[:most]
        return np.concatenate([order[starts], np.delete(order, starts)])

    def _runs(self, order: Places) -> tuple[Places, Places]:
        """Where each stretch begins in an order by stretch, and how many are in it."""
        _, starts, sizes = np.unique(self.numbers[order], return_index=True, return_counts=True)
        return starts, sizes


def _bearing(pool: Pool) -> Floats:
    """How much candidates themselves say of the matter."""
    return share_of_best(pool.scores) + share_of_best(pool.cosines)


def _heads(ranked: Ranked, by_user: NDArray[np.bool_], *, only_own: bool) -> Places:
    """Those found that may be chosen for themselves: none that merely answers the user."""
    around, found = ranked.pool.places, ranked.order
    chosen = users = by_user[around[0][found]]
    if not only_own or not users.any():
        chosen = users | ~by_user[around[-1][found]]
    return found[np.flatnonzero(chosen)]


def _parted(places: Places, bearing: Floats) -> tuple[Places, Places]:
    """Part those that are about the matter from those merely beside something that is."""
    own = bearing[places]
    is_about = (own > 0) & (own >= _BEARING * bearing.max(initial=0.0))
    return places[is_about], places[~is_about]


def _fresh(
    groups: Iterable[Places], rows: Rows, text_of: Callable[[int], str], most: int
) -> list[list[int]]:
    """Return the first so many of all groups that do not repeat one before them word for word."""
    said, fresh = set[str](), list[list[int]]()
    for group in groups:
        fresh.append([])
        for place in group.tolist():
            if len(said) == most:
                break
            text = " ".join(text_of(int(rows[place])).casefold().split())
            if text not in said:
                said.add(text)
                fresh[-1].append(place)
    return fresh


def _with_answers(places: Iterable[int], ranked: Ranked, by_user: NDArray[np.bool_]) -> list[int]:
    """Put behind each message of the user the answer it got, if that was found, too."""
    own, behind = ranked.pool.places[0], ranked.pool.places[1]
    found, answered = {int(own[place]): place for place in ranked.order.tolist()}, list[int]()
    for place in places:
        answered.append(place)
        answer = int(behind[place])
        if by_user[own[place]] and answer in found and not by_user[answer]:
            answered.append(found[answer])
    return answered


def _in_order(places: Places, rows: Rows, catalogue: Catalogue) -> Places:
    """Sort by time; as they were told, where one of them has no time."""
    times, ages = catalogue.times[rows[places]], catalogue.ages[rows[places]]
    return places[np.argsort(ages) if np.isnan(times).any() else np.lexsort((ages, times))]


def _placed(ranked: Ranked, chosen: Places, first: Floats) -> Ranked:
    """Put the chosen before the others; the scores that there are fall along the new order."""
    others = ranked.order[~np.isin(ranked.order, chosen)]
    order = np.concatenate([chosen, others])
    totals = ranked.totals.copy()
    totals[order] = np.sort(totals[order])[::-1] - _STEP * np.arange(1, len(order) + 1)
    parts = {
        **ranked.parts,
        "first mention": first,
        "overview": totals - ranked.totals - first,
    }
    return replace(ranked, order=order, totals=totals, parts=parts)
