"""The page table: which messages of a history are not resident, or only in part."""

from __future__ import annotations

from msgspec import Struct


class Pages(Struct, frozen=True):
    """What is not resident: the page table. Ids of messages, and the summary that stands for
    those that were summarised."""

    offloaded: frozenset[str] = frozenset()  # their big parts are stubs
    summarised: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()  # one-shot hints
    summary: str = ""
