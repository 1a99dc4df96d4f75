"""What is known, beside what was said: a fact is an index over the messages it was derived from.

A fact lends its message what it knows: that it fits the question, and that it no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..entries import Entry
from .clauses import telling_words
from .matters import matters_in
from .people import names_in, relations_in


class Known(NamedTuple):
    """A fact, read: its words, the matters of it and of its title, and whom it is about."""

    words: frozenset[str]
    matters: int
    titled: int
    title: frozenset[str]  # its words, where it is on no matter of life
    is_of_others: bool  # about one of the user's people, not about the user
    people: frozenset[str]  # relations and names


_OF_ANY_TITLE = telling_words("favourite")  # which colour, food or film tells more
_OVER = frozenset({"superseded"})  # the mark of what no longer holds


class Facts:
    """Rows of facts by the messages they came from, by the records' own ids."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}  # record → row
        self._derived: dict[str, dict[int, None]] = {}  # record → rows of what came from it
        self._entries: dict[int, Entry] = {}  # those with sources
        self._read: dict[int, Known] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def known(self, row: int) -> Known:
        """Return a fact as it reads; it is read once."""
        found = self._read.get(row)
        if found is None:
            found = self._read[row] = _known(self._entries[row])
        return found

    def add(self, row: int, entry: Entry) -> None:
        """Take note of an entry."""
        if entry.record is not None:
            self._rows[entry.record] = row
        if entry.is_told_itself:
            return
        for source in entry.sources:
            self._derived.setdefault(source, {})[row] = None
        if entry.sources:
            self._entries[row] = entry

    def remove(self, row: int, entry: Entry) -> None:
        """Forget an entry."""
        if entry.record is not None and self._rows.get(entry.record) == row:
            del self._rows[entry.record]
        for source in entry.sources:
            known = self._derived.get(source, {})
            known.pop(row, None)
            if not known:
                self._derived.pop(source, None)
        self._entries.pop(row, None)
        self._read.pop(row, None)

    def sources_of(self, row: int) -> list[int]:
        """Return the rows of the messages that a fact came from, those that are there."""
        entry = self._entries.get(row)
        return [] if entry is None else self._known(entry.sources)

    def from_message(self, entry: Entry) -> list[int]:
        """Return the rows of the facts that came from a message."""
        return [] if entry.record is None else list(self._derived.get(entry.record, ()))

    def successors(self, row: int) -> list[int]:
        """Return the messages from which came what superseded a fact."""
        entry = self._entries.get(row)
        if entry is None or entry.superseded_by is None:
            return []
        heir = self._rows.get(entry.superseded_by)
        return [] if heir is None else self.sources_of(heir)

    def holds(self, row: int) -> bool:
        """Tell whether a fact still holds."""
        entry = self._entries.get(row)
        return entry is not None and not entry.marks & _OVER and entry.superseded_by is None

    def _known(self, records: Iterable[str]) -> list[int]:
        return [self._rows[each] for each in records if each in self._rows]


def _known(fact: Entry) -> Known:
    title = "" if fact.title is None else fact.title
    whole = f"{title} {fact.text}".strip()
    relations = relations_in(fact.text)
    on = matters_in(title, telling_words(title))
    return Known(
        telling_words(fact.text),
        matters_in(whole, telling_words(whole)),
        on,
        frozenset() if on else telling_words(title) - _OF_ANY_TITLE,
        "/" in fact.subject if fact.subject is not None else bool(relations),
        relations | names_in(fact.text),
    )
