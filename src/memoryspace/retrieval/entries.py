"""``Entry``: what a search knows of a record. ``Only``: which entries a search may look at.

Both are frozen values. An entry belongs to whoever owns the ``Recall`` it is added to: there is no
field for the owner, and so no search that could reach somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from ..errors import InvalidInput
from ..message import Msg
from ..record import MESSAGE, Record, check_id, is_number, text_of

Plain = str | int | float | bool | None

DEEPEST = 3  # names that dots can join: "a.b.c"
MOST_INSIDE = 200  # values within lists and dicts that a search knows of one entry


class There(Enum):
    """A value of which a search knows that it is there, and nothing else."""

    THERE = "there"

    def __repr__(self) -> str:
        return "a value that only exists can ask for"


THERE = There.THERE

Value = Plain | tuple[Plain, ...] | There  # what a search knows of an item of the metadata

NAMED = ("session", "speaker", "role", "kind")  # what an entry has one of and can be chosen by

_CALL = re.compile(r"(?<![\w.-])[\w.-]{1,64}\(\{.{0,400}?[}…]\)")  # as a lesson tells of one
_SHOWN = 3  # names, of those asked for
_PLAIN = (str, int, float, bool, type(None))
_GIVEN = (*_PLAIN, list, tuple, There, Mapping)  # what an item of the metadata may be


class Entry(Struct, frozen=True, gc=False):  # holds nothing that could hold it
    """One thing that can be found: its text, and what a question may name beside the text.

    ``record`` is the id of the record it was made of, where that is another; ``sources`` are the
    records it was derived from, and ``superseded_by`` the record that took its place, if one did.
    What was derived is an index over its sources, unless it ``is_told_itself``: a lesson;
    ``subject`` is whom it is about: "user", or "user/sister clara".
    ``speaker`` said it and ``title`` is what it is about, by name. ``time`` is in seconds since
    1970. Entries of one ``session`` follow each other in the order of adding, and are read
    together: an answer is understood with the question before it. ``metadata`` may hold lists and
    dicts; a ``Recall`` keeps, and conditions are about, what ``items_of`` makes of them.
    """

    id: str
    text: str
    session: str | None = None
    speaker: str | None = None
    role: str | None = None
    kind: str = MESSAGE
    title: str | None = None
    time: float | None = None
    importance: float = 0.5
    marks: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] | None = None
    record: str | None = None
    sources: tuple[str, ...] = ()
    superseded_by: str | None = None
    is_told_itself: bool = False
    subject: str | None = None


class Only(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Which entries a search may return. Every field that is given narrows the choice.

    ``session``, ``speaker``, ``role`` and ``kind`` are one name or a set of names, of which any
    will do. ``marks`` asks for any of the marks, ``without`` for none of them; ``since`` is
    included, ``until`` is not; ``metadata`` asks for all of its items, each a plain value.
    """

    ids: frozenset[str] | None = None
    session: str | frozenset[str] | None = None
    speaker: str | frozenset[str] | None = None
    role: str | frozenset[str] | None = None
    kind: str | frozenset[str] | None = None
    marks: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None
    metadata: Mapping[str, Plain] | None = None

    def __post_init__(self) -> None:
        for name in NAMED:
            self._check_names(name)
        for name in ("ids", "marks", "without"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a set of str, got the str {getattr(self, name)!r}")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number of seconds, got {value!r}")
            if value is not None and value != value:
                raise InvalidInput(f"{name} must be a number of seconds, got {value!r}")
        if self.metadata is not None:
            self._check_items(self.metadata)

    def _check_names(self, field: str) -> None:
        value = getattr(self, field)
        if value is None or isinstance(value, str):
            return
        are_several = isinstance(value, frozenset | set | tuple | list)
        if not are_several or not all(isinstance(each, str) for each in value):
            raise TypeError(f"{field} must be a str or a set of str, got {value!r}")
        force_setattr(self, field, frozenset(value))

    def _check_items(self, wanted: object) -> None:
        if not isinstance(wanted, Mapping):
            raise TypeError(f"metadata must be a dict, got {wanted!r}")
        for key, value in wanted.items():
            if not is_plain(value):
                raise InvalidInput(
                    f"metadata {key!r} can be equal to a text, a number, True, False or None, "
                    f"got a {type(value).__name__}; use Item for other comparisons"
                )

    def refusal(self, entry: Entry) -> str | None:
        """Say why an entry may not be returned; ``None`` if it may. What the fields mean."""
        for name in NAMED:
            wanted, has = getattr(self, name), getattr(entry, name)
            if wanted is not None and has not in names(wanted):
                return f"its {name} is {has!r}, only {_shown(wanted)} is asked for"
        if self.ids is not None and entry.id not in self.ids:
            return "its id is not among those asked for"
        return self._refused_mark(entry) or self._refused_time(entry) or self._refused_data(entry)

    def _refused_mark(self, entry: Entry) -> str | None:
        if self.marks and self.marks.isdisjoint(entry.marks):
            return f"it has none of the marks {sorted(self.marks)}"
        unwanted = sorted(self.without & entry.marks)
        return f"it has the mark {unwanted[0]!r}" if unwanted else None

    def _refused_time(self, entry: Entry) -> str | None:
        if self.since is None and self.until is None:
            return None
        if entry.time is None:
            return "it has no time"
        if self.since is not None and entry.time < self.since:
            return f"it is from {_date(entry.time)}, before {_date(self.since)}"
        if self.until is not None and entry.time >= self.until:
            return f"it is from {_date(entry.time)}, not before {_date(self.until)}"
        return None

    def _refused_data(self, entry: Entry) -> str | None:
        has = {} if entry.metadata is None else entry.metadata
        for key, wanted in ({} if self.metadata is None else self.metadata).items():
            if key not in has or not same(has[key], wanted):
                return f"its {key!r} is {has.get(key)!r}, only {wanted!r} is asked for"
        return None


EVERYTHING = Only()


def names(wanted: str | frozenset[str]) -> frozenset[str]:
    """Return one name, or several, as a set."""
    return frozenset((wanted,)) if isinstance(wanted, str) else wanted


def entry_of(record: Record) -> Entry:
    """Return what a search knows of a record."""
    said = record.value if isinstance(record.value, Msg) else None
    return Entry(
        record.id,
        record.text if record.text else text_of(record.value),
        session=record.session,
        speaker=None if said is None else said.name,
        role=None if said is None else said.role,
        kind=record.kind,
        time=record.created_at if record.created_at else None,
        importance=record.importance,
        marks=record.marks,
        metadata=None if said is None else _items_or_none(said.metadata),
    )


def indexed_text(entry: Entry) -> str:
    """Return what of an entry is searched by words and by meaning: its title and its text."""
    return entry.text if entry.title is None else f"{entry.title}. {entry.text}"


def embedded_text(entry: Entry) -> str:
    """Return what of an entry is searched by meaning: of a lesson its words without its calls.

    A vector stands for what is said in a language; the arguments of calls blur it.
    """
    text = indexed_text(entry)
    return _CALL.sub("", text) if entry.is_told_itself else text


def checked(entry: Entry) -> Entry:
    """Return an entry that can be indexed, with metadata of its own; say clearly why not."""
    if not isinstance(entry, Entry):
        raise TypeError(f"an Entry is needed, got {type(entry).__name__}")
    check_id("entry id", entry.id)
    for name in ("text", "kind"):
        _check_str(entry, name)
    for name in ("session", "speaker", "role", "title"):
        if getattr(entry, name) is not None:
            _check_str(entry, name)
    for name, number in (("time", entry.time), ("importance", entry.importance)):
        if number is not None and not is_number(number):
            raise InvalidInput(
                f"the {name} of {entry.id!r} must be a finite number, got {number!r}"
            )
    if isinstance(entry.marks, str) or not all(isinstance(mark, str) for mark in entry.marks):
        raise TypeError(f"the marks of {entry.id!r} must be a set of str, got {entry.marks!r}")
    return replace(entry, marks=frozenset(entry.marks), metadata=_checked_items(entry))


def _shown(wanted: str | frozenset[str]) -> str:
    if isinstance(wanted, str):
        return repr(wanted)
    some = ", ".join(map(repr, sorted(wanted)[:_SHOWN]))
    return f"one of [{some}{', …' if len(wanted) > _SHOWN else ''}]"


def _check_str(entry: Entry, name: str) -> None:
    value = getattr(entry, name)
    if not isinstance(value, str):
        raise TypeError(f"the {name} of {entry.id!r} must be a str, got {value!r}")


def _checked_items(entry: Entry) -> Mapping[str, Value] | None:
    if entry.metadata is None:
        return None
    if not isinstance(entry.metadata, Mapping):
        raise TypeError(f"the metadata of {entry.id!r} must be a dict, got {entry.metadata!r}")
    for key, value in entry.metadata.items():
        if not isinstance(key, str) or not isinstance(value, _GIVEN):
            raise InvalidInput(
                f"the metadata of {entry.id!r} holds {key!r}: {value!r}; only strings, numbers, "
                "True, False, None, and lists and dicts of these can be asked for"
            )
    return items_of(entry.metadata)


def same(one: Value, other: Plain) -> bool:
    """Compare with a plain value as JSON does: ``True`` is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def is_plain(value: object) -> TypeGuard[Plain]:
    """Tell whether a value is one that others can be compared with."""
    return isinstance(value, _PLAIN)


def items_of(metadata: Mapping[Any, Any]) -> dict[str, Value]:
    """Return what of metadata can be asked for, by name, in a dict of its own.

    A list of plain values becomes a tuple. A dict is ``THERE``, and what stands in it has a dotted
    name, unless something nearer to the top is itself called so. Anything else is ``THERE``, as are
    a dict that stands too deep and a list or dict that would be too much. What was made of metadata
    stays as it is.
    """
    items = {key: value for key, value in metadata.items() if isinstance(key, str)}
    return items if all(map(is_plain, items.values())) else _opened(items)


def _opened(items: dict[str, Any]) -> dict[str, Value]:
    """Go down level by level, the smallest first: one that is too large hides no other."""
    known: dict[str, Value] = {}
    room = MOST_INSIDE
    for depth in range(1, DEEPEST + 1):
        level = {key: _openable(value, depth) for key, value in items.items()}
        items = {}
        for key in sorted(level, key=lambda key: (_size(level[key]), key)):
            value = level[key] if _size(level[key]) <= room else THERE
            room -= _size(value)
            if isinstance(value, dict):
                for name, each in value.items():
                    items.setdefault(".".join((key, name)), each)
            known.setdefault(key, THERE if isinstance(value, dict) else value)
    return known


def _openable(value: object, depth: int) -> Value | dict[str, Any]:
    """Return a list as a tuple and a dict with its names; ``THERE`` if it cannot be looked into."""
    if is_plain(value):
        return value
    if isinstance(value, Mapping) and depth < DEEPEST and len(value) <= MOST_INSIDE:
        return {key: each for key, each in value.items() if isinstance(key, str)}
    if isinstance(value, list | tuple) and len(value) <= MOST_INSIDE and all(map(is_plain, value)):
        return tuple(value)
    return THERE


def _size(value: object) -> int:
    return len(value) if isinstance(value, tuple | dict) else 0


def _items_or_none(metadata: object) -> Mapping[str, Value] | None:
    items = items_of(metadata) if isinstance(metadata, Mapping) else {}
    return items if items else None


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
    except (OverflowError, OSError, ValueError):
        return str(seconds)
