"""Compatibility: the runtime's path of the session."""

from __future__ import annotations

from ...service.schema import Session

__all__ = ["Session"]
