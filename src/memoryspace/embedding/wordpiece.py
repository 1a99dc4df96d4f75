"""BERT's WordPiece tokenizer: lower-case words without accents, split into longest pieces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

_LONGEST_WORD = 100  # characters; longer ones count as unknown
_REMEMBERED = 50_000  # words
_ASCII_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_ASCII_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))
_CJK = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary. Special tokens ("[SEP]") in a text are plain text."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.unknown = self._numbers["[UNK]"]
        self._first, self._last = self._numbers["[CLS]"], self._numbers["[SEP]"]
        self._remembered: dict[str, list[int]] = {}

    @classmethod
    def read(cls, path: Path) -> WordPiece:
        """Read a vocabulary, one piece per line."""
        return cls(path.read_text("utf-8").split("\n"))

    def encode(self, text: str, most: int) -> list[int]:
        """Return up to ``most`` tokens, with the tokens of begin and end."""
        tokens = [self._first]
        for word in _words(text):
            tokens += self._pieces(word)
            if len(tokens) >= most - 1:
                break
        return [*tokens[: most - 1], self._last]

    def _pieces(self, word: str) -> list[int]:
        found = self._remembered.get(word)
        if found is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            found = self._remembered[word] = self._cut(word)
        return found

    def _cut(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self.unknown]
        pieces: list[int] = []
        rest, prefix = word, ""
        while rest:
            length = len(rest)
            while prefix + rest[:length] not in self._numbers:
                length -= 1
                if not length:
                    return [self.unknown]
            pieces.append(self._numbers[prefix + rest[:length]])
            rest, prefix = rest[length:], "##"
        return pieces


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.translate(_ASCII_CONTROLS).lower())
    return unicodedata.normalize("NFD", text).translate(_CHARACTERS).split()


class _Characters(dict[int, str]):
    """The replacement of each character, computed on first use."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _become(chr(code))
        return found


_CHARACTERS = _Characters()


def _become(character: str) -> str:
    """Drop controls and accents, separate CJK and punctuation, lower-case the rest."""
    category = unicodedata.category(character)
    if character in "\t\n\r" or (character.isspace() and category[0] != "C"):
        return " "
    if category[0] == "C" or category == "Mn" or character == "\ufffd":
        return ""
    is_symbol = character.isascii() and not character.isalnum()
    code = ord(character)
    if is_symbol or category[0] == "P" or any(low <= code <= high for low, high in _CJK):
        return f" {character} "
    return character.lower()
