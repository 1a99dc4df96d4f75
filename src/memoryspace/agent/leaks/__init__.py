"""Finding leaks: what agents leave behind that should be gone, and what keeps it."""

from .check import LeakCheck, leaks_of
from .report import Growth, Kept, LeakFound, LeakReport

__all__ = ["Growth", "Kept", "LeakCheck", "LeakFound", "LeakReport", "leaks_of"]
