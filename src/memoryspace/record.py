"""The values of the store contract: ``Record``, its owner (``Scope``), and a filter (``Where``).

All three are frozen. Ids and marks are validated here, once for all backends: a valid one is safe
in every key, query and file name built from it.
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
ARCHIVED = "archived"  # what left a context window

# Record ids with this prefix are reserved; a message must not use one.
RESERVED_PREFIX = "memoryspace:"
SUMMARY_ID = RESERVED_PREFIX + "summary"

# Three ids of this size fit into one index entry of PostgreSQL and of MySQL.
MAX_ID_CHARACTERS = 255
MAX_ID_BYTES = 765

MAX_MARKS = 100  # in one Where
MAX_NUMBER = 2**53 - 1  # the largest integer that every backend stores exactly

Value: TypeAlias = Msg | str | dict[str, Any] | list[Any]

_LARGEST = sys.float_info.max
_NO_MARKS: frozenset[str] = frozenset()
_SEVERAL = (list, tuple, set, frozenset)
_PLAIN = re.compile(r"[!-~]{1,255}")
_UNPRINTABLE = {"Cc", "Cs"}  # control characters and lone surrogates


class Scope(Struct, frozen=True):
    """The owner of records: a user, and one of the user's sessions or all of them.

    Attributes:
        user: The user's id.
        session: The session's id; None means all sessions of the user.

    Raises:
        InvalidInput: If an id cannot be used.
    """

    user: str
    session: str | None = None

    def __post_init__(self) -> None:
        check_id("user id", self.user)
        if self.session is not None:
            check_id("session id", self.session)


class Origin(Struct, frozen=True):
    """The author of a record, and the ids of the records it was derived from."""

    author: str | None = None
    derived_from: tuple[str, ...] = ()


class Record(Struct, frozen=True, gc=False):  # no value refers to a record, so no cycles
    """One stored item: a message, a fact or a summary.

    The store sets ``seq`` and ``session``. ``seq`` grows over all sessions of a user, so "after seq
    N" finds what is new. Between users it says nothing.

    Attributes:
        id: Unique in its session.
        value: The item itself: a ``Msg``, a string, a dict or a list.
        text: What a search sees of it.
        marks: Labels that ``Where`` can select by.
        kind: ``"message"``, ``"summary"`` or a kind of your own.
        created_at: Seconds since the epoch.
        expires_at: When the record expires, in seconds since the epoch; None for never.
        importance: From 0 to 1.
        pinned: Whether the record is exempt from collection.
        origin: Who wrote it, and from which records it was derived.
        seq: Its place in the store.
        session: The session it belongs to.
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
    """A filter for records. Every field narrows the selection; the default selects everything.

    Attributes:
        ids: Only these ids. Ids that no record can have match nothing.
        kind: Only this kind.
        marks: Only records with at least one of these marks.
        without: Only records with none of these marks.
        after: Only records with a greater ``seq``.
        before: Only records with a smaller ``seq``.
        limit: At most so many records, the first in conversation order.
        newest: Whether ``limit`` keeps the last records instead; they stay in that order.
        skip: How many records to pass over first, for paging; needs ``limit``.

    Raises:
        InvalidInput: If a number is out of range, or there are too many marks.

    Examples:
        >>> Where(kind="message", limit=20, newest=True).limit
        20
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
            raise InvalidInput(f"skip={self.skip} needs a limit: pass the size of a page")
        if len(self.marks) + len(self.without) > MAX_MARKS:
            raise InvalidInput(f"a filter can have at most {MAX_MARKS} marks")
        if self.ids is not None and not all(map(could_be_id, self.ids)):
            force_setattr(self, "ids", frozenset(filter(could_be_id, self.ids)))

    def matches(self, record: Record) -> bool:
        """Return whether a record matches; ``limit``, ``newest`` and ``skip`` are ignored."""
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
        """Whether the filter sets nothing but ``kind``, or nothing at all."""
        return self == Where(kind=self.kind)


EVERYTHING = Where()


def check_id(what: str, value: str) -> str:
    """Return ``value`` if every backend can store it as an id; raise ``InvalidInput`` if not."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, got {type(value).__name__}")
    if _PLAIN.fullmatch(value):
        return value
    _check_unusual_id(what, value)
    return value


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; a bool is not."""
    if type(value) is float:
        return -_LARGEST <= value <= _LARGEST
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= _LARGEST  # also of an int that no float can hold


def could_be_id(value: str) -> bool:
    """Return whether a record could have this id."""
    try:
        check_id("id", value)
    except InvalidInput:
        return False
    return True


def as_marks(marks: str | Iterable[str] | None) -> frozenset[str]:
    """Return validated marks as plain strings; a ``str`` enum member becomes its value."""
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
    """Return the default search text of a value."""
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
        raise InvalidInput(f"{what} is empty; it needs at least one character")
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
