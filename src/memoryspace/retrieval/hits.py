"""The results of a search: hits, and explanations of why an entry was or was not found."""

from __future__ import annotations

from msgspec import Struct

from ..portable import Portable
from .entries import Entry


class Why(Portable, frozen=True):
    """Why an entry ranks where it does.

    Attributes:
        signals: The contribution of each signal; they add up to the score.
        ranks: The rank in each arm alone, from 1. An arm that does not find the entry is left out.
        words: The words of the question that occur in the entry, each with its contribution.
        likeness: The cosine of the entry's and the question's vectors; ``None`` if one is missing.
        by_meaning: False if only words were searched, because there is no embedder, it cannot read
            the question, or it failed (see ``Recall.embedder_status``).
    """

    signals: dict[str, float]
    ranks: dict[str, int]
    words: dict[str, float]
    likeness: float | None = None
    by_meaning: bool = True


class Hit(Struct, frozen=True):
    """An entry that a search found.

    Attributes:
        id: The id of the entry.
        score: Orders the hits of one search. Do not compare scores of different searches.
        entry: The entry itself.
        why: The explanation, if the search was asked for one.
        relevance: The probability, from 0 to 1, that it answers the question. It compares
            between searches.
        superseded_by: The id of a newer entry that contradicts this one, if there is one.
        by_meaning: False if only words were searched (see ``Why``).
    """

    id: str
    score: float
    entry: Entry
    why: Why | None = None
    relevance: float = 1.0
    superseded_by: str | None = None
    by_meaning: bool = True


class SessionHit(Struct, frozen=True):
    """A session that a search found, with its best hits. Its score is that of the best hit."""

    session: str
    score: float
    best: tuple[Hit, ...]


class WhyNot(Portable, frozen=True):
    """Why a search did not return an entry.

    Attributes:
        reason: One of ``unknown`` (no entry has this id), ``filtered`` (``only`` excludes it),
            ``not matched`` (it has nothing in common with the question), ``not a candidate``
            (others matched so much better that it was not scored), ``outranked``, or ``found``
            (the search does return it).
        detail: The reason in words.
        rank: Its rank, from 1, if it has one.
        by: The ids of the best entries that rank above it.
        why: Its signals, if it was scored.
    """

    reason: str
    detail: str
    rank: int | None = None
    by: tuple[str, ...] = ()
    why: Why | None = None
