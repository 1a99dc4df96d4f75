"""Words as PostgreSQL indexes them: a user's tokens as numbers, and BM25 over that user's rows.

Texts are tokenized by ``retrieval.text``, so Chinese is found as well as English. The scores are
those of a ``Recall`` that holds all of the user's entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ....retrieval.sparse.index import WordGains
from ....retrieval.text.analysis import analyse
from ....retrieval.text.stems import DEFAULT_LANGUAGE, stems_for
from ....retrieval.text.stopwords import query_words

K1, B = 1.2, 0.75  # the parameters of a Recall
MOST_TERMS = 2000  # words of a question that are looked up

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class WordCounts(Struct, frozen=True):
    """The words of one text: its distinct tokens in ascending order, and the count of each."""

    tokens: list[int]
    counts: bytes
    length: int


class QueryTerm(Struct, frozen=True):
    """A word of a question."""

    word: str
    token: int
    repeats: int


@dataclass(frozen=True)
class WordStatistics:
    """The statistics over a user's rows that BM25 needs."""

    rows: int = 0
    total_length: int = 0
    having: Mapping[int, int] = field(default_factory=dict)  # token → rows that have it

    @property
    def average_length(self) -> float:
        """Tokens per row; 1 if there are none."""
        return self.total_length / self.rows if self.total_length else 1.0

    @property
    def fixed(self) -> float:
        """The part of the BM25 length norm that does not depend on the length."""
        return K1 * (1 - B)

    @property
    def by_length(self) -> float:
        """The part of the BM25 length norm per token of a text."""
        return K1 * B / self.average_length

    def held(self, terms: Sequence[QueryTerm]) -> list[QueryTerm]:
        """Return the terms that occur in any row, rarest first."""
        held = [term for term in terms if self.having.get(term.token)]
        return sorted(held, key=lambda term: self.having[term.token])

    def weight(self, term: QueryTerm) -> float:
        """Return the most a term can add to a score; rare terms weigh more."""
        having = self.having.get(term.token, 0)
        return term.repeats * (K1 + 1) * math.log1p((self.rows - having + 0.5) / (having + 0.5))


def count_words(user: str, texts: Sequence[str]) -> list[WordCounts]:
    """Return the words of texts, as numbers that differ from user to user."""
    found = analyse(texts)
    tokens = (found.hashes ^ np.uint64(_key_of(user))).view(np.int64)
    order = np.lexsort((tokens, found.owners))
    tokens, owners = tokens[order], found.owners[order]
    is_first = np.ones(len(tokens), np.bool_)
    is_first[1:] = (tokens[1:] != tokens[:-1]) | (owners[1:] != owners[:-1])
    starts = np.flatnonzero(is_first)
    counts = np.minimum(np.diff(np.append(starts, len(tokens))), 255).astype(np.uint8)
    borders = np.searchsorted(owners[starts], np.arange(len(texts) + 1))
    distinct, lengths = tokens[starts], found.lengths.tolist()
    return [
        WordCounts(distinct[begin:end].tolist(), counts[begin:end].tobytes(), length)
        for begin, end, length in zip(borders[:-1], borders[1:], lengths, strict=True)
    ]


def terms_of(user: str, keywords: str) -> list[QueryTerm]:
    """Return the distinct words of a question, in order of first occurrence."""
    key, stem_hash = _key_of(user), stems_for(DEFAULT_LANGUAGE).stem_hash
    spelled: dict[int, list[str]] = {}
    for word in query_words(keywords):
        spelled.setdefault(_signed(stem_hash(word) ^ key), []).append(word)
    terms = [QueryTerm(words[0], token, len(words)) for token, words in spelled.items()]
    return terms[:MOST_TERMS]


class PoolWords:
    """BM25 scores of the rows of a pool: the part of a ``SparseIndex`` that ranking uses.

    The statistics must cover every word of a query.
    """

    def __init__(
        self, user: str, statistics: WordStatistics, counted: Sequence[WordCounts]
    ) -> None:
        self._user, self._statistics = user, statistics
        self._lengths = np.array([each.length for each in counted], np.float64)
        sizes = [len(each.tokens) for each in counted]
        self._owners = np.repeat(np.arange(len(counted)), sizes)
        self._tokens: Numbers = np.array([t for each in counted for t in each.tokens], np.int64)
        self._counts = np.frombuffer(b"".join(each.counts for each in counted), np.uint8)

    def __len__(self) -> int:
        return self._statistics.rows

    def holders(self, groups: Sequence[Sequence[str]], most: int) -> list[list[int]]:
        """Return for each group of words the rows of the pool that have all of them."""
        return [self._holding(group)[:most] for group in groups]

    def _holding(self, words: Sequence[str]) -> list[int]:
        held = np.ones(len(self._lengths), np.bool_)
        for term in terms_of(self._user, " ".join(words)):
            has = np.zeros(len(self._lengths), np.bool_)
            has[self._owners[self._tokens == term.token]] = True
            held &= has
        rows: list[int] = np.flatnonzero(held).tolist()
        return rows

    def gains(self, text: str, rows: Numbers) -> WordGains:
        """Return what each word of a query adds to the score of each row."""
        terms = self._statistics.held(terms_of(self._user, text))
        found = np.zeros((len(rows), len(terms)))
        for number, term in enumerate(terms):
            found[:, number] = self._gains_of(term)[rows]
        return WordGains(tuple(term.word for term in terms), found)

    def scores(self, text: str, rows: Numbers) -> Floats:
        """Return the score of each row for a query."""
        scores: Floats = self.gains(text, rows).gains.sum(axis=1)
        return scores

    def search(
        self, text: str, top_k: int, *, allow: NDArray[np.bool_] | None
    ) -> list[tuple[int, float]]:
        """Return the best allowed rows with their scores, best first, ties newest first."""
        scores = self.scores(text, np.arange(len(self._lengths)))
        if allow is not None:
            scores[~allow] = 0.0
        best = np.lexsort((-np.arange(len(scores)), -scores))[:top_k]
        return [(row, float(scores[row])) for row in best.tolist() if scores[row] > 0]

    def _gains_of(self, term: QueryTerm) -> Floats:
        at = np.flatnonzero(self._tokens == term.token)
        counts = np.zeros(len(self._lengths))
        counts[self._owners[at]] = self._counts[at]
        gains = self._lengths * self._statistics.by_length
        gains += self._statistics.fixed
        gains += counts
        np.divide(counts, gains, out=gains)
        gains *= self._statistics.weight(term)
        return gains


def _key_of(user: str) -> int:
    return int.from_bytes(blake2b(user.encode(), digest_size=8).digest())


def _signed(number: int) -> int:
    """Return an unsigned 64-bit number as signed: PostgreSQL has no unsigned ones."""
    return number - (1 << 64) if number >> 63 else number
