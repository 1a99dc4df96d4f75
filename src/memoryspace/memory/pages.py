"""The page table of a context window: marks of messages, and the summary.

Every memory has both, so the page table is stored wherever the messages are. It survives a restart,
and several windows on one memory see the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..message import Msg

PINNED = "pinned"  # stays resident
HINT = "hint"  # leaves first
COMPRESSED = "compressed"  # not resident: in the summary, or a hint that was dropped
OFFLOADED = "offloaded"  # its big parts are stubs

WINDOW_MARKS = (PINNED, HINT, OFFLOADED)  # of resident messages


class MemoryPages(NamedTuple):
    """What a window reads from a memory.

    Attributes:
        messages: The messages that are not compressed, in order.
        marked: For each of the ``WINDOW_MARKS``, the ids of messages that have it.
        summary: The summary; "" if there is none.
        version: The version of the summary, for compare-and-set.
    """

    messages: list[Msg]
    marked: Mapping[str, frozenset[str]]
    summary: str
    version: Any
