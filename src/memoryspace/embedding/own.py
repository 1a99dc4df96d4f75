"""A function of one's own as an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from .contract import Vectors, check_texts, unit_rows


class CallableEmbedder:
    """Any function from a list of texts to a vector for each. ``name`` names the vector space.

    The function never sees blank texts: these get zeros.
    """

    def __init__(
        self,
        function: Callable[[list[str]], ArrayLike],
        name: str,
        dimensions: int,
        *,
        scripts: frozenset[str] | None = None,
    ) -> None:
        if not name or dimensions < 1:
            raise InvalidInput(
                f"a name and 1 or more dimensions are needed, got {name!r} and {dimensions}"
            )
        self._function = function
        self.name = name
        self.dimensions = dimensions
        self.scripts = scripts

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what the function gives, at length 1."""
        checked = check_texts(texts)
        said = [number for number, text in enumerate(checked) if text.strip()]
        rows = np.zeros((len(checked), self.dimensions), np.float32)
        if said:
            vectors = self._function([checked[number] for number in said])
            rows[said] = unit_rows(vectors, len(said), self.dimensions, self.name)
        return rows
