"""What can be wrong with a backup.

CorruptData
├── BackupDamaged   a file of it is missing, altered or was never finished
└── BackupTooNew    written by a later version of this package
"""

from __future__ import annotations

from ..errors import CorruptData


class BackupDamaged(CorruptData):
    """A backup that cannot be relied on: a file is missing, altered, or was never finished."""


class BackupTooNew(CorruptData):
    """The backup has a format that this version cannot read."""
