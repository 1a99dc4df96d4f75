"""``PersonalReader``: the second look, at the best candidates of a search.

The best so many are read and ranked anew; the others follow in the order they had. What was read is
kept, so that a memory is read once. Nothing is read before somebody asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as change
from numpy.typing import NDArray

from ..catalogue import Catalogue
from ..dense.index import DenseIndex
from ..entries import Entry
from ..ranking import Question, Ranked
from ..ranking.signals import word_signals
from .asking import PersonalQuestion, asked
from .clauses import Reading, last_spoken_of, read
from .currency import LOOKED_AT, Superseded, Told, superseded
from .facts import Facts
from .lending import Memory, lent
from .people import RELATIONS
from .signals import Candidates, Floats, rarity_of, share, signals

READ = 60  # candidates that are looked at again
_STEP = 1e-3  # what a message has before the one it supersedes
_NONE: NDArray[np.int64] = np.empty(0, np.int64)
_NOTHING = Reading((), frozenset(), 0)


class Weights(Struct, frozen=True):
    """What signals count, and what the signs that something was superseded."""

    signals: Mapping[str, float]
    signs: Mapping[str, float]


class Look(Struct, frozen=True):
    """One second look: candidates by their places in the pool, and what was seen."""

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    sessions: Sequence[str | None]
    question: PersonalQuestion
    candidates: Candidates
    rarity: Mapping[str, float]
    facts: Mapping[tuple[int, int], float]
    vectors: NDArray[np.float32] | None

    @property
    def is_nobody_known(self) -> bool:
        """Whether nobody of those whom the question asks for was ever spoken of."""
        named = (each.names for each in self.candidates.readings)
        return bool(self.question.people) and self.question.people.isdisjoint(
            frozenset().union(*named)
        )

    def facts_among(self, some: Sequence[int]) -> dict[tuple[int, int], float]:
        """Return which of some candidates a fact leads from and to, by their places among these."""
        place = {at: number for number, at in enumerate(some)}
        return {
            (place[old], place[new]): fit
            for (old, new), fit in self.facts.items()
            if old in place and new in place
        }

    def told(self, at: int) -> Told:
        """Return a candidate as one that may supersede another."""
        seen = self.candidates
        near = seen.cosines if self.vectors is not None else seen.words
        return Told(
            reading=seen.readings[at],
            time=float(seen.times[at]),
            age=float(seen.ages[at]),
            session=self.sessions[at],
            length=len(seen.texts[at]),
            vector=None if self.vectors is None else self.vectors[at],
            fit=float(share(near, 0.0)[at]),
        )


class PersonalReader:
    """Readings of one memory, and the second look."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._readings: dict[int, tuple[str, Reading]] = {}

    def forget(self, row: int, entry: Entry) -> None:
        """Drop what is known of a row."""
        self._readings.pop(row, None)
        self.facts.remove(row, entry)

    def wanted(self, ranked: Ranked) -> list[int]:
        """Return the messages behind the best facts that are no candidates themselves."""
        behind = {
            source for row in ranked.rows[:READ].tolist() for source in self.facts.sources_of(row)
        }
        return sorted(behind - set(ranked.pool.rows.tolist()))

    def look(
        self,
        ranked: Ranked,
        question: Question,
        memory: Memory,
        now: float,
        *,
        with_others: bool = True,
    ) -> Look | None:
        """Read the best candidates, with others if these are few; ``None`` if there are none."""
        places = self._places(ranked, with_others=with_others)
        if not len(places):
            return None
        rows = ranked.pool.rows[places]
        entries = [memory.catalogue.at(row) for row in rows.tolist()]
        readings = self._read(rows.tolist(), entries)
        known = frozenset().union(*(each.names for each in readings)) - RELATIONS
        personal = asked(question, now, known, _aliases(readings))
        rarity = rarity_of(readings)
        pair = word_signals(ranked.pool, memory.catalogue, memory.profiles)["words with the reply"][
            places
        ]
        cosines = ranked.pool.cosines[places]
        known_facts, links = lent(self.facts, ranked, rows, personal, rarity, memory)
        candidates = Candidates(
            texts=[each.text for each in entries],
            by_user=np.array([is_users(each) for each in entries]),
            times=memory.catalogue.times[rows],
            ages=_ages(memory.catalogue, rows),
            words=ranked.pool.scores[places],
            cosines=cosines,
            with_question=pair,
            facts=known_facts,
            readings=readings,
        )
        vectors = _vectors(memory.vectors.index, rows) if ranked.pool.likeness is not None else None
        sessions = [each.session for each in entries]
        return Look(places, rows, sessions, personal, candidates, rarity, links, vectors)

    def reread(
        self,
        ranked: Ranked,
        question: Question,
        memory: Memory,
        now: float,
        *,
        with_others: bool = True,
    ) -> Ranked:
        """Return the best candidates in the order of a second look."""
        look = self.look(ranked, question, memory, now, with_others=with_others)
        if look is None:
            return ranked
        weights = default_weights(with_vectors=ranked.pool.likeness is not None)
        seen = signals(look.question, look.candidates, asked_rarity(look))
        parts = {
            name: weights.signals[name] * each
            for name, each in seen.items()
            if weights.signals.get(name)
        }
        totals = np.sum(list(parts.values()), axis=0)
        found = self.superseded(look, totals, weights)
        parts["supersedes"] = _raised(found, totals, is_former=look.question.is_former)
        heirs = {
            int(look.places[each.old]): int(look.places[each.new]) for each in found if each.is_sure
        }
        rest = self._rest(ranked, look.places)
        return replace(
            _ranked_anew(ranked, look.places, rest, parts),
            heirs=heirs,
            is_personal=True,
            is_nobody_known=look.is_nobody_known,
        )

    def superseded(self, look: Look, totals: Floats, weights: Weights) -> list[Superseded]:
        """Return which of the best the question asks for no longer hold."""
        if not (look.question.is_present or look.question.is_former):
            return []
        best = best_told(look, totals)
        told = [look.told(at) for at in best]
        facts = look.facts_among(best)
        found = superseded(look.question, told, look.rarity, facts, weights.signs)
        return [change(each, old=best[each.old], new=best[each.new]) for each in found]

    def _places(self, ranked: Ranked, *, with_others: bool) -> NDArray[np.int64]:
        """Return the places of the best, messages instead of the facts that came from them.

        Where these are few, others follow: who shares no word with a question may answer it.
        """
        place = {row: at for at, row in enumerate(ranked.pool.rows.tolist())}
        others = np.setdiff1d(np.arange(len(ranked.pool)), ranked.order) if with_others else _NONE
        found: dict[int, None] = {}
        for at in (*ranked.order.tolist(), *others.tolist()):
            sources = self.facts.sources_of(int(ranked.pool.rows[at]))
            said = [place[row] for row in sources if row in place]
            found.update(dict.fromkeys(said if said else (at,)))
            if len(found) >= READ:
                break
        return np.fromiter(found, np.int64)

    def _rest(self, ranked: Ranked, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return who was not looked at again; facts whose messages were candidates are not left."""
        rows = set(ranked.pool.rows.tolist())
        left = (
            at
            for at in ranked.order[~np.isin(ranked.order, places)].tolist()
            if rows.isdisjoint(self.facts.sources_of(int(ranked.pool.rows[at])))
        )
        return np.fromiter(left, np.int64)

    def _read(self, rows: Sequence[int], entries: Sequence[Entry]) -> list[Reading]:
        """Read what the user said, in the order it was said: "she" is who was spoken of before."""
        found: dict[int, Reading] = {}
        last: frozenset[str] = frozenset()
        session: str | None = None
        order = sorted(range(len(rows)), key=lambda at: (entries[at].time or 0.0, rows[at]))
        for at in order:
            entry = entries[at]
            if entry.session != session:
                last, session = frozenset(), entry.session
            found[at] = self._reading(rows[at], entry, last)
            last = last_spoken_of(found[at], last)
        return [found[at] for at in range(len(rows))]

    def _reading(self, row: int, entry: Entry, last: frozenset[str]) -> Reading:
        if not is_users(entry):
            return _NOTHING
        known = self._readings.get(row)
        if known is None or known[0] != entry.text:
            known = self._readings[row] = (entry.text, read(entry.text, last))
        return known[1]


def _raised(found: Sequence[Superseded], totals: Floats, *, is_former: bool) -> Floats:
    """Return what those gain that supersede a candidate which would stand before them.

    Where what held before is asked for, it is the reverse, if it is sure that one followed another.
    """
    raised = totals.copy()
    for each in found:
        first, second = (each.old, each.new) if is_former else (each.new, each.old)
        if raised[second] > raised[first] and (each.is_sure or not is_former):
            raised[first] = raised[second] + _STEP
    gained: Floats = raised - totals
    return gained


def is_users(entry: Entry) -> bool:
    """Tell whether an entry is what the user said: whoever has no role is taken for the user."""
    return entry.role in (None, "user")


def best_told(look: Look, totals: Floats) -> list[int]:
    """Return the best of what the user said."""
    order = np.argsort(-totals, kind="stable")
    return [int(at) for at in order if look.candidates.by_user[at]][:LOOKED_AT]


def asked_rarity(look: Look) -> dict[str, float]:
    """Return the rarity of the question's words."""
    return {word: look.rarity.get(word, 1.0) for word in look.question.words}


@cache
def default_weights(*, with_vectors: bool) -> Weights:
    """Return the weights that come with the package; ``bench/tune_personal.py`` found them."""
    data = json.loads(files(__package__).joinpath("weights.json").read_text("utf-8"))
    chosen = data["words and vectors" if with_vectors else "words"]
    return Weights(chosen["signals"], chosen["signs"])


def _aliases(readings: Sequence[Reading]) -> dict[str, frozenset[str]]:
    """Return names by relation and relations by name, where one of each is told in one breath."""
    found: dict[str, frozenset[str]] = {}
    for reading in readings:
        for clause in reading.clauses:
            relations, names = clause.names & RELATIONS, clause.names - RELATIONS
            if not relations or len(names) != 1:
                continue
            for each, others in ((relations, names), (names, relations)):
                for key in each:
                    found[key] = found.get(key, frozenset()) | others
    return found


def _ages(catalogue: Catalogue, rows: NDArray[np.int64]) -> Floats:
    """Return how new rows are, from 0 to 1, by the order in which all entries came."""
    everyone = np.sort(catalogue.ages[catalogue.allowed()])
    found: Floats = np.searchsorted(everyone, catalogue.ages[rows]) / max(1, len(everyone))
    return found


def _vectors(index: DenseIndex | None, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
    return None if index is None else index.vectors(rows)


def _ranked_anew(
    ranked: Ranked,
    places: NDArray[np.int64],
    rest: NDArray[np.int64],
    parts: Mapping[str, Floats],
) -> Ranked:
    """Put the places in the order of their new totals, and the others behind them."""
    size = len(ranked.pool)
    whole = {name: np.zeros(size) for name in parts}
    for name, each in parts.items():
        whole[name][places] = each
    totals = np.sum(list(whole.values()), axis=0)
    if len(rest):
        behind = float(totals[places].min()) - 1.0
        before = float(ranked.totals[rest].max(initial=0.0))
        whole["not looked at again"] = np.zeros(size)
        whole["not looked at again"][rest] = behind + ranked.totals[rest] - before
        totals = totals + whole["not looked at again"]
    order = places[np.lexsort((-ranked.pool.rows[places], -totals[places].round(9)))]
    return replace(ranked, order=np.concatenate([order, rest]), totals=totals, parts=whole)
