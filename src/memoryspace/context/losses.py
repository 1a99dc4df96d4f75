"""The report of a compaction: what left, why, the tokens saved, and the handle to read it by."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ..message import Repair

# A summary leaves when a new one replaces it.
What: TypeAlias = Literal["tool_result", "media", "thinking", "hint", "messages", "summary"]


class Loss(Struct, frozen=True, kw_only=True):
    """One content that left the context.

    Attributes:
        what: The kind of content.
        why: The reason it was chosen.
        step: The name of the compaction step.
        message_ids: The messages it belonged to.
        tokens: The tokens saved.
        handle: ``expand(handle)`` returns the content, byte for byte.
    """

    what: What
    why: str
    step: str
    message_ids: tuple[str, ...]
    tokens: int
    handle: str


class LossReport(Struct, frozen=True, kw_only=True):
    """What a compaction did.

    Attributes:
        budget: The tokens that messages may take: the limit less what was reserved.
        tokens_before: The tokens that earlier compactions had left resident.
        tokens_after: The tokens of the result.
        losses: What left.
        repairs: What was wrong with the history, such as a tool call without a result.
        troubles: Failures the compaction worked around, such as a model that did not answer.
        excess: Why the result is over the budget, with the tokens of each part; "" if it fits.
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
        """The handles of all losses, each once."""
        return list(dict.fromkeys(loss.handle for loss in self.losses))
