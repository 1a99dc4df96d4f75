"""The kinds of records a service stores, and its reserved names."""

from __future__ import annotations

from ...record import ARCHIVED, MESSAGE, RESERVED_PREFIX, SUMMARY, Scope

FACT, INSIGHT, EXPERIENCE, TOOL = "fact", "insight", "experience", "tool"
DERIVED = (FACT, INSIGHT, EXPERIENCE, TOOL)  # by the built-in derivers

INSTRUCTION = "instruction"  # the type of a fact that says how to answer

SUPERSEDED = "superseded"  # the mark of a fact that no longer holds
SUPERSEDED_BY = "superseded_by"  # in its details: the id of the memory that replaced it

SOURCE_VERSIONS = "source_versions"  # in the details: the versions it was derived from
RETIRES = "retires"  # in the details: the memories it supersedes once approved, with the times
RETIRED_BY = "retired_by"  # in the details: the memories that supersede it once approved
DECIDED = "decided"  # in the details: that it was approved

VERSION = "version"  # an old version of a memory
JOB = "job"  # a pending derivation, in the session of its sources
NOTE = "note"  # says that a user may have jobs
REJECTION = "rejection"  # what must not be derived again from the same sources
RECALL = "recall"  # an entry of the recall log
ANSWER = "answer"  # to a request that may be sent again

# Kinds that are not memories: bookkeeping, and working memory in the same store.
NO_MEMORIES = frozenset({VERSION, JOB, NOTE, REJECTION, RECALL, ANSWER, MESSAGE, SUMMARY, ARCHIVED})

REGISTRY = Scope(RESERVED_PREFIX + "kinds", "derived")  # kinds of custom derivers
OUTBOX = (
    RESERVED_PREFIX + "outbox"
)  # a reserved user; its sessions are named after users with notes
