"""The signals: for each candidate a number that says how well it answers, in one respect.

Text signals say where the question's words and meaning occur: in the entry, in the entry and its
reply, around it, or anywhere in its session. A user's message is read with the answer it got, any
other message with the one before it. The other signals depend on the question: they count if it
names a speaker, a date, a number and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..catalogue import NO_ROW, Catalogue
from ..times import TimeSpan
from .asking import ParsedQuestion
from .pool import CandidatePool, Floats
from .profiles import Profiles, Span
from .traits import BY_USER, INSTRUCTS, PREFERS, TELLS, TELLS_NUMBER, TELLS_TIME

Signals = dict[str, Floats]

_SHARE = 0.5  # weight of a neighbour's vector beside the entry's own
_DAY = 86400.0
_NARROWNESS = ((8.5, 1.0), (62.5, 0.6), (120.5, 0.3))  # (days at most, worth of a match)
_VAGUE = 0.15


def word_signals(pool: CandidatePool, catalogue: Catalogue, profiles: Profiles) -> Signals:
    """Return the word signals, each as a share of the best."""
    by_user = profiles.traits[pool.rows] & BY_USER > 0
    reply = np.where(by_user[:, np.newaxis], pool.gains_at(1), pool.gains_at(-1))
    found = {
        "words": pool.scores,
        "words with the reply": np.maximum(pool.gains_at(0), reply).sum(axis=1),
        "words around it": pool.window.sum(axis=1),
        "words in the session": best_of_session(pool.scores, catalogue.sessions[pool.rows]),
    }
    return {name: share_of_best(each) for name, each in found.items()}


def meaning_signals(pool: CandidatePool, catalogue: Catalogue, profiles: Profiles) -> Signals:
    """Return the same four signals by vectors; none without vectors."""
    if pool.likeness is None:
        return {}
    by_user = np.where(profiles.traits[pool.rows] & BY_USER, _SHARE, 0.0)
    own = pool.cosines
    sessions = catalogue.sessions[pool.rows]
    alone = sessions == NO_ROW  # an entry without a session has no context
    found = {
        "meaning": own,
        "meaning with the reply": pool.likeness.blended({1: by_user, -1: _SHARE - by_user}),
        "meaning around it": np.where(alone, 0.0, pool.likeness.blended({-1: _SHARE, 1: _SHARE})),
        "meaning in the session": np.where(alone, 0.0, best_of_session(own, sessions)),
    }
    return {name: share_of_best(each) for name, each in found.items()}


def asked_signals(
    question: ParsedQuestion, pool: CandidatePool, catalogue: Catalogue, profiles: Profiles
) -> Signals:
    """Return the signals for what the question asks for besides its words."""
    rows = pool.rows
    traits = profiles.traits[rows]
    found = {
        "states something": _has(traits, TELLS),
        "length": profiles.fullness[rows],
        "importance": np.clip(catalogue.importances[rows], 0.0, 1.0) - 0.5,
    }
    if question.speakers:
        found["speaker"] = _said_by(question.speakers, rows, catalogue)
    if question.of_user:
        found["user"] = _has(traits, BY_USER)
    if not question.wants_overview:
        found["instruction"] = _has(traits, INSTRUCTS)
    if question.wants_advice and not question.wants_overview:
        found["preference"] = _has(traits, PREFERS)
    if question.asks_when:
        found["time word"] = _has(traits, TELLS_TIME)
    if question.asks_number and not question.wants_overview:
        found["number"] = _has(traits, TELLS_NUMBER)
    if question.times:
        found |= _dated(question.times, rows, catalogue, profiles)
    return found


def phrase_signal(
    phrases: Sequence[str], rows: NDArray[np.int64], text_of: Callable[[int], str]
) -> Signals:
    """Return the share of the quoted phrases that a text contains word for word."""
    if not phrases:
        return {}
    wanted = [each.casefold() for each in phrases]
    texts = [text_of(row).casefold() for row in rows.tolist()]
    return {
        "phrase": np.array([sum(map(text.__contains__, wanted)) for text in texts]) / len(wanted)
    }


def recency(ages: Floats, half_life: float) -> Floats:
    """Return 1 for age 0, halved after each half-life; 0 without a time."""
    fading: Floats = 0.5 ** (np.maximum(ages, 0.0) / half_life)
    fading[np.isnan(fading)] = 0.0
    return fading


def share_of_best(values: Floats) -> Floats:
    """Return values divided by the greatest, none below 0; other candidates do not affect them."""
    most = values.max(initial=0.0)
    return np.maximum(values, 0.0) / most if most > 0 else np.zeros_like(values)


def best_of_session(values: Floats, sessions: NDArray[np.int64]) -> Floats:
    """Return the best value in each candidate's session; its own value without a session."""
    if not len(values):
        return values
    best = np.zeros(int(sessions.max()) + 2)  # the last is for those without a session
    np.maximum.at(best, sessions, values)
    return np.where(sessions == NO_ROW, values, best[sessions])


def date_match(asked: Sequence[Span], said: Span) -> float:
    """Return how well a time matches the requested ones, from 0 to 1: narrow periods count more."""
    return max(
        (_worth(each) for each in asked if each[0] < said[1] and said[0] < each[1]), default=0
    )


def _worth(asked: Span) -> float:
    days = (asked[1] - asked[0]) / _DAY
    return next((worth for most, worth in _NARROWNESS if days <= most), _VAGUE)


def _dated(
    times: Sequence[TimeSpan], rows: NDArray[np.int64], catalogue: Catalogue, profiles: Profiles
) -> Signals:
    asked = [(each.start.timestamp(), each.end.timestamp()) for each in times]
    date, moments = np.zeros(len(rows)), catalogue.times[rows]
    for span in asked:
        within = (moments >= span[0]) & (moments < span[1])
        date = np.maximum(date, np.where(within, _worth(span), 0.0))
    said = np.zeros(len(rows))
    for place, row in enumerate(rows.tolist()):
        if row in profiles.said:
            said[place] = max(date_match(asked, each) for each in profiles.said[row])
    return {"date": date, "date said": said}


def _said_by(speakers: frozenset[str], rows: NDArray[np.int64], catalogue: Catalogue) -> Floats:
    theirs = np.concatenate([catalogue.rows_of("speaker", each) for each in speakers])
    return catalogue.mask(theirs)[rows].astype(np.float64)


def _has(traits: NDArray[np.uint8], trait: int) -> Floats:
    return (traits & trait > 0).astype(np.float64)
