"""Personal memory: a second ranking pass over what one person said.

The best candidates of a search are read clause by clause (``clauses``): whom each is about
(``people``), which topics of daily life it touches (``matters``), whether it reports a change
(``cues``). The question is read the same way, and signals measure the fit (``signals``). Facts
derived from a message count for it (``facts``, ``lending``), and a message that a later one
supersedes ranks below that one (``currency``).
"""

from __future__ import annotations

from .reader import PersonalReader

__all__ = ["PersonalReader"]
