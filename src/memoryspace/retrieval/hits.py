"""What a search gives back, and what it says about it."""

from __future__ import annotations

from msgspec import Struct

from ..portable import Portable
from .entries import Entry


class Why(Portable, frozen=True):
    """Why an entry stands where it stands.

    ``signals`` add up to its score. ``ranks`` is its place in each arm alone, from 1; an arm that
    does not find it is left out. ``words`` of the question occur in it, each with what it gives.
    ``likeness`` is the cosine of its vector to the question's, ``None`` where either has none.
    ``by_meaning`` is false where words alone were searched: there is no embedder, it cannot read
    the question, or it failed (``Recall.embedder_status`` tells).
    """

    signals: dict[str, float]
    ranks: dict[str, int]
    words: dict[str, float]
    likeness: float | None = None
    by_meaning: bool = True


class Hit(Struct, frozen=True):
    """An entry that was found. Scores compare within one search, not between two.

    ``relevance`` is how likely it answers, from 0 to 1: that compares between searches.
    ``superseded_by`` is the entry that says otherwise since, where one does. ``by_meaning`` is
    false where words alone were searched (see ``Why``).
    """

    id: str
    score: float
    entry: Entry
    why: Why | None = None
    relevance: float = 1.0
    superseded_by: str | None = None
    by_meaning: bool = True


class SessionHit(Struct, frozen=True):
    """A session that was found, by the best of what was said in it."""

    session: str
    score: float
    best: tuple[Hit, ...]


class WhyNot(Portable, frozen=True):
    """Where an entry fell out of a search.

    ``reason`` is one of ``unknown`` (nothing has this id), ``filtered``, ``not matched`` (there is
    no reason to find it), ``not a candidate`` (others matched so much better that it was not
    looked at), ``outranked``, or ``found`` (it did not fall out); ``detail`` says it in words.
    ``by`` are those who took the places in front of it.
    """

    reason: str
    detail: str
    rank: int | None = None
    by: tuple[str, ...] = ()
    why: Why | None = None
