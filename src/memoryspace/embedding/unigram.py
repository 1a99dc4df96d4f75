"""Tokens by likelihood: words cut into those known pieces that are most likely together.

The model is SentencePiece's "unigram" (Kudo, 2018): a piece's score is the logarithm of how likely
it is, and of all ways to cut a word the one with the highest sum counts. No piece reaches over a
space, so words are cut one by one, and those met before are remembered.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

_SPACE = "▁"  # begins the pieces that begin a word
_UNKNOWN_PENALTY = 10.0  # less likely than the least likely piece, by this
_REMEMBERED = 50_000  # words
_LONGEST_REMEMBERED = 32  # characters: longer ones hardly come again


class Unigram:
    """Pieces with their scores by number, and what single characters become before.

    ``marks`` are the numbers of pieces that are signs, not text: what only looks like one in a
    text is plain text. Of a long text only as much is looked at as can fill the tokens asked for.
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
        """Return at most so many tokens of a text, without signs of begin and end."""
        tokens: list[int] = []
        for word in self._words(text, most * self._most):
            tokens += self._cut_once(word)
            if len(tokens) >= most:
                break
        return tokens[:most]

    def _words(self, text: str, characters: int) -> Iterator[str]:
        """Yield the words of the beginning, so many characters long."""
        beginning = text.lstrip()[: 2 * characters]  # spaces between words do not count
        if not beginning.isascii():
            # Accents that stand by themselves are joined to their letters first.
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
        """Return the most likely pieces; several unknown characters in a row are one token.

        ``best[end]`` is the likeliest way to reach a place: its score, the piece, its begin.
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
    """Return how long the longest piece is that begins with a character."""
    longest: dict[str, int] = {}
    for piece in pieces:
        if len(piece) > longest.get(piece[0], 0):
            longest[piece[0]] = len(piece)
    return longest
