"""SentencePiece's unigram tokenizer: splits words into their most likely pieces (Kudo, 2018).

A piece's score is the logarithm of its probability; of all ways to split a word, the one with the
highest sum is chosen. No piece crosses a space, so words are split one by one, and the results are
cached.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

_SPACE = "▁"  # starts the pieces at the beginning of a word
_UNKNOWN_PENALTY = 10.0  # below the score of the least likely piece
_REMEMBERED = 50_000  # words
_LONGEST_REMEMBERED = 32  # characters: longer words rarely repeat


class Unigram:
    """Pieces with their scores by id, and the replacements of single characters.

    ``marks`` are the ids of special tokens, which a text cannot contain: what looks like one is
    plain text. Of a long text, only the part that can fill the requested tokens is read.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        scores: Sequence[float],
        characters: Mapping[int, str],
        *,
        marks: frozenset[int],
        unknown: int,
    ) -> None:
        self.unknown = unknown
        self._characters = dict(characters)
        self._scores = scores
        self._numbers = {
            piece: number for number, piece in enumerate(pieces) if number not in marks and piece
        }
        self._unknown_score = min(scores) - _UNKNOWN_PENALTY
        self.space = self._numbers.get(_SPACE, unknown)
        self._longest = _longest_by_first(self._numbers)
        self._most = max(self._longest.values())
        self._remembered: dict[str, list[int]] = {}

    def encode(self, text: str, most: int) -> list[int]:
        """Return up to ``most`` tokens of a text, without begin and end tokens."""
        tokens: list[int] = []
        for word in self._words(text, most * self._most):
            tokens += self._cut_once(word)
            if len(tokens) >= most:
                break
        return tokens[:most]

    def _words(self, text: str, characters: int) -> Iterator[str]:
        """Yield the words of the first ``characters`` characters."""
        beginning = text.lstrip()[: 2 * characters]  # spaces between words do not count
        if not beginning.isascii():
            # Combining accents are joined to their letters first.
            beginning = unicodedata.normalize("NFC", beginning)
        for word in beginning.translate(self._characters).split():
            yield _SPACE + word[:characters]

    def _cut_once(self, word: str) -> list[int]:
        found = self._remembered.get(word)
        if found is None:
            found = self._cut(word)
            if len(word) <= _LONGEST_REMEMBERED:
                if len(self._remembered) >= _REMEMBERED:
                    self._remembered.clear()
                self._remembered[word] = found
        return found

    def _cut(self, word: str) -> list[int]:
        """Return the most likely pieces; consecutive unknown characters are one token.

        ``best[end]`` is the most likely split up to ``end``: its score, last piece and start.
        """
        numbers, scores, longest, size = self._numbers, self._scores, self._longest, len(word)
        best: list[tuple[float, int, int]] = [(0.0, self.unknown, 0)]
        best += [(-1e30, self.unknown, 0)] * size
        for begin in range(size):
            score = best[begin][0]
            if score + self._unknown_score > best[begin + 1][0]:
                best[begin + 1] = (score + self._unknown_score, self.unknown, begin)
            for end in range(begin + 1, min(begin + longest.get(word[begin], 0), size) + 1):
                piece = numbers.get(word[begin:end])
                if piece is not None and score + scores[piece] > best[end][0]:
                    best[end] = (score + scores[piece], piece, begin)
        return self._walk_back(best)

    def _walk_back(self, best: list[tuple[float, int, int]]) -> list[int]:
        tokens: list[int] = []
        place = len(best) - 1
        while place > 0:
            _, token, place = best[place]
            if token != self.unknown or tokens[-1:] != [token]:
                tokens.append(token)
        return tokens[::-1]


def _longest_by_first(pieces: Iterable[str]) -> dict[str, int]:
    """Return the length of the longest piece for each first character."""
    longest: dict[str, int] = {}
    for piece in pieces:
        if len(piece) > longest.get(piece[0], 0):
            longest[piece[0]] = len(piece)
    return longest
