"""Results of service calls: hits, pages, deletions, erasure reports and derivation status."""

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
    """A memory found by a search.

    Attributes:
        memory: The memory.
        score: Its relevance from 0 to 1: how likely it answers the question. Scores are comparable
            between searches and never rise from one hit to the next.
        why: The reasons for its rank, if the search was asked to explain.
        facts: In a personal service, the facts derived from the message, including those that no
            longer hold (``valid_to``).
        superseded_by: The id of a later message that contradicts it, if there is one.
        by_meaning: False if only words were searched: there is no embedder, it cannot read the
            question, or it failed (see ``status``).
        repeated: Further messages with the same words by the same speaker.
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
        """Whether no later message contradicts it."""
        return self.superseded_by is None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the hit that ``to_dict`` wrote."""
        read = read_as(_HitFields, data, cls.__name__)
        return cls(
            MemoryItem.built(read.memory),
            read.score,
            read.why,
            tuple(map(MemoryItem.built, read.facts)),
            read.superseded_by,
            read.by_meaning,
            tuple(map(MemoryItem.built, read.repeated)),
        )


class _HitFields(Struct):
    """A hit as ``to_dict`` writes it."""

    memory: dict[str, Any]
    score: float
    why: Why | None = None
    facts: list[dict[str, Any]] = []
    superseded_by: str | None = None
    by_meaning: bool = True
    repeated: list[dict[str, Any]] = []


class Page(Portable, frozen=True):
    """One page of memories in the order of time.

    Attributes:
        memories: The memories on the page.
        cursor: Pass it on for the next page; ``None`` on the last page.
    """

    memories: tuple[MemoryItem, ...]
    cursor: str | None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the page that ``to_dict`` wrote."""
        read = read_as(_PageFields, data, cls.__name__)
        return cls(tuple(map(MemoryItem.built, read.memories)), read.cursor)


class _PageFields(Struct):
    """A page as ``to_dict`` writes it."""

    memories: list[dict[str, Any]]
    cursor: str | None


class Deleted(Portable, frozen=True):
    """What a deletion removed. ``int(deleted)`` is the number of memories, without versions.

    Attributes:
        raw: The ids of messages.
        derived: The ids of memories derived from them.
        versions: The number of old versions.
    """

    raw: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    versions: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all deleted memories."""
        return self.raw + self.derived

    def __int__(self) -> int:
        return len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __bool__(self) -> bool:
        return bool(self.ids) or self.versions > 0


class Erasure(Portable, frozen=True):
    """What is left of a user after a deletion. True if nothing is left.

    Attributes:
        user_id: The user.
        records: The number of records in the store, by kind.
        indexed: The number of entries in the index.
        vectors: The number of stored vectors.
        remains: Where bytes of deleted data, any user's, may still be below the store, such as in
            a log or in unused parts of files, and until when.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_complete", "is_physical")

    user_id: str
    records: dict[str, int]
    indexed: int
    vectors: int = 0
    remains: tuple[Remainder, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left that a query could return."""
        return not (any(self.records.values()) or self.indexed or self.vectors)

    @property
    def is_physical(self) -> bool:
        """Whether, in addition, no byte is left in what the store writes."""
        return self.is_complete and not self.remains

    def __bool__(self) -> bool:
        return self.is_complete


class Status(Portable, frozen=True):
    """The state of a user's derivation jobs and of the embedder.

    Attributes:
        pending: The number of jobs that wait or run.
        failed: The number of jobs that were given up.
        errors: The last error of each job that had one, by job id.
        embedder: Which embedder serves the user and whether it fails; searches then use words only.
        waiting: The number of derived memories that wait for approval.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_settled",)

    pending: int
    failed: int
    errors: dict[str, str]
    embedder: EmbedderStatus = EmbedderStatus(None)
    waiting: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether no job is pending."""
        return self.pending == 0
