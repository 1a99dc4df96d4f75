"""Tool memory: statistics and guidelines derived from tool calls."""

from __future__ import annotations

from .deriver import ToolDeriver

__all__ = ["ToolDeriver"]
