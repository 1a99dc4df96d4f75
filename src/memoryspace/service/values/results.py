"""What a service answers, beside memories themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct

from ...portable import Portable, read_as
from ...retrieval.hits import Why
from ...retrieval.vector_arm import EmbedderStatus
from ...store.remains import Remainder
from .memory import MemoryItem


class MemoryHit(Portable, frozen=True):
    """A memory that was found. ``score`` is its relevance, how likely it answers, from 0 to 1: it
    compares between searches, and does not rise along the hits of one.

    A personal service tells with a message what is known from it: its ``facts``, those which no
    longer hold among them (``valid_to``). ``superseded_by`` is the message that says otherwise
    since, where one does. ``by_meaning`` is false where words alone were searched: there is no
    embedder, it cannot read the question, or it failed (``status`` tells). ``repeated`` are further
    messages with the same words by the same person.
    """

    _also: ClassVar[tuple[str, ...]] = ("holds",)

    memory: MemoryItem
    score: float
    why: Why | None = None
    facts: tuple[MemoryItem, ...] = ()
    superseded_by: str | None = None
    by_meaning: bool = True
    repeated: tuple[MemoryItem, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing that was said since contradicts it."""
        return self.superseded_by is None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the hit that ``to_dict`` told."""
        told = read_as(_HitTold, data, cls.__name__)
        return cls(
            MemoryItem.built(told.memory),
            told.score,
            told.why,
            tuple(map(MemoryItem.built, told.facts)),
            told.superseded_by,
            told.by_meaning,
            tuple(map(MemoryItem.built, told.repeated)),
        )


class _HitTold(Struct):
    """A hit as ``to_dict`` tells it."""

    memory: dict[str, Any]
    score: float
    why: Why | None = None
    facts: list[dict[str, Any]] = []
    superseded_by: str | None = None
    by_meaning: bool = True
    repeated: list[dict[str, Any]] = []


class Page(Portable, frozen=True):
    """Some memories in the order of time. ``cursor`` leads to the next; ``None`` at the end."""

    memories: tuple[MemoryItem, ...]
    cursor: str | None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the page that ``to_dict`` told."""
        told = read_as(_PageTold, data, cls.__name__)
        return cls(tuple(map(MemoryItem.built, told.memories)), told.cursor)


class _PageTold(Struct):
    """A page as ``to_dict`` tells it."""

    memories: list[dict[str, Any]]
    cursor: str | None


class Deleted(Portable, frozen=True):
    """What a deletion removed: memories that were said, what was derived from them, old versions.

    Counts as a number: ``int(deleted)`` is how many memories went, versions aside.
    """

    raw: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    versions: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all memories that are gone."""
        return self.raw + self.derived

    def __int__(self) -> int:
        return len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __bool__(self) -> bool:
        return bool(self.ids) or self.versions > 0


class Erasure(Portable, frozen=True):
    """What is left of a user: records of each kind in the store, entries in the index, vectors.

    ``remains`` says where bytes of what was deleted, by whomever, may still stand below the store,
    in a log or in parts of files that are yet to be used again, and until when.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_complete", "is_physical")

    user_id: str
    records: dict[str, int]
    indexed: int
    vectors: int = 0
    remains: tuple[Remainder, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left that anybody could ask for."""
        return not (any(self.records.values()) or self.indexed or self.vectors)

    @property
    def is_physical(self) -> bool:
        """Whether, besides, no byte is left in what the store itself writes."""
        return self.is_complete and not self.remains

    def __bool__(self) -> bool:
        return self.is_complete


class Status(Portable, frozen=True):
    """How far derivation is for a user: jobs that wait or run, and those that were given up.

    ``errors`` says of each failed job, by its id, what went wrong the last time. ``embedder`` tells
    who embeds what the user said, and whether that fails: then searches go by words alone.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_settled",)

    pending: int
    failed: int
    errors: dict[str, str]
    embedder: EmbedderStatus = EmbedderStatus(None)

    @property
    def is_settled(self) -> bool:
        """Whether everything that can be derived is."""
        return self.pending == 0
