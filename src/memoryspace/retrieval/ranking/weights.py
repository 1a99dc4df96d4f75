"""``Ranking``: the weights of the signals and the limits of a search, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from msgspec import Struct
from msgspec.structs import replace

from ...errors import InvalidInput
from ...record import is_number

SIGNALS = frozenset(
    {
        *("words", "words with the reply", "words around it", "words in the session"),
        *("meaning", "meaning with the reply", "meaning around it", "meaning in the session"),
        *("speaker", "user", "states something", "length", "instruction", "preference"),
        *("time word", "number", "date", "date said", "phrase", "importance", "recency"),
        *("named", "bridge", "names the best", "shares a name"),
    }
)


class Ranking(Struct, frozen=True, kw_only=True):
    """The weights of the signals and the limits of a search.

    Attributes:
        words: Weights for searches by words alone.
        words_and_vectors: Weights for searches with vectors.
        always: Weights for both.
        whole: Up to this many allowed entries, all are scored.
        candidates: Above that, the best of each arm that are scored, with their neighbours.
        half_life: The seconds in which recency halves.
        seeds: How many of the best may lead to other entries by name.
        scan: How many candidates are searched for the names of these.
        reranked: How many candidates a reranker reads.
        diversity: From 0 to 1: how much it counts against an entry that it repeats a better one.
        overview: Whether questions for an order, a summary or a full list are answered in order
            of time.

    Raises:
        InvalidInput: If a signal is unknown or a number out of range.

    Example::

        ranking = default_ranking().without("instruction")
        recall.search("tea", ranking=ranking)
    """

    words: Mapping[str, float]
    words_and_vectors: Mapping[str, float]
    always: Mapping[str, float]
    whole: int = 1000
    candidates: int = 100
    half_life: float = 30 * 86400.0
    seeds: int = 10
    scan: int = 50
    reranked: int = 50
    diversity: float = 0.0
    overview: bool = True

    def __post_init__(self) -> None:
        for weights in (self.words, self.words_and_vectors, self.always):
            for name, weight in weights.items():
                _check(_known(name), weight)
        for name in ("whole", "candidates", "seeds", "scan", "reranked"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {getattr(self, name)}")
        if not 0 <= self.diversity <= 1:
            raise InvalidInput(f"diversity must be from 0 to 1, got {self.diversity}")
        if not self.half_life > 0:
            raise InvalidInput(f"half_life must be above 0 seconds, got {self.half_life}")

    def weights(self, *, with_vectors: bool) -> dict[str, float]:
        """Return the weights for searches with or without vectors."""
        return {**(self.words_and_vectors if with_vectors else self.words), **self.always}

    def only(self, *names: str) -> Ranking:
        """Return a ranking by these signals alone, without overviews."""
        known = {**self.words, **self.words_and_vectors, **self.always}
        chosen = {name: known.get(name, 1.0) for name in map(_known, names)}
        return replace(self, words=chosen, words_and_vectors=chosen, always={}, overview=False)

    def without(self, *names: str) -> Ranking:
        """Return a ranking without these signals."""
        names = tuple(map(_known, names))
        return replace(
            self,
            words=_less(self.words, names),
            words_and_vectors=_less(self.words_and_vectors, names),
            always=_less(self.always, names),
        )


@cache
def default_ranking() -> Ranking:
    """Return the ranking that ships with the package, tuned by ``tools/tune_recall.py``."""
    data = json.loads(files(__package__).joinpath("weights.json").read_text("utf-8"))
    return Ranking(
        words=data["words"], words_and_vectors=data["words and vectors"], always=data["always"]
    )


def _check(name: str, weight: float) -> None:
    if not is_number(weight):
        raise InvalidInput(f"the weight of {name!r} must be a number, got {weight!r}")


def _known(name: str) -> str:
    if name not in SIGNALS:
        raise InvalidInput(f"unknown signal {name!r}; use one of {', '.join(sorted(SIGNALS))}")
    return name


def _less(weights: Mapping[str, float], names: tuple[str, ...]) -> dict[str, float]:
    return {name: weight for name, weight in weights.items() if name not in names}
