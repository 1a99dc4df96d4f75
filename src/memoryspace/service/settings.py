"""``ServiceSettings``: the options shared by every service on a store."""

from __future__ import annotations

from datetime import UTC, tzinfo
from os import PathLike
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..embedding import Embedder
from ..errors import InvalidInput
from ..record import is_number
from ..retrieval.ranking import Ranking, Reranker
from .values.kinds import FACT
from .writing.repository import MAX_VERSIONS
from .writing.secrecy import Policy

MAX_INDEXED = 1 << 30  # bytes
MAX_SAVED = 4 << 30  # bytes


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """How a service searches, what it accepts, and how long it keeps it.

    Attributes:
        embedder: What embeds text; ``"best"`` takes the best one installed, ``None`` searches by
            words alone. As in ``Recall``, like ``ranking``, ``reranker`` and ``zone``.
        keep_vectors: Embed new memories in the background and store their vectors, if the store
            can, for other processes and later starts.
        former_embedder: The embedder used before. Its vectors serve searches until ``embedder``
            has embedded a user's memories again.
        ranking: The weights of the ranking.
        reranker: Reorders the best candidates.
        zone: The time zone in which "yesterday" and the like are read.
        max_indexed: About how many bytes of RAM the indexes of this process may take. The users
            searched least recently are evicted.
        saved_indexes: A folder on this machine in which indexes are saved, so that the first search
            after a restart does not build one. ``None`` saves them beside a memory space that is a
            folder, and nowhere else; ``False`` saves none.
        max_saved: About how many bytes of disk the saved indexes may take.
        ttl_seconds: How long a memory lives; ``None`` means forever.
        max_messages_per_session: How many of the newest messages of a session to keep; ``None``
            keeps all.
        quarantine: Hold back text that looks like instructions to a model until it is released.
        secrets: What to do with a message that holds a password, a card number or the like:
            ``"keep"`` it, marked and left out of contexts; ``"mask"`` the secret before anything is
            stored; or ``"refuse"`` the message. A secret never becomes a fact.
        review: ``"facts"`` lets every derived fact wait until it is approved; ``None`` believes
            facts at once. Facts that wait already keep waiting when this changes.
        max_message_characters: Refuse longer messages.
        max_versions: How many old versions of a memory to keep.
        max_attempts: How often to try a derivation before it counts as failed.

    Raises:
        InvalidInput: A number, ``secrets`` or ``review`` is out of range.
        TypeError: An embedder is not an ``Embedder``.

    Example::

        settings = ServiceSettings(ttl_seconds=30 * 86400, secrets="mask")
        service = InMemoryMemoryService(settings=settings)
    """

    embedder: Embedder | Literal["best"] | None = "best"
    keep_vectors: bool = True
    former_embedder: Embedder | None = None
    ranking: Ranking | None = None
    reranker: Reranker | None = None
    zone: tzinfo = UTC
    max_indexed: int = MAX_INDEXED
    saved_indexes: str | PathLike[str] | Literal[False] | None = None
    max_saved: int = MAX_SAVED
    ttl_seconds: float | None = None
    max_messages_per_session: int | None = None
    quarantine: bool = True
    secrets: Policy = "keep"
    review: Literal["facts"] | None = None
    max_message_characters: int = 1_000_000
    max_versions: int = MAX_VERSIONS
    max_attempts: int = 5

    def __post_init__(self) -> None:
        if self.embedder not in ("best", None) and not isinstance(self.embedder, Embedder):
            raise TypeError(
                f'embedder must be an Embedder, "best" or None, got {self.embedder!r}; '
                "as_embedder() turns an embedding model into one"
            )
        if self.former_embedder is not None and not isinstance(self.former_embedder, Embedder):
            raise TypeError(
                f"former_embedder must be an Embedder or None, got {self.former_embedder!r}"
            )
        if self.secrets not in get_args(Policy):
            known = ", ".join(map(repr, get_args(Policy)))
            raise InvalidInput(f"secrets must be one of {known}, got {self.secrets!r}")
        if self.review not in (None, "facts"):
            raise InvalidInput(f'review must be "facts" or None, got {self.review!r}')
        for name in self.__struct_fields__:
            if not name.startswith("max_"):
                continue
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInput(f"{name} must be a whole number of at least 1, got {value!r}")
        ttl = self.ttl_seconds
        if ttl is not None and (not is_number(ttl) or ttl <= 0):
            raise InvalidInput(f"ttl_seconds must be a number greater than 0 or None, got {ttl!r}")

    @property
    def reviewed(self) -> frozenset[str]:
        """The kinds of derived memories that wait for approval."""
        return frozenset() if self.review is None else frozenset({FACT})


def limited(
    settings: ServiceSettings | None,
    ttl_seconds: float | None,
    max_messages_per_session: int | None,
) -> ServiceSettings:
    """Return ``settings`` with the limits that a constructor takes as arguments of its own."""
    given = {"ttl_seconds": ttl_seconds, "max_messages_per_session": max_messages_per_session}
    changes = {name: value for name, value in given.items() if value is not None}
    settings = ServiceSettings() if settings is None else settings
    return replace(settings, **changes) if changes else settings
