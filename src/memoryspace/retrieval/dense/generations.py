"""Vectors of several embedding models side by side, never mixed.

A generation is one vector space: a name and a number of dimensions. One generation serves all
searches. Another can be filled meanwhile; it takes over in one step, and only once it has a vector
for everything the serving one has. So the model can change without downtime, and no search mixes
the two. There is no lock; allow one caller at a time, as for the indexes inside.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import CorruptData, InvalidInput
from ...files import safe_name, write_atomic
from .index import EXACT_UP_TO, DenseIndex
from .rows import Keys

HEADER = "generations.json"


class Generations:
    """Dense indexes by the name of their vector space, one of which serves searches.

    Args:
        exact_up_to: Passed on to each ``DenseIndex``.

    Example::

        generations = Generations()
        generations.begin("model-1", dimensions=384)  # the first one serves at once
        generations.add("model-1", 7, vector)
    """

    def __init__(self, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self.exact_up_to = exact_up_to
        self._indexes: dict[str, DenseIndex] = {}
        self._serving: str | None = None

    @property
    def serving(self) -> str | None:
        """The name of the generation that serves searches; ``None`` if there is none yet."""
        return self._serving

    @property
    def indexes(self) -> Mapping[str, DenseIndex]:
        """All generations by name, read-only."""
        return MappingProxyType(self._indexes)

    def __len__(self) -> int:
        """The number of vectors in service."""
        return len(self._indexes[self._serving]) if self._serving is not None else 0

    def begin(self, name: str, dimensions: int) -> None:
        """Create a generation, or continue with an existing one. The first one serves at once.

        Raises:
            InvalidInput: If the name is empty, or known with other dimensions.
        """
        if not name:
            raise InvalidInput("a generation needs a name with the model and its version")
        known = self._indexes.get(name)
        if known is None:
            self._indexes[name] = DenseIndex(dimensions, exact_up_to=self.exact_up_to)
        elif known.dimensions != dimensions:
            raise InvalidInput(
                f"generation {name!r} has {known.dimensions} dimensions, not {dimensions}; "
                "use another name for another model"
            )
        if self._serving is None:
            self._serving = name

    def restore(self, name: str, index: DenseIndex) -> None:
        """Put a saved index in the place of a generation that is still empty."""
        assert not len(self._index(name)), f"generation {name!r} has vectors already"
        self._indexes[name] = index

    def add(self, name: str, key: int, vector: ArrayLike) -> None:
        """Store a vector made by the model of this generation."""
        self._index(name).add(key, vector)

    def add_many(self, name: str, keys: Sequence[int] | Keys, vectors: ArrayLike) -> None:
        """Store vectors made by the model of this generation, all or none."""
        self._index(name).add_many(keys, vectors)

    def remove(self, key: int) -> bool:
        """Remove a key from every generation; return whether any had it."""
        removed = [index.remove(key) for index in self._indexes.values()]
        return any(removed)

    def pending(self, name: str, keys: Sequence[int] | Keys | None = None) -> Keys:
        """Return the keys that a generation lacks, of those given or of all in service."""
        index = self._index(name)
        serving = self._indexes[self._serving] if self._serving is not None else index
        asked = np.asarray(keys, np.int64) if keys is not None else serving.keys()
        return asked[~index.has(asked)]

    def switch(self, name: str) -> None:
        """Make a generation serve searches. The previous one stays until it is dropped.

        Raises:
            InvalidInput: If it lacks a vector that the serving generation has.
        """
        missing = self.pending(name)
        if len(missing):
            raise InvalidInput(
                f"generation {name!r} lacks {len(missing)} of the vectors in service "
                f"(key {missing[0]}, for example); embed the keys of pending() first"
            )
        self._serving = name

    def drop(self, name: str) -> None:
        """Delete a generation that does not serve."""
        self._index(name)
        if name == self._serving:
            raise InvalidInput(f"generation {name!r} is serving; switch() to another one first")
        del self._indexes[name]

    def search(
        self,
        name: str,
        vector: ArrayLike,
        top_k: int = 5,
        *,
        allow: NDArray[np.bool_] | None = None,
        among: Sequence[int] | Keys | None = None,
        exact: bool = False,
    ) -> list[tuple[int, float]]:
        """Search the serving generation; see ``DenseIndex.search``.

        Raises:
            InvalidInput: If ``name``, the generation that the query vector belongs to, does not
                serve.
        """
        index = self._of_query(name)
        return index.search(vector, top_k, allow=allow, among=among, exact=exact)

    def scores(
        self, name: str, vector: ArrayLike, keys: Sequence[int] | Keys
    ) -> NDArray[np.float64]:
        """Return the exact cosines in the serving generation, 0 for a key it lacks."""
        return self._of_query(name).scores(vector, keys)

    @property
    def nbytes(self) -> int:
        """The bytes that all generations take."""
        return sum(index.nbytes for index in self._indexes.values())

    def check(self) -> None:
        """Verify every invariant. Reads everything; meant for tests."""
        assert (self._serving is None) == (not self._indexes)
        assert self._serving is None or self._serving in self._indexes
        for index in self._indexes.values():
            index.check()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every generation into a subfolder, then the name of the serving one."""
        root = Path(folder)
        for name, index in self._indexes.items():
            index.save(root / safe_name(name))
        root.mkdir(parents=True, exist_ok=True)
        header = {"serving": self._serving, "names": list(self._indexes)}
        write_atomic(root / HEADER, json.dumps(header, ensure_ascii=False).encode())

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        verify: bool = True,
        exact_up_to: int = EXACT_UP_TO,
    ) -> Generations:
        """Open saved generations; see ``DenseIndex.load``."""
        root = Path(folder)
        found = cls(exact_up_to=exact_up_to)
        names, found._serving = _read_header(root / HEADER)
        for name in names:
            found._indexes[name] = DenseIndex.load(
                root / safe_name(name), verify=verify, exact_up_to=exact_up_to
            )
        return found

    def _index(self, name: str) -> DenseIndex:
        if name not in self._indexes:
            known = ", ".join(map(repr, self._indexes)) or "none"
            raise InvalidInput(f"there is no generation {name!r} (known: {known}); begin() it")
        return self._indexes[name]

    def _of_query(self, name: str) -> DenseIndex:
        if name != self._serving:
            raise InvalidInput(
                f"the query vector is of generation {name!r}, but {self._serving!r} is serving; "
                "embed the query with that model"
            )
        return self._indexes[name]


def _read_header(path: Path) -> tuple[list[str], str | None]:
    try:
        header = json.loads(path.read_bytes())
        names, serving = header["names"], header["serving"]
    except FileNotFoundError:
        raise FileNotFoundError(f"there are no generations saved in {path.parent}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{path} cannot be read; restore it or embed everything again") from error
    if (serving is None) != (not names) or (names and serving not in names):
        raise CorruptData(f"{path} names {serving!r} as serving, which was not saved")
    return names, serving
