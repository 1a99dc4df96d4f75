"""Damage to a journal, as values and as errors.

StoreUnavailable
└── JournalUnavailable   the disk failed; nothing acknowledged was lost, try again
CorruptData
├── JournalDamaged       records in the middle are lost; ``damage`` lists them
└── JournalTooNew        written by a later version of this package
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ....errors import CorruptData, StoreUnavailable


class Torn(Struct, frozen=True):
    """A write that a crash cut short: ``bytes`` at ``offset``, dropped on opening the log."""

    file: Path
    offset: int
    bytes: int


class Damage(Struct, frozen=True):
    """An unreadable stretch, and the records that were in it.

    ``bytes`` is 0 if a whole file is missing. ``last_lsn`` is a guess if the last segment lost its
    header, since no later segment tells how far it went.
    """

    file: Path
    offset: int
    bytes: int
    first_lsn: int
    last_lsn: int

    def __str__(self) -> str:
        return (
            f"records {self.first_lsn} to {self.last_lsn} "
            f"({self.file.name}, {self.bytes} bytes at {self.offset})"
        )


class JournalUnavailable(StoreUnavailable):
    """The disk could not write, read or sync the journal."""


class JournalTooNew(CorruptData):
    """The journal has a format that this version cannot read."""


class JournalDamaged(CorruptData):
    """Records in the middle of the journal are unreadable. ``damage`` lists them."""

    def __init__(self, folder: Path, damage: Sequence[Damage]) -> None:
        self.damage = tuple(damage)
        lost = "; ".join(map(str, damage))
        super().__init__(
            f"the journal in {folder} is damaged: it lost {lost}. Nothing was changed. Restore a "
            "backup, or open it with salvage=True to continue with the intact records"
        )


def unavailable(what: str, path: Path, error: OSError) -> JournalUnavailable:
    """Return the error for a system call that failed."""
    return JournalUnavailable(
        f"the journal could not {what} {path}: {error.strerror or error}. Nothing acknowledged was "
        "lost; free space or check the disk, then try again"
    )
