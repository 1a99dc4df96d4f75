"""``Compactor``: a history becomes one that fits the budget; what left can be had back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..loops import finish
from ..message import Msg, thaw
from .archive import Archive, Parcel, RAMArchive
from .draft import Draft, ids_of
from .history import Fate, Group, History, Pages
from .limits import Limits
from .losses import LossReport
from .meter import Meter
from .rendering import Kind, parse
from .steps import DEFAULT_STEPS, Step
from .stubs import Thinner
from .summaries import ExtractiveSummary, Summariser
from .summarising import Scribe, stow

__all__ = ["Compacted", "Compactor", "Limits", "Pages"]

_ROUNDS = 5  # each is another clash of handles, so one is already a rarity
_CLASH = "handles clash"
_UNWRITABLE = "messages that cannot be written down"
_NOT_KEPT = "the archive could not keep what was to leave ({}), so nothing left"


class Compacted(NamedTuple):
    """The resident messages, the new page table, and the report.

    The summary, if any, comes first; only instructions (system messages at the very beginning)
    stand before it.
    """

    messages: list[Msg]
    pages: Pages
    report: LossReport


class Compactor:
    """Compacts histories of one session. Everything that leaves goes to ``archive``.

    ``steps`` choose what leaves, one after another; see ``memoryspace.context.steps``.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        archive: Archive | None = None,
        meter: Meter | None = None,
        summariser: Summariser | None = None,
        steps: Sequence[Step] = DEFAULT_STEPS,
    ) -> None:
        self.limits = limits
        self.archive = archive if archive is not None else RAMArchive()
        self.meter = meter if meter is not None else Meter()
        self.steps = tuple(steps)
        extractive = ExtractiveSummary()
        self._scribe = Scribe(summariser if summariser is not None else extractive, extractive)
        self._thinner = Thinner(limits.preview)
        self._kept_as: dict[int, str] = {}  # of a content and its holder → handle

    async def compact(
        self,
        messages: Sequence[Msg],
        *,
        pages: Pages | None = None,
        pinned: Collection[str] = (),
        hints: Collection[str] = (),
        reserved: int = 0,
        force: bool = False,
    ) -> Compacted:
        """Return what of a whole history is resident.

        ``messages`` is the whole history, without a summary; ``pages`` what earlier compactions
        decided, which stays decided: as long as the result fits, nothing that was resident
        changes. ``pinned`` messages stay, and so does the newest user message; ``hints`` leave
        first, once a step has had the use of them. ``reserved`` tokens of the budget are for the
        rest of the prompt: instructions, schemas of tools. With ``force`` it is compacted to the
        low water mark even if it fits.
        """
        given = pages if pages is not None else Pages()
        available = max(0, self.limits.budget - reserved)

        async def opened() -> Draft:
            keep_recent = self.limits.keep_recent
            history = History(messages, pinned=pinned, hints=hints, keep_recent=keep_recent)
            draft = Draft(history, self.limits, available, self.meter, self._thinner)
            await draft.open(given)
            return draft

        trouble = _CLASH
        for _ in range(_ROUNDS):
            if trouble is not _CLASH:
                break
            draft = await opened()
            before = draft.total
            await self._choose(draft, force)
            errand = stow(draft) if draft.leaving or draft.is_verbose else None
            trouble = await self._keep(draft)
            if not trouble:
                troubles = await self._scribe.write(draft, errand) if errand is not None else []
                return await _result(draft, before, troubles)
        return await _result(await opened(), before, [_NOT_KEPT.format(trouble)])

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return what left under a handle: a text, messages, or blocks."""
        parcel = await asyncio.to_thread(self.archive.get, handle)
        if parcel.kind == "text":
            return parcel.data
        found = parse(parcel.data)
        return found if parcel.kind == "blocks" else [Msg.from_dict(each) for each in found]

    async def _choose(self, draft: Draft, force: bool) -> None:
        """Let things leave until there is room."""
        if draft.total <= draft.available and not force:
            return
        low = draft.low_water
        for step in self.steps:
            if step.is_last_resort and draft.total <= draft.available:
                continue
            goal = (low + draft.available) // 2 if step.is_last_resort else low
            for leave in step.choose(draft):
                if draft.total <= goal:
                    break
                await draft.let(leave, step.name)
        if not draft.is_worth_it:
            draft.summarise_nothing()

    async def _keep(self, draft: Draft) -> str:
        """Have all parcels kept; return why they are not, or not under the handles they have."""
        if not draft.parcels:
            return ""
        try:
            handles = await finish(asyncio.to_thread(self._put, draft.parcels))
        except Exception as error:  # whatever it is, what is not kept must not leave
            return type(error).__name__
        renamed = [self._thinner.rename(*content, handle) for content, handle in handles.items()]
        return _CLASH if any(renamed) else ""

    def _put(self, parcels: Sequence[Parcel]) -> dict[tuple[Kind, str], str]:
        """Put what is not kept for its holder yet: most is, by an earlier compaction.

        Returns the handle of each content that was new.
        """
        kept = {_key(each): self._kept_as.get(_key(each), "") for each in parcels}
        new = [each for each in parcels if not self.archive.holds(kept[_key(each)])]
        handles = [each.handle for each in self.archive.put(new)] if new else []
        kept.update((_key(each), handle) for each, handle in zip(new, handles, strict=True))
        self._kept_as = kept  # what is not shown any more need not be remembered
        return {(each.kind, each.data): handle for each, handle in zip(new, handles, strict=True)}


def _key(parcel: Parcel) -> int:
    return hash((parcel.kind, parcel.data, parcel.holder))


async def _result(draft: Draft, before: int, troubles: Sequence[str]) -> Compacted:
    report = LossReport(
        budget=draft.available,
        tokens_before=before,
        tokens_after=draft.total,
        losses=tuple(draft.losses),
        repairs=draft.history.repairs,
        troubles=tuple(troubles),
        excess=await excess_of(draft) if draft.total > draft.available else "",
    )
    return Compacted(messages_of(draft), pages_of(draft), report)


def messages_of(draft: Draft) -> list[Msg]:
    """Return what is resident: instructions, the stand-in, and the rest in order."""
    first = len(draft.history.instructions)
    shown = [_own(group, at) for group in draft.resident() for at in range(len(group.messages))]
    if not draft.summary.text:
        return shown
    return [*shown[:first], draft.summary.message(draft.history.began), *shown[first:]]


def pages_of(draft: Draft) -> Pages:
    """Return the page table that shows the history as this draft does."""
    return Pages(
        offloaded=frozenset(
            msg.id
            for group in draft.resident()
            for at, msg in enumerate(group.originals)
            if not group.is_whole(at)
        ),
        summarised=_ids_of(draft, "summarised"),
        dropped=_ids_of(draft, "dropped"),
        summary=draft.summary.text,
    )


def _ids_of(draft: Draft, fate: Fate) -> frozenset[str]:
    return frozenset(ids_of([group for group in draft.groups if group.fate == fate]))


def _own(group: Group, at: int) -> Msg:
    """A thin form is remembered, so whoever asks gets one of his own."""
    return group.messages[at] if group.is_whole(at) else thaw(group.messages[at])


async def excess_of(draft: Draft) -> str:
    """Return the parts of what is resident, with their tokens; they add up to all of it."""
    tokens: dict[str, int] = {"the prompt's frame": await draft.meter.frame()}
    tokens["the summary"] = await draft.cost_of(draft.summary)
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
