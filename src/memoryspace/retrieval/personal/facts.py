"""``Facts``: the derived facts of a memory, as an index over the messages they came from.

A fact supports its source messages: it shows that they fit a question, or are no longer true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..entries import Entry
from .clauses import telling_words
from .matters import kin_matters, matters_in
from .people import USER, names_in, relations_in


class ParsedFact(NamedTuple):
    """A parsed fact: its words, the matters of its text and title, and whom it is about."""

    words: frozenset[str]
    matters: int
    titled: int
    title: frozenset[str]  # the title's words, if it touches no matter
    is_of_others: bool  # about a person related to the user, not about the user
    people: frozenset[str]  # relations and names
    kin: int  # matters that having such people is about


_OF_ANY_TITLE = telling_words("favourite")  # says less than the colour, food or film
_TELLS_NAME = ("name", "nickname", "名字")  # how the titles of facts about names begin
_OVER = frozenset({"superseded"})  # the mark of facts that are no longer true


class Facts:
    """Rows of facts by the ids of the records they were derived from."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}  # record → row
        self._derived: dict[str, dict[int, None]] = {}  # record → rows of what came from it
        self._entries: dict[int, Entry] = {}  # those with sources
        self._read: dict[int, ParsedFact] = {}
        self._names: dict[int, frozenset[str]] = {}  # what a fact says the user is called

    def __contains__(self, row: int) -> bool:
        return row in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def known(self, row: int) -> ParsedFact:
        """Return the parsed fact of a row; it is cached."""
        found = self._read.get(row)
        if found is None:
            found = self._read[row] = _known(self._entries[row])
        return found

    def add(self, row: int, entry: Entry) -> None:
        """Add an entry."""
        if entry.record is not None:
            self._rows[entry.record] = row
        if entry.is_told_itself:
            return
        for source in entry.sources:
            self._derived.setdefault(source, {})[row] = None
        if entry.sources:
            self._entries[row] = entry
            self._learn_name(row, entry)

    def remove(self, row: int, entry: Entry) -> None:
        """Remove an entry."""
        if entry.record is not None and self._rows.get(entry.record) == row:
            del self._rows[entry.record]
        for source in entry.sources:
            known = self._derived.get(source, {})
            known.pop(row, None)
            if not known:
                self._derived.pop(source, None)
        self._entries.pop(row, None)
        self._read.pop(row, None)
        self._names.pop(row, None)

    def own_names(self) -> frozenset[str]:
        """Return all names that the user has been called by, in lower case."""
        return frozenset().union(*self._names.values())

    def export(self, count: int) -> tuple[list[str], list[int]]:
        """Return the record of each row, empty where there is none, and the rows of facts."""
        records = [""] * count
        for record, row in self._rows.items():
            records[row] = record
        return records, list(self._entries)

    def restore(self, records: Sequence[str], facts: Mapping[int, Entry]) -> None:
        """Take over what was exported, with the entries of the facts."""
        self._rows = {record: row for row, record in enumerate(records) if record}
        for row, entry in facts.items():
            self._entries[row] = entry
            self._learn_name(row, entry)
            for source in entry.sources:
                self._derived.setdefault(source, {})[row] = None

    def sources_of(self, row: int) -> list[int]:
        """Return the rows of the messages that a fact was derived from, as far as indexed."""
        entry = self._entries.get(row)
        return [] if entry is None else self._known(entry.sources)

    def from_message(self, entry: Entry) -> list[int]:
        """Return the rows of the facts derived from a message."""
        return [] if entry.record is None else list(self._derived.get(entry.record, ()))

    def successors(self, row: int) -> list[int]:
        """Return the source messages of the fact that superseded a fact."""
        entry = self._entries.get(row)
        if entry is None or entry.superseded_by is None:
            return []
        successor = self._rows.get(entry.superseded_by)
        return [] if successor is None else self.sources_of(successor)

    def holds(self, row: int) -> bool:
        """Return whether a fact is still true."""
        entry = self._entries.get(row)
        return entry is not None and not entry.marks & _OVER and entry.superseded_by is None

    def _learn_name(self, row: int, entry: Entry) -> None:
        if entry.subject == USER and entry.title and entry.title.startswith(_TELLS_NAME):
            self._names[row] = names_in(entry.text)

    def _known(self, records: Iterable[str]) -> list[int]:
        return [self._rows[each] for each in records if each in self._rows]


def _known(fact: Entry) -> ParsedFact:
    title = "" if fact.title is None else fact.title
    whole = f"{title} {fact.text}".strip()
    relations = relations_in(fact.text)
    on = matters_in(title, telling_words(title))
    return ParsedFact(
        telling_words(whole),
        matters_in(whole, telling_words(whole)),
        on,
        frozenset() if on else telling_words(title) - _OF_ANY_TITLE,
        "/" in fact.subject if fact.subject is not None else bool(relations),
        relations | names_in(fact.text),
        kin_matters(relations),
    )
