"""Leak detection: objects that agents leave behind, and what keeps them alive."""

from .check import LeakCheck, leaks_of
from .report import Growth, Kept, LeakFound, LeakReport

__all__ = ["Growth", "Kept", "LeakCheck", "LeakFound", "LeakReport", "leaks_of"]
