"""``Compactor``: brings a history within a token budget and archives what leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..loops import finish
from ..message import Msg, thaw
from .archive import Archive, Parcel, RAMArchive
from .draft import Draft, ids_of
from .history import Fate, Group, GroupedHistory, Pages
from .limits import Limits
from .losses import LossReport
from .meter import Meter
from .rendering import Kind, parse
from .steps import DEFAULT_STEPS, Step
from .stubs import StubMaker
from .summaries import ExtractiveSummary, Summariser
from .summarising import SummaryWriter, archive_leaving

__all__ = ["Compacted", "Compactor", "Limits", "Pages"]

_ROUNDS = 5  # a second round needs two contents with the same short handle, which is rare
_CLASH = "handles clash"
_UNWRITABLE = "messages that cannot be serialised"
_NOT_KEPT = "the archive failed ({}), so nothing left the context"


class Compacted(NamedTuple):
    """The result of a compaction.

    Attributes:
        messages: The resident messages. A summary comes first, after the instructions (system
            messages at the very beginning).
        pages: The page table, to be passed to the next compaction of the same history.
        report: What left, why, and how many tokens it saved.
    """

    messages: list[Msg]
    pages: Pages
    report: LossReport


class Compactor:
    """Compacts the history of one session.

    Args:
        limits: How many tokens may stay resident.
        archive: Where everything goes that leaves; a ``RAMArchive`` by default.
        meter: Measures messages; estimates tokens by default.
        summariser: Writes summaries; ``ExtractiveSummary`` by default, and also if this one fails.
        steps: Choose what leaves, one after another; see ``memoryspace.context.steps``.

    Example::

        compactor = Compactor(Limits(budget=8000))
        messages, pages, report = await compactor.compact(history)
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
        fallback = ExtractiveSummary()
        self._writer = SummaryWriter(summariser if summariser is not None else fallback, fallback)
        self._stubs = StubMaker(limits.preview)
        self._kept_as: dict[int, str] = {}  # hash of a content and its holder → handle

    def __repr__(self) -> str:
        return f"Compactor(budget={self.limits.budget}, archive={self.archive!r})"

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
        """Return the resident part of a history.

        While the result fits, nothing that was resident changes. The newest user message always
        stays.

        Args:
            messages: The whole history, without a summary.
            pages: The page table of the previous compaction; what it decided stays decided.
            pinned: Ids of messages that must stay.
            hints: Ids of messages that leave first, once the agent has used them.
            reserved: Tokens of the budget needed by the rest of the prompt, such as instructions
                and tool schemas.
            force: Compact to the low water mark even if the history fits.

        Returns:
            The resident messages, the new page table and the report. A failure of the archive or
            the summariser does not raise; ``report.troubles`` names it.
        """
        given = pages if pages is not None else Pages()
        available = max(0, self.limits.budget - reserved)

        async def opened() -> Draft:
            keep_recent = self.limits.keep_recent
            history = GroupedHistory(messages, pinned=pinned, hints=hints, keep_recent=keep_recent)
            draft = Draft(history, self.limits, available, self.meter, self._stubs)
            await draft.open(given)
            return draft

        trouble = _CLASH
        for _ in range(_ROUNDS):
            if trouble is not _CLASH:
                break
            draft = await opened()
            before = draft.total
            await self._choose(draft, force)
            archived = archive_leaving(draft) if draft.leaving or draft.has_long_summary else None
            trouble = await self._keep(draft)
            if not trouble:
                troubles = await self._writer.write(draft, archived) if archived is not None else []
                return await _result(draft, before, troubles)
        return await _result(await opened(), before, [_NOT_KEPT.format(trouble)])

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return the archived content of a handle: text, messages or blocks.

        Raises:
            UnknownHandle: Nothing is archived under the handle.
        """
        parcel = await asyncio.to_thread(self.archive.get, handle)
        if parcel.kind == "text":
            return parcel.data
        found = parse(parcel.data)
        return found if parcel.kind == "blocks" else [Msg.from_dict(each) for each in found]

    async def _choose(self, draft: Draft, force: bool) -> None:
        """Apply the steps until the draft fits."""
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
                await draft.apply(leave, step.name)
        if not draft.is_worth_it:
            draft.restore_leaving()

    async def _keep(self, draft: Draft) -> str:
        """Archive all parcels; return why that failed, or that handles clash, or ""."""
        if not draft.parcels:
            return ""
        try:
            handles = await finish(asyncio.to_thread(self._put, draft.parcels))
        except Exception as error:  # what is not archived must not leave, whatever the error
            return type(error).__name__
        renamed = [self._stubs.rename(*content, handle) for content, handle in handles.items()]
        return _CLASH if any(renamed) else ""

    def _put(self, parcels: Sequence[Parcel]) -> dict[tuple[Kind, str], str]:
        """Archive the parcels that earlier compactions have not; return the new handles."""
        kept = {_key(each): self._kept_as.get(_key(each), "") for each in parcels}
        new = [each for each in parcels if not self.archive.holds(kept[_key(each)])]
        handles = [each.handle for each in self.archive.put(new)] if new else []
        kept.update((_key(each), handle) for each, handle in zip(new, handles, strict=True))
        self._kept_as = kept  # only parcels of this draft are needed next time
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
    """Return the resident messages: instructions, the summary, and the rest in order."""
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
    """Return a message the caller may change: stubs are cached, so they are copied."""
    return group.messages[at] if group.is_whole(at) else thaw(group.messages[at])


async def excess_of(draft: Draft) -> str:
    """Return why a result is over the budget: its parts with their tokens, which add up."""
    tokens: dict[str, int] = {"the prompt's frame": await draft.meter.frame()}
    tokens["the summary"] = await draft.cost_of(draft.summary)
    for group in draft.resident():
        kind = _kind(draft, group)
        tokens[kind] = tokens.get(kind, 0) + group.cost
    parts = ", ".join(f"{kind}: {count}" for kind, count in tokens.items() if count)
    reserved = draft.limits.budget - draft.available
    less = f" ({draft.limits.budget} less the reserved tokens)" if reserved else ""
    return f"{draft.total} tokens of {draft.available}{less}, and nothing more can leave ({parts})"


def _kind(draft: Draft, group: Group) -> str:
    history = draft.history
    if history.newest in group.verbatim:
        return "the newest user message"
    if history.instructions & group.verbatim:
        return "instructions"
    if group.verbatim:
        return "pinned messages and their tool calls or results"
    return "messages that no step may remove" if group.written else _UNWRITABLE
