"""The page table of a context window: marks of messages, and the summary beside them.

Because it is made of what every memory has, it lives wherever the messages live: it is there after
a restart, and several windows on one memory see the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..message import Msg

PINNED = "pinned"  # stays resident
HINT = "hint"  # leaves first
COMPRESSED = "compressed"  # is in the summary, or was a hint: not resident
OFFLOADED = "offloaded"  # its big parts are stubs


WINDOW_MARKS = (PINNED, HINT, OFFLOADED)  # of messages that are resident


class MemoryPages(NamedTuple):
    """What a memory holds for a window: the messages that are not compressed, in order.

    ``marked`` are the ids of those that have each of the ``WINDOW_MARKS``. ``version`` is the
    summary's: if it is the same, nobody has set the summary in between.
    """

    messages: list[Msg]
    marked: Mapping[str, frozenset[str]]
    summary: str
    version: Any
