"""What a service answers, beside memories themselves."""

from __future__ import annotations

from msgspec import Struct

from ..retrieval.hits import Why
from .memory import MemoryItem


class MemoryHit(Struct, frozen=True):
    """A memory that was found. ``score`` is its relevance, how likely it answers, from 0 to 1: it
    compares between searches, and does not rise along the hits of one.

    A personal service tells with a message what is known from it: its ``facts``, those which no
    longer hold among them (``valid_to``). ``superseded_by`` is the message that says otherwise
    since, where one does.
    """

    memory: MemoryItem
    score: float
    why: Why | None = None
    facts: tuple[MemoryItem, ...] = ()
    superseded_by: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing that was said since contradicts it."""
        return self.superseded_by is None


class Page(Struct, frozen=True):
    """Some memories in the order of time. ``cursor`` leads to the next; ``None`` at the end."""

    memories: tuple[MemoryItem, ...]
    cursor: str | None


class Deleted(Struct, frozen=True):
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


class Erasure(Struct, frozen=True):
    """What is left of a user: records of each kind in the store, entries in the index."""

    user_id: str
    records: dict[str, int]
    indexed: int

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return not any(self.records.values()) and self.indexed == 0

    def __bool__(self) -> bool:
        return self.is_complete


class Status(Struct, frozen=True):
    """How far derivation is for a user: jobs that wait or run, and those that were given up.

    ``errors`` says of each failed job, by its id, what went wrong the last time.
    """

    pending: int
    failed: int
    errors: dict[str, str]

    @property
    def is_settled(self) -> bool:
        """Whether everything that can be derived is."""
        return self.pending == 0
