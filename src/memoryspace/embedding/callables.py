"""``CallableEmbedder``: adapts a function to the ``Embedder`` protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from .contract import Vectors, check_texts, unit_rows


class CallableEmbedder:
    """An embedder that calls a function. Blank texts are not passed to it and get zeros.

    Args:
        function: Returns one vector for each text of a list.
        name: The name of the vector space.
        dimensions: The length of the vectors.
        scripts: The scripts that the vectors rank; None for all.

    Raises:
        InvalidInput: If the name is empty or ``dimensions`` is less than 1.

    Examples:
        >>> lengths = CallableEmbedder(lambda texts: [[len(text)] for text in texts], "length", 1)
        >>> lengths.embed(["soil"]).tolist()
        [[1.0]]
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
                f"name must not be empty and dimensions 1 or more, got {name!r} and {dimensions}"
            )
        self._function = function
        self.name = name
        self.dimensions = dimensions
        self.scripts = scripts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the function's vectors, scaled to length 1."""
        checked = check_texts(texts)
        said = [number for number, text in enumerate(checked) if text.strip()]
        rows = np.zeros((len(checked), self.dimensions), np.float32)
        if said:
            vectors = self._function([checked[number] for number in said])
            rows[said] = unit_rows(vectors, len(said), self.dimensions, self.name)
        return rows
