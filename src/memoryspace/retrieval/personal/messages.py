"""``Messages``: a cache of read messages for the second pass.

Messages are read on demand. The least recently used ones are dropped first, and read again when
they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from ..catalogue import NO_ROW, Catalogue
from ..entries import Entry
from .clauses import MessageReading, read
from .cues import tells_in

MOST_KEPT = 5_000  # cached messages of a memory, a few kilobytes each

_BACK = 6  # earlier messages that are searched for whom "she" means
_UNREAD = MessageReading()


class ReadMessage(NamedTuple):
    """A read message. Only the user's messages are read clause by clause."""

    reading: MessageReading
    is_users: bool
    tells: int  # the kinds of answers in it, as bits: see ``cues``
    length: int


class Messages:
    """The read messages of one memory, by row."""

    def __init__(self) -> None:
        self._kept: dict[int, ReadMessage] = {}  # the least recently used first
        self._saved: dict[int, bytes] = {}  # read by an earlier process, not asked for yet

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self, row: int) -> None:
        """Drop a row from the cache."""
        self._kept.pop(row, None)
        self._saved.pop(row, None)

    def export(self) -> dict[int, bytes]:
        """Return the messages that were read, as bytes by row."""
        return {**self._saved, **{row: _encode(each) for row, each in self._kept.items()}}

    def restore(self, saved: Mapping[int, bytes]) -> None:
        """Take over what was exported. A message is decoded when it is asked for."""
        self._saved = dict(saved)

    def at(self, rows: Sequence[int], catalogue: Catalogue) -> list[ReadMessage]:
        """Return the messages in these rows."""
        kept, found = self._kept, list[ReadMessage]()
        for row in rows:
            known = kept.pop(row, None)
            kept[row] = message = self._read(row, catalogue) if known is None else known
            found.append(message)
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
        return found

    def _read(self, row: int, catalogue: Catalogue) -> ReadMessage:
        saved = self._saved.pop(row, None)
        return _message(row, catalogue) if saved is None else _decode(saved)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ReadMessage).decode


def is_users(entry: Entry) -> bool:
    """Return whether an entry is the user's; an entry without a role counts as the user's."""
    return entry.role in (None, "user") and not entry.is_told_itself


def _message(row: int, catalogue: Catalogue) -> ReadMessage:
    entry = catalogue.at(row)
    is_own = is_users(entry)
    reading = read(entry.text, partial(_spoken_of, row, catalogue)) if is_own else _UNREAD
    return ReadMessage(reading, is_own, tells_in(entry.text), len(entry.text))


def _spoken_of(row: int, catalogue: Catalogue) -> frozenset[str]:
    """Return whom the user mentioned last before a message, in the same session."""
    readings = (read(each.text) for each in _before(row, catalogue) if _is_said(each))
    return next((each.last for each in readings if each.last), frozenset())


def _is_said(entry: Entry) -> bool:
    return is_users(entry) and not entry.sources  # a derived entry was not said


def _before(row: int, catalogue: Catalogue) -> Iterator[Entry]:
    for _ in range(_BACK):
        row = int(catalogue.before[row])
        if row == NO_ROW:
            return
        yield catalogue.at(row)
