"""The three nouns every store speaks: a ``Record``, whose it is (``Scope``), and which (``Where``).

All three are frozen values. Ids and marks are checked here, once, for all shelves: what passes is
safe in every key, every query and every file name we build from it.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from .errors import InvalidInput
from .message import Msg
from .message.msg import peek_content

MESSAGE = "message"
SUMMARY = "summary"

# Record ids with this prefix are ours; a message may not take one.
RESERVED_PREFIX = "memoryspace:"
SUMMARY_ID = RESERVED_PREFIX + "summary"

# Three ids of this size still fit into one index entry of PostgreSQL and of MySQL.
MAX_ID_CHARACTERS = 255
MAX_ID_BYTES = 765

MAX_MARKS = 100  # in one Where
MAX_NUMBER = 2**53 - 1  # exact in every language a store speaks

Value: TypeAlias = Msg | str | dict[str, Any] | list[Any]

_LARGEST = sys.float_info.max
_NO_MARKS: frozenset[str] = frozenset()
_SEVERAL = (list, tuple, set, frozenset)
_PLAIN = re.compile(r"[!-~]{1,255}")
_UNPRINTABLE = {"Cc", "Cs"}  # control characters and lone surrogates


class Scope(Struct, frozen=True):
    """Whose records: a user's, in one session or (``session=None``) in all of them."""

    user: str
    session: str | None = None

    def __post_init__(self) -> None:
        check_id("user id", self.user)
        if self.session is not None:
            check_id("session id", self.session)


class Origin(Struct, frozen=True):
    """Who wrote a record and which records it was derived from."""

    author: str | None = None
    derived_from: tuple[str, ...] = ()


class Record(Struct, frozen=True, gc=False):  # no value refers to a record, so no cycles
    """Something remembered.

    ``value`` is the thing itself, ``text`` what a search sees of it. ``seq`` and ``session`` are
    the store's to give: ``seq`` grows over the whole store, so "after seq N" finds what is new.
    """

    id: str
    value: Value
    text: str = ""
    marks: frozenset[str] = frozenset()
    kind: str = MESSAGE
    created_at: float = 0.0
    expires_at: float | None = None
    importance: float = 0.5
    pinned: bool = False
    origin: Origin | None = None
    seq: int = 0
    session: str | None = None


class Where(Struct, frozen=True, kw_only=True):
    """Which records. Every field that is given narrows the choice; the default is everything.

    ``ids`` that no record can have match nothing. ``marks`` asks for any of the marks, ``without``
    for none of them. ``after`` and ``before`` bound the seq, neither including its own. ``limit``
    keeps the first records in conversation order or, with ``newest``, the last ones (still in that
    order); ``skip`` passes over so many of them first, which makes the pages of a long answer.
    """

    ids: frozenset[str] | None = None
    kind: str | None = None
    marks: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    after: int | None = None
    before: int | None = None
    limit: int | None = None
    newest: bool = False
    skip: int = 0

    def __post_init__(self) -> None:
        for name in ("limit", "after", "before", "skip"):
            number = getattr(self, name)
            if number is not None and not 0 <= number <= MAX_NUMBER:
                raise InvalidInput(f"{name} must be from 0 to {MAX_NUMBER}, got {number}")
        if self.skip and self.limit is None:
            raise InvalidInput(f"to skip {self.skip} records needs a limit: give the page's size")
        if len(self.marks) + len(self.without) > MAX_MARKS:
            raise InvalidInput(f"at most {MAX_MARKS} marks can be asked for at once")
        if self.ids is not None and not all(map(could_be_id, self.ids)):
            force_setattr(self, "ids", frozenset(filter(could_be_id, self.ids)))

    def matches(self, record: Record) -> bool:
        """Tell whether one record fits (the page aside): the meaning of the other fields."""
        return (
            (self.kind is None or record.kind == self.kind)
            and (self.after is None or record.seq > self.after)
            and (self.before is None or record.seq < self.before)
            and (not self.marks or not self.marks.isdisjoint(record.marks))
            and (not self.without or self.without.isdisjoint(record.marks))
            and (self.ids is None or record.id in self.ids)
        )

    @property
    def is_only_kind(self) -> bool:
        """Whether nothing but the kind, or nothing at all, is asked for."""
        return self == Where(kind=self.kind)


EVERYTHING = Where()


def check_id(what: str, value: str) -> str:
    """Return ``value`` if every shelf can hold it as an id; say clearly why not otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, got {type(value).__name__}")
    if _PLAIN.fullmatch(value):
        return value
    _check_unusual_id(what, value)
    return value


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number; a bool is none."""
    if type(value) is float:
        return -_LARGEST <= value <= _LARGEST
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= _LARGEST  # also of an int that no float can hold


def could_be_id(value: str) -> bool:
    """Tell whether any record could have this id: if not, there is nothing to look for."""
    try:
        check_id("id", value)
    except InvalidInput:
        return False
    return True


def as_marks(marks: str | Iterable[str] | None) -> frozenset[str]:
    """Return checked marks as plain strings: a ``str`` Enum member counts as its value."""
    if marks is None:
        return _NO_MARKS
    if isinstance(marks, str):
        marks = (marks,)
    elif not isinstance(marks, _SEVERAL):
        raise TypeError(f"marks must be a str or a list of str, got {type(marks).__name__}")
    if not marks:
        return _NO_MARKS
    return frozenset(map(_as_mark, marks))


def text_of(value: Value) -> str:
    """Return what a search should see of a value, unless the writer says otherwise."""
    if isinstance(value, str):
        return value
    if isinstance(value, Msg):
        content = peek_content(value)
        return content if isinstance(content, str) else value.get_text_content() or ""
    return ""


def _as_mark(mark: str) -> str:
    if not isinstance(mark, str):
        raise TypeError(f"a mark must be a str, got {type(mark).__name__}")
    return check_id("mark", str.__str__(mark))


def _check_unusual_id(what: str, value: str) -> None:
    if not value:
        raise InvalidInput(f"{what} is empty; give at least one character")
    if len(value) > MAX_ID_CHARACTERS:
        raise InvalidInput(
            f"{what} has {len(value)} characters, at most {MAX_ID_CHARACTERS} fit: {value[:40]!r}…"
        )
    bad = next((sign for sign in value if unicodedata.category(sign) in _UNPRINTABLE), None)
    if bad is not None:
        raise InvalidInput(f"{what} {value!r} holds {bad!r}; remove control characters")
    if len(value.encode()) > MAX_ID_BYTES:
        raise InvalidInput(
            f"{what} takes {len(value.encode())} bytes in UTF-8, at most {MAX_ID_BYTES} fit: "
            f"{value[:40]!r}…"
        )
