"""The last result of a window, reused while nothing relevant has changed.

A snapshot is valid while its page table is the same. It can grow if messages were only appended,
concern nothing in it, and fit. In all other cases the compactor runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..context import Compacted
from ..message import Content, Msg, freeze, repair, thaw
from ..message.msg import peek_content
from ..message.repairing import calls_in
from ..message.sharing import FrozenMsg
from .pages import OFFLOADED, MemoryPages

# A shown message: its place in the page table, or a replacement.
Shown: TypeAlias = int | FrozenMsg


class WindowSnapshot:
    """A page table, the messages shown for it, and their ``tokens``.

    Page tables are compared by the content of messages, not only by ids. If a memory returns the
    same content objects again, as in RAM, the comparison costs next to nothing.
    """

    def __init__(self, table: MemoryPages, done: Compacted, reserved: int, budget: int) -> None:
        place_of = {id(msg): place for place, msg in enumerate(table.messages)}
        self.tokens = done.report.tokens_after
        self.reserved = reserved
        self._budget = budget
        self._is_whole = (
            not done.report.repairs
            and done.report.is_within_budget
            and any(msg.role != "system" for msg in table.messages)  # past the instructions
        )
        self._calls = {call["id"] for msg in done.messages for call in calls_in(msg)}
        self._shown: list[Shown] = [
            place_of[id(msg)] if id(msg) in place_of else freeze(msg) for msg in done.messages
        ]
        self._summary = table.summary
        self._hold(table)

    def _hold(self, table: MemoryPages) -> None:
        self._ids = [msg.id for msg in table.messages]
        self._contents = contents_of(table.messages)
        self._marked: Mapping[str, frozenset[str]] = table.marked

    def holds(self, table: MemoryPages, reserved: int) -> bool:
        """Return whether the snapshot is valid for this table and the reserved tokens."""
        fits = reserved <= self.reserved or self.fits(0, reserved)
        return (
            fits
            and len(table.messages) == len(self._ids)
            and self._marked == table.marked
            and self._begins(table)
        )

    def fits(self, tokens: int, reserved: int) -> bool:
        """Return whether this many more tokens fit beside the reserved ones."""
        return self.tokens + tokens <= self._budget - reserved

    def tail(self, table: MemoryPages) -> list[Msg] | None:
        """Return messages that were only appended; None if anything else changed."""
        new = table.messages[len(self._ids) :]
        is_alone = self._is_whole and self._begins(table) and self._marks_came_with(new, table)
        if not is_alone or repair(new).repairs:
            return None
        calls = [call["id"] for msg in new for call in calls_in(msg)]
        return None if any(call in self._calls for call in calls) else new

    def grow(self, table: MemoryPages, tokens: int) -> None:
        """Extend the snapshot by the appended messages."""
        first = len(self._ids)
        self.tokens += tokens
        self._shown += range(first, len(table.messages))
        self._calls.update(call["id"] for msg in table.messages[first:] for call in calls_in(msg))
        self._hold(table)

    def messages(self, table: MemoryPages) -> list[Msg]:
        """Return the shown messages, which the caller may change."""
        return [
            table.messages[each] if isinstance(each, int) else thaw(each) for each in self._shown
        ]

    def _begins(self, table: MemoryPages) -> bool:
        """Return whether a table has the same summary and begins with the same messages."""
        if self._summary != table.summary:
            return False
        begin = table.messages[: len(self._ids)]
        return self._ids == [msg.id for msg in begin] and self._contents == contents_of(begin)

    def _marks_came_with(self, new: list[Msg], table: MemoryPages) -> bool:
        """Return whether only marks of new messages changed, and none became off-loaded."""
        ids = {msg.id for msg in new}
        return all(
            table.marked[mark] ^ marked <= (set() if mark == OFFLOADED else ids)
            for mark, marked in self._marked.items()
        )


def contents_of(messages: list[Msg]) -> list[Content]:
    """Return the contents of messages, to be read only."""
    return list(map(peek_content, messages))
