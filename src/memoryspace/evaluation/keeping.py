"""Strategies that keep a growing history within a token budget, and a judge of what they retain.

Before every step of a run, each strategy returns what the model would see. A fact that the step
needs (see ``needs``) is *resident* if it appears there. It is *reachable* if it is behind a handle
named there, or if a search of the memory would find it. A prompt over the budget would be refused,
so nothing in it counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ..context import Compactor, Limits, Pages, RAMArchive
from ..context.limits import big_result
from ..message import Msg, groups_of, repair
from ..token import estimate_tokens
from .needs import StepNeeds, steps_of, text_of
from .trajectories import Trajectory

CLEARED = "[cleared]"
KEPT_RESULTS = 3  # newest tool results that clearing leaves untouched
TOLERANCE = 1.05  # tolerance between token counters


@dataclass(frozen=True)
class View:
    """What a model would see, and what it could reach from there."""

    resident: str
    tokens: int
    named: str = ""  # texts behind handles that the resident text names
    stored: str = ""  # every text that a search would cover


class Keeper(ABC):
    """A strategy for one run's history. Histories passed to it only ever grow."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    @abstractmethod
    async def view(self, history: Sequence[Msg]) -> View:
        """Return what the model would see of a history."""


class Everything(Keeper):
    """No limit: the upper bound."""

    async def view(self, history: Sequence[Msg]) -> View:
        """Return the whole history."""
        return shown(history)


class Sliding(Keeper):
    """A sliding window: the newest whole groups that fit."""

    async def view(self, history: Sequence[Msg]) -> View:
        """Return the newest groups."""
        return shown(newest(history, self.budget))


class Clearing(Keeper):
    """Empties all but the newest tool results when the history does not fit, then slides."""

    async def view(self, history: Sequence[Msg]) -> View:
        """Return the history with results cleared, or its newest part."""
        if sum(map(_tokens, history)) <= self.budget:
            return shown(history)
        old = [msg for msg in history if msg.has_content_blocks("tool_result")][:-KEPT_RESULTS]
        ids = {msg.id for msg in old}
        cleared = [_emptied(msg) if msg.id in ids else msg for msg in history]
        return shown(newest(cleared, self.budget))


class Compacting(Keeper):
    """This package's context as shipped: evicted messages stay reachable."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        self._archive = RAMArchive()
        limits = Limits(budget=budget, tool_result=big_result(budget))  # the default of agents
        self._compactor = Compactor(limits, archive=self._archive)
        self._pages: Pages | None = None

    async def view(self, history: Sequence[Msg]) -> View:
        """Return the resident messages and the contents behind their handles."""
        found = await self._compactor.compact(history, pages=self._pages)
        self._pages = found.pages
        resident = shown(found.messages)
        kept = [(each.handle, self._archive.get(each.handle).data) for each in self._archive.list()]
        return View(
            resident.resident,
            resident.tokens,
            "\n".join(data for handle, data in kept if handle in resident.resident),
            "\n".join(data for _, data in kept),
        )


KEEPERS: dict[str, type[Keeper]] = {
    "sliding window": Sliding,
    "clear tool results": Clearing,
    "memoryspace": Compacting,
}


@dataclass(frozen=True)
class Judged:
    """One fact that a step needed: its age, and whether it was resident or reachable."""

    run: str
    at: int
    age: int
    tokens: int  # tokens shown to the model before this step
    is_refused: bool  # the prompt is over the budget
    is_resident: bool
    is_named: bool
    is_stored: bool


async def judge(run: Trajectory, keeper: Keeper) -> list[Judged]:
    """Replay a run step by step; only steps whose history is over the budget count."""
    steps = {step.at: step for step in steps_of(run.messages, run.instructions)}
    found: list[Judged] = []
    total = 0
    for at, msg in enumerate(run.messages):
        if total > keeper.budget and msg.role == "assistant":
            view = await keeper.view(run.messages[:at])
            found += _judged(run.id, steps.get(at), view, keeper.budget)
        total += _tokens(msg)
    return found


def shown(messages: Sequence[Msg]) -> View:
    """Return a view of these messages alone."""
    text = "\n".join(map(text_of, messages))
    return View(text, sum(map(_tokens, messages)))


def newest(history: Sequence[Msg], budget: int) -> list[Msg]:
    """Return the newest whole groups that fit together; at least the newest one."""
    kept: list[list[Msg]] = []
    room = budget
    for group in reversed(groups_of(repair(history).messages)):
        room -= sum(map(_tokens, group))
        if room < 0 and kept:
            break
        kept.append(group)
    return [msg for group in reversed(kept) for msg in group]


def _judged(run: str, step: StepNeeds | None, view: View, budget: int) -> list[Judged]:
    if step is None:
        return []
    is_refused = view.tokens > budget * TOLERANCE
    if is_refused:
        view = View("", view.tokens)
    return [
        Judged(
            run,
            step.at,
            need.age,
            view.tokens,
            is_refused,
            need.fact in view.resident,
            need.fact in view.resident or need.fact in view.named,
            need.fact in view.resident or need.fact in view.stored,
        )
        for need in step.needs
    ]


def _tokens(msg: Msg) -> int:
    return estimate_tokens(text_of(msg)) + 3


def _emptied(msg: Msg) -> Msg:
    copy = Msg.from_dict(msg.to_dict())
    copy.content = [
        {**block, "output": CLEARED} if block["type"] == "tool_result" else block
        for block in msg.get_content_blocks()
    ]
    return copy
