"""What left the context, why, how many tokens it took, and how to get it back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ..message import Repair

# A summary leaves when another one takes its place.
What: TypeAlias = Literal["tool_result", "media", "thinking", "hint", "messages", "summary"]


class Loss(Struct, frozen=True, kw_only=True):
    """One thing that left. ``expand(handle)`` gives it back, byte for byte."""

    what: What
    why: str
    step: str
    message_ids: tuple[str, ...]
    tokens: int  # how many fewer the context has for it
    handle: str


class LossReport(Struct, frozen=True, kw_only=True):
    """What a compaction did.

    ``budget`` are the tokens that messages may take: the limit, less what was reserved. Tokens
    before are those of what earlier compactions had left resident. ``excess`` says exactly why the
    result is over the budget, and is empty if it is not. ``troubles`` are things that failed on
    the way and were done without, such as a model.
    """

    budget: int
    tokens_before: int
    tokens_after: int
    losses: tuple[Loss, ...] = ()
    repairs: tuple[Repair, ...] = ()
    troubles: tuple[str, ...] = ()
    excess: str = ""

    @property
    def is_within_budget(self) -> bool:
        """Whether the result fits."""
        return self.tokens_after <= self.budget

    @property
    def handles(self) -> list[str]:
        """What to ask for to get everything back, each handle once."""
        return list(dict.fromkeys(loss.handle for loss in self.losses))
