"""Traces of deleted records below a store: an optional capability of backends.

A deleted record is gone at once for every reader. Its bytes can remain for a while where the
backend keeps them: in a log, in unused pages, in a snapshot. A store with this capability reports
where, and what removes them. If it reports nothing, nothing is left in the files that the backend
itself writes. Backups, replicas and free disk blocks are beyond what a store can know.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..portable import Portable


class Remainder(Portable, frozen=True):
    """A place where bytes of deleted records may remain, and the event that removes them."""

    where: str
    until: str


UNKNOWN = Remainder("whatever this store keeps below its records", "unknown")


@runtime_checkable
class TellsRemains(Protocol):
    """A store that can report what remains of deleted records."""

    async def remains(self) -> tuple[Remainder, ...]:
        """Remove what can be removed now; return where something may remain."""
        ...
