"""What entries are called, and which of them a text calls by name.

A question may need a bridge: what answers it is not like it, but is named in what is. So the titles
of entries are kept as sequences of words, and a text can be asked which of them stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..stopwords import STOP_WORDS

_UNIT = re.compile(r"[々-〇぀-ヿ㐀-鿿가-힣]|[^\W_々-〇぀-ヿ㐀-鿿가-힣]+")
_REMARK = re.compile(r"\s*[(（][^)）]*[)）]\s*$")  # "Mercury (planet)" is called Mercury
_LONGEST = 12  # words
_READ = 20_000  # characters of a text in which names are looked for

Name = tuple[str, ...]


class Names:
    """Rows by the words of their titles."""

    def __init__(self) -> None:
        self._rows: dict[Name, set[int]] = {}
        self._lengths: dict[str, dict[int, int]] = {}  # first word → length → how many names
        self._changes = 0
        self._known: dict[int, tuple[int, dict[Name, None]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, title: str | None) -> None:
        """Let a row be called by its title."""
        name = name_of(title)
        if not name:
            return
        if name not in self._rows:
            self._rows[name] = set()
            lengths = self._lengths.setdefault(name[0], {})
            lengths[len(name)] = lengths.get(len(name), 0) + 1
            self._changes += 1
        self._rows[name].add(row)

    def remove(self, row: int, title: str | None) -> None:
        """Forget what a row is called."""
        self._known.pop(row, None)
        name = name_of(title)
        if not name:
            return
        self._rows[name].discard(row)
        if self._rows[name]:
            return
        del self._rows[name]
        lengths = self._lengths[name[0]]
        lengths[len(name)] -= 1
        if not lengths[len(name)]:
            del lengths[len(name)]
        if not lengths:
            del self._lengths[name[0]]
        self._changes += 1

    def rows(self, name: Name) -> set[int]:
        """Return the rows that have a name."""
        return self._rows.get(name, set())

    def within(self, text: str) -> dict[Name, None]:
        """Return the names that stand in a text; a name starts with no small letter."""
        units, found = _UNIT.findall(text[:_READ]), dict[Name, None]()
        for at, first in enumerate(units):
            lengths = self._lengths.get(first)
            if lengths is None or first[0].islower():
                continue
            for length in lengths:
                name = tuple(units[at : at + length])
                if name in self._rows:
                    found[name] = None
        return found

    def within_row(self, row: int, text_of: Callable[[int], str]) -> dict[Name, None]:
        """``within`` the text of an entry, remembered until some name comes or goes."""
        changes, found = self._known.get(row, (-1, {}))
        if changes != self._changes:
            found = self.within(text_of(row))
            self._known[row] = (self._changes, found)
        return found


def name_of(title: str | None) -> Name:
    """Return a title as words, without a remark in brackets at its end.

    A title of stop words alone ("It") is no name: it would stand in every text.
    """
    if title is None:
        return ()
    name = tuple(_UNIT.findall(_REMARK.sub("", title)))[:_LONGEST]
    return () if all(word.lower() in STOP_WORDS for word in name) else name
