"""Streams: texts arrive, and now and then a query asks for an earlier one.

No trace tells us the realistic age of queried texts, so we state a mixture: half of the queries are
recent (the probability of an age falls as 1 / age, the law of practice and forgetting), three in
ten ask for anything in the whole history, and two in ten ask for core facts, a fixed hundredth of
all texts.
"""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RECENT, ANY = 0.5, 0.3  # shares of the queries; the rest ask for core facts
CORE = 0.01  # of all texts
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class Query:
    """A query, and the numbers of the texts that are right; all of them came before."""

    id: str
    text: str
    right: tuple[int, ...]
    category: str = ""


@dataclass(frozen=True)
class Stream:
    """Texts in arrival order, and the queries after each, by its number."""

    texts: Sequence[str]
    asked: Mapping[int, Sequence[Query]]

    @property
    def queries(self) -> int:
        """Return the number of queries."""
        return sum(map(len, self.asked.values()))


class Targets:
    """Draws which text a query asks for."""

    def __init__(self, count: int, draw: random.Random) -> None:
        self._draw = draw
        self._core = sorted(draw.sample(range(count), max(1, int(count * CORE))))

    def pick(self, now: int) -> tuple[str, int]:
        """Return the reason and the number of a text, of those up to ``now``."""
        share = self._draw.random()
        if share < RECENT:
            age = int(math.exp(self._draw.random() * math.log(now + 1)))
            return "recent", max(0, now - age + 1)
        known = bisect_left(self._core, now + 1)
        if share < RECENT + ANY or not known:
            return "any", self._draw.randint(0, now)
        return "core", self._core[int(known * self._draw.random() ** 2)]


def chunks(text: str, size: int, overlap: int) -> list[str]:
    """Cut a text into overlapping pieces of this many characters."""
    return [text[at : at + size] for at in range(0, max(1, len(text) - overlap), size - overlap)]


def age_class(age: int) -> str:
    """Return an age, in later texts, as a class by powers of ten."""
    if age < 10:
        return "age below 10"
    power = 10 ** int(math.log10(age) + 1e-9)
    return f"age {power:,} to {power * 10:,}"


def words_of(text: str, count: int, draw: random.Random) -> str:
    """Return this many different words of a text, in order; fewer if it has fewer."""
    found = list(dict.fromkeys(_WORD.findall(text.lower())))
    chosen = set(draw.sample(found, min(count, len(found))))
    return " ".join(word for word in found if word in chosen)


def stream_of(
    texts: Sequence[str], ask: Callable[[int, random.Random], str], *, every: int, seed: int
) -> Stream:
    """Query one earlier text after every few texts; ``ask`` writes the query, or ""."""
    draw = random.Random(f"stream {seed}")
    targets = Targets(len(texts), draw)
    asked: dict[int, list[Query]] = {}
    for now in range(every - 1, len(texts), every):
        why, number = targets.pick(now)
        query = ask(number, draw)
        if query:
            asked[now] = [Query(f"{why}-{now}", query, (number,), age_class(now - number))]
    return Stream(texts, asked)


def text_stream(texts: Sequence[str], *, every: int, words: int, seed: int) -> Stream:
    """Return a stream that queries texts by some of their words."""
    return stream_of(
        texts, lambda number, draw: words_of(texts[number], words, draw), every=every, seed=seed
    )
