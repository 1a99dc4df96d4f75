"""The session, where the runtime has it."""

from __future__ import annotations

from ...service.schema import Session

__all__ = ["Session"]
