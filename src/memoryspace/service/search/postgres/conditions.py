"""Conditions as SQL, as far as the columns of the index can express them.

A clause never excludes an entry that meets the condition. If it may admit others, it is not
``exact``, and the condition is checked again on the entries.
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


class SqlCondition(NamedTuple):
    """The SQL of a condition, and whether it expresses all of it."""

    sql: ColumnElement[bool]
    exact: bool


def clause_of(condition: Condition) -> SqlCondition:
    """Translate a condition to SQL."""
    if isinstance(condition, Only):
        return _only(condition)
    if isinstance(condition, AllOf):
        parts = [clause_of(part) for part in condition.parts]
        return SqlCondition(
            and_(true(), *(part.sql for part in parts)), all(p.exact for p in parts)
        )
    if isinstance(condition, AnyOf):
        parts = [clause_of(part) for part in condition.parts]
        return SqlCondition(
            or_(false(), *(part.sql for part in parts)), all(p.exact for p in parts)
        )
    if isinstance(condition, Not):
        return _not(clause_of(condition.part))
    assert isinstance(condition, Item)
    return SqlCondition(true(), False)


def _not(part: SqlCondition) -> SqlCondition:
    """Negate a clause if it is exact: the negation of a wider one would exclude too much.

    A comparison with a missing time, speaker or role is NULL in SQL; here it is false.
    """
    if not part.exact:
        return SqlCondition(true(), False)
    return SqlCondition(not_(func.coalesce(part.sql, false())), True)


def _only(only: Only) -> SqlCondition:
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
    return SqlCondition(and_(*found), not only.metadata)


def _any_text(wanted: Collection[str]) -> Any:
    return any_(literal([clean_text(each) for each in wanted], ARRAY(Text())))


def _carries(mark: str) -> ColumnElement[bool]:
    if not could_be_id(mark):
        return false()
    return func.strpos(_e.marks, pack_marks(frozenset({mark}))) > 0


def _seqs(ids: Collection[str]) -> list[int]:
    """Return the seqs in ids. An entry's id is its seq in decimal; other ids match nothing."""
    numbers = (int(each) for each in ids if each.isascii() and each.isdecimal() and len(each) < 20)
    return [number for number in numbers if number <= _MOST_SEQ]


def _seconds(moment: float) -> float:
    try:
        return float(moment)
    except OverflowError:  # an int that no float can hold
        return math.inf if moment > 0 else -math.inf
