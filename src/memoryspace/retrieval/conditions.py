"""``Condition``: which entries a search may return, said with and, or, not and comparisons.

``Only`` names fields; ``Item`` compares one item of the metadata; ``AllOf``, ``AnyOf`` and ``Not``
join conditions. All are frozen values, checked when they are made: no search fails because of one.

Values compare as in JSON: ``True`` is not 1, 1 is 1.0, and what is of different types is neither
equal nor ordered. Numbers and texts have an order, texts that of their code points; ``contains``
looks for a text within a text and heeds case. Every operator but ``exists`` asks for an item that
is there: ``ne`` and ``nin`` are true of another value, of whatever type, not of none at all.

A list is equal to no value and has no order; ``contains`` looks for one of its values. What stands
in a dict is an item with a dotted name. Of a dict itself, of a list of anything but plain values,
and of one that would be too much (``items_of``), only ``exists`` is true.

``Not`` is true of everything that its part is not true of, also of what has no such item.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidInput
from .entries import EVERYTHING, THERE, Entry, Only, Plain, Value, is_plain, same

MAX_DEPTH = 20
MAX_PARTS = 1000  # conditions within one
MAX_VALUES = 10_000  # that one ``in`` or ``nin`` names

ANYTHING = EVERYTHING

_SHOWN = 3  # reasons, of an ``AnyOf`` that refuses; values, of several


class Item(Struct, frozen=True):
    """One item of the metadata, compared by an operator.

    ``op`` is one of eq, ne, gt, gte, lt, lte, in, nin, contains, exists. ``value`` is a text, a
    number, ``True``, ``False`` or ``None``; several of these for in and nin, ``True`` or ``False``
    for exists.
    """

    key: str
    op: str
    value: Plain | tuple[Plain, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise TypeError(f"the key of an item must be a str, got {self.key!r}")
        if self.op not in _OPERATORS:
            raise InvalidInput(f"no operator is called {self.op!r}; use {', '.join(_OPERATORS)}")
        if isinstance(self.value, list | set | frozenset):
            force_setattr(self, "value", tuple(self.value))
        wanted, is_usable, _ = _OPERATORS[self.op]
        if not is_usable(self.value):
            raise InvalidInput(
                f"{self.op} of {self.key!r} needs {wanted}, got {str(self.value)[:80]!r}"
            )

    def fits(self, value: Value) -> bool:
        """Tell whether an item that is there, with this value, is what is asked for."""
        if value is THERE and self.op != "exists":
            return False
        return _OPERATORS[self.op][2](value, self.value)


class AllOf(Struct, frozen=True):
    """Every part is true; without parts, of anything."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self)


class AnyOf(Struct, frozen=True):
    """At least one part is true; without parts, of nothing."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self)


class Not(Struct, frozen=True):
    """The part is not true."""

    part: Condition

    def __post_init__(self) -> None:
        _check_size(self)


Condition: TypeAlias = Only | AllOf | AnyOf | Not | Item


def refusal(condition: Condition, entry: Entry) -> str | None:
    """Say why an entry may not be returned; ``None`` if it may. What conditions mean."""
    if isinstance(condition, Only):
        return condition.refusal(entry)
    if isinstance(condition, Item):
        return _refused_item(condition, entry)
    if isinstance(condition, Not):
        is_refused = refusal(condition.part, entry) is not None
        return None if is_refused else f"it is what is not asked for: {condition.part}"
    reasons = [refusal(part, entry) for part in condition.parts]
    refused = [reason for reason in reasons if reason is not None]
    if isinstance(condition, AllOf):
        return refused[0] if refused else None
    return None if len(refused) < len(reasons) else _none_of(refused)


def _refused_item(item: Item, entry: Entry) -> str | None:
    items = {} if entry.metadata is None else entry.metadata
    is_there = item.key in items
    if item.op == "exists":
        has, must = ("has", "must not") if is_there else ("has no", "must")
        return None if is_there is item.value else f"it {has} {item.key!r}, which it {must} have"
    if not is_there:
        return f"it has no {item.key!r}; {item.op} {_shown(item.value)} is asked for"
    has_value = items[item.key]
    if item.fits(has_value):
        return None
    has_shown = _shown(has_value)
    return f"its {item.key!r} is {has_shown}; {item.op} {_shown(item.value)} is asked for"


def _none_of(reasons: list[str]) -> str:
    if not reasons:
        return "it would have to fulfil one of no conditions"
    shown = "; ".join(reasons[:_SHOWN])
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return f"it fulfils none of {len(reasons)} conditions: {shown}{more}"


def _shown(value: Value) -> str:
    if not isinstance(value, tuple):
        return repr(value)
    more = ", …" if len(value) > _SHOWN else ""
    return f"[{', '.join(map(repr, value[:_SHOWN]))}{more}]"


def _check_parts(joined: AllOf | AnyOf) -> None:
    if not isinstance(joined.parts, tuple | list):
        raise TypeError(f"parts must be a tuple of conditions, got {joined.parts!r}")
    force_setattr(joined, "parts", tuple(joined.parts))
    _check_size(joined)


def _check_size(condition: Condition) -> None:
    """Parts were checked when they were made, so this never goes much deeper than allowed."""
    depth, count = _measured(condition)
    if depth > MAX_DEPTH or count > MAX_PARTS:
        raise InvalidInput(
            f"a condition of {count} parts, {depth} deep, is too large; at most {MAX_PARTS} parts "
            f"and {MAX_DEPTH} levels are possible: ask for less, or use in for many values"
        )


def _measured(condition: Condition) -> tuple[int, int]:
    """Return how deep a condition is and of how many it consists."""
    if isinstance(condition, Only | Item):
        return 1, 1
    if isinstance(condition, Not):
        parts: tuple[Condition, ...] = (condition.part,)
    elif isinstance(condition, AllOf | AnyOf):
        parts = condition.parts
    else:
        raise TypeError(f"a condition is needed, got {condition!r}")
    sizes = [_measured(part) for part in parts]
    return 1 + max((deep for deep, _ in sizes), default=0), 1 + sum(count for _, count in sizes)


# What values an operator can be given


def _is_comparable(value: object) -> bool:
    """Tell whether a value can be looked for; what is not itself (nan) cannot."""
    return is_plain(value) and value == value


def _has_order(value: object) -> bool:
    return _is_comparable(value) and value is not None and not isinstance(value, bool)


def _are_comparable(values: object) -> bool:
    return (
        isinstance(values, tuple)
        and len(values) <= MAX_VALUES
        and all(_is_comparable(value) for value in values)
    )


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


# What operators say of a value that is there


def _in_order(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Any], bool]:
    def is_true(has: Value, wanted: Any) -> bool:
        are_alike = isinstance(has, str) is isinstance(wanted, str)
        return are_alike and _has_order(has) and compare(has, wanted)

    return is_true


def _differs(has: Value, wanted: Any) -> bool:
    return not same(has, wanted)


def _is_among(has: Value, wanted: Any) -> bool:
    return any(same(has, each) for each in wanted)


def _is_not_among(has: Value, wanted: Any) -> bool:
    return not _is_among(has, wanted)


def _contains(has: Value, wanted: Any) -> bool:
    if isinstance(has, tuple):
        return any(same(each, wanted) for each in has)
    return isinstance(has, str) and isinstance(wanted, str) and wanted in has


def _is_wanted(_: Value, wanted: Any) -> bool:
    return bool(wanted)


_VALUE = "a text, a number, True, False or None"
_VALUES = f"up to {MAX_VALUES} values, each a text, a number, True, False or None"
_ORDERED = "a text or a number"

# name → what value it needs, in words and as a test; what it means
_OPERATORS: dict[str, tuple[str, Callable[[object], bool], Callable[[Value, Any], bool]]] = {
    "eq": (_VALUE, _is_comparable, same),
    "ne": (_VALUE, _is_comparable, _differs),
    "gt": (_ORDERED, _has_order, _in_order(operator.gt)),
    "gte": (_ORDERED, _has_order, _in_order(operator.ge)),
    "lt": (_ORDERED, _has_order, _in_order(operator.lt)),
    "lte": (_ORDERED, _has_order, _in_order(operator.le)),
    "in": (_VALUES, _are_comparable, _is_among),
    "nin": (_VALUES, _are_comparable, _is_not_among),
    "contains": (_VALUE, _is_comparable, _contains),
    "exists": ("True or False", _is_truth, _is_wanted),
}
