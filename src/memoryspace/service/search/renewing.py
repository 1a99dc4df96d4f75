"""A change of the embedder while in use: former vectors serve until the new ones are made.

Each user changes alone. When a user's index is built, it takes the vectors of the embedder that has
made more of them. If that is the former one, everything is embedded anew in the background, some
texts at a time, and written down, so that whoever breaks off loses little, and another process
finds it. When nothing is lacking, the index goes over in one step and the former vectors are
forgotten. Where the new embedder fails, the former serves on; the next search tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from ...embedding import Embedder
from .background import AT_ONCE, Ahead
from .keeping import Known, Text, VectorKeeper

_RANDOM = Random()


class Renewable(Protocol):
    """The index of one user, which the former embedder serves."""

    async def texts(self) -> Sequence[Text] | None:
        """Return everything that is embedded in it; ``None`` once it is held no more."""
        ...

    async def go_over(self, keeper: VectorKeeper, known: Known) -> bool:
        """Take a keeper's vectors instead of the former ones; tell whether that was done.

        What came since these were read is read too, and what is lacking even then is embedded.
        """
        ...


class Renewal:
    """The change from one keeper's vectors to another's."""

    def __init__(
        self, former: VectorKeeper, new: VectorKeeper, ahead: Ahead, random: Random = _RANDOM
    ) -> None:
        self._former = former
        self._new = new
        self._ahead = ahead
        self._random = random

    async def choose(self, user: str, texts: Sequence[Text]) -> tuple[VectorKeeper, Known]:
        """Return whose vectors serve a user who has these texts, and what is known of them."""
        new = await self._new.known(user, texts)
        if self._new.lacking(texts, new):
            former = await self._former.known(user, texts)
            if len(former.seqs) > len(new.seqs):
                return self._former, former
        return self._new, new

    def serves(self, embedder: Embedder | None) -> bool:
        """Tell whether an index that has this embedder is still to be changed."""
        return embedder is self._former.embedder

    def keeper_of(self, embedder: Embedder | None) -> VectorKeeper:
        """Return who keeps what an embedder makes."""
        return self._former if self.serves(embedder) else self._new

    async def run(self, user: str, index: Renewable) -> None:
        """Embed all that is lacking, then let the new vectors serve."""
        before = -1
        while (texts := await index.texts()) is not None:
            known = await self._new.known(user, texts)
            lacking = self._new.lacking(texts, known)
            if not lacking:
                if await index.go_over(self._new, known):
                    await self._former.drop(user)
                return
            if len(lacking) == before or not await self._embed(user, lacking):
                return
            before = len(lacking)

    async def _embed(self, user: str, lacking: Sequence[Text]) -> bool:
        """Embed texts; those who do the same elsewhere at this moment are to begin elsewhere."""
        batches = [lacking[start : start + AT_ONCE] for start in range(0, len(lacking), AT_ONCE)]
        self._random.shuffle(batches)
        for batch in batches:
            if not await self._ahead.embed(user, batch):
                return False
        return True
