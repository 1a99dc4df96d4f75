"""The deriver contract: jobs in, decisions out. A deriver decides; the service executes.

A deriver reads the raw memories of one job and what is already known, and returns decisions. The
service stores the decisions before it executes any of them, so a crash repeats their execution,
never the derivation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ...errors import InvalidInput
from ..values.memory import Draft, MemoryItem


class Add(Struct, frozen=True, tag="add"):
    """Add a new memory. ``draft.origin.derived_from`` names the memories it comes from."""

    draft: Draft


class Supersede(Struct, frozen=True, tag="supersede"):
    """Replace memory ``id``, which no longer holds from ``valid_to`` on, by ``draft``."""

    id: str
    draft: Draft
    valid_to: float


class Adjust(Struct, frozen=True, tag="adjust"):
    """Change an existing memory: merge ``details`` into its details, add to its counters.

    A dict among the details is merged member by member; a member set to ``None`` is removed.
    ``counters`` are added to the numbers of the same names in the details (0 if absent), so
    concurrent increments both count. ``text`` and ``importance`` replace the old values if given.
    ``derived_from`` names the source memories; if empty, all memories of the job.
    """

    id: str
    details: Mapping[str, Any] = {}
    counters: Mapping[str, float] = {}
    text: str | None = None
    importance: float | None = None
    derived_from: tuple[str, ...] = ()


class Drop(Struct, frozen=True, tag="drop"):
    """Delete a derived memory that was merged into another or proved useless.

    ``derived_from`` means the same as in ``Adjust``.
    """

    id: str
    derived_from: tuple[str, ...] = ()


Decision: TypeAlias = Add | Supersede | Adjust | Drop


class BadDecision(InvalidInput):
    """A deriver returned a decision that cannot be executed. The message quotes no user text."""


class Known(Protocol):
    """The queries a deriver may make. Superseded and quarantined memories are left out.

    Memories that wait for approval (``is_waiting``) are shown as if they were approved.
    """

    async def similar(
        self, text: str, *, kinds: Sequence[str], top_k: int = 5
    ) -> list[tuple[MemoryItem, float]]:
        """Return memories similar to ``text``, most similar first, with a similarity of 0 to 1.

        The similarity compares the two texts alone (shared words or vectors). It is not a search
        score.
        """

    async def of_kind(self, kind: str, *, limit: int = 1000) -> list[MemoryItem]:
        """Return the newest memories of a kind, oldest first."""

    async def get(self, memory_id: str) -> MemoryItem | None:
        """Return a memory by its id, or ``None``."""

    async def there(self, memory_ids: Collection[str]) -> set[str]:
        """Return which of these memories exist, whatever their state."""


class Job(Struct, frozen=True, kw_only=True):
    """The raw memories to derive from, in conversation order.

    ``details`` come from the caller, such as a trajectory's score or a tool's name. ``now`` is the
    time of derivation, as seconds since 1970 (UTC). New memories of the ``reviewed`` kinds wait for
    approval.
    """

    id: str
    user_id: str
    session_id: str
    memories: Sequence[MemoryItem]
    details: Mapping[str, Any] = {}
    now: float
    reviewed: frozenset[str] = frozenset()


@runtime_checkable
class Deriver(Protocol):
    """Derives memories from raw messages. Must be safe to run again for the same job.

    Examples:
        >>> class Headlines:
        ...     name, kinds, is_quick = "headlines", ("headline",), True
        ...
        ...     async def derive(self, job, known):
        ...         lines = [memory.text.partition("\\n")[0] for memory in job.memories]
        ...         return [Add(Draft(value=line, text=line, kind="headline")) for line in lines]
    """

    @property
    def name(self) -> str:
        """Its name, stored as the author of derived memories and as the owner of pending jobs.

        The part after a slash names the model. It may change; the deriver keeps its jobs.
        """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of memories it derives."""

    @property
    def is_quick(self) -> bool:
        """Whether it takes milliseconds, so that ``add_memory`` can wait for it."""

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return decisions for a job.

        Args:
            job: The raw memories to derive from.
            known: Queries over what is already known about the user.

        Raises:
            ModelUnavailable: The model cannot be reached now; the job is retried later.
        """


@runtime_checkable
class Selective(Protocol):
    """A deriver that can decline memories before a job is created.

    It is asked only if several derivers share a service, so that irrelevant messages cost nothing.
    """

    def concerns(self, memories: Sequence[MemoryItem], details: Mapping[str, Any]) -> bool:
        """Return whether these memories may yield anything. Must be fast."""


@runtime_checkable
class Renewing(Protocol):
    """A deriver that sums up its own memories, and does so again when some are approved."""

    async def renew(self, job: Job, known: Known, changed: Sequence[MemoryItem]) -> list[Decision]:
        """Return decisions after these memories were approved, superseded or undone.

        ``known`` shows only what is approved.
        """


@runtime_checkable
class AboutPeople(Protocol):
    """A deriver whose memories index what people said about themselves."""

    @property
    def is_about_people(self) -> bool:
        """Whether a search returns messages together with the facts derived from them."""
