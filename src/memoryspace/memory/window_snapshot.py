"""What a window showed last, so that it need not be worked out again while little has changed.

A view still holds if its page table is the same. It can grow if messages were only added behind
it that concern nothing in it and fit. In all other cases the compactor is asked again.
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

# What is shown: the message at a place of the page table, or another one instead.
Shown: TypeAlias = int | FrozenMsg


class WindowSnapshot:
    """A page table as it was, what was shown of it, and how many ``tokens`` that took.

    Tables are told apart by what messages say, not only by their ids. Where a memory hands out
    the same contents again, as in RAM, comparing them costs next to nothing.
    """

    def __init__(self, table: MemoryPages, done: Compacted, reserved: int, budget: int) -> None:
        place_of = {id(msg): place for place, msg in enumerate(table.messages)}
        self.tokens = done.report.tokens_after
        self.reserved = reserved
        self._budget = budget
        self._is_whole = (
            not done.report.repairs
            and done.report.is_within_budget
            and any(msg.role != "system" for msg in table.messages)  # instructions are over
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
        """Tell whether it is a view of this table, within what is not reserved."""
        is_room = reserved <= self.reserved or self.fits(0, reserved)
        return (
            is_room
            and len(table.messages) == len(self._ids)
            and self._marked == table.marked
            and self._begins(table)
        )

    def fits(self, tokens: int, reserved: int) -> bool:
        """Tell whether so many tokens more would fit beside what is reserved."""
        return self.tokens + tokens <= self._budget - reserved

    def tail(self, table: MemoryPages) -> list[Msg] | None:
        """Return what came behind it and concerns nothing in it; None if anything else changed."""
        new = table.messages[len(self._ids) :]
        is_alone = self._is_whole and self._begins(table) and self._marks_came_with(new, table)
        if not is_alone or repair(new).repairs:
            return None
        calls = [call["id"] for msg in new for call in calls_in(msg)]
        return None if any(call in self._calls for call in calls) else new

    def grow(self, table: MemoryPages, tokens: int) -> None:
        """Show all that came behind it too."""
        first = len(self._ids)
        self.tokens += tokens
        self._shown += range(first, len(table.messages))
        self._calls.update(call["id"] for msg in table.messages[first:] for call in calls_in(msg))
        self._hold(table)

    def messages(self, table: MemoryPages) -> list[Msg]:
        """Return what is shown, in messages of the reader's own."""
        return [
            table.messages[each] if isinstance(each, int) else thaw(each) for each in self._shown
        ]

    def _begins(self, table: MemoryPages) -> bool:
        """Tell whether the messages of a table begin with those of this one."""
        if self._summary != table.summary:
            return False
        begin = table.messages[: len(self._ids)]
        return self._ids == [msg.id for msg in begin] and self._contents == contents_of(begin)

    def _marks_came_with(self, new: list[Msg], table: MemoryPages) -> bool:
        """Tell whether the only marks that changed are those of new messages, none of them thin."""
        ids = {msg.id for msg in new}
        return all(
            table.marked[mark] ^ marked <= (set() if mark == OFFLOADED else ids)
            for mark, marked in self._marked.items()
        )


def contents_of(messages: list[Msg]) -> list[Content]:
    """Return what messages say, to be read only."""
    return list(map(peek_content, messages))
