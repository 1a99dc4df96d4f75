"""A change of embedder during operation: old vectors are used until the new ones are complete.

Each user changes independently. A new index starts with the vectors of the embedder that has made
more of them. If that is the former one, everything is embedded again in the background. Each batch
is stored at once, so that an interruption loses little and other processes can use it. When no
vector is missing, the index switches in one step and the former vectors are removed. If the new
embedder fails, the former one stays in use and the next search tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from ...embedding import Embedder
from .background import AT_ONCE, BackgroundEmbedding
from .keeping import RecordText, StoredVectors, VectorKeeper

_RANDOM = Random()


class RenewableIndex(Protocol):
    """One user's index that still uses the former embedder."""

    async def texts(self) -> Sequence[RecordText] | None:
        """Return every text embedded in it; ``None`` once the index was dropped."""
        ...

    async def switch_embedder(self, keeper: VectorKeeper, known: StoredVectors) -> bool:
        """Switch to a keeper's vectors; return whether that succeeded.

        Vectors stored since ``known`` was read are read too. Any that are still missing are made.
        """
        ...


class Renewal:
    """The change from one keeper's vectors to another's."""

    def __init__(
        self,
        former: VectorKeeper,
        new: VectorKeeper,
        background: BackgroundEmbedding,
        random: Random = _RANDOM,
    ) -> None:
        self._former = former
        self._new = new
        self._background = background
        self._random = random

    async def choose(
        self, user: str, texts: Sequence[RecordText]
    ) -> tuple[VectorKeeper, StoredVectors]:
        """Return the keeper whose vectors a user's index starts with, and those vectors."""
        new = await self._new.known(user, texts)
        if self._new.missing(texts, new):
            former = await self._former.known(user, texts)
            if len(former.seqs) > len(new.seqs):
                return self._former, former
        return self._new, new

    def is_former(self, embedder: Embedder | None) -> bool:
        """Return whether this is the former embedder, so that its index still has to switch."""
        return embedder is self._former.embedder

    def keeper_of(self, embedder: Embedder | None) -> VectorKeeper:
        """Return the keeper of an embedder's vectors."""
        return self._former if self.is_former(embedder) else self._new

    async def run(self, user: str, index: RenewableIndex) -> None:
        """Embed every missing text, then switch the index to the new vectors."""
        before = -1
        while (texts := await index.texts()) is not None:
            known = await self._new.known(user, texts)
            missing = self._new.missing(texts, known)
            if not missing:
                if await index.switch_embedder(self._new, known):
                    await self._former.drop(user)
                return
            if len(missing) == before or not await self._embed(user, missing):
                return
            before = len(missing)

    async def _embed(self, user: str, missing: Sequence[RecordText]) -> bool:
        """Embed texts in random order, so that processes with the same work share it."""
        batches = [missing[start : start + AT_ONCE] for start in range(0, len(missing), AT_ONCE)]
        self._random.shuffle(batches)
        for batch in batches:
            if not await self._background.embed(user, batch):
                return False
        return True
