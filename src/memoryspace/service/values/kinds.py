"""The kinds of records a service keeps, and the names it keeps for itself."""

from __future__ import annotations

from ...record import MESSAGE, RESERVED_PREFIX, SUMMARY, Scope

FACT, INSIGHT, EXPERIENCE, TOOL = "fact", "insight", "experience", "tool"
DERIVED = (FACT, INSIGHT, EXPERIENCE, TOOL)  # by our own derivers; others' kinds come beside these

INSTRUCTION = "instruction"  # the type of a fact that says how answers are to be

SUPERSEDED = "superseded"  # the mark of a fact that no longer holds
SUPERSEDED_BY = "superseded_by"  # among its details: the id of what does

VERSION = "version"  # what a memory was before it was changed
JOB = "job"  # something still to be derived, beside what it is to be derived from
NOTE = "note"  # that a user may have jobs

# Kinds that are no memories: our book-keeping, and working memory on the same store.
NO_MEMORIES = frozenset({VERSION, JOB, NOTE, MESSAGE, SUMMARY})

REGISTRY = Scope(RESERVED_PREFIX + "kinds", "derived")  # kinds of derivers that are not ours
OUTBOX = RESERVED_PREFIX + "outbox"  # the user whose sessions are the users with notes
