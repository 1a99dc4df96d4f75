"""``Searcher``: the interface between a service and an index, with its query and result types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from msgspec import Struct

from ...record import Record, Scope
from ...retrieval.conditions import ANYTHING, Condition
from ...retrieval.entries import Entry
from ...retrieval.hits import Why, WhyNot
from ...retrieval.vector_arm import EmbedderStatus

EntryOf = Callable[[Record], Entry | None]  # None: the record must not be found


class Query(Struct, frozen=True, kw_only=True):
    """A search request.

    ``only`` filters before ranking. With ``neighbours``, entries next to a match may be returned
    for its sake; without, every result matches by itself, by a word or by meaning.
    """

    text: str
    top_k: int
    only: Condition = ANYTHING
    now: float | None = None
    neighbours: bool = False
    explain: bool = False


class Found(Struct, frozen=True):
    """One result: a version of a memory, by its ``seq`` in the store, and its score from 0 to 1."""

    seq: int
    id: str
    session: str
    score: float
    why: Why | None = None
    superseded_by: str | None = None  # the id of the memory that replaced it
    by_meaning: bool = True  # false if only words were searched
    record: Record | None = None  # if the search read it from the store, as of this search


class Searcher(ABC):
    """An index over the records of a store.

    Its results are hints: the service reads the records they name.
    """

    @abstractmethod
    async def search(self, user: str, query: Query) -> list[Found]:
        """Return a user's best matches, best first, ties newest first.

        A search sees every write acknowledged before the call, by any process.
        """

    @abstractmethod
    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Return why a search does not return a memory."""

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Return which embedder serves a user's entries, and whether it fails."""
        return EmbedderStatus(None)

    async def refresh(self, user: str) -> None:  # noqa: B027  # not every index holds something
        """Bring a user's index up to date with the store."""

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:  # noqa: B027  # not every index must
        """Prepare records that were just written, in the background."""

    async def settle(self, user: str) -> None:  # noqa: B027  # not every index does
        """Wait until a user's background work is done."""

    async def forget(self, user: str) -> None:  # noqa: B027  # not every index holds something
        """Drop everything the index holds of a user, in this process or in tables of its own."""

    async def traces(self, user: str) -> int:
        """Return how many entries of a user the index still holds."""
        return 0

    async def scrub(self) -> None:  # noqa: B027  # not every index has files
        """Remove files of the index that may hold deleted data."""

    async def close(self) -> None:  # noqa: B027  # not every index opens something
        """Release the resources the index opened."""
