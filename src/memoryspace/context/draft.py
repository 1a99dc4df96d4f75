"""A compaction in progress: what is resident, what leaves, and what it costs.

Content leaves in three ways: ``stub`` replaces the big parts of a message by stubs, ``drop``
removes a group, ``summarise`` lets the summary replace a group. Everything that leaves is recorded
as a parcel for the archive and as a loss. Nothing is final until the parcels are archived, so a
draft can be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ..message import Msg
from .archive import Parcel
from .archive.base import SHORTEST_HANDLE
from .history import Group, GroupedHistory, Pages
from .limits import Limits
from .losses import Loss, What
from .meter import Meter, divided, estimated_cost
from .rendering import Kind
from .stubs import StubbedMessage, StubMaker
from .summaries.summary import SummaryMessage

SUMMARY_HOLDER = "summary"  # the holder of contents that belong to no message
_SHARE_OF_REPLACED = 3  # a summary takes at most a third of the tokens it replaces
_SHARE_OF_BUDGET = 5  # and at most a fifth of the budget
_SMALL_GROUP = 8  # messages; measuring a larger group again for each of them would take too long
_LONG_HANDLE = "a0" * (SHORTEST_HANDLE // 2)  # no handle takes more tokens
_MANY = 999_999  # messages; no summary names a longer number


class Leave(NamedTuple):
    """A proposal of a step: the big parts of a message, or a whole group, may leave.

    Attributes:
        how: ``stub`` the big parts of a message, or ``drop`` or ``summarise`` the group.
        group: The group.
        why: The reason, for the report.
        at: For a stub, the place of the message in the group.
    """

    how: Literal["stub", "drop", "summarise"]
    group: Group
    why: str
    at: int = 0


class Draft:
    """A compaction in progress. Steps read it; only the compactor changes it.

    Attributes:
        history: The whole history, in groups.
        limits: The limits of the compactor.
        available: The tokens that messages may take: the budget less what is reserved.
        groups: The groups of the history, oldest first.
        summary: The current summary.
        leaving: Groups to be summarised in this compaction.
    """

    def __init__(
        self,
        history: GroupedHistory,
        limits: Limits,
        available: int,
        meter: Meter,
        stubs: StubMaker,
    ) -> None:
        self.history = history
        self.limits = limits
        self.available = available
        self.meter = meter
        self.stubs = stubs
        self.groups = history.groups
        self.summary = SummaryMessage()
        self.leaving: list[Group] = []
        self.leaving_cost = 0
        self.leaving_for = "", ""  # why, and by which step
        self.parcels: list[Parcel] = []
        self.losses: list[Loss] = []
        self._resident_cost = 0
        self._summary_cost = 0
        self._note_cost = 0

    async def open(self, pages: Pages) -> None:
        """Apply the page table of earlier compactions, and measure the result."""
        await self.set_summary(SummaryMessage.read(pages.summary))
        for group in self.groups:
            if not group.verbatim and group.is_among(pages.summarised):
                group.fate = "summarised"
            elif not group.verbatim and group.is_among(pages.dropped):
                group.fate = "dropped"
            else:
                await self._show(group, pages)
        self._resident_cost = await self.meter.frame() + sum(map(_cost, self.resident()))
        handles = (*self.summary.handles, _LONG_HANDLE)
        self._note_cost = await self.cost_of(SummaryMessage("", _MANY, handles))

    @property
    def total(self) -> int:
        """The tokens of everything resident, with the longest summary allowed."""
        if not self.leaving:
            return self._resident_cost + self._summary_cost
        return self._resident_cost + self._note_cost + self.summary_budget

    @property
    def low_water(self) -> int:
        """The tokens down to which a history over the budget is compacted."""
        return int(self.available * self.limits.low_water)

    @property
    def whole_cost(self) -> int:
        """The tokens of everything resident or leaving, with the current summary."""
        return self._resident_cost + self.leaving_cost + self._summary_cost

    @property
    def has_long_summary(self) -> bool:
        """Whether nothing leaves, the budget is exceeded, and the summary could be shorter."""
        return not self.leaving and self.total > self.available and bool(self.summary.body)

    @property
    def summary_budget(self) -> int:
        """The tokens that the text of the new summary may take."""
        whole = self.leaving_cost + self._summary_cost
        most = min(self.limits.summary, self.available // _SHARE_OF_BUDGET)
        return max(0, min(most, whole // _SHARE_OF_REPLACED, whole - self._note_cost - 1))

    @property
    def is_worth_it(self) -> bool:
        """Whether a summary without text would be shorter than what it replaces."""
        return self.leaving_cost + self._summary_cost > self._note_cost

    def resident(self) -> Iterator[Group]:
        """Yield the resident groups."""
        return (group for group in self.groups if group.fate == "resident")

    async def apply(self, leave: Leave, step: str) -> None:
        """Carry out a proposal, unless the group must stay or nothing would be saved."""
        if leave.how == "stub":
            await self._stub(leave, step)
        elif not leave.group.may_leave:
            return
        elif leave.how == "drop":
            self._drop(leave, step)
        else:
            self._summarise(leave, step)

    def restore_leaving(self) -> None:
        """Make the groups resident again that were to be summarised."""
        for group in self.leaving:
            group.fate = "resident"
        self._resident_cost += self.leaving_cost
        self.leaving, self.leaving_cost = [], 0

    async def set_summary(self, summary: SummaryMessage) -> None:
        """Set the summary. It also replaces everything that is leaving."""
        self.summary = summary
        self._summary_cost = await self.cost_of(summary)
        self.leaving, self.leaving_cost = [], 0

    async def cost_of(self, summary: SummaryMessage) -> int:
        """Return the tokens of a summary as a message."""
        return sum(await self.meter.costs([summary.message("")])) if summary.text else 0

    def archive(self, data: str, groups: Sequence[Group] = ()) -> str:
        """Add a content for the archive, held by all messages of the groups; return its handle."""
        kind: Kind = "messages" if groups else "text"
        ids = ids_of(groups)
        self.parcels += [Parcel(data, kind, holder) for holder in ids or (SUMMARY_HOLDER,)]
        return self.stubs.handle(kind, data)

    def record_loss(
        self, what: What, handle: str, ids: tuple[str, ...], tokens: int, why: str, step: str
    ) -> None:
        """Record that something left."""
        self.losses.append(
            Loss(what=what, why=why, step=step, message_ids=ids, tokens=tokens, handle=handle)
        )

    async def _stub(self, leave: Leave, step: str) -> None:
        group, at = leave.group, leave.at
        msg = group.originals[at]
        is_open = group.fate == "resident" and group.is_whole(at) and msg.id not in group.verbatim
        stubbed = self.stubs.stub(msg) if is_open else None
        if stubbed is None:
            return
        messages = [*group.messages[:at], stubbed.message, *group.messages[at + 1 :]]
        costs = await self._costs(group, messages, at)
        saved = group.cost - sum(costs)
        if saved > 0:
            group.messages, group.costs = messages, costs
            self._resident_cost -= saved
            self._record_losses(stubbed, saved, leave.why, step)

    async def _costs(self, group: Group, messages: list[Msg], at: int) -> list[int]:
        """Measure a group after one message changed; of a large group, only that message."""
        if len(messages) <= _SMALL_GROUP:
            return await self.meter.group_costs(messages)
        costs = list(group.costs)
        before, after = estimated_cost(group.messages[at]), estimated_cost(messages[at])
        costs[at] = -(-costs[at] * after // max(1, before))
        return costs

    def _drop(self, leave: Leave, step: str) -> None:
        group = leave.group
        group.fate = "dropped"
        self._resident_cost -= group.cost
        handle = self.archive(written([group]), [group])
        self.record_loss("hint", handle, ids_of([group]), group.cost, leave.why, step)

    def _summarise(self, leave: Leave, step: str) -> None:
        group = leave.group
        group.fate = "summarised"
        self.leaving.append(group)
        self.leaving_cost += group.cost
        self.leaving_for = leave.why, step
        self._resident_cost -= group.cost

    async def _show(self, group: Group, pages: Pages) -> None:
        for at, msg in enumerate(group.originals):
            if msg.id in pages.offloaded and msg.id not in group.verbatim:
                stubbed = self.stubs.stub(msg)
                if stubbed is not None:
                    group.messages[at] = stubbed.message
                    self.parcels += [part.parcel for part in stubbed.parts]
        group.costs = await self.meter.group_costs(group.messages)

    def _record_losses(self, stubbed: StubbedMessage, saved: int, why: str, step: str) -> None:
        shares = divided(saved, [len(part.parcel.data) for part in stubbed.parts])
        for part, tokens in zip(stubbed.parts, shares, strict=True):
            self.parcels.append(part.parcel)
            self.record_loss(part.what, part.handle, (stubbed.message.id,), tokens, why, step)


def written(groups: Sequence[Group]) -> str:
    """Return the messages of groups as a JSON array."""
    return f"[{','.join(group.written for group in groups)}]"


def ids_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the ids of all messages of groups."""
    return tuple(msg.id for group in groups for msg in group.originals)


def _cost(group: Group) -> int:
    return group.cost
