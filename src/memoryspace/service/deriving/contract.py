"""Deriving: what was said becomes what is known. A deriver only decides; the service does.

A deriver reads the raw memories of one job and what the store knows already, and returns
decisions. These are written down before any of them is carried out, so a crash repeats decisions,
never the thinking.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ...errors import InvalidInput
from ..values.memory import Draft, MemoryItem


class Add(Struct, frozen=True, tag="add"):
    """Remember something new. Its ``origin.derived_from`` names the memories it comes from."""

    draft: Draft


class Supersede(Struct, frozen=True, tag="supersede"):
    """What ``id`` says no longer holds from ``valid_to`` on; ``draft`` says what does."""

    id: str
    draft: Draft
    valid_to: float


class Adjust(Struct, frozen=True, tag="adjust"):
    """Change a memory that is there: merge ``details`` into its own; add to its counters.

    A dict among the details is merged member by member; a member that becomes ``None`` goes.
    ``counters`` are added to the numbers of the same names in its details (0 if absent), so two
    who count at the same time are both counted. ``text`` and ``importance`` replace if given.
    ``derived_from`` names the memories this comes from; all of the job's if it is empty.
    """

    id: str
    details: Mapping[str, Any] = {}
    counters: Mapping[str, float] = {}
    text: str | None = None
    importance: float | None = None
    derived_from: tuple[str, ...] = ()


class Drop(Struct, frozen=True, tag="drop"):
    """Delete a derived memory: it was merged into another, or has proved worthless.

    ``derived_from`` is as in ``Adjust``.
    """

    id: str
    derived_from: tuple[str, ...] = ()


Decision: TypeAlias = Add | Supersede | Adjust | Drop


class BadDecision(InvalidInput):
    """A deriver decided something that cannot be done; it is told without what users said."""


class Known(Protocol):
    """What a deriver may ask of the user's memory. Only valid, unquarantined ones are told."""

    async def similar(
        self, text: str, *, kinds: Sequence[str], top_k: int = 5
    ) -> list[tuple[MemoryItem, float]]:
        """Return memories like a text, the likest first, each with its likeness from 0 to 1.

        Likeness is that of the two texts alone (shared words, or vectors), not a search score.
        """

    async def of_kind(self, kind: str, *, limit: int = 1000) -> list[MemoryItem]:
        """Return the newest memories of a kind, in the order they were made."""

    async def get(self, memory_id: str) -> MemoryItem | None:
        """Return one memory."""

    async def there(self, memory_ids: Collection[str]) -> set[str]:
        """Return which of these memories are there, whatever their state."""


class Job(Struct, frozen=True, kw_only=True):
    """Raw memories to derive from, in the order they were said; ``details`` are the caller's

    (a trajectory's score, a tool's name). ``now`` is when the job is done, ``zone`` is UTC.
    """

    id: str
    user_id: str
    session_id: str
    memories: Sequence[MemoryItem]
    details: Mapping[str, Any] = {}
    now: float


@runtime_checkable
class Deriver(Protocol):
    """Decides what to remember beyond the words. Must be safe to run again for the same job."""

    @property
    def name(self) -> str:
        """Who it is; kept as the author of what it derives, and with what is still to be done.

        What follows a slash (with which model it thinks) may change: jobs stay its own.
        """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of memories it makes."""

    @property
    def is_quick(self) -> bool:
        """Whether it takes milliseconds, so that whoever adds may wait for it."""

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return what to remember. Raises ``ModelUnavailable`` for what may pass."""


@runtime_checkable
class Selective(Protocol):
    """A deriver that can tell beforehand whether there is something in it for it.

    It is asked where several derivers share a service: what does not concern it costs nothing.
    """

    def concerns(self, memories: Sequence[MemoryItem], details: Mapping[str, Any]) -> bool:
        """Tell whether something may be derived from what is about to be stored, at once."""


@runtime_checkable
class AboutPeople(Protocol):
    """A deriver whose memories are an index over what people told of themselves."""

    @property
    def is_about_people(self) -> bool:
        """Whether searches should be about what was said, with what it has made of it."""
