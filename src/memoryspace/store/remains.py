"""What is left of deleted records below a store: an optional power of stores.

A deleted record is gone at once for everybody who asks. Its bytes may still stand where a backend
keeps them for a while: in a log, in pages that are yet to be used again, in a snapshot. A store
that has this power tells where, and what ends it. Where it tells nothing, nothing is left in what
the backend itself writes; of backups, replicas and a disk's own free blocks no store can know.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..portable import Portable


class Remainder(Portable, frozen=True):
    """A place where bytes of what was deleted may still stand, and until when they do."""

    where: str
    until: str


UNKNOWN = Remainder("whatever this store keeps below its records", "it does not tell")


@runtime_checkable
class TellsRemains(Protocol):
    """The power of a store to tell what is left of what was deleted."""

    async def remains(self) -> tuple[Remainder, ...]:
        """Remove what can be removed at once; return where something may still be."""
        ...
