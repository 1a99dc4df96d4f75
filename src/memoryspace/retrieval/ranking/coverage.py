"""Overviews: entries from every stretch of a topic, in order of time.

The entries most similar to a question for an order or a summary come from one stretch of
conversation, but the answer is spread over many. So an entry is worth its score, plus up to a
quarter the earlier it is within what its stretch says on the topic. Half of the places go to the
best entry of each stretch on the topic, the other half to the entries worth most. The chosen ones
are sorted by time. Unless the question is about what the user said, an answer is shown with the
message it answers.

Only candidates are read, so the cost does not depend on the size of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Catalogue, Rows
from .asking import ParsedQuestion
from .fusion import Ranked, SearchIndexes
from .overview import asks_own_words, wants_newest_first
from .pool import CandidatePool, Floats
from .signals import share_of_best
from .traits import BY_USER

Places = NDArray[np.int64]  # in the pool

WIDE = 300  # candidates of each arm for an overview

_FIRST = 0.25  # the share of its score that an entry gains for being first on the topic
_BEARING = 0.25  # an entry with less than this share of the best bearing is off the topic
_SPREAD = 0.5  # the share of places for the best entry of each stretch
_STEP = 1e-6  # least difference of two scores, which keeps the order by time
_DAY = 86400.0


def covered(ranked: Ranked, question: ParsedQuestion, memory: SearchIndexes, most: int) -> Ranked:
    """Put up to ``most`` entries first that together cover the topic.

    Entries on the topic come in order of time. If these are fewer than ``most``, the others worth
    most follow; then the rest in its old order. The scores are reassigned and fall along the list:
    they show the position, not the quality.
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
    heads_wanted = most if only_own else most / 2  # the answers take places, too
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
    """Stretches of conversation: a session, or a day of one that lasts for days."""

    numbers: NDArray[np.int64]  # by place in the pool
    ages: NDArray[np.int64]

    @classmethod
    def of(cls, pool: CandidatePool, catalogue: Catalogue) -> _Stretches:
        days = np.floor_divide(np.nan_to_num(catalogue.times[pool.rows], nan=-_DAY), _DAY)
        pairs = np.stack([catalogue.sessions[pool.rows].astype(np.float64), days])
        numbers = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        return cls(numbers, catalogue.ages[pool.rows])

    def firsts(self, bearing: Floats, among: Places) -> Floats:
        """Return the share of a stretch's bearing that is not before an entry: 1 for the first."""
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
        """Move the first of each stretch to the front, up to ``most``."""
        starts = np.sort(np.unique(self.numbers[order], return_index=True)[1])[:most]
        return np.concatenate([order[starts], np.delete(order, starts)])

    def _runs(self, order: Places) -> tuple[Places, Places]:
        """Return where each stretch begins in an order by stretch, and its size."""
        _, starts, sizes = np.unique(self.numbers[order], return_index=True, return_counts=True)
        return starts, sizes


def _bearing(pool: CandidatePool) -> Floats:
    """Return how much each candidate by itself is about the topic."""
    return share_of_best(pool.scores) + share_of_best(pool.cosines)


def _heads(ranked: Ranked, by_user: NDArray[np.bool_], *, only_own: bool) -> Places:
    """Return the places that may be chosen themselves: none that only answers the user."""
    around, found = ranked.pool.places, ranked.order
    chosen = users = by_user[around[0][found]]
    if not only_own or not users.any():
        chosen = users | ~by_user[around[-1][found]]
    return found[np.flatnonzero(chosen)]


def _parted(places: Places, bearing: Floats) -> tuple[Places, Places]:
    """Separate the places on the topic from those found only through their context."""
    own = bearing[places]
    is_about = (own > 0) & (own >= _BEARING * bearing.max(initial=0.0))
    return places[is_about], places[~is_about]


def _fresh(
    groups: Iterable[Places], rows: Rows, text_of: Callable[[int], str], most: int
) -> list[list[int]]:
    """Return the first ``most`` places of all groups, without verbatim repetitions."""
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
    """Insert after each message of the user the answer it got, if that was found, too."""
    own, after = ranked.pool.places[0], ranked.pool.places[1]
    found, answered = {int(own[place]): place for place in ranked.order.tolist()}, list[int]()
    for place in places:
        answered.append(place)
        answer = int(after[place])
        if by_user[own[place]] and answer in found and not by_user[answer]:
            answered.append(found[answer])
    return answered


def _in_order(places: Places, rows: Rows, catalogue: Catalogue) -> Places:
    """Sort by time; in the order of adding if one of them has no time."""
    times, ages = catalogue.times[rows[places]], catalogue.ages[rows[places]]
    return places[np.argsort(ages) if np.isnan(times).any() else np.lexsort((ages, times))]


def _placed(ranked: Ranked, chosen: Places, first: Floats) -> Ranked:
    """Put the chosen before the others, and reassign the scores so that they fall."""
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
