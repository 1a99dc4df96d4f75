"""``ServiceSettings``: what every service on a store can be told, whichever store it is."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..embedding import Embedder
from ..errors import InvalidInput
from ..record import is_number
from ..retrieval.ranking import Ranking, Reranker
from .writing.repository import MAX_VERSIONS
from .writing.secrecy import Policy

MAX_INDEXED = 1 << 30  # bytes


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """How a service searches, what it lets in, and how long it keeps it.

    ``embedder``, ``ranking``, ``reranker`` and ``zone`` are those of ``Recall``. With
    ``keep_vectors``, what was added is embedded in the background and its vector kept in the store,
    if that can keep them, for every process and the next start. After a change of the embedder,
    what ``former_embedder`` has made serves until the new one has made it anew. At most about
    ``max_indexed`` bytes of RAM are taken by this process's indexes; users not asked for lately
    make room. ``ttl_seconds`` after it was said a memory is gone (never, if ``None``); of each
    session only the newest ``max_messages_per_session`` are kept. ``quarantine`` holds back text
    that looks like instructions to a model until somebody releases it. ``secrets`` says what
    becomes of a message with a password, a card number or the like: ``"keep"`` it, marked and left
    out of contexts; ``"mask"`` the secret before anything is stored; ``"refuse"`` it. No secret
    becomes a fact. A message of more than ``max_message_characters`` is refused. Of each memory
    ``max_versions`` old ones are kept. A derivation is given up after ``max_attempts``.
    """

    embedder: Embedder | Literal["best"] | None = "best"
    keep_vectors: bool = True
    former_embedder: Embedder | None = None
    ranking: Ranking | None = None
    reranker: Reranker | None = None
    zone: tzinfo = UTC
    max_indexed: int = MAX_INDEXED
    ttl_seconds: float | None = None
    max_messages_per_session: int | None = None
    quarantine: bool = True
    secrets: Policy = "keep"
    max_message_characters: int = 1_000_000
    max_versions: int = MAX_VERSIONS
    max_attempts: int = 5

    def __post_init__(self) -> None:
        if self.embedder not in ("best", None) and not isinstance(self.embedder, Embedder):
            raise TypeError(
                f'embedder must be an Embedder, "best" or None, got {self.embedder!r}; '
                "as_embedder() makes one of an embedding model"
            )
        if self.former_embedder is not None and not isinstance(self.former_embedder, Embedder):
            raise TypeError(
                f"former_embedder must be an Embedder or None, got {self.former_embedder!r}"
            )
        if self.secrets not in get_args(Policy):
            known = ", ".join(map(repr, get_args(Policy)))
            raise InvalidInput(f"secrets must be one of {known}, got {self.secrets!r}")
        for name in self.__struct_fields__:
            if not name.startswith("max_"):
                continue
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInput(f"{name} must be a whole number from 1, got {value!r}")
        ttl = self.ttl_seconds
        if ttl is not None and (not is_number(ttl) or ttl <= 0):
            raise InvalidInput(f"ttl_seconds must be a number above 0, or None, got {ttl!r}")


def limited(
    settings: ServiceSettings | None,
    ttl_seconds: float | None,
    max_messages_per_session: int | None,
) -> ServiceSettings:
    """Return settings with the limits that a constructor was given beside them."""
    given = {"ttl_seconds": ttl_seconds, "max_messages_per_session": max_messages_per_session}
    changes = {name: value for name, value in given.items() if value is not None}
    settings = ServiceSettings() if settings is None else settings
    return replace(settings, **changes) if changes else settings
