"""Kinds of characters, and the normalisation of texts before analysis."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from .hashing import Codes, code_points

Kinds = NDArray[np.uint8]

# From LETTER on: part of a word. Between IDEOGRAPH and LETTER: connectors of two words.
SEPARATOR, IDEOGRAPH, APOSTROPHE, HYPHEN, DOT, COLON, COMMA, INVISIBLE = range(8)
LETTER, UPPER, DIGIT = 8, 9, 10

CONNECTORS = {
    **dict.fromkeys("'’", APOSTROPHE),
    **dict.fromkeys("_-‐", HYPHEN),
    **dict.fromkeys(".@", DOT),
    **dict.fromkeys(":/", COLON),
    ",": COMMA,
    **dict.fromkeys("\u00ad\u200c\u200d\u2060", INVISIBLE),  # soft hyphen, joiners
}

# First and last code points of the scripts written without reliable word borders.
_UNSPACED = (
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x3005, 0x3007),  # iteration mark, closing mark and zero of Han
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x31FF),  # Bopomofo, Hangul compatibility Jamo, Katakana extensions
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),  # half-width Kana and Hangul
    (0x1AFF0, 0x1B16F),
)
# Pictographs: each is a word.
_PICTURES = ((0x2600, 0x27BF), (0x2B50, 0x2B55), (0x1F000, 0x1FAFF))
_SELECTORS = (0xFE00, 0xFE0F)  # how a pictograph is drawn: ignored
_FIRST_HAN_PLANE, _BEYOND = 0x20000, 0x40000  # Han in between; above, no part of a word
_MARKS = frozenset({"Mn", "Mc", "Me"})


def spell(text: str) -> str:
    """Return the text normalised so that case folding turns no character into several.

    Width and composition are normalised. Case is kept: it shows where parts of a name begin.
    """
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFKC", text)
    if _widening().search(composed) is None:
        return composed
    return "".join(char if len(char.casefold()) == 1 else char.casefold() for char in composed)


def read(spelled: str) -> tuple[Codes, Kinds]:
    """Return the folded code points of a normalised text, and their kinds before folding."""
    if spelled.isascii():
        raw = spelled.encode("ascii")
        kinds = raw.translate(_ascii_table())
        return np.frombuffer(raw.lower(), np.uint8), np.frombuffer(kinds, np.uint8)
    points = code_points(spelled).astype(np.int64)
    return _folded_table().take(points), kinds_table().take(points, mode="clip")


@lru_cache(1 << 12)  # a query is read character by character
def kind_of(char: str) -> int:
    """Return the kind of a character."""
    code = ord(char)
    if code >= _FIRST_HAN_PLANE:
        return IDEOGRAPH if code < _BEYOND else SEPARATOR
    if char in CONNECTORS:
        return CONNECTORS[char]
    if _SELECTORS[0] <= code <= _SELECTORS[1]:
        return SEPARATOR
    if any(first <= code <= last for first, last in _PICTURES):
        return IDEOGRAPH
    if not (char.isalnum() or unicodedata.category(char) in _MARKS):
        return SEPARATOR
    if any(first <= code <= last for first, last in _UNSPACED):
        return IDEOGRAPH
    if char.isdecimal():
        return DIGIT
    return UPPER if char.isupper() else LETTER


@cache
def _widening() -> re.Pattern[str]:
    """Return a pattern for characters that become several when their case is folded."""
    return re.compile(f"[{''.join(char for char in _low_chars() if len(char.casefold()) > 1)}]")


@cache
def _folded_table() -> NDArray[np.uint32]:
    """Return the case-folded code points, unchanged where folding gives several."""
    table = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    folded = [char.casefold() for char in _low_chars()]
    table[:_FIRST_HAN_PLANE] = [
        ord(each) if len(each) == 1 else code for code, each in enumerate(folded)
    ]
    return table


@cache
def _ascii_table() -> bytes:
    return kinds_table()[:256].tobytes()


def _low_chars() -> list[str]:
    return [chr(code) for code in range(_FIRST_HAN_PLANE)]


@cache
def kinds_table() -> Kinds:
    """Return ``kind_of`` every code point; the last entry stands for all higher ones."""
    chars = _low_chars()
    table = np.full(_BEYOND + 1, IDEOGRAPH, np.uint8)
    low = table[:_FIRST_HAN_PLANE]
    low[:] = [char.isalnum() for char in chars]
    low |= np.array([unicodedata.category(char) in _MARKS for char in chars])
    low *= LETTER
    low[[char.isupper() and char.isalnum() for char in chars]] = UPPER
    low[[char.isdecimal() for char in chars]] = DIGIT
    for first, last in _UNSPACED:
        table[first : last + 1] = np.where(table[first : last + 1], IDEOGRAPH, SEPARATOR)
    for first, last in _PICTURES:
        table[first : last + 1] = IDEOGRAPH
    table[_SELECTORS[0] : _SELECTORS[1] + 1] = SEPARATOR
    table[[ord(char) for char in CONNECTORS]] = list(CONNECTORS.values())
    table[_BEYOND] = SEPARATOR
    return table
