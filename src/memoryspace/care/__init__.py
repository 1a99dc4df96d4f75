"""Care of stored memories: backup, restore, and a doctor that examines and repairs."""

from __future__ import annotations

from .backup import BackupReport, back_up
from .errors import BackupDamaged, BackupTooNew
from .manifest import Line, Manifest, read_manifest
from .replaying import Replayed, replay_erasures
from .restore import Lsn, RestoreReport, restore_backup

__all__ = [
    "BackupDamaged",
    "BackupReport",
    "BackupTooNew",
    "Line",
    "Lsn",
    "Manifest",
    "Replayed",
    "RestoreReport",
    "back_up",
    "read_manifest",
    "replay_erasures",
    "restore_backup",
]
