"""The ranker: candidates from both arms, their signals, the weighted sum, and the second hop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Catalogue, Rows
from ..facets import NO_ROWS
from ..hits import Why
from ..sparse.index import SparseIndex
from ..vector_arm import VectorArm
from .asking import ParsedQuestion
from .bridging import Bridges, bounded, by_row, trust_in
from .pool import REACH, CandidatePool, Floats, gather
from .profiles import Profiles
from .sharing import BETTER, Links, SharedNames, helpful, incomplete, shared
from .signals import (
    Signals,
    asked_signals,
    meaning_signals,
    phrase_signal,
    recency,
    word_signals,
)
from .topic import TopicTerm, terms_of
from .weights import Ranking

_LIKE = 0.1  # the cosine from which a text counts as similar
_BOUNDED = ("bridge", "shares a name")  # an entry found through another never passes the best
_HOPS = (*_BOUNDED, "names the best")
_REASONS = ("instruction", "date", "date said", "phrase", "named", *_HOPS)
_MOST_STANDING = 50  # standing instructions, the newest, that are always candidates
_MOST_DATED = 62 * 86400.0  # a longer period does not make everything in it a candidate


class SearchIndexes(Protocol):
    """The indexes of one memory that ranking reads."""

    catalogue: Catalogue
    profiles: Profiles
    sparse: SparseIndex
    vectors: VectorArm

    def indexed_text(self, row: int) -> str:
        """Return the text of an entry that is indexed."""


@dataclass(frozen=True)
class Ranked:
    """A ranking: the pool of candidates, the order of those found, and the signals behind it."""

    pool: CandidatePool
    order: NDArray[np.int64]  # places in the pool, the best first
    totals: Floats
    parts: Signals  # weighted; they add up to the totals
    vector: NDArray[np.float32] | None = None  # of the question
    keywords: str = ""
    successors: Mapping[int, int] = field(default_factory=dict)  # place → place superseding it
    outdated: frozenset[int] = frozenset()  # places that no longer answer this question
    is_personal: bool = False  # the totals are those of the personal second pass
    unknown: Floats | None = None  # the share of the topic that each candidate leaves unmentioned

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def terms(self) -> list[TopicTerm]:
        """The terms that the question is about."""
        best = self.pool.gains.max(axis=1, initial=0.0).tolist()
        return terms_of(self.keywords, dict(zip(self.pool.words, best, strict=True)))

    @cached_property
    def rows(self) -> Rows:
        """The rows that were found, the best first."""
        rows: Rows = self.pool.rows[self.order]
        return rows

    def score(self, place: int) -> float:
        """Return the score at a place."""
        return float(self.totals[self.order[place]])

    def place_of(self, row: int) -> int | None:
        """Return the place of a row in the order, or ``None`` if it was not found."""
        places = np.flatnonzero(self.rows == row)
        return int(places[0]) if len(places) else None

    def why(self, place: int) -> Why:
        """Return the explanation of the candidate at a place."""
        at = int(self.order[place])
        signals = {name: float(part[at]) for name, part in self.parts.items() if part[at]}
        ranks = {"words": _rank_in(self.pool.scores, at)}
        if self.pool.likeness is not None:
            ranks["vectors"] = _rank_in(self.pool.cosines, at)
        found = {arm: rank for arm, rank in ranks.items() if rank}
        is_by_meaning = self.pool.likeness is not None
        return Why(signals, found, self._words(at), by_meaning=is_by_meaning)

    def _words(self, at: int) -> dict[str, float]:
        gains = zip(
            self.pool.words, self.pool.gains[:, self.pool.places[0][at]].tolist(), strict=True
        )
        return {word: gain for word, gain in sorted(gains, key=lambda each: -each[1]) if gain > 0}


class Ranker:
    """Ranks the allowed rows of one memory for one question."""

    def __init__(
        self,
        question: ParsedQuestion,
        allowed: Rows,
        memory: SearchIndexes,
        ranking: Ranking,
        now: float,
    ) -> None:
        self._question, self._allowed, self._memory = question, allowed, memory
        self._is_all = len(allowed) == len(memory.catalogue)
        self._ranking, self._now = ranking, now
        self._vector = memory.vectors.vector_of(question.focus)
        self._bridges = Bridges(memory.profiles.names, memory.indexed_text)
        self._named = self._bridges.named_in(question.text)

    def rank(self, also: Iterable[int] = ()) -> Ranked:
        """Return the ranking; the rows in ``also`` are candidates even if no arm proposes them."""
        rows = self._joined(self._candidates(), [*self._named, *also])
        first = self._score(rows, self._gathered(rows), {}, 0.0)
        trust = trust_in(first.rows, first.totals[first.order], self._ranking.seeds)
        links = self._links(trust, first.pool)
        if not links and not len(self._memory.profiles.names):
            return first
        bridged = self._bridges.named_by(trust)
        back = self._bridges.naming(first.rows[: self._ranking.scan].tolist(), trust)
        pool = self._widened(first.pool, chain(bridged, *links.values()))
        further = pool.rows
        hops = {
            "bridge": by_row(further, bridged),
            "names the best": by_row(further, back),
            "shares a name": shared(links, trust, pool),
        }
        best = float(first.totals[first.order].max(initial=0.0))
        return self._score(further, pool, hops, best)

    def _links(self, trust: dict[int, float], pool: CandidatePool) -> Links:
        """Return the rows that share names with the best; none for an overview."""
        weights = self._ranking.weights(with_vectors=pool.likeness is not None)
        better = incomplete(list(trust)[:BETTER], pool)
        if not better or self._question.wants_overview or not weights.get("shares a name"):
            return {}
        memory = self._memory
        names = SharedNames(memory.profiles.mentions, memory.sparse, memory.indexed_text)
        found = names.links(better, self._question.text).items()
        allowed = {
            each: {row: rarity for row, rarity in sharers.items() if self._mask[row]}
            for each, sharers in found
        }
        some = {each: sharers for each, sharers in allowed.items() if sharers}
        keywords = self._question.keywords
        return helpful(some, pool, lambda rows: memory.sparse.gains(keywords, rows).gains)

    def _score(self, rows: Rows, pool: CandidatePool, hops: Signals, best: float) -> Ranked:
        """Score rows; ``best`` is the best total without the second hop."""
        weights = self._ranking.weights(with_vectors=pool.likeness is not None)
        signals = self._signals(rows, pool, hops)
        parts = {name: weights[name] * each for name, each in signals.items() if weights.get(name)}
        totals = np.zeros(len(rows))
        for name, part in parts.items():
            if name not in _BOUNDED:
                totals += part
        for name in _BOUNDED:
            if name in parts:
                parts[name] = bounded(parts[name], signals[name], totals, best)
                totals += parts[name]
        found = np.flatnonzero(_is_found(pool, parts))
        ages = self._memory.catalogue.ages[rows[found]]
        order = found[np.lexsort((-ages, -totals[found].round(9)))]
        return Ranked(pool, order, totals, parts, self._vector, keywords=self._question.keywords)

    def _signals(self, rows: Rows, pool: CandidatePool, hops: Signals) -> Signals:
        memory, question = self._memory, self._question
        known = (pool, memory.catalogue, memory.profiles)
        return {
            **word_signals(*known),
            **meaning_signals(*known),
            **asked_signals(question, *known),
            **phrase_signal(question.phrases, rows, memory.indexed_text),
            "recency": recency(self._now - memory.catalogue.times[rows], self._ranking.half_life),
            "named": by_row(rows, self._named),
            **hops,
        }

    def _gathered(self, rows: Rows) -> CandidatePool:
        memory = self._memory
        return gather(
            rows,
            self._question.keywords,
            self._vector,
            memory.catalogue,
            memory.sparse,
            memory.vectors.index,
        )

    def _widened(self, pool: CandidatePool, others: Iterable[int]) -> CandidatePool:
        """Return the pool with the allowed ones of the other rows; only these are looked up."""
        new = np.setdiff1d(np.fromiter(others, np.int64), pool.rows)
        new = new[self._mask[new]]
        return pool.joined(self._gathered(new)) if len(new) else pool

    def _candidates(self) -> Rows:
        """Return the candidates, or every allowed row if these are few.

        Candidates are the best of each arm with their neighbours, the entries of the time or the
        speakers that the question names, and the user's standing instructions.
        """
        most, memory = self._ranking.candidates, self._memory
        if len(self._allowed) <= self._ranking.whole:
            return self._allowed
        allow = None if self._is_all else self._mask
        best = [row for row, _ in memory.sparse.search(self._question.keywords, most, allow=allow)]
        if self._vector is not None and memory.vectors.index is not None:
            near = memory.vectors.index.search(self._vector, most, allow=allow)
            best += [row for row, _ in near]
        found = np.array(best, np.int64)
        around = [found, *(there for _, there in memory.catalogue.neighbours(found, REACH))]
        standing = np.fromiter(memory.profiles.instructions, np.int64)[-_MOST_STANDING:]
        asked = [self._of_the_day(), self._of_the_speakers()]
        rows = memory.catalogue.distinct(np.concatenate([*around, standing, *asked]))
        allowed: Rows = rows[self._mask[rows]]
        return allowed

    @cached_property
    def _mask(self) -> NDArray[np.bool_]:
        """Whether each row is allowed."""
        catalogue = self._memory.catalogue
        return catalogue.used_rows() if self._is_all else catalogue.mask(self._allowed)

    def _of_the_day(self) -> Rows:
        """Return the newest allowed rows from the times that the question names."""
        if not self._question.times:
            return NO_ROWS
        times, found = self._memory.catalogue.times[self._allowed], list[Rows]()
        for span in self._question.times:
            start, end = span.start.timestamp(), span.end.timestamp()
            if end - start <= _MOST_DATED:
                found.append(self._allowed[(times >= start) & (times < end)])
        return self._newest_of(found)

    def _of_the_speakers(self) -> Rows:
        """Return the newest allowed rows of the speakers that the question names."""
        said = (self._memory.catalogue.rows_of("speaker", each) for each in self._question.speakers)
        return self._newest_of([rows[self._mask[rows]] for rows in said])

    def _newest_of(self, groups: Sequence[Rows]) -> Rows:
        """Return the newest rows of each group; the groups share the number of candidates."""
        share = max(1, self._ranking.candidates // max(1, len(groups)))
        ages = self._memory.catalogue.ages
        newest = (
            rows[np.argpartition(-ages[rows], share)[:share]] if len(rows) > share else rows
            for rows in groups
        )
        return np.concatenate([NO_ROWS, *newest])

    def _joined(self, rows: Rows, others: Iterable[int]) -> Rows:
        """Return the rows together with the allowed ones of the others."""
        more = np.fromiter(others, np.int64)
        if not len(more):
            return rows
        return self._memory.catalogue.distinct(np.concatenate([rows, more[self._mask[more]]]))


def _is_found(pool: CandidatePool, parts: Signals) -> NDArray[np.bool_]:
    """Return for each candidate whether there is any reason to return it."""
    found = (pool.cosines >= _LIKE) | pool.window.any(axis=1)
    for name in _REASONS:
        if name in parts:
            found |= parts[name] > 0
    if not found.any() and "speaker" in parts:  # "what did Ann say?"
        found |= parts["speaker"] > 0
    return found


def _rank_in(scores: Floats, at: int) -> int:
    """Return the rank of a candidate by one score alone, from 1; 0 if its score is 0."""
    return int(np.count_nonzero(scores > scores[at])) + 1 if scores[at] > 0 else 0
