"""``VectorKeeper``: vectors kept in the store, read before anything is embedded, written after.

The store is a cache of vectors. If it does not answer, or a vector does not unpack or arrives too
late, the text is embedded again. A warning is logged; searches still answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from ...embedding import Embedder, can_rank
from ...errors import MemorySpaceError
from ...record import Record, could_be_id
from ...retrieval.entries import embedded_text
from ...store.vectors import KeepsVectors, Place, place_of
from .contract import EntryOf
from .packed import Vector, pack, unpack

logger = logging.getLogger(__name__)

AT_ONCE = 2000  # vectors read or written in one call
FEW = 50  # vectors that are unpacked without a thread

T = TypeVar("T")


class RecordText(NamedTuple):
    """The text of a record that is embedded, and the record's place."""

    place: Place
    text: str


class StoredVectors(NamedTuple):
    """Vectors found in the store, by text, and the seqs of the records that have one."""

    vectors: dict[str, Vector]
    seqs: set[int]


class VectorKeeper:
    """The vectors of a store in the space of one embedder."""

    def __init__(self, store: KeepsVectors, embedder: Embedder) -> None:
        self.embedder = embedder
        self._store = store
        self._space = space_of(embedder)
        self._unwritten: dict[tuple[str, int], tuple[str, Vector]] = {}  # being written
        self._warned = False

    async def known(self, user: str, texts: Sequence[RecordText]) -> StoredVectors:
        """Return the vectors of texts that are stored or being written."""
        known, wanted = StoredVectors({}, set()), list[RecordText]()
        for each in texts:
            pending = self._unwritten.get((user, each.place.seq))
            if pending is not None and pending[0] == each.text:
                known.vectors[each.text] = pending[1]
                known.seqs.add(each.place.seq)
            elif can_rank(self.embedder.scripts, each.text):
                wanted.append(each)
        for part in _batches(wanted):
            try:
                kept = await self._store.vectors(user, self._space, [each.place for each in part])
            except (MemorySpaceError, OSError) as error:
                self._warn("read", error)
                break
            await here_or_in_thread(len(kept), partial(self._unpack, part, kept, known))
        return known

    def missing(self, texts: Iterable[RecordText], known: StoredVectors) -> list[RecordText]:
        """Return the texts without a vector that the embedder can rank."""
        return [
            each
            for each in texts
            if each.place.seq not in known.seqs and can_rank(self.embedder.scripts, each.text)
        ]

    def keep(self, user: str, made: Mapping[RecordText, Vector]) -> Coroutine[Any, Any, None]:
        """Store vectors whose memories still exist.

        ``known`` returns them from this call on, before the returned coroutine is awaited, so that
        a search in between does not embed them again.
        """
        pending = {(user, each.place.seq): (each.text, made[each]) for each in made}
        self._unwritten.update(pending)
        return self._write(user, made, pending)

    async def drop(self, user: str) -> None:
        """Remove a user's vectors in this space from the store."""
        try:
            await self._store.drop_vectors(user, self._space)
        except (MemorySpaceError, OSError) as error:
            self._warn("dropped", error)

    async def _write(
        self, user: str, made: Mapping[RecordText, Vector], pending: Iterable[tuple[str, int]]
    ) -> None:
        try:
            for part in _batches([*made]):
                packed = await here_or_in_thread(len(part), partial(self._packed, part, made))
                await self._store.put_vectors(user, self._space, packed)
        except (MemorySpaceError, OSError) as error:
            self._warn("written", error)
        finally:
            for key in pending:
                self._unwritten.pop(key, None)

    def _unpack(
        self, texts: Sequence[RecordText], kept: Mapping[int, bytes], known: StoredVectors
    ) -> None:
        for place, text in texts:
            if place.seq in kept:
                vector = unpack(kept[place.seq], self._space, text, self.embedder.dimensions)
                if vector is not None:
                    known.vectors[text] = vector
                    known.seqs.add(place.seq)

    def _packed(
        self, texts: Sequence[RecordText], made: Mapping[RecordText, Vector]
    ) -> dict[Place, bytes]:
        return {each.place: pack(made[each], self._space, each.text) for each in texts}

    def _warn(self, what: str, error: Exception) -> None:
        level = logging.DEBUG if self._warned else logging.WARNING
        logger.log(level, "vectors could not be %s and are embedded again: %s", what, error)
        self._warned = True


async def here_or_in_thread(number: int, work: Callable[[], T]) -> T:
    """Run work on a few items at once, on more of them in a thread."""
    return work() if number <= FEW else await asyncio.to_thread(work)


def _batches(texts: Sequence[RecordText]) -> Iterator[Sequence[RecordText]]:
    return (texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE))


def texts_of(records: Iterable[Record], entry_of: EntryOf) -> list[RecordText]:
    """Return the texts to embed, of the records that can be found."""
    found = ((record, entry_of(record)) for record in records)
    return [
        RecordText(place_of(record), embedded_text(entry))
        for record, entry in found
        if entry is not None
    ]


def space_of(embedder: Embedder) -> str:
    """Return the name under which an embedder's vectors are stored."""
    if could_be_id(embedder.name):
        return embedder.name
    name = embedder.name.encode("utf-8", "surrogatepass")
    return f"embedder-{blake2b(name, digest_size=16).hexdigest()}"
