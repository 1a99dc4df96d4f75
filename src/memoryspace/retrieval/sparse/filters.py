"""Filters of a search: all documents, those a callable accepts, or those of a mask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from .documents import Chosen, Documents

Allow = Callable[[int], bool] | NDArray[np.bool_]


class Mask:
    """A filter by an array of bool by key; keys beyond its end are not allowed."""

    def __init__(self, allowed: NDArray[np.bool_]) -> None:
        if allowed.dtype != np.bool_ or allowed.ndim != 1:
            raise InvalidInput(
                f"allow must be a callable or a flat array of bool by key, got an array of "
                f"{allowed.dtype} with {allowed.ndim} dimensions"
            )
        self._allowed = allowed
        self.count = int(np.count_nonzero(allowed))

    def slots(self, documents: Documents) -> Chosen:
        """Return the slots of all allowed documents; fast if these are few."""
        slots = documents.by_key.find(np.flatnonzero(self._allowed))
        return slots[slots >= 0]

    def marks(self, documents: Documents, slots: Chosen) -> NDArray[np.bool_]:
        """Return for each slot whether its document is allowed."""
        keys = documents.keys.take(slots)
        beyond = np.uint64(len(self._allowed))
        marks = self._allowed.take(np.minimum(keys, beyond - np.uint64(1)).view(np.int64))
        marks &= keys < beyond
        return marks

    def share(self, documents: Documents) -> float:
        """Return the approximate share of documents that are allowed, from 0 to 1."""
        return min(1.0, self.count / max(1, documents.count))


class Predicate:
    """A filter by a callable, which is called once per key even if a search goes deeper."""

    def __init__(self, allow: Callable[[int], bool]) -> None:
        self._allow = allow
        self._answers: dict[int, bool] = {}

    def first(self, top_k: int, found: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
        """Return the first ``top_k`` allowed results."""
        chosen: list[tuple[int, float]] = []
        for key, score in found:
            if self._is_allowed(key):
                chosen.append((key, score))
                if len(chosen) == top_k:
                    break
        return chosen

    def _is_allowed(self, key: int) -> bool:
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = bool(self._allow(key))
        return answer


def filter_of(allow: Any) -> Mask | Predicate | None:
    """Return the filter for a caller's ``allow`` argument."""
    if allow is None:
        return None
    if isinstance(allow, np.ndarray):
        return Mask(allow)
    if not callable(allow):
        raise TypeError(
            f"allow must be a callable or a numpy array of bool by key, got {type(allow).__name__}"
        )
    return Predicate(allow)
