"""``VectorsArm``: the vectors of an embedder, stored and compared in PostgreSQL.

Texts that the embedder cannot rank have no vector. When the embedder fails, one warning is logged
and searches continue without it for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from ....embedding import Embedder, can_rank, embed_questions, embed_texts
from ....retrieval.entries import embedded_text
from ....retrieval.vector_arm import EmbedderStatus
from ....store.contract import Clock
from .indexing import Arm, RecordToIndex
from .tables import vectors

logger = logging.getLogger(__name__)

Floats = NDArray[np.float32]
_Embed = Callable[[Sequence[str]], Floats]

REST_SECONDS = 30.0  # before an embedder that failed is tried again

_HEAD = 4  # bytes before the numbers of a vector


class VectorsArm(Arm):
    """The vectors of one embedder."""

    at_once = 200

    def __init__(self, embedder: Embedder, clock: Clock) -> None:
        self.embedder = embedder
        self.name = f"vectors {embedder.name}"
        self._clock = clock
        self._rests_until = -np.inf
        self._warned = False
        self._failures = 0
        self._last_error: str | None = None

    def status(self) -> EmbedderStatus:
        """Return the embedder's status. Of an error only its type: its text may quote a user."""
        return EmbedderStatus(self.embedder.name, self._failures, last_error=self._last_error)

    @property
    def rests(self) -> bool:
        """Whether the embedder failed a short while ago and is not tried again yet."""
        return self._clock() < self._rests_until

    async def vector_of(self, question: str) -> Floats | None:
        """Return the vector of a question, or ``None`` if this arm cannot rank by it."""
        return await asyncio.to_thread(self.vector_now, question)

    def vector_now(self, question: str) -> Floats | None:
        """Return ``vector_of`` at once. An embedder takes its time: call this in a thread."""
        if self.rests or not can_rank(self.embedder.scripts, question):
            return None
        made = self._embed([question], partial(embed_questions, self.embedder))
        return made[0] if made is not None and made[0].any() else None

    async def make(
        self, user: str, sources: Sequence[RecordToIndex]
    ) -> list[dict[str, Any]] | None:
        """Return the rows of records; ``None`` if the embedder fails."""
        texts = {each.record.seq: embedded_text(each.entry) for each in sources}
        seqs = [seq for seq, text in texts.items() if can_rank(self.embedder.scripts, text)]
        said = [texts[seq] for seq in seqs]
        embed = partial(self._embed, said, partial(embed_texts, self.embedder))
        made: Any = await asyncio.to_thread(embed) if seqs else []
        if made is None:
            return None
        space = self.embedder.name
        return [
            {"seq": seq, "space": space, "user_id": user, "vector": vector.tolist()}
            for seq, vector in zip(seqs, made, strict=True)
            if vector.any()  # a vector of zeros is similar to nothing
        ]

    async def add(self, on: AsyncConnection, rows: list[dict[str, Any]]) -> None:
        """Insert rows."""
        await on.execute(insert(vectors).on_conflict_do_nothing(), rows)

    def _embed(self, texts: Sequence[str], embed: _Embed) -> Floats | None:
        try:
            made = embed(texts)
            units = _units(made, len(texts), self.embedder)
        except Exception as error:  # any error: words can still answer
            if not self._warned:
                logger.warning(
                    "the embedder %s failed; searching by words only until it recovers: %r",
                    self.embedder.name,
                    type(error),
                )
            self._warned = True
            self._failures += 1
            self._last_error = type(error).__name__
            self._rests_until = self._clock() + REST_SECONDS
            return None
        self._last_error = None
        return units


def read_vectors(sent: Sequence[bytes]) -> Sequence[Floats]:
    """Return vectors of one space from the bytes that the database sends."""
    if not sent:
        return []
    rows = np.frombuffer(b"".join(sent), np.uint8).reshape(len(sent), -1)
    found = np.ascontiguousarray(rows[:, _HEAD:]).view(">f4").astype(np.float32)
    return list(found)


def _units(made: NDArray[Any], count: int, embedder: Embedder) -> Floats:
    found = np.asarray(made, np.float32)
    if found.shape != (count, embedder.dimensions) or not np.isfinite(found).all():
        raise ValueError(
            f"{embedder.name} must return {count} × {embedder.dimensions} finite numbers"
        )
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1), np.float32)
