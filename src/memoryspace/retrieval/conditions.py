"""``Condition``: filters on entries, built from comparisons with and, or and not.

``Only`` filters by fields; ``Item`` compares one metadata item; ``AllOf``, ``AnyOf`` and ``Not``
combine conditions. All are frozen values and are validated on construction, so a search never
fails because of one.

Values compare as in JSON: ``True`` is not 1, 1 equals 1.0, and values of different types are
neither equal nor ordered. Numbers and strings are ordered, strings by code point. ``contains``
looks for a substring and is case-sensitive. Every operator but ``exists`` requires the item to
exist: ``ne`` and ``nin`` match any other value, of any type, but not a missing one.

A list equals no value and has no order; ``contains`` looks for one of its values. The items of a
dict have dotted names. A dict itself, a list of anything but plain values, and one that exceeds the
limits of ``items_of`` match ``exists`` only.

``Not`` matches every entry that its part does not match, including entries without the item.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidInput
from .entries import EVERYTHING, OPAQUE, Entry, Only, Plain, Value, is_plain, same

MAX_DEPTH = 20
MAX_PARTS = 1000  # nested conditions in one
MAX_VALUES = 10_000  # values of one ``in`` or ``nin``

ANYTHING = EVERYTHING

_SHOWN = 3  # reasons of an ``AnyOf``, or values of a list, shown in a message


class Item(Struct, frozen=True):
    """A comparison of one metadata item with a value.

    Attributes:
        key: The name of the item; dots reach into dicts, as in ``"place.city"``.
        op: One of eq, ne, gt, gte, lt, lte, in, nin, contains, exists.
        value: A str, a number, ``True``, ``False`` or ``None``; for in and nin several of these;
            for exists ``True`` or ``False``.

    Raises:
        TypeError: If ``key`` is not a str.
        InvalidInput: If there is no such operator, or it cannot take the value.

    Example::

        recall.search("tea", only=Item("stars", "gte", 4))
    """

    key: str
    op: str
    value: Plain | tuple[Plain, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise TypeError(f"the key of an item must be a str, got {self.key!r}")
        if self.op not in _OPERATORS:
            raise InvalidInput(f"unknown operator {self.op!r}; use {', '.join(_OPERATORS)}")
        if isinstance(self.value, list | set | frozenset):
            force_setattr(self, "value", tuple(self.value))
        wanted, is_usable, _ = _OPERATORS[self.op]
        if not is_usable(self.value):
            raise InvalidInput(
                f"{self.op} of {self.key!r} needs {wanted}, got {str(self.value)[:80]!r}"
            )

    def fits(self, value: Value) -> bool:
        """Return whether an existing item with this value satisfies the comparison."""
        if value is OPAQUE and self.op != "exists":
            return False
        return _OPERATORS[self.op][2](value, self.value)


class AllOf(Struct, frozen=True):
    """Matches entries that every part matches; without parts, every entry."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self)


class AnyOf(Struct, frozen=True):
    """Matches entries that at least one part matches; without parts, no entry."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_parts(self)


class Not(Struct, frozen=True):
    """Matches entries that its part does not match."""

    part: Condition

    def __post_init__(self) -> None:
        _check_size(self)


Condition: TypeAlias = Only | AllOf | AnyOf | Not | Item


def refusal(condition: Condition, entry: Entry) -> str | None:
    """Return why an entry does not match, or ``None`` if it does. Defines what conditions mean."""
    if isinstance(condition, Only):
        return condition.refusal(entry)
    if isinstance(condition, Item):
        return _refused_item(condition, entry)
    if isinstance(condition, Not):
        is_refused = refusal(condition.part, entry) is not None
        return None if is_refused else f"it matches what is excluded: {condition.part}"
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
        return f"it has no {item.key!r}; the search requires {item.op} {_shown(item.value)}"
    has_value = items[item.key]
    if item.fits(has_value):
        return None
    has_shown = _shown(has_value)
    return f"its {item.key!r} is {has_shown}; the search requires {item.op} {_shown(item.value)}"


def _none_of(reasons: list[str]) -> str:
    if not reasons:
        return "AnyOf has no parts, so nothing matches"
    shown = "; ".join(reasons[:_SHOWN])
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return f"it matches none of {len(reasons)} conditions: {shown}{more}"


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
    """Raise if a condition is too large. Its parts passed, so the recursion stays bounded."""
    depth, count = _measured(condition)
    if depth > MAX_DEPTH or count > MAX_PARTS:
        raise InvalidInput(
            f"a condition of {count} parts, {depth} deep, is too large; the limit is {MAX_PARTS} "
            f"parts and {MAX_DEPTH} levels: simplify it, or use in for many values"
        )


def _measured(condition: Condition) -> tuple[int, int]:
    """Return the depth of a condition and its number of parts."""
    if isinstance(condition, Only | Item):
        return 1, 1
    if isinstance(condition, Not):
        parts: tuple[Condition, ...] = (condition.part,)
    elif isinstance(condition, AllOf | AnyOf):
        parts = condition.parts
    else:
        raise TypeError(f"expected a condition, got {condition!r}")
    sizes = [_measured(part) for part in parts]
    return 1 + max((deep for deep, _ in sizes), default=0), 1 + sum(count for _, count in sizes)


# Values that an operator accepts


def _is_comparable(value: object) -> bool:
    """Return whether a value can be compared with; nan cannot."""
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


# The operators, applied to an existing value


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


_VALUE = "a str, a number, True, False or None"
_VALUES = f"up to {MAX_VALUES} values, each a str, a number, True, False or None"
_ORDERED = "a str or a number"

# name → (accepted values in words, as a predicate, the comparison)
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
