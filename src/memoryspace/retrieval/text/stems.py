"""Stems: "memories" and "memory" are one word to a search.

Each script has one Snowball stemmer, so a word has the same stem in every text: Latin has that of a
chosen language, Cyrillic the Russian one, and so on. Tokens with a digit or a dot are not words of
a language and stay as they are, as do words of scripts without a stemmer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ...errors import InvalidInput
from .characters import CONNECTORS
from .hashing import Hashes, Numbers, hash_all, token_hash

DEFAULT_LANGUAGE = "english"

_NO_SCRIPT, _LATIN = 0, 1
_SCRIPTS = (  # script number, first and last code points
    (_LATIN, 0x61, 0x7A),
    (_LATIN, 0xDF, 0x24F),
    (_LATIN, 0x1E00, 0x1EFF),
    (2, 0x0370, 0x03FF),
    (2, 0x1F00, 0x1FFF),
    (3, 0x0400, 0x052F),
    (4, 0x0531, 0x0587),
    (5, 0x0620, 0x064A),
    (5, 0x066E, 0x06D3),
    (6, 0x0900, 0x097F),
    (7, 0x0B80, 0x0BFF),
)
_OTHERS = ("greek", "russian", "armenian", "arabic", "hindi", "tamil")  # from 2 on
_NOT_LATIN = frozenset({*_OTHERS, "nepali", "persian", "yiddish"})

_LONGEST = 40  # characters; anything longer is not a word and stays whole
_ROWS, _REMEMBERED = 4, 1 << 16  # size of the cache of stems: 4 MB
_STEMS_KEPT = 4096  # cached stems of words in queries


class _StemCache:
    """A cache of stems by word, both as hashes. A word has a place in each of a few rows.

    It goes to the first row where that place is free, so common words, which come early, are found
    in the first row. In the last row a new word replaces an old one, which bounds the memory.
    """

    def __init__(self) -> None:
        self._size = _REMEMBERED
        self._rows = np.zeros((_ROWS, self._size, 2), np.uint64)  # word, stem

    def find(self, words: Hashes) -> tuple[Hashes, Numbers]:
        """Return the stems, and the positions of words that are not cached."""
        entries = self._entries(words, 0)
        stems = entries[:, 1].copy()
        missing = np.flatnonzero(entries[:, 0] != words)
        for row in range(1, _ROWS):
            if not len(missing):
                break
            rest = words[missing]
            entries = self._entries(rest, row)
            stems[missing] = entries[:, 1]
            missing = missing[entries[:, 0] != rest]
        return stems, missing

    def put(self, words: Hashes, stems: Hashes) -> None:
        """Cache words that are not cached yet, without duplicates."""
        waiting = np.stack((words, stems), axis=1)
        for row in range(_ROWS):
            is_free = self._entries(waiting[:, 0], row)[:, 0] == 0
            is_free |= row == _ROWS - 1
            chosen = waiting[is_free]
            self._rows[row][self._places(chosen[:, 0], row)] = (
                chosen  # on a collision the last wins
            )
            if len(chosen) == len(waiting):
                break
            waiting = waiting[~is_free]

    def _entries(self, words: Hashes, row: int) -> Hashes:
        entries: Hashes = self._rows[row].take(self._places(words, row), axis=0)
        return entries

    def _places(self, words: Hashes, row: int) -> Numbers:
        return ((words >> np.uint64(16 * row)) & np.uint64(self._size - 1)).view(np.int64)


class Stems:
    """The stemmers for one choice of a Latin language (``None``: words stay as they are).

    Thread-safe.
    """

    def __init__(self, language: str | None) -> None:
        self.language = language
        self._lock = threading.Lock()  # a Snowball stemmer serves one thread at a time
        self._stemmers = {} if language is None else _stemmers(language)
        self._seen = _StemCache()
        self._stem_of = lru_cache(_STEMS_KEPT)(lambda word: self.stem_all([word])[0])
        self._hash_of = lru_cache(_STEMS_KEPT)(lambda word: token_hash(self.stem(word)))

    @property
    def version(self) -> str:
        """The language and the version of Snowball, to tell one way of stemming from another."""
        return "none" if self.language is None else f"{self.language}, Snowball {_snowball()}"

    def stem(self, word: str) -> str:
        """Return the stem of a word, which must be folded."""
        return self._stem_of(word) if len(word) <= _LONGEST else word

    def stem_hash(self, word: str) -> int:
        """Return the hash of a word's stem."""
        return self._hash_of(word) if len(word) <= _LONGEST else int(hash_all([word])[0])

    def stem_all(self, words: Sequence[str]) -> list[str]:
        """Return the stems of words, which must be folded."""
        stems = list(words)
        scripts = list(map(_script_of, words))
        for script in set(scripts) & self._stemmers.keys():
            places = [place for place, each in enumerate(scripts) if each == script]
            with self._lock:
                stemmed = self._stemmers[script].stemWords([words[place] for place in places])
            for place, stem in zip(places, stemmed, strict=True):
                stems[place] = stem or words[place]
        return stems

    def replace(self, hashes: Hashes, cut: Callable[[Numbers], list[str]]) -> Hashes:
        """Return the hashes of the stems of hashed words; ``cut`` returns the words at positions.

        Only words that are not cached are cut out and stemmed.
        """
        if not self._stemmers:
            return hashes
        with self._lock:
            stems, missing = self._seen.find(hashes)
        if len(missing):
            unseen, first, which = np.unique(
                hashes[missing], return_index=True, return_inverse=True
            )
            fresh = hash_all(self.stem_all(cut(missing[first])))
            stems[missing] = fresh[which]
            with self._lock:
                self._seen.put(unseen, fresh)
        return stems


@cache
def stems_for(language: str | None) -> Stems:
    """Return the shared stemmers of a language."""
    return Stems(language)


def _stemmers(language: str) -> dict[int, Stemmer.Stemmer]:
    known = Stemmer.algorithms()
    latin = [name for name in known if name not in _NOT_LATIN]
    if language not in latin:
        raise InvalidInput(f"no stemmer for {language!r}; use one of {', '.join(latin)}, or None")
    names = enumerate((language, *_OTHERS), _LATIN)
    return {script: Stemmer.Stemmer(name, 0) for script, name in names if name in known}


def _snowball() -> str:
    return str(Stemmer.version())


def _script_of(word: str) -> int:
    """Return the script of a word by its first character, which decides the stemmer."""
    if len(word) > _LONGEST or not (word.isalpha() or _is_plain(word)):
        return _NO_SCRIPT
    code = ord(word[0])
    if code < 0x80:
        return _LATIN
    return _script_table()[code] if code < len(_script_table()) else _NO_SCRIPT


def _is_plain(word: str) -> bool:
    return not any(char.isnumeric() or char in CONNECTORS for char in word)


@cache
def _script_table() -> list[int]:
    table: NDArray[np.uint8] = np.zeros(1 + max(last for *_, last in _SCRIPTS), np.uint8)
    for script, first, last in _SCRIPTS:
        table[first : last + 1] = script
    listed: list[int] = table.tolist()
    return listed
