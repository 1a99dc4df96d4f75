"""Care of stored memories: backup, restore, and a doctor that examines and repairs."""

from __future__ import annotations

from .backup import BackupReport, back_up
from .doctor import examine
from .errors import BackupDamaged, BackupTooNew
from .findings import Examination, Finding
from .manifest import Line, Manifest, read_manifest
from .repair import Repair, repair
from .replaying import Replayed, replay_erasures
from .restore import Lsn, RestoreReport, restore_backup

__all__ = [
    "BackupDamaged",
    "BackupReport",
    "BackupTooNew",
    "Examination",
    "Finding",
    "Line",
    "Lsn",
    "Manifest",
    "Repair",
    "Replayed",
    "RestoreReport",
    "back_up",
    "examine",
    "read_manifest",
    "repair",
    "replay_erasures",
    "restore_backup",
]
