"""The write-ahead log: ordered records that survive a crash, or a report of what was lost."""

from .damage import Damage, JournalDamaged, JournalTooNew, JournalUnavailable, Torn
from .frames import FORMAT_VERSION, MAX_PAYLOAD, Frame
from .policy import ALWAYS, OS, SyncPolicy, as_policy, group
from .recovery import read_log
from .wal import SEGMENT_BYTES, WriteAheadLog

__all__ = [
    "ALWAYS",
    "FORMAT_VERSION",
    "MAX_PAYLOAD",
    "OS",
    "SEGMENT_BYTES",
    "Damage",
    "Frame",
    "JournalDamaged",
    "JournalTooNew",
    "JournalUnavailable",
    "SyncPolicy",
    "Torn",
    "WriteAheadLog",
    "as_policy",
    "group",
    "read_log",
]
