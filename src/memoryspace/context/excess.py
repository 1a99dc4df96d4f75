"""Why a result is over the budget: what stays, and how much it takes."""

from __future__ import annotations

from .draft import Draft
from .history import Group


async def excess_of(draft: Draft) -> str:
    """Return the parts of what is resident, with their tokens; they add up to all of it."""
    tokens: dict[str, int] = {"the prompt's frame": await draft.meter.frame()}
    tokens["the summary"] = await draft.cost_of(draft.stand_in)
    for group in draft.resident():
        kind = _kind(draft, group)
        tokens[kind] = tokens.get(kind, 0) + group.cost
    parts = ", ".join(f"{kind}: {count}" for kind, count in tokens.items() if count)
    reserved = draft.limits.budget - draft.available
    less = f" ({draft.limits.budget} less what is reserved)" if reserved else ""
    return f"{draft.total} tokens of {draft.available}{less}, and nothing more can leave ({parts})"


def _kind(draft: Draft, group: Group) -> str:
    history = draft.history
    if history.newest in group.verbatim:
        return "the newest user message"
    if history.instructions & group.verbatim:
        return "instructions"
    if group.verbatim:
        return "pinned messages and what belongs to them"
    return "messages that no step could let go" if group.written else _UNWRITABLE


_UNWRITABLE = "messages that cannot be written down"
