"""The summary step of a compaction: archives the groups that leave and writes their summary."""

from __future__ import annotations

from typing import NamedTuple

from .draft import Draft, ids_of, written
from .meter import estimated_cost
from .summaries import Summariser
from .summaries.summary import MOST_HANDLES, SummaryMessage, clipped

_STEP = "summarise"
_REPLACED = "a new summary replaces it"
_SMALLEST_BODY = 16  # tokens; a shorter text says nothing
_TRIES = 8
_SAMPLE = 64  # groups from which the ratio of two token counts is taken
_INDEX = """\
Summarised messages, oldest first. Read each with read_memory(handle).
{handles}"""


class SummaryHandles(NamedTuple):
    """The handles of what a new summary replaces, archived before it is written."""

    handles: tuple[str, ...]  # named in the summary message
    messages: str  # of the messages that leave; "" if only the summary is shortened
    earlier: str  # of the earlier summary; "" if there was none


def archive_leaving(draft: Draft) -> SummaryHandles:
    """Archive everything that the new summary replaces."""
    earlier = draft.summary
    handles, messages = earlier.handles, ""
    if draft.leaving:
        messages = draft.archive(written(draft.leaving), draft.leaving)
        handles = (*handles, messages)
    if len(handles) > MOST_HANDLES:
        index = draft.archive(_INDEX.format(handles="\n".join(handles[:-1])))
        handles = (index, messages)
    return SummaryHandles(handles, messages, draft.archive(earlier.body) if earlier.body else "")


class SummaryWriter:
    """Writes summaries with a summariser, or with the fallback if it fails."""

    def __init__(self, summariser: Summariser, fallback: Summariser) -> None:
        self._summariser = summariser
        self._fallback = fallback

    async def write(self, draft: Draft, archived: SummaryHandles) -> list[str]:
        """Replace everything that is leaving by a summary; return what went wrong."""
        leaving, earlier, before = draft.leaving, draft.summary, draft.whole_cost
        why, step = draft.leaving_for
        budget = await _body_budget(draft)
        text, troubles = earlier.body, list[str]()
        if leaving:
            text, troubles = await self._text(draft, _in_estimate(budget, draft))
        count = earlier.messages + sum(len(group.originals) for group in leaving)
        summary = SummaryMessage(text, count, archived.handles)
        await draft.set_summary(await fitted(draft, summary, budget))
        saved = before - draft.whole_cost
        if leaving:
            draft.record_loss("messages", archived.messages, ids_of(leaving), saved, why, step)
        if archived.earlier:
            tokens = 0 if leaving else saved
            draft.record_loss("summary", archived.earlier, (), tokens, _REPLACED, _STEP)
        return troubles

    async def _text(self, draft: Draft, max_tokens: int) -> tuple[str, list[str]]:
        if max_tokens < _SMALLEST_BODY:
            return "", []
        earlier = draft.summary.body
        messages = [msg for group in draft.leaving for msg in group.messages]
        troubles: list[str] = []
        for summarise in dict.fromkeys((self._summariser, self._fallback)):
            try:
                text = (await summarise(earlier, messages, max_tokens)).strip()
                trouble = "" if text else "empty"
            except Exception as error:  # the compaction succeeds without it
                text, trouble = "", type(error).__name__
            if not trouble:
                return text, troubles
            troubles.append(f"the summary of {type(summarise).__name__} failed ({trouble})")
        return "", troubles


async def _body_budget(draft: Draft) -> int:
    """Return the tokens that the text of the new summary may take."""
    if draft.leaving:
        most = draft.summary_budget
        return max(0, min(most, draft.available - (draft.total - most)))
    text = await draft.cost_of(draft.summary) - await draft.cost_of(draft.summary.bare)
    return max(0, draft.available - (draft.total - text))


async def fitted(draft: Draft, summary: SummaryMessage, budget: int) -> SummaryMessage:
    """Return the summary with its text clipped to a number of tokens, to nothing if needed."""
    note = await draft.cost_of(summary.bare)
    for _ in range(_TRIES):
        cost = await draft.cost_of(summary) - note
        if cost <= budget:
            return summary
        length = len(summary.body) * budget // max(1, cost) - 1
        summary = summary._replace(body=clipped(summary.body, length))
    return summary.bare


def _in_estimate(tokens: int, draft: Draft) -> int:
    """Convert tokens of the draft's meter to estimated tokens, which summarisers count in."""
    sample = draft.leaving[:: 1 + len(draft.leaving) // _SAMPLE]
    estimated = sum(estimated_cost(msg) for group in sample for msg in group.messages)
    return tokens * estimated // max(1, sum(group.cost for group in sample))
