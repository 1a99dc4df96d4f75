"""Sync policies: what a journal promises about an acknowledged write.

A killed process loses nothing under any policy. A power cut loses

    ALWAYS     nothing that was acknowledged
    group(ms)  at most what was written within the last ``ms`` milliseconds
    OS         what the operating system had not written by itself
"""

from __future__ import annotations

import math

from msgspec import Struct

from ....errors import InvalidInput


class SyncPolicy(Struct, frozen=True):
    """A sync policy: its name and, for ``group``, the most seconds until a write is synced."""

    name: str
    interval: float | None = None


ALWAYS = SyncPolicy("always")
OS = SyncPolicy("os")


def group(ms: float) -> SyncPolicy:
    """Acknowledge at once and sync in the background at most ``ms`` milliseconds later."""
    if isinstance(ms, bool) or not isinstance(ms, int | float):
        raise TypeError(f"group(ms) takes a number of milliseconds, got {type(ms).__name__}")
    if not (math.isfinite(ms) and ms > 0):
        raise InvalidInput(f"group(ms) must be above 0 milliseconds, got {ms}")
    return SyncPolicy("group", ms / 1000)


def as_policy(value: SyncPolicy | str) -> SyncPolicy:
    """Return a policy, or the one that a text names: 'always', 'os', 'group:5'."""
    if isinstance(value, SyncPolicy):
        return value
    if not isinstance(value, str):
        raise TypeError(f"sync must be a policy or its name, got {type(value).__name__}")
    name, _, ms = value.partition(":")
    if value in ("always", "os"):
        return ALWAYS if value == "always" else OS
    try:
        if name == "group":
            return group(float(ms))
    except ValueError:
        pass
    raise InvalidInput(f"sync must be 'always', 'os' or 'group:<milliseconds>', got {value!r}")
