"""Matching of tool results to tool calls, and unique names for both."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .tool_blocks import Block


class UniqueNames:
    """Makes names unique by appending a number. Repeated requests for one name stay cheap."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # the next number to try for each name

    def fresh(self, name: str) -> str:
        """Reserve and return ``name``, or ``name`` with the next free number."""
        wanted, number = name, self._numbers.get(name, 2)
        while wanted in self._taken:
            wanted, number = f"{name}-{number}", number + 1
        self._numbers[name] = number
        self._taken.add(wanted)
        return wanted


class PairedCall:
    """A tool call: its repaired block, and the position of its message in the repaired history."""

    __slots__ = ("block", "id", "is_answered", "place")

    def __init__(self, block: Block, place: int) -> None:
        self.block, self.place = block, place
        self.id: str = block["id"]
        self.is_answered = False


class OpenCalls:
    """The calls that have no result yet, by id.

    If several calls share an id, those of the newest message come first, in their order.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[deque[PairedCall]]] = {}

    def add(self, named: str, call: PairedCall) -> None:
        """Add a call that expects a result with the id ``named``."""
        waiting = self._waiting.setdefault(named, [])
        if waiting and waiting[-1][0].place == call.place:
            waiting[-1].append(call)
        else:
            waiting.append(deque([call]))

    def take(self, named: str) -> PairedCall | None:
        """Remove and return the call that a result with this id belongs to; None if none."""
        waiting = self._waiting.get(named)
        if not waiting:
            return None
        call = waiting[-1].popleft()
        if not waiting[-1]:
            waiting.pop()
        return call
