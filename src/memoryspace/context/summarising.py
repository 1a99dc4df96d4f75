"""The summary at work: what is leaving becomes part of the stand-in."""

from __future__ import annotations

from typing import NamedTuple

from .draft import Draft, ids_of, written
from .meter import estimated_cost
from .summaries import Summariser
from .summaries.summary import MOST_HANDLES, SummaryMessage, clipped

_STEP = "summarise"
_SMALLEST_BODY = 16  # tokens; less says nothing
_TRIES = 8
_SAMPLE = 64  # groups that tell how two ways to count compare
_INDEX = """\
Summaries stood for these, oldest first. Each is read with read_memory(handle).
{handles}"""


class Errand(NamedTuple):
    """Where things go before the summary of them is written."""

    handles: tuple[str, ...]  # that the stand-in will name
    messages: str  # the handle of what is leaving; "" if only the summary itself is too long
    earlier: str  # the handle of the earlier summary; "" if there was none


def stow(draft: Draft) -> Errand:
    """Have everything kept that the new stand-in takes the place of."""
    earlier = draft.summary
    handles, messages = earlier.handles, ""
    if draft.leaving:
        messages = draft.stow(written(draft.leaving), draft.leaving)
        handles = (*handles, messages)
    if len(handles) > MOST_HANDLES:
        index = draft.stow(_INDEX.format(handles="\n".join(handles[:-1])))
        handles = (index, messages)
    return Errand(handles, messages, draft.stow(earlier.body) if earlier.body else "")


class Scribe:
    """Writes summaries: by one summariser, and where that fails by another, which does not."""

    def __init__(self, summariser: Summariser, fallback: Summariser) -> None:
        self._summariser = summariser
        self._fallback = fallback

    async def write(self, draft: Draft, errand: Errand) -> list[str]:
        """Let a stand-in take the place of all that is leaving; return what went wrong."""
        leaving, earlier, before = draft.leaving, draft.summary, draft.whole_cost
        why, step = draft.leaving_for
        room = await _room(draft)
        text, troubles = earlier.body, list[str]()
        if leaving:
            text, troubles = await self._text(draft, _in_estimate(room, draft))
        count = earlier.messages + sum(len(group.originals) for group in leaving)
        await draft.stand(await fitted(draft, SummaryMessage(text, count, errand.handles), room))
        saved = before - draft.whole_cost
        if leaving:
            draft.lose("messages", errand.messages, ids_of(leaving), saved, why, step)
        if errand.earlier:
            tokens = 0 if leaving else saved
            draft.lose("summary", errand.earlier, (), tokens, "another takes its place", _STEP)
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
            except Exception as error:  # whatever it is, the compaction stands
                text, trouble = "", type(error).__name__
            if not trouble:
                return text, troubles
            troubles.append(f"the summary of {type(summarise).__name__} failed ({trouble})")
        return "", troubles


async def _room(draft: Draft) -> int:
    """Return the tokens that the text of the new stand-in may take."""
    if draft.leaving:
        return max(0, min(draft.room, draft.available - (draft.total - draft.room)))
    text = await draft.cost_of(draft.summary) - await draft.cost_of(draft.summary.bare)
    return max(0, draft.available - (draft.total - text))


async def fitted(draft: Draft, summary: SummaryMessage, room: int) -> SummaryMessage:
    """Return a stand-in whose text takes at most so many tokens; if need be, none at all."""
    note = await draft.cost_of(summary.bare)
    for _ in range(_TRIES):
        cost = await draft.cost_of(summary) - note
        if cost <= room:
            return summary
        length = len(summary.body) * room // max(1, cost) - 1
        summary = summary._replace(body=clipped(summary.body, length))
    return summary.bare


def _in_estimate(tokens: int, draft: Draft) -> int:
    """Turn tokens of the draft's meter into estimated ones, which is what summarisers count in."""
    sample = draft.leaving[:: 1 + len(draft.leaving) // _SAMPLE]
    estimated = sum(estimated_cost(msg) for group in sample for msg in group.messages)
    return tokens * estimated // max(1, sum(group.cost for group in sample))
