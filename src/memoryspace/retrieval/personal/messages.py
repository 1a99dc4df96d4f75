"""``Messages``: what the second look keeps of messages, so that each is read once.

Nothing is read before somebody asks. What was not looked at for longest is forgotten first, and
read again when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..catalogue import NO_ROW, Catalogue
from ..entries import Entry
from .clauses import Reading, read
from .cues import tells_in

MOST_KEPT = 5_000  # messages of a memory: a few kilobytes each

_BACK = 6  # messages before one in which "she" is looked for
_UNREAD = Reading()


class Message(NamedTuple):
    """What is kept of a message; what others than the user said is not read clause by clause."""

    reading: Reading
    is_users: bool
    tells: int  # sorts of answers, as bits: see ``cues``
    length: int


class Messages:
    """Messages of one memory, by row."""

    def __init__(self) -> None:
        self._kept: dict[int, Message] = {}  # who was looked at last comes last

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self, row: int) -> None:
        """Read a row anew when it is next asked for."""
        self._kept.pop(row, None)

    def at(self, rows: Sequence[int], catalogue: Catalogue) -> list[Message]:
        """Return the messages in these rows."""
        kept, found = self._kept, list[Message]()
        for row in rows:
            known = kept.pop(row, None)
            kept[row] = message = _message(row, catalogue) if known is None else known
            found.append(message)
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
        return found


def is_users(entry: Entry) -> bool:
    """Tell whether an entry is what the user said: whoever has no role is taken for the user."""
    return entry.role in (None, "user") and not entry.is_told_itself


def _message(row: int, catalogue: Catalogue) -> Message:
    entry = catalogue.at(row)
    is_own = is_users(entry)
    reading = read(entry.text, partial(_spoken_of, row, catalogue)) if is_own else _UNREAD
    return Message(reading, is_own, tells_in(entry.text), len(entry.text))


def _spoken_of(row: int, catalogue: Catalogue) -> frozenset[str]:
    """Return whom the user spoke of last before a message, in the same session."""
    readings = (read(each.text) for each in _before(row, catalogue) if _is_said(each))
    return next((each.last for each in readings if each.last), frozenset())


def _is_said(entry: Entry) -> bool:
    return is_users(entry) and not entry.sources  # what was derived from others was not said


def _before(row: int, catalogue: Catalogue) -> Iterator[Entry]:
    for _ in range(_BACK):
        row = int(catalogue.before[row])
        if row == NO_ROW:
            return
        yield catalogue.at(row)
