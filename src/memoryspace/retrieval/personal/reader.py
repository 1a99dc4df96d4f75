"""``PersonalReader``: the second ranking pass over the best candidates of a search.

The best ``READ`` candidates are read and ranked again; the others follow in their old order.
Readings are cached, and nothing is read before a search needs it.
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
from ..ranking import ParsedQuestion, Ranked
from ..ranking.pool import CandidatePool
from ..ranking.signals import word_signals
from ..ranking.topic import TopicTerm
from ..text.analysis import tokens
from .asking import PersonalQuestion, asked
from .clauses import MessageReading
from .currency import LOOKED_AT, Statement, Superseded, superseded
from .facts import Facts
from .lending import PersonalIndexes, lent
from .matters import matters_in
from .messages import Messages, ReadMessage
from .people import RELATIONS, USER, relations_asked
from .signals import Floats, PersonalCandidates, Rarity, share, signals

READ = 60  # candidates that are ranked again
_STEP = 1e-3  # the lead of a message over the one it supersedes
_THE_USER = frozenset({"user", "用户"})
_NONE: NDArray[np.int64] = np.empty(0, np.int64)


class Weights(Struct, frozen=True):
    """The weights of the signals, and of the signs that something was superseded."""

    signals: Mapping[str, float]
    signs: Mapping[str, float]


class Look(Struct, frozen=True):
    """The input of one second pass: candidates, by their places in the pool, and their readings."""

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    sessions: NDArray[np.int64]
    question: PersonalQuestion
    candidates: PersonalCandidates
    rarity: Rarity
    facts: Mapping[tuple[int, int], float]
    vectors: NDArray[np.float32] | None

    def facts_among(self, some: Sequence[int]) -> dict[tuple[int, int], float]:
        """Return the links by facts between some candidates, by their positions in ``some``."""
        place = {at: number for number, at in enumerate(some)}
        return {
            (place[old], place[new]): fit
            for (old, new), fit in self.facts.items()
            if old in place and new in place
        }

    def statements(self, some: Sequence[int]) -> list[Statement]:
        """Return some candidates as statements that may supersede one another."""
        seen = self.candidates
        fits = share(seen.cosines if self.vectors is not None else seen.words, 0.0)
        return [
            Statement(
                reading=seen.messages[at].reading,
                time=float(seen.times[at]),
                age=float(seen.ages[at]),
                session=int(self.sessions[at]),
                length=seen.messages[at].length,
                vector=None if self.vectors is None else self.vectors[at],
                fit=float(fits[at]),
            )
            for at in some
        ]


class PersonalReader:
    """The second pass for one memory, with its cached readings."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.messages = Messages()

    def forget(self, row: int, entry: Entry) -> None:
        """Remove a row."""
        self.messages.forget(row)
        self.facts.remove(row, entry)

    def wanted(self, ranked: Ranked) -> list[int]:
        """Return the source messages of the best facts that are not candidates themselves."""
        if not len(self.facts):
            return []
        sources = {
            source for row in ranked.rows[:READ].tolist() for source in self.facts.sources_of(row)
        }
        return sorted(sources - set(ranked.pool.rows.tolist()))

    def look(
        self,
        ranked: Ranked,
        question: ParsedQuestion,
        memory: PersonalIndexes,
        now: float,
        *,
        with_others: bool = True,
    ) -> Look | None:
        """Read the best candidates, and others if these are few; ``None`` if there are none."""
        places = self._places(ranked, with_others=with_others)
        if not len(places):
            return None
        rows = ranked.pool.rows[places]
        catalogue, pool = memory.catalogue, ranked.pool
        messages = self.messages.at(rows.tolist(), catalogue)
        named = frozenset().union(*(each.reading.names for each in messages))
        personal = asked(
            question,
            now,
            named - RELATIONS,
            _aliases(messages),
            own=self.facts.own_names(),
            is_alone=named.isdisjoint(RELATIONS),
        )
        rarity = Rarity(messages)
        known_facts, links = lent(self.facts, ranked, rows, personal, rarity, memory)
        unasked = np.zeros(len(rows))
        candidates = PersonalCandidates(
            messages=messages,
            times=catalogue.times[rows],
            ages=catalogue.ages[rows].astype(np.float64),
            newness=_newness(catalogue, rows) if personal.is_now else unasked,
            words=pool.scores[places],
            cosines=pool.cosines[places],
            with_question=_with_question(pool, memory, places)
            if personal.of_assistant
            else unasked,
            facts=known_facts,
        )
        vectors = _vectors(memory.vectors.index, rows) if pool.likeness is not None else None
        sessions = catalogue.sessions[rows]
        return Look(places, rows, sessions, personal, candidates, rarity, links, vectors)

    def reread(
        self,
        ranked: Ranked,
        question: ParsedQuestion,
        memory: PersonalIndexes,
        now: float,
        *,
        with_others: bool = True,
    ) -> Ranked:
        """Return the ranking with the best candidates in the order of the second pass."""
        look = self.look(ranked, question, memory, now, with_others=with_others)
        if look is None:
            return ranked
        weights = default_weights(with_vectors=ranked.pool.likeness is not None)
        seen = signals(look.question, look.candidates, look.rarity)
        parts = {
            name: weights.signals[name] * each
            for name, each in seen.items()
            if weights.signals.get(name)
        }
        totals = np.sum(list(parts.values()), axis=0)
        found = self.superseded(look, totals, weights)
        parts["supersedes"] = _raised(found, totals, is_former=look.question.is_former)
        successors = {
            int(look.places[each.old]): int(look.places[each.new]) for each in found if each.is_sure
        }
        rest = self._rest(ranked, look.places)
        return replace(
            _ranked_anew(ranked, look.places, rest, parts),
            successors=successors,
            outdated=frozenset() if look.question.is_former else frozenset(successors),
            is_personal=True,
            unknown=_unknown(ranked, look),
        )

    def superseded(self, look: Look, totals: Floats, weights: Weights) -> list[Superseded]:
        """Return which of the best candidates for the question are no longer true."""
        if not (look.question.is_present or look.question.is_former):
            return []
        best = best_statements(look, totals)
        statements = look.statements(best)
        facts = look.facts_among(best)
        found = superseded(look.question, statements, look.rarity, facts, weights.signs)
        return [change(each, old=best[each.old], new=best[each.new]) for each in found]

    def _places(self, ranked: Ranked, *, with_others: bool) -> NDArray[np.int64]:
        """Return the places of the best, with messages in place of the facts derived from them.

        If these are few, others follow: a message may answer without sharing a word.
        """
        others = _NONE
        if with_others and len(ranked.order) < min(READ, len(ranked.pool)):
            others = np.setdiff1d(np.arange(len(ranked.pool)), ranked.order)
        if not len(self.facts):
            return np.concatenate([ranked.order, others])[:READ]
        place = {row: at for at, row in enumerate(ranked.pool.rows.tolist())}
        found: dict[int, None] = {}
        for at in (*ranked.order.tolist(), *others.tolist()):
            sources = self.facts.sources_of(int(ranked.pool.rows[at]))
            said = [place[row] for row in sources if row in place]
            found.update(dict.fromkeys(said if said else (at,)))
            if len(found) >= READ:
                break
        return np.fromiter(found, np.int64)

    def _rest(self, ranked: Ranked, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places not ranked again, without facts whose messages are candidates."""
        is_seen = np.zeros(len(ranked.pool), np.bool_)
        is_seen[places] = True
        left = ranked.order[~is_seen[ranked.order]]
        if not len(self.facts):
            return left
        rows = set(ranked.pool.rows.tolist())
        are_left = (
            rows.isdisjoint(self.facts.sources_of(row)) for row in ranked.pool.rows[left].tolist()
        )
        return left[np.fromiter(are_left, np.bool_, len(left))]


def _raised(found: Sequence[Superseded], totals: Floats, *, is_former: bool) -> Floats:
    """Return what messages gain that supersede a candidate ranked above them.

    If the question asks for the former state, the older message gains instead, where ``is_sure``.
    """
    raised = totals.copy()
    for each in found:
        first, second = (each.old, each.new) if is_former else (each.new, each.old)
        if raised[second] > raised[first] and (each.is_sure or not is_former):
            raised[first] = raised[second] + _STEP
    gained: Floats = raised - totals
    return gained


def _unknown(ranked: Ranked, look: Look) -> Floats:
    """Return the share of the question's topic that was never mentioned, per candidate.

    An unknown word is no gap for a candidate that is about the person it means, or else about its
    matter. A message about an aunt does not answer for siblings, though both are family.
    """
    found = np.empty(len(ranked.pool))
    question = look.question
    terms = [each for each in ranked.terms if each.text.lower() not in question.own | _THE_USER]
    missing = [
        (each.weight, _matters_of(each, question), relations_asked(each.text))
        for each in terms
        if not each.is_known
    ]
    known = [
        (each.weight, frozenset(tokens(each.text)))
        for each in terms
        if each.is_known and question.is_of_user_or_not
    ]
    found[:] = sum(weight for weight, *_ in missing)
    total, is_own = sum(each.weight for each in terms), question.of_user_alone
    found /= max(total, 1e-9)
    for place, message in zip(look.places.tolist(), look.candidates.messages, strict=True):
        reading = message.reading
        told = reading.own_matters if is_own else reading.matters
        gap = sum(
            weight
            for weight, matters, people in missing
            if not (people & reading.people if people else matters & told)
        )
        gap += sum(weight for weight, stems in known if _is_of_others(stems, reading))
        found[place] = gap / max(total, 1e-9)
    return found


def _is_of_others(stems: frozenset[str], reading: MessageReading) -> bool:
    """Return whether a message has these words, but only about others than the user."""
    having = [each for each in reading.clauses if not stems.isdisjoint(each.words)]
    return bool(having) and not any(USER in each.about or each.kin for each in having)


def _matters_of(term: TopicTerm, question: PersonalQuestion) -> int:
    """Return the matters that excuse a word; of "blood type" only the mention of blood does."""
    is_measured = term.text.lower() in question.measured
    return 0 if is_measured else matters_in(term.text, tokens(term.text))


def best_statements(look: Look, totals: Floats) -> list[int]:
    """Return the best candidates that the user said."""
    order = np.argsort(-totals, kind="stable")
    return [int(at) for at in order if look.candidates.messages[at].is_users][:LOOKED_AT]


@cache
def default_weights(*, with_vectors: bool) -> Weights:
    """Return the weights that ship with the package, tuned by ``tools/tune_personal.py``."""
    data = json.loads(files(__package__).joinpath("weights.json").read_text("utf-8"))
    chosen = data["words and vectors" if with_vectors else "words"]
    return Weights(chosen["signals"], chosen["signs"])


def _aliases(messages: Sequence[ReadMessage]) -> dict[str, frozenset[str]]:
    """Return names by relation and relations by name, from clauses with relations and one name."""
    found: dict[str, frozenset[str]] = {}
    for message in messages:
        for relations, name in message.reading.called:
            found[name] = found.get(name, frozenset()) | relations
            for each in relations:
                found[each] = found.get(each, frozenset()) | {name}
    return found


def _newness(catalogue: Catalogue, rows: NDArray[np.int64]) -> Floats:
    """Return how new rows are, from 0 to 1, by the order of adding among all entries."""
    ages = np.sort(catalogue.ages[catalogue.allowed()], kind="stable")  # mostly sorted already
    found: Floats = np.searchsorted(ages, catalogue.ages[rows]) / max(1, len(ages))
    return found


def _with_question(
    pool: CandidatePool, memory: PersonalIndexes, places: NDArray[np.int64]
) -> Floats:
    """Return the word score of candidates with the messages they answer, as a share of the best."""
    found: Floats = word_signals(pool, memory.catalogue, memory.profiles)["words with the reply"]
    return found[places]


def _vectors(index: DenseIndex | None, rows: NDArray[np.int64]) -> NDArray[np.float32] | None:
    return None if index is None else index.vectors(rows)


def _ranked_anew(
    ranked: Ranked,
    places: NDArray[np.int64],
    rest: NDArray[np.int64],
    parts: Mapping[str, Floats],
) -> Ranked:
    """Return the places in the order of their new totals, followed by the rest."""
    table = np.zeros((len(parts) + 1, len(ranked.pool)))
    table[:-1, places] = list(parts.values())
    if len(rest):
        below = float(table[:, places].sum(axis=0).min()) - 1.0
        highest = float(ranked.totals[rest].max(initial=0.0))
        table[-1, rest] = below + ranked.totals[rest] - highest
    totals = table.sum(axis=0)
    order = places[np.lexsort((-ranked.pool.rows[places], -totals[places].round(9)))]
    whole = dict(zip((*parts, "not looked at again"), table, strict=True))
    return replace(ranked, order=np.concatenate([order, rest]), totals=totals, parts=whole)
