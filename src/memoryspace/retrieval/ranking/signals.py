"""The signals: for each candidate a number that says how well it answers, in one respect.

Those of the text say where the question's words and meaning stand: in the entry itself, in it and
its reply, around it, anywhere in its session. A user's message is read with the answer it got, any
other with the one before it. The others are switched by what is asked: whoever names a speaker, a
date or a number looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..catalogue import NO_ROW, Catalogue
from ..times import TimeSpan
from .asking import Question
from .pool import Floats, Pool
from .profiles import Profiles, Span
from .traits import BY_USER, INSTRUCTS, PREFERS, TELLS, TELLS_NUMBER, TELLS_TIME

Signals = dict[str, Floats]

_SHARE = 0.5  # of a neighbour's vector beside an entry's own
_DAY = 86400.0
_NARROWNESS = ((8.5, 1.0), (62.5, 0.6), (120.5, 0.3))  # up to so many days: what a match is worth
_VAGUE = 0.15


def word_signals(pool: Pool, catalogue: Catalogue, profiles: Profiles) -> Signals:
    """What the words say; each as a share of the best."""
    by_user = profiles.traits[pool.rows] & BY_USER > 0
    reply = np.where(by_user[:, np.newaxis], pool.gains_at(1), pool.gains_at(-1))
    found = {
        "words": pool.scores,
        "words with the reply": np.maximum(pool.gains_at(0), reply).sum(axis=1),
        "words around it": pool.window.sum(axis=1),
        "words in the session": best_of_session(pool.scores, catalogue.sessions[pool.rows]),
    }
    return {name: share_of_best(each) for name, each in found.items()}


def meaning_signals(pool: Pool, catalogue: Catalogue, profiles: Profiles) -> Signals:
    """What the vectors say, the same four ways; nothing without vectors."""
    if pool.likeness is None:
        return {}
    by_user = np.where(profiles.traits[pool.rows] & BY_USER, _SHARE, 0.0)
    own = pool.cosines
    sessions = catalogue.sessions[pool.rows]
    alone = sessions == NO_ROW  # what stands alone has no context that could speak for it
    found = {
        "meaning": own,
        "meaning with the reply": pool.likeness.blended({1: by_user, -1: _SHARE - by_user}),
        "meaning around it": np.where(alone, 0.0, pool.likeness.blended({-1: _SHARE, 1: _SHARE})),
        "meaning in the session": np.where(alone, 0.0, best_of_session(own, sessions)),
    }
    return {name: share_of_best(each) for name, each in found.items()}


def asked_signals(
    question: Question, pool: Pool, catalogue: Catalogue, profiles: Profiles
) -> Signals:
    """What the question asks for beside its words; only what it does ask for."""
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
    """How many of the phrases in quotes stand in a text word for word, as a share."""
    if not phrases:
        return {}
    wanted = [each.casefold() for each in phrases]
    texts = [text_of(row).casefold() for row in rows.tolist()]
    return {
        "phrase": np.array([sum(map(text.__contains__, wanted)) for text in texts]) / len(wanted)
    }


def recency(ages: Floats, half_life: float) -> Floats:
    """1 for what happened just now, half of it after each half-life; 0 without a time."""
    fading: Floats = 0.5 ** (np.maximum(ages, 0.0) / half_life)
    fading[np.isnan(fading)] = 0.0
    return fading


def share_of_best(values: Floats) -> Floats:
    """Values over the greatest, none below 0: who else is a candidate makes no difference."""
    most = values.max(initial=0.0)
    return np.maximum(values, 0.0) / most if most > 0 else np.zeros_like(values)


def best_of_session(values: Floats, sessions: NDArray[np.int64]) -> Floats:
    """For each candidate the best value within its session; its own if it has no session."""
    if not len(values):
        return values
    best = np.zeros(int(sessions.max()) + 2)  # the last is for those without a session
    np.maximum.at(best, sessions, values)
    return np.where(sessions == NO_ROW, values, best[sessions])


def date_match(asked: Sequence[Span], said: Span) -> float:
    """How well a time falls into what was asked, from 0 to 1: a narrow period says more."""
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
