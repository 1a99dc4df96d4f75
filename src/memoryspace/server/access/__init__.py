"""Who may do what: keys, what they are bound to, limits, and a log of what was done."""

from __future__ import annotations

from .keys import Caller, IssuedKey, KeyInfo, KeyRing, Scope

__all__ = ["Caller", "IssuedKey", "KeyInfo", "KeyRing", "Scope"]
