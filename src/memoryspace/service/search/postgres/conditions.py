"""Conditions as SQL, as far as the index's columns go.

A clause never leaves out an entry that fulfils the condition. Where it may let in others it is not
``exact``, and who reads the entries looks at the condition once more.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, BigInteger, Text, and_, any_, false, func, literal, not_, or_, true
from sqlalchemy.sql import ColumnElement

from ....record import could_be_id
from ....retrieval.conditions import AllOf, AnyOf, Condition, Item, Not
from ....retrieval.entries import NAMED, Only, names
from ....store.codec import clean_text, pack_marks
from .tables import entries

_e = entries.c
_COLUMNS = {"session": _e.session_id, "speaker": _e.speaker, "role": _e.role, "kind": _e.kind}
_MOST_SEQ = (1 << 63) - 1


class Clause(NamedTuple):
    """What a condition comes to in SQL, and whether that is all of it."""

    sql: ColumnElement[bool]
    exact: bool


def clause_of(condition: Condition) -> Clause:
    """Translate a condition."""
    if isinstance(condition, Only):
        return _only(condition)
    if isinstance(condition, AllOf):
        parts = [clause_of(part) for part in condition.parts]
        return Clause(and_(true(), *(part.sql for part in parts)), all(p.exact for p in parts))
    if isinstance(condition, AnyOf):
        parts = [clause_of(part) for part in condition.parts]
        return Clause(or_(false(), *(part.sql for part in parts)), all(p.exact for p in parts))
    if isinstance(condition, Not):
        return _not(clause_of(condition.part))
    assert isinstance(condition, Item)
    return Clause(true(), False)


def _not(part: Clause) -> Clause:
    """Turn a clause round, if it is exact: of one that lets in too much, too little would be left.

    What has no time, speaker or role is unknown to SQL, not false; it is false to us.
    """
    if not part.exact:
        return Clause(true(), False)
    return Clause(not_(func.coalesce(part.sql, false())), True)


def _only(only: Only) -> Clause:
    found: list[ColumnElement[bool]] = [true()]
    found += [
        _COLUMNS[name] == _any_text(names(wanted))
        for name in NAMED
        if (wanted := getattr(only, name)) is not None
    ]
    if only.ids is not None:
        found.append(_e.seq == any_(literal(_seqs(only.ids), ARRAY(BigInteger()))))
    if only.marks:
        found.append(or_(*map(_carries, sorted(only.marks))))
    found += [not_(_carries(mark)) for mark in sorted(only.without)]
    if only.since is not None:
        found.append(_e.time >= _seconds(only.since))
    if only.until is not None:
        found.append(_e.time < _seconds(only.until))
    return Clause(and_(*found), not only.metadata)


def _any_text(wanted: Collection[str]) -> Any:
    return any_(literal([clean_text(each) for each in wanted], ARRAY(Text())))


def _carries(mark: str) -> ColumnElement[bool]:
    if not could_be_id(mark):
        return false()
    return func.strpos(_e.marks, pack_marks(frozenset({mark}))) > 0


def _seqs(ids: Collection[str]) -> list[int]:
    """An entry's id is its seq in decimals; others are nobody's."""
    numbers = (int(each) for each in ids if each.isascii() and each.isdecimal() and len(each) < 20)
    return [number for number in numbers if number <= _MOST_SEQ]


def _seconds(moment: float) -> float:
    try:
        return float(moment)
    except OverflowError:  # an int that no float can hold
        return math.inf if moment > 0 else -math.inf
