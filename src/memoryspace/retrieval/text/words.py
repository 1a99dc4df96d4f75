"""The definition of a word, and a plain implementation for one text.

A word is a run of letters, digits and combining marks. Some characters join two words:

- ``Ann's``, ``we'll``, ``I'd``: the ending is dropped. ``don't`` is ``dont``.
- ``1,000`` is ``1000``; soft hyphens and invisible joiners are ignored.
- ``user_id``, ``long-term``, ``O'Brien``: the words, and all together as ``userid``, ``longterm``,
  ``obrien``; so ``user_id``, ``user-id`` and ``userId`` match each other.
- ``foo.bar``, ``ann@example.com``, ``3.14``, ``2023-05-07``, ``10:30``, ``1/2``, ``gpt-4``: the
  words, and the whole as it is written.

A word may have parts that are words as well: ``getUserName`` is also ``get``, ``user``, ``name``;
``HTTPServer2`` also ``http``, ``server``, ``2``. (``APIs`` and ``a1b2`` have no parts.)

Han, Kana and Hangul have no reliable word borders: a run of them becomes its characters *and* its
pairs of neighbours. Pairs alone rank the first hit a little better (.616 to .605), but characters
find more (.809 to .792 in the first ten, .861 to .821 for two spans), and without them a query of
one character would find nothing.

``words`` reads one text, plainly and slowly; ``spans.find_spans`` finds the same in batches.
"""

from __future__ import annotations

import re
from itertools import groupby, pairwise

from .characters import (
    APOSTROPHE,
    COLON,
    COMMA,
    DIGIT,
    DOT,
    HYPHEN,
    IDEOGRAPH,
    INVISIBLE,
    LETTER,
    SEPARATOR,
    UPPER,
    kind_of,
    spell,
)

_PLAIN = re.compile(r"[a-z]+(?: +[a-z]+)*")  # every run of letters is a word
ENDINGS = ("s", "d", "m", "ll", "re", "ve")

Span = tuple[int, int]


def words(text: str) -> list[str]:
    """Return the words of a text in reading order, with repetitions; a whole before its parts.

    They are folded: case, width and composition do not matter ("Straße" = "STRASSE").
    """
    if _PLAIN.fullmatch(text):
        return text.split()
    spelled = spell(text)
    return _Reading(spelled.casefold(), [kind_of(char) for char in spelled]).words()


class _Reading:
    """One text, folded, with the kinds its characters had before folding."""

    def __init__(self, text: str, kinds: list[int]) -> None:
        self._text = text
        self._kinds = [*kinds, 0, 0]  # padding for looking ahead
        self._dropped: set[int] = set()  # positions of characters that no token keeps

    def words(self) -> list[str]:
        runs = self._glued(self._without_endings(self._runs()))
        parts = [part for run in runs for part in self._parts(run)]
        found = [*runs, *parts, *self._compounds(runs), *self._ideographs()]
        return [self._cut(span) for span in sorted(found, key=lambda span: (span[0], -span[1]))]

    def _runs(self) -> list[Span]:
        marks = [kind >= LETTER for kind in (0, *self._kinds)]
        edges = [at for at, (left, right) in enumerate(pairwise(marks)) if left != right]
        return list(zip(edges[0::2], edges[1::2], strict=True))

    def _connector(self, left: Span, right: Span) -> int:
        """Return the kind of the single character between two neighbours, if there is just one."""
        return self._kinds[left[1]] if right[0] == left[1] + 1 else SEPARATOR

    def _without_endings(self, runs: list[Span]) -> list[Span]:
        kept = runs[:1]
        for left, right in pairwise(runs):
            is_ending = self._text[slice(*right)] in ENDINGS
            if not (is_ending and self._connector(left, right) == APOSTROPHE):
                kept.append(right)
        return kept

    def _glued(self, runs: list[Span]) -> list[Span]:
        glued: list[Span] = runs[:1]
        for left, right in pairwise(runs):
            if self._is_glued(left, right):
                self._dropped.add(left[1])
                glued[-1] = (glued[-1][0], right[1])
            else:
                glued.append(right)
        return glued

    def _is_glued(self, left: Span, right: Span) -> bool:
        connector = self._connector(left, right)
        if connector == APOSTROPHE:
            return self._text[left[1] - 1] == "n" and self._text[slice(*right)] == "t"
        if connector == COMMA:
            digits = all(kind == DIGIT for at in (left, right) for kind in self._kinds[slice(*at)])
            return digits and left[1] - left[0] <= 3 and right[1] - right[0] == 3
        return connector == INVISIBLE

    def _compounds(self, runs: list[Span]) -> list[Span]:
        chains: list[Span] = []
        begin = None
        for left, right in pairwise([*runs, (-1, -1)]):
            if self._is_linked(left, right):
                begin = left[0] if begin is None else begin
            elif begin is not None:
                chains.append((begin, left[1]))
                begin = None
        return chains

    def _is_linked(self, left: Span, right: Span) -> bool:
        connector = self._connector(left, right)
        digits = [self._kinds[at] == DIGIT for at in (left[1] - 1, right[0])]
        if not any(digits) and connector in (HYPHEN, APOSTROPHE):
            self._dropped.add(left[1])
            return True
        return connector in (HYPHEN, DOT) or (all(digits) and connector == COLON)

    def _parts(self, run: Span) -> list[Span]:
        kinds = self._kinds
        inner = (at for at in range(run[0] + 1, run[1]) if kinds[at] > LETTER)
        borders = [at for at in inner if self._is_border(at)]
        return list(pairwise([run[0], *borders, run[1]])) if borders else []

    def _is_border(self, at: int) -> bool:
        """Return whether a part begins at this capital or digit: userName, HTTPServer, server2."""
        earlier, before, here, after, then = (self._kinds[at + step] for step in range(-2, 3))
        if here == UPPER:
            return before == LETTER or (before == UPPER and after == then == LETTER)
        return before in (LETTER, UPPER) and earlier in (LETTER, UPPER)

    def _ideographs(self) -> list[Span]:
        found: list[Span] = []
        for kind, group in groupby(range(len(self._text)), self._kinds.__getitem__):
            if kind == IDEOGRAPH:
                run = list(group)
                found += [(at, at + 1) for at in run]
                found += [(at, at + 2) for at in run[:-1]]
        return found

    def _cut(self, span: Span) -> str:
        if not self._dropped:
            return self._text[slice(*span)]
        return "".join(self._text[at] for at in range(*span) if at not in self._dropped)
