"""``Link``: what the store asks of a Redis server or cluster, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidInput, NotReplicated

# Within this time a change may be sent again. Its answer is stored for longer, so that a second
# request that is slow to arrive still finds the answer to the first.
REPEATED_WITHIN = 20.0
REMEMBERED = 120
MOST_REPLICAS = 100
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Replication:
    """How many replicas must confirm a change before it is acknowledged (``WAIT``).

    Args:
        replicas: The number of replicas; 0 acknowledges what the primary has alone.
        timeout: Seconds to wait for them.

    Raises:
        InvalidInput: A number is out of range.
    """

    replicas: int = 0
    timeout: float = 1.0

    def __post_init__(self) -> None:
        if type(self.replicas) is not int or not 0 <= self.replicas <= MOST_REPLICAS:
            raise InvalidInput(
                f"wait_replicas must be a number from 0 to {MOST_REPLICAS}, got {self.replicas!r}"
            )
        if not isinstance(self.timeout, int | float) or not 0.001 <= self.timeout <= MOST_SECONDS:
            raise InvalidInput(
                f"wait_timeout must be from 0.001 to {MOST_SECONDS:.0f} seconds, "
                f"got {self.timeout!r}"
            )

    @property
    def command(self) -> tuple[Any, ...]:
        """The command that waits, to be sent after the change on the same connection."""
        return ("WAIT", self.replicas, max(1, round(self.timeout * 1000)))

    def check(self, confirmed: Any) -> None:
        """Raise ``NotReplicated`` if the reply says that too few replicas confirmed."""
        if int(confirmed) < self.replicas:
            raise NotReplicated(
                f"the change was made, but {confirmed} of {self.replicas} replicas confirmed it "
                f"within {self.timeout:g} s: it is lost if the primary fails now; "
                "check the replicas, then read or repeat it"
            )

    def fits(self, socket_timeout: float | None) -> None:
        """Raise ``InvalidInput`` if the client would give up before the wait is over."""
        if self.replicas and socket_timeout is not None and self.timeout >= socket_timeout:
            raise InvalidInput(
                f"wait_timeout={self.timeout:g} must be below the client's "
                f"socket_timeout={socket_timeout:g}, or the reply is never read"
            )


class Link(ABC):
    """Sends scripts and commands. The first key says where to."""

    is_cluster: bool
    # Whether a prefix may have data in the layout of earlier versions. Shared between all links of
    # a client, because the answer takes a call.
    earlier: dict[str, bool]

    @abstractmethod
    async def read(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        """Run a script that may be repeated at will."""

    @abstractmethod
    async def change(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        """Run a script that changes data. The change happens once, even if a reply is lost.

        The script stores its answer under the second key. If the reply is lost, the script is sent
        again and finds that answer. It is not sent again after ``REPEATED_WITHIN`` seconds, when
        the answer might be gone.
        """

    @abstractmethod
    async def ask(self, key: str, *command: Any) -> Any:
        """Send a command that may be repeated; return its reply as bytes."""

    @abstractmethod
    async def tell(self, key: str, *command: Any) -> Any:
        """Send a command that must not be repeated once it may have run."""

    @abstractmethod
    async def groups(self, keys: Sequence[str]) -> list[list[int]]:
        """Return the places of the keys to visit in one script, in order.

        Keys that do not exist may be left out.
        """

    @abstractmethod
    async def persistence(self) -> list[Mapping[str, Any]]:
        """Return the reply of every server to ``INFO persistence``."""
