"""``Limits``: how many tokens of a history may stay resident."""

from __future__ import annotations

from msgspec import Struct

from ..errors import InvalidInput

_BIG = 2000  # tokens; a tool result of this size is always big
_SHARE = 4  # and so is one of a quarter of the budget


def big_result(budget: int) -> int:
    """Return the number of tokens from which a tool result counts as big in a budget."""
    return min(_BIG, budget // _SHARE)


class Limits(Struct, frozen=True, kw_only=True):
    """How much of a history may stay resident.

    Attributes:
        budget: The tokens from which a history is compacted.
        low_water: The share of the budget it is compacted to. The next compaction is then far
            away, and the beginning of the prompt stays the same in between.
        keep_recent: The newest messages, which are changed only if nothing else is left.
        tool_result: The tokens from which an older tool result counts as big and leaves early.
        preview: The characters of such a result that stay.
        summary: The most tokens of a summary; it never takes more than a fifth of the budget.

    Raises:
        InvalidInput: A value is out of range.
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
                f"budget must be a positive whole number of tokens, got {self.budget!r}"
            )
        for name in ("keep_recent", "tool_result", "preview", "summary"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InvalidInput(f"{name} must be a whole number, 0 or more, got {value!r}")
        if not 0 <= self.low_water <= 1:
            raise InvalidInput(f"low_water must be between 0 and 1, got {self.low_water!r}")
