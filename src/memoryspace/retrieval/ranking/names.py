"""Names: the titles of entries that occur in a text, and the names that a text mentions.

The answer to a question may not resemble it, but be named in an entry that does. So titles are
indexed as sequences of words, and can be found in any text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from ..text.stopwords import STOP_WORDS

_UNIT = re.compile(r"[々-〇぀-ヿ㐀-鿿가-힣]|[^\W_々-〇぀-ヿ㐀-鿿가-힣]+")
_REMARK = re.compile(r"\s*[(（][^)）]*[)）]\s*$")  # "Mercury (planet)" is called Mercury
_LONGEST = 12  # words
_LONGEST_TITLE = 200  # characters
_READ = 20_000  # characters of a text that are searched for titles
_NEWS = 64  # after more changes than this, a text is searched again

# Capitalised words, joined by "of", "van der" and the like, or names in East Asian quotes.
_CAPITAL = "[" + "".join(filter(str.isupper, map(chr, range(0x590)))) + "]"
_PART = rf"{_CAPITAL}(?:\.|[\w'’-]*)"
_BETWEEN = r"(?:(?:of|the|&|de|del|della|der|di|da|la|le|van|von|al|bin|ibn) ){0,2}"
_SPOKEN = re.compile(rf"\b{_PART}(?: {_BETWEEN}{_PART})*|[《「『]([^》」』]{{2,20}})[》」』]")
_BEFORE_CAPITALS = (*'.!?:;…\n"“‘(*-#', "")
_SAID = 20  # names of a text that are used, the first
_SAID_WITHIN = 2_000  # characters that are searched for them

Name = tuple[str, ...]


class TitleNames:
    """Rows by the words of their titles."""

    def __init__(self) -> None:
        self._rows: dict[Name, set[int]] = {}
        self._lengths: dict[str, dict[int, int]] = {}  # first word → length → how many names
        self._changes = 0
        self._news: deque[str] = deque(maxlen=_NEWS)  # first words of the last changed names
        self._known: dict[int, tuple[int, dict[Name, None]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, title: str | None) -> None:
        """Index the title of a row."""
        name = name_of(title)
        if not name:
            return
        if name not in self._rows:
            self._rows[name] = set()
            lengths = self._lengths.setdefault(name[0], {})
            lengths[len(name)] = lengths.get(len(name), 0) + 1
            self._changed(name)
        self._rows[name].add(row)

    def remove(self, row: int, title: str | None) -> None:
        """Remove the title of a row."""
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
        self._changed(name)

    def rows(self, name: Name) -> set[int]:
        """Return the rows with a name."""
        return self._rows.get(name, set())

    def within(self, text: str) -> dict[Name, None]:
        """Return the names that occur in a text; a name never starts with a lower-case letter."""
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
        """Return ``within`` for an entry's text, cached until a name it may contain changes."""
        seen, found = self._known.get(row, (-1, {}))
        if seen != self._changes:
            text = text_of(row)
            if seen < 0 or self._concerns(text, self._changes - seen):
                found = self.within(text)
            self._known[row] = (self._changes, found)
        return found

    def _changed(self, name: Name) -> None:
        self._changes += 1
        self._news.append(name[0])

    def _concerns(self, text: str, changes: int) -> bool:
        """Return whether one of the last ``changes`` may concern a name in a text."""
        if changes > len(self._news):
            return True
        return any(self._news[-back] in text for back in range(1, changes + 1))


def name_of(title: str | None) -> Name:
    """Return a title as words, without a remark in brackets at its end.

    A title of stop words alone ("It") is not a name: it would occur in every text.
    """
    if title is None:
        return ()
    name = tuple(_UNIT.findall(_REMARK.sub("", title[:_LONGEST_TITLE])))[:_LONGEST]
    return () if all(word.lower() in STOP_WORDS for word in name) else name


class Mentions:
    """The names that the texts of entries mention, whether or not an entry has them as title."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, Name]] = {}

    def within_row(self, row: int, text_of: Callable[[int], str]) -> dict[str, Name]:
        """Return ``mentions_in`` for the text of an entry, cached."""
        if row not in self._known:
            self._known[row] = mentions_in(text_of(row))
        return self._known[row]

    def forget(self, row: int) -> None:
        """Drop the cached names of a row."""
        self._known.pop(row, None)


def mentions_in(text: str) -> dict[str, Name]:
    """Return the names in a text as they are written, each with the words to look it up by.

    A name is a run of capitalised words, or a phrase in East Asian quotes. A single capitalised
    word at the beginning of a sentence does not count.
    """
    found: dict[str, Name] = {}
    for match in _SPOKEN.finditer(text[:_SAID_WITHIN]):
        name = match[1] if match[1] is not None else _bare(match[0], _opens(text, match.start()))
        parts = telling(name)
        if parts and len(parts) <= _LONGEST:
            found.setdefault(name, parts)
        if len(found) == _SAID:
            break
    return found


def _opens(text: str, at: int) -> bool:
    """Return whether a sentence or quotation begins here, except at the start of the text."""
    return at > 0 and text[max(0, at - 3) : at].rstrip(" ")[-1:] in _BEFORE_CAPITALS


def _bare(name: str, opens: bool) -> str:
    """Return a name without leading stop words; nothing for a single word opening a sentence."""
    parts = name.removesuffix("'s").removesuffix("’s").split(" ")
    while parts and parts[0].lower() in STOP_WORDS:
        parts, opens = parts[1:], False
    return "" if opens and len(parts) == 1 else " ".join(parts)


def telling(name: str) -> Name:
    """Return the words of a name that can be looked up: no single letters, no stop words."""
    units = _UNIT.findall(name.lower())
    return tuple(
        each for each in units if each not in STOP_WORDS and (len(each) > 1 or each > "\u024f")
    )
