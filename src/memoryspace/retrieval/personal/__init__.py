"""Personal memory: what a person told, read for whom it is about, what it is about, what changed.

A second look at the best candidates of a search. Each is read clause by clause (``clauses``): whom
it speaks of (``people``), which matters of life it touches (``matters``), whether it says that
something changed (``cues``). The question is read the same way, and what fits counts (``signals``).
What is known from it counts for it (``facts``, ``lending``), and what a later message supersedes
stands behind that one (``currency``).
"""

from __future__ import annotations

from .reader import PersonalReader

__all__ = ["PersonalReader"]
