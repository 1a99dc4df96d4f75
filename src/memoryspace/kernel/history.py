"""Point in time: read a space as it was, compare two moments, restore one, or fork it.

The past goes back as far as ``Durability.keep`` and ``keep_seconds`` say. A moment is named by the
number of the last change it includes (``lsn``) or by a time.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .durable.history import Difference, PastEngine, copy_into, difference, go_back, past_of
from .manager import MemoryManager

__all__ = ["Difference", "PastSpace", "at", "diff", "fork", "restore"]


class PastSpace(MemoryManager):
    """A space as it was after a change. It can be read and searched, not changed. See ``at``."""

    engine: PastEngine

    def __init__(self, engine: PastEngine) -> None:
        self._run_on(engine)

    @property
    def lsn(self) -> int:
        """The number of the last change that the view includes."""
        return self.engine.past_lsn

    @property
    def time(self) -> float:
        """The time of that change, or the time that was asked for."""
        return self.engine.time


def at(space: MemoryManager, *, lsn: int | None = None, time: float | None = None) -> PastSpace:
    """Return a read-only view of a space as it was at a moment. Close it after use.

    Args:
        space: A space with a folder.
        lsn: The last change that the view includes.
        time: The moment in seconds since the epoch, instead of an ``lsn``.

    Raises:
        InvalidInput: The space keeps no past, or not that far back.

    Example::

        with at(space, lsn=41) as past:
            plan = past.load("plan")
    """
    return PastSpace(past_of(space.engine, lsn, time))


def diff(space: MemoryManager, before: int, after: int | None = None) -> Difference:
    """Return what changed between two lsns; ``after`` defaults to now."""
    return difference(space.engine, before, after)


def restore(space: MemoryManager, *, lsn: int | None = None, time: float | None = None) -> int:
    """Make a space what it was at a moment.

    The changes in between stay in the journal. They can be read and restored in their turn for as
    long as checkpoints are kept.

    Args:
        space: A space with a folder.
        lsn: The last change to keep.
        time: The moment in seconds since the epoch, instead of an ``lsn``.

    Returns:
        The lsn of the restore, which is a change itself.

    Raises:
        InvalidInput: The space keeps no past, or not that far back.
        OutOfSpace: The past does not fit into the space's capacity.
    """
    return go_back(space.engine, lsn, time)


def fork(
    space: MemoryManager,
    folder: str | PathLike[str],
    *,
    lsn: int | None = None,
    time: float | None = None,
) -> Path:
    """Copy a space, as it is or as it was at a moment, into a new folder.

    Args:
        space: The space to copy.
        folder: An empty or missing folder. Open it as a space of its own.
        lsn: The last change to include (default: all).
        time: The moment in seconds since the epoch, instead of an ``lsn``.

    Returns:
        The path of the folder.

    Raises:
        InvalidInput: The folder is not empty, or the past is not kept that far back.
    """
    copy_into(space.engine, Path(folder), lsn, time)
    return Path(folder)
