"""The one question a service asks of an index, and the one answer it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from msgspec import Struct

from ...record import Scope
from ...retrieval.conditions import ANYTHING, Condition
from ...retrieval.hits import Why, WhyNot
from ...retrieval.vector_arm import EmbedderStatus


class Query(Struct, frozen=True, kw_only=True):
    """What is asked for.

    ``only`` narrows the choice before ranking. With ``neighbours``, what stands beside a match may
    be found for its sake; without, everything found matches by itself: by a word, or by meaning.
    """

    text: str
    top_k: int
    only: Condition = ANYTHING
    now: float | None = None
    neighbours: bool = False
    explain: bool = False


class Found(Struct, frozen=True):
    """A memory's version, by its ``seq`` in the store, and how likely it answers, from 0 to 1."""

    seq: int
    id: str
    session: str
    score: float
    why: Why | None = None
    superseded_by: str | None = None  # the id of what says otherwise since
    by_meaning: bool = True  # false where words alone were searched


class Searcher(ABC):
    """An index over what a store holds. It is a hint: the service reads what it names."""

    @abstractmethod
    async def search(self, user: str, query: Query) -> list[Found]:
        """Return the best for a user, the best first, equals the newest first.

        Everything that was acknowledged before the call, by whichever process, is seen.
        """

    @abstractmethod
    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Say where a memory falls out of a search."""

    async def embedder_status(self, user: str) -> EmbedderStatus:
        """Tell who embeds what is held of a user, and whether that fails."""
        return EmbedderStatus(None)

    async def refresh(self, user: str) -> None:  # noqa: B027  # not every index holds something
        """Let what is held of a user be no older than the store."""

    def expect(self, scope: Scope, ids: Iterable[str]) -> None:  # noqa: B027  # not every index must
        """Be told of records that were just written, to do in the background what can be done."""

    async def settle(self, user: str) -> None:  # noqa: B027  # not every index does
        """Wait until nothing is under way in the background for a user."""

    async def forget(self, user: str) -> None:  # noqa: B027  # not every index holds something
        """Drop all that is held of a user in this process or beside the store's own tables."""

    async def traces(self, user: str) -> int:
        """Return how many entries of a user the index still holds."""
        return 0

    async def close(self) -> None:  # noqa: B027  # not every index opens something
        """Give back what was opened."""
