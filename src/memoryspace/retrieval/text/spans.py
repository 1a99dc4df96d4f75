"""The words of a batch of texts, found with vector operations; the result equals that of ``words``.

The batch is one line of code points with a separator at both ends and between texts. Only the few
places with a single connector between two words need a closer look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    UPPER,
    Kinds,
)
from .hashing import Codes, Numbers
from .words import ENDINGS

_NONE = np.zeros(0, np.int64)


class Spans(NamedTuple):
    """Begins and ends of the tokens, one rising array per kind of token."""

    begins: list[Numbers]  # of words, parts of words, compounds; then characters, pairs, if any
    ends: list[Numbers]
    dropped: Numbers  # positions of characters that no token keeps, rising


def find_spans(codes: Codes, kinds: Kinds) -> Spans:
    """Return the tokens in a line of folded code points; ``kinds`` also tell the case."""
    line = _BatchLine(codes, kinds)
    line.settle()
    compounds = line.compounds()
    parts = line.parts()
    begins = [line.begins, parts[0], compounds[0]]
    ends = [line.ends, parts[1], compounds[1]]
    single = np.flatnonzero(kinds == IDEOGRAPH)
    if len(single):
        paired = single[kinds[single + 1] == IDEOGRAPH]
        begins += [single, paired]
        ends += [single + 1, paired + 2]
    return Spans(begins, ends, np.sort(np.concatenate(line.dropped)))


class _BatchLine:
    """The words found so far, and the pairs with only a connector between them."""

    def __init__(self, codes: Codes, kinds: Kinds) -> None:
        self._codes = codes
        self._kinds = kinds
        is_word = kinds >= LETTER
        edges = np.flatnonzero(is_word[1:] != is_word[:-1])  # begin, end, begin, end, …
        edges += 1
        self.begins, self.ends = edges[0::2], edges[1::2]
        self.dropped = [_NONE]
        at = self.ends[:-1]
        connected = np.flatnonzero(kinds.take(at) > IDEOGRAPH)
        near = self.begins[connected + 1] - at[connected] == 1
        self._pairs = connected[near]  # the left ones
        self._marks = kinds[at[self._pairs]]

    def settle(self) -> None:
        """Drop endings and join pairs that are one word; keep the other pairs."""
        after_quote = self._pairs[self._marks == APOSTROPHE] + 1
        keeps_begin = np.ones(len(self.begins) + 1, np.bool_)
        keeps_begin[after_quote[self._is_any(after_quote, ENDINGS)]] = False
        keeps_end = keeps_begin.copy()
        self._keep_pairs(keeps_begin[self._pairs] & keeps_begin[self._pairs + 1])
        is_glued = self._is_glued(self._pairs, self._marks)
        glued = self._pairs[is_glued]
        self._keep_pairs(~is_glued)
        self.dropped.append(self.ends[glued])
        keeps_begin[glued + 1] = False
        keeps_end[glued] = False
        self.begins, self.ends = self.begins[keeps_begin[:-1]], self.ends[keeps_end[:-1]]
        gone = np.flatnonzero(~keeps_end)
        self._pairs = self._pairs - gone.searchsorted(self._pairs)

    def _keep_pairs(self, kept: NDArray[np.bool_]) -> None:
        self._pairs, self._marks = self._pairs[kept], self._marks[kept]

    def compounds(self) -> tuple[Numbers, Numbers]:
        """Return begins and ends of the chains of linked words."""
        marks = self._marks
        ends = self.ends[self._pairs]
        digit_before = self._kinds[ends - 1] == DIGIT
        digit_after = self._kinds[ends + 1] == DIGIT
        is_hyphen = marks == HYPHEN
        is_joined = (is_hyphen | (marks == APOSTROPHE)) & ~(digit_before | digit_after)
        is_linked = is_joined | is_hyphen | (marks == DOT)
        is_linked |= digit_before & digit_after & (marks == COLON)
        self.dropped.append(ends[is_joined])
        linked = self._pairs[is_linked]
        breaks = np.flatnonzero(np.diff(linked) > 1)
        if not len(linked):
            return _NONE, _NONE
        first = linked[np.concatenate(([0], breaks + 1))]
        last = linked[np.concatenate((breaks, [len(linked) - 1]))]
        return self.begins[first], self.ends[last + 1]

    def parts(self) -> tuple[Numbers, Numbers]:
        """Return begins and ends of the parts of words that have several."""
        borders = _borders(self._kinds)
        owners = self.begins.searchsorted(borders, "right") - 1
        inside = borders < self.ends.take(owners, mode="clip") if len(self.ends) else owners > 0
        borders, owners = borders[inside], np.unique(owners[inside])
        if not len(borders):
            return _NONE, _NONE
        begins = np.concatenate((self.begins[owners], borders))
        ends = np.concatenate((borders, self.ends[owners]))
        return np.sort(begins), np.sort(ends)

    def _is_glued(self, left: Numbers, marks: Kinds) -> NDArray[np.bool_]:
        before = self.ends[left] - 1
        is_glued: NDArray[np.bool_] = (marks == APOSTROPHE) & (self._codes[before] == ord("n"))
        is_glued &= self._is_any(left + 1, ("t",))
        is_number = marks == COMMA
        if is_number.any():
            is_number &= before - self.begins[left] < 3
            is_number &= self.ends[left + 1] - self.begins[left + 1] == 3
            is_number &= self._is_digits(left) & self._is_digits(left + 1)
            is_glued |= is_number
        is_glued |= marks == INVISIBLE
        return is_glued

    def _is_digits(self, which: Numbers) -> NDArray[np.bool_]:
        """Return whether words of up to three characters are numbers."""
        begins, last = self.begins[which], self.ends[which] - 1
        places: tuple[Numbers, ...] = (begins, np.minimum(begins + 1, last), last)
        first, middle, final = (self._kinds[at] == DIGIT for at in places)
        digits: NDArray[np.bool_] = first & middle & final
        return digits

    def _is_any(self, which: Numbers, short: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return whether words are among ``short``, which have one or two characters each."""
        begins, sizes = self.begins[which], self.ends[which] - self.begins[which]
        first, second = self._codes[begins], self._codes[begins + 1]
        found = np.zeros(len(which), np.bool_)
        for word in short:
            same = (sizes == len(word)) & (first == ord(word[0]))
            found |= same & (second == ord(word[1])) if len(word) == 2 else same
        return found


def _borders(kinds: Kinds) -> Numbers:
    """Return positions inside words where a part begins: userName, HTTPServer, server2."""
    inner = kinds[1:] > LETTER
    inner &= kinds[:-1] >= LETTER
    at = np.flatnonzero(inner) + 1
    before, here = kinds[at - 1], kinds[at]
    letters = (before == LETTER) | (before == UPPER)
    twice = kinds[at - 2]
    number = (here == DIGIT) & letters & ((twice == LETTER) | (twice == UPPER))
    lower = kinds.take(at + 1, mode="clip") == LETTER
    lower &= kinds.take(at + 2, mode="clip") == LETTER
    name = (here == UPPER) & ((before == LETTER) | ((before == UPPER) & lower))
    borders: Numbers = at[number | name]
    return borders
