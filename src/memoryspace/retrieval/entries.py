"""``Entry``: what a search knows of a record. ``Only``: which entries a search may look at.

Both are frozen values. An entry belongs to whoever owns the ``Recall`` it is added to: there is no
field for the owner, and so no search that could reach somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InvalidInput
from ..message import Msg
from ..record import MESSAGE, Record, check_id, is_number, text_of

Plain = str | int | float | bool | None


class Entry(Struct, frozen=True, gc=False):  # holds nothing that could hold it
    """One thing that can be found: its text, and what a question may name beside the text.

    ``speaker`` said it and ``title`` is what it is about, by name. ``time`` is in seconds since
    1970. Entries of one ``session`` follow each other in the order of adding, and are read
    together: an answer is understood with the question before it.
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
    metadata: Mapping[str, Plain] | None = None


class Only(Struct, frozen=True, kw_only=True):
    """Which entries a search may return. Every field that is given narrows the choice.

    ``marks`` asks for any of the marks, ``without`` for none of them; ``since`` is included,
    ``until`` is not; ``metadata`` asks for all of its items.
    """

    ids: frozenset[str] | None = None
    session: str | None = None
    speaker: str | None = None
    role: str | None = None
    kind: str | None = None
    marks: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None
    metadata: Mapping[str, Plain] | None = None

    def __post_init__(self) -> None:
        for name in ("ids", "marks", "without"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a set of str, got the str {getattr(self, name)!r}")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number of seconds, got {value!r}")
            if value is not None and value != value:
                raise InvalidInput(f"{name} must be a number of seconds, got {value!r}")

    def refusal(self, entry: Entry) -> str | None:
        """Say why an entry may not be returned; ``None`` if it may. What the fields mean."""
        for name in ("session", "speaker", "role", "kind"):
            wanted, has = getattr(self, name), getattr(entry, name)
            if wanted is not None and wanted != has:
                return f"its {name} is {has!r}, only {wanted!r} is asked for"
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
        metadata=None if said is None else _plain_items(said.metadata),
    )


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


def _check_str(entry: Entry, name: str) -> None:
    value = getattr(entry, name)
    if not isinstance(value, str):
        raise TypeError(f"the {name} of {entry.id!r} must be a str, got {value!r}")


def _checked_items(entry: Entry) -> Mapping[str, Plain] | None:
    if entry.metadata is None:
        return None
    if not isinstance(entry.metadata, Mapping):
        raise TypeError(f"the metadata of {entry.id!r} must be a dict, got {entry.metadata!r}")
    for key, value in entry.metadata.items():
        if not isinstance(key, str) or not _is_plain(value):
            raise InvalidInput(
                f"the metadata of {entry.id!r} holds {key!r}: {value!r}; only strings, numbers, "
                "True, False and None can be asked for"
            )
    return dict(entry.metadata)


def same(one: Plain, other: Plain) -> bool:
    """Compare plain values as JSON does: ``True`` is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def _plain_items(metadata: object) -> Mapping[str, Plain] | None:
    if not isinstance(metadata, Mapping):
        return None
    kept = {
        key: value for key, value in metadata.items() if isinstance(key, str) and _is_plain(value)
    }
    return kept if kept else None


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
    except (OverflowError, OSError, ValueError):
        return str(seconds)
