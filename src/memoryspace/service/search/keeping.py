"""Vectors that outlive a process: read from the store before anything is embedded, written after.

They are a cache in every sense. A store that does not answer, vectors that do not read back and
such as come too late cost the work of embedding again, and nothing else: a warning is logged and
whoever asked gets an answer.
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
from ...retrieval.entries import Entry, embedded_text
from ...store.vectors import KeepsVectors, Place, place_of
from .packed import Vector, pack, unpack

logger = logging.getLogger(__name__)

EntryOf = Callable[[Record], Entry | None]

AT_ONCE = 2000  # vectors read or written in one call
FEW = 50  # vectors that are soon unpacked

T = TypeVar("T")


class Text(NamedTuple):
    """What of a record is embedded, and where it stands."""

    place: Place
    text: str


class Known(NamedTuple):
    """What is kept: vectors by text, and the seqs of the records that have one."""

    vectors: dict[str, Vector]
    seqs: set[int]


class VectorKeeper:
    """The vectors of a store in the space of one embedder."""

    def __init__(self, store: KeepsVectors, embedder: Embedder) -> None:
        self.embedder = embedder
        self._store = store
        self._space = space_of(embedder)
        self._unwritten: dict[tuple[str, int], tuple[str, Vector]] = {}  # what is on its way
        self._warned = False

    async def known(self, user: str, texts: Sequence[Text]) -> Known:
        """Return what is kept of texts, or is about to be."""
        known, wanted = Known({}, set()), list[Text]()
        for each in texts:
            coming = self._unwritten.get((user, each.place.seq))
            if coming is not None and coming[0] == each.text:
                known.vectors[each.text] = coming[1]
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

    def lacking(self, texts: Iterable[Text], known: Known) -> list[Text]:
        """Return the texts that are still to be embedded, of those that can be."""
        return [
            each
            for each in texts
            if each.place.seq not in known.seqs and can_rank(self.embedder.scripts, each.text)
        ]

    def keep(self, user: str, made: Mapping[Text, Vector]) -> Coroutine[Any, Any, None]:
        """Write vectors down, as far as their memories are still there.

        They are known from this call on, not only from when what it returns is awaited: else who
        asks in between would embed them again.
        """
        coming = {(user, each.place.seq): (each.text, made[each]) for each in made}
        self._unwritten.update(coming)
        return self._write(user, made, coming)

    async def drop(self, user: str) -> None:
        """Forget the vectors of a user in this space."""
        try:
            await self._store.drop_vectors(user, self._space)
        except (MemorySpaceError, OSError) as error:
            self._warn("dropped", error)

    async def _write(
        self, user: str, made: Mapping[Text, Vector], coming: Iterable[tuple[str, int]]
    ) -> None:
        try:
            for part in _batches([*made]):
                packed = await here_or_in_thread(len(part), partial(self._packed, part, made))
                await self._store.put_vectors(user, self._space, packed)
        except (MemorySpaceError, OSError) as error:
            self._warn("written", error)
        finally:
            for key in coming:
                self._unwritten.pop(key, None)

    def _unpack(self, texts: Sequence[Text], kept: Mapping[int, bytes], known: Known) -> None:
        for place, text in texts:
            if place.seq in kept:
                vector = unpack(kept[place.seq], self._space, text, self.embedder.dimensions)
                if vector is not None:
                    known.vectors[text] = vector
                    known.seqs.add(place.seq)

    def _packed(self, texts: Sequence[Text], made: Mapping[Text, Vector]) -> dict[Place, bytes]:
        return {each.place: pack(made[each], self._space, each.text) for each in texts}

    def _warn(self, what: str, error: Exception) -> None:
        level = logging.DEBUG if self._warned else logging.WARNING
        logger.log(level, "vectors were not %s, and are embedded again: %s", what, error)
        self._warned = True


async def here_or_in_thread(number: int, work: Callable[[], T]) -> T:
    """Do what takes no time to speak of here, else in a thread."""
    return work() if number <= FEW else await asyncio.to_thread(work)


def _batches(texts: Sequence[Text]) -> Iterator[Sequence[Text]]:
    return (texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE))


def texts_of(records: Iterable[Record], entry_of: EntryOf) -> list[Text]:
    """Return what of records is embedded; of those that cannot be found, nothing."""
    found = ((record, entry_of(record)) for record in records)
    return [
        Text(place_of(record), embedded_text(entry)) for record, entry in found if entry is not None
    ]


def space_of(embedder: Embedder) -> str:
    """Return the name that an embedder's vectors are kept under."""
    if could_be_id(embedder.name):
        return embedder.name
    said = embedder.name.encode("utf-8", "surrogatepass")
    return f"embedder-{blake2b(said, digest_size=16).hexdigest()}"
