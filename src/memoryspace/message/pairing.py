"""Which result is for which call, and names that nobody has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .tool_blocks import Block


class Names:
    """Gives out names that nobody has. However many ask for the same one, each costs little."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # the first that was not tried yet

    def fresh(self, name: str) -> str:
        """Take a name, or this name with the next free number."""
        wanted, number = name, self._numbers.get(name, 2)
        while wanted in self._taken:
            wanted, number = f"{name}-{number}", number + 1
        self._numbers[name] = number
        self._taken.add(wanted)
        return wanted


class Call:
    """A call: its block, mended if need be, and the place of its message among those kept."""

    __slots__ = ("block", "id", "is_answered", "place")

    def __init__(self, block: Block, place: int) -> None:
        self.block, self.place = block, place
        self.id: str = block["id"]
        self.is_answered = False


class OpenCalls:
    """The calls that wait for a result, by the id it will name.

    Where several wait under one id, those of the newest message come first, in their order.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[deque[Call]]] = {}

    def add(self, named: str, call: Call) -> None:
        """Let a call wait."""
        waiting = self._waiting.setdefault(named, [])
        if waiting and waiting[-1][0].place == call.place:
            waiting[-1].append(call)
        else:
            waiting.append(deque([call]))

    def take(self, named: str) -> Call | None:
        """Return the call that a result is for, which then waits no more."""
        waiting = self._waiting.get(named)
        if not waiting:
            return None
        call = waiting[-1].popleft()
        if not waiting[-1]:
            waiting.pop()
        return call
