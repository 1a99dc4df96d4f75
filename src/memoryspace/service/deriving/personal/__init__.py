"""Personal memory: facts about people, derived from what they say."""

from __future__ import annotations

from .deriver import PersonalDeriver

__all__ = ["PersonalDeriver"]
