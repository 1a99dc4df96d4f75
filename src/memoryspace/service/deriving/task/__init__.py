"""Task memory: lessons derived from scored runs."""

from __future__ import annotations

from .deriver import TaskDeriver

__all__ = ["TaskDeriver"]
