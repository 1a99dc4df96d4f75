"""A history on its way to being compacted: what is resident, what leaves, what it costs.

Things leave through three doors: ``stub`` shows a message in its thin form, ``drop`` takes a group
away, ``summarise`` has a group stood for by the summary. Whatever leaves is noted as a parcel for
the archive and as a loss. Nothing is final until the parcels are kept: a draft can be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ..message import Msg
from .archive import Parcel
from .archive.base import SHORTEST_HANDLE
from .history import Group, History, Pages
from .limits import Limits
from .losses import Loss, What
from .meter import Meter, divided, estimated_cost
from .rendering import Kind
from .stubs import Thinned, Thinner
from .summaries.summary import SummaryMessage

SUMMARY_HOLDER = "summary"  # who holds what belongs to no message
_SHARE_OF_WHAT_LEFT = 3  # a summary has at most a third of the tokens it stands for
_SHARE_OF_BUDGET = 5
_SMALL_GROUP = 8  # messages; measuring a large one again for each of them would take too long
_LONG_HANDLE = "a0" * (SHORTEST_HANDLE // 2)  # no handle has more tokens
_MANY = 999_999  # messages: no stand-in will name a longer number


class Leave(NamedTuple):
    """Something that may leave: a message's big parts, or a whole group."""

    how: Literal["stub", "drop", "summarise"]
    group: Group
    why: str
    at: int = 0  # which message of the group, for a stub


class Draft:
    """A history, and what becomes of it. ``available`` are the tokens that messages may take."""

    def __init__(
        self, history: History, limits: Limits, available: int, meter: Meter, thinner: Thinner
    ) -> None:
        self.history = history
        self.limits = limits
        self.available = available
        self.meter = meter
        self.thinner = thinner
        self.groups = history.groups
        self.summary = SummaryMessage()
        self.leaving: list[Group] = []  # to be summarised now
        self.leaving_cost = 0
        self.leaving_for = "", ""  # why, and by which step
        self.parcels: list[Parcel] = []
        self.losses: list[Loss] = []
        self._resident_cost = 0
        self._summary_cost = 0
        self._note_cost = 0

    async def open(self, pages: Pages) -> None:
        """Show the history as earlier compactions decided, and measure it."""
        await self.stand(SummaryMessage.read(pages.summary))
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
        """The tokens of all that is resident, with as much summary as there may be."""
        if not self.leaving:
            return self._resident_cost + self._summary_cost
        return self._resident_cost + self._note_cost + self.room

    @property
    def low_water(self) -> int:
        """The tokens to which a history that is too long is brought down."""
        return int(self.available * self.limits.low_water)

    @property
    def whole_cost(self) -> int:
        """The tokens of all that is resident or leaving, with the summary as it is."""
        return self._resident_cost + self.leaving_cost + self._summary_cost

    @property
    def is_verbose(self) -> bool:
        """Whether nothing more leaves, and it is too long, and the summary could be shorter."""
        return not self.leaving and self.total > self.available and bool(self.summary.body)

    @property
    def room(self) -> int:
        """The tokens that the text of a new summary may take."""
        whole = self.leaving_cost + self._summary_cost
        most = min(self.limits.summary, self.available // _SHARE_OF_BUDGET)
        return max(0, min(most, whole // _SHARE_OF_WHAT_LEFT, whole - self._note_cost - 1))

    @property
    def is_worth_it(self) -> bool:
        """Whether the barest stand-in is shorter than what is leaving."""
        return self.leaving_cost + self._summary_cost > self._note_cost

    def resident(self) -> Iterator[Group]:
        """Yield the groups that are shown."""
        return (group for group in self.groups if group.fate == "resident")

    async def let(self, leave: Leave, step: str) -> None:
        """Let something leave, unless it has to stay, or staying takes less."""
        if leave.how == "stub":
            await self._stub(leave, step)
        elif not leave.group.may_leave:
            return
        elif leave.how == "drop":
            self._drop(leave, step)
        else:
            self._summarise(leave, step)

    def summarise_nothing(self) -> None:
        """Show the groups again that were to be summarised."""
        for group in self.leaving:
            group.fate = "resident"
        self._resident_cost += self.leaving_cost
        self.leaving, self.leaving_cost = [], 0

    async def stand(self, summary: SummaryMessage) -> None:
        """Show this stand-in, for all that is leaving too."""
        self.summary = summary
        self._summary_cost = await self.cost_of(summary)
        self.leaving, self.leaving_cost = [], 0

    async def cost_of(self, summary: SummaryMessage) -> int:
        """Return the tokens that a stand-in takes as a message."""
        return sum(await self.meter.costs([summary.message("")])) if summary.text else 0

    def stow(self, data: str, groups: Sequence[Group] = ()) -> str:
        """Have something kept, held by all messages of the groups; return its handle."""
        kind: Kind = "messages" if groups else "text"
        ids = ids_of(groups)
        self.parcels += [Parcel(data, kind, holder) for holder in ids or (SUMMARY_HOLDER,)]
        return self.thinner.handle(kind, data)

    def lose(
        self, what: What, handle: str, ids: tuple[str, ...], tokens: int, why: str, step: str
    ) -> None:
        """Note that something left."""
        self.losses.append(
            Loss(what=what, why=why, step=step, message_ids=ids, tokens=tokens, handle=handle)
        )

    async def _stub(self, leave: Leave, step: str) -> None:
        group, at = leave.group, leave.at
        msg = group.originals[at]
        is_open = group.fate == "resident" and group.is_whole(at) and msg.id not in group.verbatim
        thin = self.thinner.thin(msg) if is_open else None
        if thin is None:
            return
        messages = [*group.messages[:at], thin.message, *group.messages[at + 1 :]]
        costs = await self._costs(group, messages, at)
        saved = group.cost - sum(costs)
        if saved > 0:
            group.messages, group.costs = messages, costs
            self._resident_cost -= saved
            self._lose_parts(thin, saved, leave.why, step)

    async def _costs(self, group: Group, messages: list[Msg], at: int) -> list[int]:
        """Measure a group of which one message changed; of a large one, that message alone."""
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
        handle = self.stow(written([group]), [group])
        self.lose("hint", handle, ids_of([group]), group.cost, leave.why, step)

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
                thin = self.thinner.thin(msg)
                if thin is not None:
                    group.messages[at] = thin.message
                    self.parcels += [part.parcel for part in thin.parts]
        group.costs = await self.meter.group_costs(group.messages)

    def _lose_parts(self, thin: Thinned, saved: int, why: str, step: str) -> None:
        shares = divided(saved, [len(part.parcel.data) for part in thin.parts])
        for part, tokens in zip(thin.parts, shares, strict=True):
            self.parcels.append(part.parcel)
            self.lose(part.what, part.handle, (thin.message.id,), tokens, why, step)


def written(groups: Sequence[Group]) -> str:
    """Return the messages of groups as a JSON array."""
    return f"[{','.join(group.written for group in groups)}]"


def ids_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the ids of all messages of groups."""
    return tuple(msg.id for group in groups for msg in group.originals)


def _cost(group: Group) -> int:
    return group.cost
