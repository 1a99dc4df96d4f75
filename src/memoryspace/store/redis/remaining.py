"""Traces of deleted keys in Redis's files, according to ``INFO persistence``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..remains import Remainder

_UNTOLD = Remainder(
    "Redis's files, if it writes any", "unknown: this server does not say (INFO persistence)"
)
_LOG = Remainder("Redis's append-only file", "it is rewritten (BGREWRITEAOF)")
_SNAPSHOT = Remainder("Redis's snapshot, if one was ever saved", "the next one is saved (BGSAVE)")

_BUSY = ("in_progress", "scheduled")


def remains_of(persistence: Mapping[str, Any]) -> tuple[Remainder, ...]:
    """Return where deleted data may remain, given the reply of ``INFO persistence``."""
    if "rdb_changes_since_last_save" not in persistence or "aof_enabled" not in persistence:
        return (_UNTOLD,)
    found = []
    if int(persistence["aof_enabled"]) and not _is_rewritten(persistence):
        found.append(_LOG)
    is_saving = int(persistence.get("rdb_bgsave_in_progress", 0))
    if int(persistence["rdb_changes_since_last_save"]) or is_saving:
        found.append(_SNAPSHOT)
    return tuple(found)


def _is_rewritten(persistence: Mapping[str, Any]) -> bool:
    """Return whether the log was rewritten since the server started and has not grown since."""
    is_busy = any(int(persistence.get(f"aof_rewrite_{each}", 0)) for each in _BUSY)
    has_ended = int(persistence.get("aof_last_rewrite_time_sec", -1)) >= 0
    if is_busy or not has_ended or persistence.get("aof_last_bgrewrite_status") != "ok":
        return False
    size, base = (int(persistence.get(f"aof_{each}_size", -1)) for each in ("current", "base"))
    return 0 <= size <= base
