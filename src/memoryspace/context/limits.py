"""How much of a history may be resident."""

from __future__ import annotations

from msgspec import Struct

from ..errors import InvalidInput

_BIG = 2000  # tokens of a tool's result that is big in any case
_SHARE = 4  # and so is a quarter of the budget


def big_result(budget: int) -> int:
    """Return from how many tokens on a tool's result is big in a window of so many."""
    return min(_BIG, budget // _SHARE)


class Limits(Struct, frozen=True, kw_only=True):
    """How much may stay.

    A history over ``budget`` tokens is compacted until it has at most ``low_water`` of it, so that
    the next compaction is far and the prompt's beginning stays the same in between. The newest
    ``keep_recent`` messages are left alone while there is another way. Older tool results from
    ``tool_result`` tokens on leave first; ``preview`` characters of them stay. A summary has at
    most ``summary`` tokens, and never more than a fifth of the budget.
    """

    budget: int
    low_water: float = 0.7
    keep_recent: int = 10
    tool_result: int = _BIG
    preview: int = 400
    summary: int = 800

    def __post_init__(self) -> None:
        if type(self.budget) is not int or self.budget < 1:
            raise InvalidInput(
                f"budget must be a whole number of tokens from 1 on, got {self.budget!r}"
            )
        for name in ("keep_recent", "tool_result", "preview", "summary"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InvalidInput(f"{name} must be a whole number from 0 on, got {value!r}")
        if not 0 <= self.low_water <= 1:
            raise InvalidInput(f"low_water must be from 0 to 1, got {self.low_water!r}")
