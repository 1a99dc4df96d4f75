"""``Config``: how a memory works, in one typed value.

It is read from a file ``memoryspace.toml``, then from variables ``MEMORYSPACE_…``, then from
arguments; what comes later wins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ..configuring import Gathered, check_types, gathered
from ..embedding import E5Embedder, Embedder, MiniLMEmbedder, StaticEmbedder
from ..errors import InvalidInput
from ..kernel import Durability
from ..record import check_id, is_number
from ..retrieval.relevance import RELEVANT
from ..service.reading.arguments import check_relevance
from ..service.search.opening import SearchPlace
from ..service.settings import ServiceSettings
from ..service.writing.secrecy import Policy
from .address import HIDDEN, shown
from .home import config_folder

FILE = "memoryspace.toml"
PREFIX = "MEMORYSPACE_"

EmbedderName: TypeAlias = Literal["best", "none", "static", "minilm", "e5"]

LEAST_TOKENS = 100  # of a context: less has no room for what frames a memory

_DAY = 86400
# Variables that are no settings.
_OTHERS = (
    *("HOME", "CONFIG", "DATA", "RESULTS", "MODEL_KEY", "TRACEBACK", "DISABLE_CONSOLE_OUTPUT"),
    *("NO_*", "TEST_*", "BENCH_*", "SERVER_*"),
)
_EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {
    "static": StaticEmbedder,
    "minilm": MiniLMEmbedder,
    "e5": E5Embedder,
}


class Config(Struct, frozen=True, kw_only=True):
    """How a memory works.

    Attributes:
        address: Where the memory is; ``None`` for the folder that ``MEMORYSPACE_HOME`` names, or
            else one in the user's data folder.
        user: Whose memory calls are about that name no user.
        api_key: The key for a server.
        embedder: What embeds texts: ``"best"`` takes the best one installed, ``"none"`` searches
            by words alone.
        search: Where searches run: in this ``"process"``, or in the ``"server"`` (PostgreSQL).
        secrets: What to do with a message that holds a secret: ``"keep"`` it, out of contexts;
            ``"mask"`` the secret; or ``"refuse"`` the message.
        quarantine: Whether to hold back text that looks like instructions to a model.
        review: ``"facts"`` lets what is derived wait until it is approved; ``None`` believes it.
        ttl_days: After how many days a memory is forgotten; ``None`` for never.
        keep_days: How many days of the past a folder keeps, to look at or go back to.
        min_relevance: What is less relevant does not go into a context, from 0 to 1.
        max_tokens: The tokens of a context that asks for no number.
        max_recalls: How many recalls of each user are logged; 0 for none.
        max_indexed: About how many bytes of RAM the indexes may take.

    Example::

        config = Config(address="postgresql://db/memories", secrets="mask")
        memory = Memory(config=config)
    """

    address: str | None = None
    user: str | None = None
    api_key: str | None = None
    embedder: EmbedderName = "best"
    search: SearchPlace = "process"
    secrets: Policy = "keep"
    quarantine: bool = True
    review: Literal["facts"] | None = None
    ttl_days: float | None = None
    keep_days: float = 7.0
    min_relevance: float = RELEVANT
    max_tokens: int = 2000
    max_recalls: int = 1000
    max_indexed: int = 1 << 30

    def __post_init__(self) -> None:
        check_types(self)
        if self.user is not None:
            check_id("user", self.user)
        check_relevance(self.min_relevance)
        if self.keep_days < 0:
            raise InvalidInput(f"keep_days must be 0 or more, got {self.keep_days}")
        if self.max_recalls < 0:
            raise InvalidInput(f"max_recalls must be 0 or more, got {self.max_recalls}")
        if self.max_tokens < LEAST_TOKENS:
            raise InvalidInput(f"max_tokens must be {LEAST_TOKENS} or more, got {self.max_tokens}")
        if self.max_indexed < 1:
            raise InvalidInput(f"max_indexed must be 1 or more, got {self.max_indexed}")
        if self.ttl_days is not None and not (is_number(self.ttl_days) and self.ttl_days > 0):
            raise InvalidInput(f"ttl_days must be more than 0, or None, got {self.ttl_days}")

    def __repr__(self) -> str:
        """Show what differs from the defaults, without the key and without a password."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        defaults = zip(self.__struct_fields__, self.__struct_defaults__, strict=True)
        told = {name: told[name] for name, default in defaults if told[name] != default}
        if self.address is not None:
            told["address"] = shown(self.address)
        if self.api_key is not None:
            told["api_key"] = HIDDEN
        return f"Config({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def service_settings(self) -> ServiceSettings:
        """Return the settings of the service."""
        return ServiceSettings(
            embedder=self._embedder(),
            secrets=self.secrets,
            quarantine=self.quarantine,
            review=self.review,
            ttl_seconds=None if self.ttl_days is None else self.ttl_days * _DAY,
            max_indexed=self.max_indexed,
        )

    def durability(self) -> Durability:
        """Return how a folder is kept on disk."""
        return Durability(keep_seconds=self.keep_days * _DAY)

    def _embedder(self) -> Embedder | Literal["best"] | None:
        if self.embedder == "best":
            return "best"
        return None if self.embedder == "none" else _EMBEDDERS[self.embedder]()


def load_config(
    given: Mapping[str, Any] | None = None,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Gathered[Config]:
    """Return the configuration of this machine and folder, and where each value is from.

    Args:
        given: Values that go before all others; ``None`` stands for none.
        file: A TOML file; by default the one that ``MEMORYSPACE_CONFIG`` names, or else
            ``memoryspace.toml`` in the working folder or in the user's configuration folder.
        environment: The variables; those of this process by default.

    Raises:
        InvalidInput: A setting is unknown or its value is not valid; the message names the place.
    """
    environment = os.environ if environment is None else environment
    return gathered(
        Config,
        file=config_file(environment) if file is None else Path(file).expanduser(),
        environment=environment,
        prefix=PREFIX,
        others=_OTHERS,
        given={} if given is None else given,
    )


def config_file(environment: Mapping[str, str]) -> Path | None:
    """Return the file of settings that is in use, or ``None`` if there is none."""
    named = environment.get(PREFIX + "CONFIG", "").strip()
    if named:
        return Path(named).expanduser()
    places = (Path(FILE), config_folder() / FILE)
    return next((place for place in places if place.is_file()), None)
