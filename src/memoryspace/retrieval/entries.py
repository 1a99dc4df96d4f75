"""``Entry``, the searchable form of a record, and ``Only``, a filter on its fields.

Both are frozen values. An entry belongs to the owner of the ``Recall`` it is added to. It has no
field for the owner, so no search can reach another owner's entries.
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

DEEPEST = 3  # levels of a dotted key: "a.b.c"
MOST_INSIDE = 200  # values within lists and dicts that are indexed for one entry


class Opaque(Enum):
    """A metadata value that is not indexed: a search knows only that it exists."""

    OPAQUE = "there"

    def __repr__(self) -> str:
        return "a value that only the operator exists can test"


OPAQUE = Opaque.OPAQUE

Value = Plain | tuple[Plain, ...] | Opaque  # an indexed item of the metadata

NAMED = ("session", "speaker", "role", "kind")  # fields with one value that ``Only`` can filter by

_CALL = re.compile(r"(?<![\w.-])[\w.-]{1,64}\(\{.{0,400}?[}…]\)")  # a tool call in a lesson's text
_SHOWN = 3  # requested names shown in a message
_PLAIN = (str, int, float, bool, type(None))
_GIVEN = (*_PLAIN, list, tuple, Opaque, Mapping)  # types allowed in metadata


class Entry(Struct, frozen=True, gc=False):  # no field can lead back to the entry
    """A searchable text with the attributes that questions and filters refer to.

    Entries of one session follow each other in the order of adding and are read together: an answer
    is understood with the question before it.

    Attributes:
        id: The id; adding another entry with it replaces this one.
        text: The text to search.
        session: The conversation it belongs to.
        speaker: The name of the person who said it.
        role: ``"user"``, ``"assistant"``, ``"system"`` or ``"tool"``.
        kind: The kind of record, ``"message"`` by default.
        title: The name of the thing it is about; it is searched with the text.
        time: When it was said, in seconds since 1970.
        importance: From 0 to 1.
        marks: Labels to filter by.
        metadata: Items to filter by. Lists and dicts are allowed; ``items_of`` says what of them
            is indexed.
        record: The id of the record it was made from, if that differs from ``id``.
        sources: The ids of the records it was derived from.
        superseded_by: The id of the record that replaced it, if one did.
        is_told_itself: Whether a derived entry is shown itself, as a lesson is. Otherwise it only
            serves as an index over its sources.
        subject: Whom it is about: ``"user"``, or ``"user/sister clara"``.

    Example::

        Entry("1", "I moved to Lisbon.", session="may", speaker="Bob", time=1_683_550_060.0)
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
    """A filter on the fields of entries. An entry must pass every field that is given.

    Attributes:
        ids: Any of these ids.
        session: This session, or any of a set of sessions.
        speaker: This speaker, or any of a set.
        role: This role, or any of a set.
        kind: This kind, or any of a set.
        marks: At least one of these marks.
        without: None of these marks.
        since: At this time (seconds since 1970) or later. Entries without a time do not pass.
        until: Before this time. Entries without a time do not pass.
        metadata: Each of these items, with an equal plain value.

    Raises:
        TypeError: If a field has the wrong type.
        InvalidInput: If a time is not a number, or a metadata value is not plain.

    Example::

        recall.search("Lisbon", only=Only(session="june", role="user"))
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
                    f"metadata {key!r} must be compared with a str, a number, True, False or None, "
                    f"got a {type(value).__name__}; use Item for other comparisons"
                )

    def refusal(self, entry: Entry) -> str | None:
        """Return why an entry does not pass, or ``None`` if it does. Defines what fields mean."""
        for name in NAMED:
            wanted, has = getattr(self, name), getattr(entry, name)
            if wanted is not None and has not in names(wanted):
                return f"its {name} is {has!r}; the search is limited to {_shown(wanted)}"
        if self.ids is not None and entry.id not in self.ids:
            return "its id is not among the requested ones"
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
                return f"its {key!r} is {has.get(key)!r}; the search is limited to {wanted!r}"
        return None


EVERYTHING = Only()


def names(wanted: str | frozenset[str]) -> frozenset[str]:
    """Return one name or several as a set."""
    return frozenset((wanted,)) if isinstance(wanted, str) else wanted


def entry_of(record: Record) -> Entry:
    """Return the entry for a store's record, ready for ``Recall.add``.

    Args:
        record: The record. If its value is a ``Msg``, the entry takes speaker, role and metadata
            from it.

    Returns:
        An entry with the record's id.
    """
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
    """Return the text of an entry that is searched by words: its title and its text."""
    return entry.text if entry.title is None else f"{entry.title}. {entry.text}"


def embedded_text(entry: Entry) -> str:
    """Return the text of an entry that is embedded; a lesson's tool calls are left out.

    A vector represents natural language, and the arguments of calls would blur it.
    """
    text = indexed_text(entry)
    return _CALL.sub("", text) if entry.is_told_itself else text


def checked(entry: Entry) -> Entry:
    """Return a valid entry with its own copy of the metadata; raise if it cannot be indexed."""
    if not isinstance(entry, Entry):
        raise TypeError(f"expected an Entry, got {type(entry).__name__}")
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
                f"the metadata of {entry.id!r} holds {key!r}: {value!r}; keys must be strings, and "
                "values strings, numbers, True, False, None, or lists and dicts of these"
            )
    return items_of(entry.metadata)


def same(one: Value, other: Plain) -> bool:
    """Compare with a plain value as JSON does: ``True`` is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def is_plain(value: object) -> TypeGuard[Plain]:
    """Return whether a value is plain: a str, a number, a bool or ``None``."""
    return isinstance(value, _PLAIN)


def items_of(metadata: Mapping[Any, Any]) -> dict[str, Value]:
    """Return the items of metadata that conditions can test, by name, in a new dict.

    A list of plain values becomes a tuple. A dict becomes ``OPAQUE``, and each of its items gets a
    dotted name, unless an item nearer to the top already has that name. Anything else is
    ``OPAQUE``: also a dict nested too deep, and a list or dict that exceeds the limits. The result,
    passed in again, comes back unchanged.
    """
    items = {key: value for key, value in metadata.items() if isinstance(key, str)}
    return items if all(map(is_plain, items.values())) else _opened(items)


def _opened(items: dict[str, Any]) -> dict[str, Value]:
    """Open level by level, the smallest value first, so that a large one displaces no other."""
    known: dict[str, Value] = {}
    budget = MOST_INSIDE
    for depth in range(1, DEEPEST + 1):
        level = {key: _openable(value, depth) for key, value in items.items()}
        items = {}
        for key in sorted(level, key=lambda key: (_size(level[key]), key)):
            value = level[key] if _size(level[key]) <= budget else OPAQUE
            budget -= _size(value)
            if isinstance(value, dict):
                for name, each in value.items():
                    items.setdefault(".".join((key, name)), each)
            known.setdefault(key, OPAQUE if isinstance(value, dict) else value)
    return known


def _openable(value: object, depth: int) -> Value | dict[str, Any]:
    """Return a list as a tuple and a dict with its str keys; ``OPAQUE`` if it is not indexed."""
    if is_plain(value):
        return value
    if isinstance(value, Mapping) and depth < DEEPEST and len(value) <= MOST_INSIDE:
        return {key: each for key, each in value.items() if isinstance(key, str)}
    if isinstance(value, list | tuple) and len(value) <= MOST_INSIDE and all(map(is_plain, value)):
        return tuple(value)
    return OPAQUE


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
