"""The steps of compaction. A step knows only what goes next; how much has to go is known elsewhere.

A step is any object with a ``name`` and a method ``choose`` that yields what may leave, in the
order in which it had better go. It is asked for one thing after another until there is room, so
it should yield lazily. Pinned messages and the newest user message stay whatever a step chooses.
"""
# ruff: noqa: D102  # Step says it

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..message import Msg
from ..message.blocks import BlockType
from ..message.tool_blocks import calls_in, results_in
from .draft import Draft, Leave
from .history import Group
from .meter import media_cost

_OLDEST = "the oldest of what was said"
_MAY_BE_STUBS: tuple[BlockType, ...] = ("tool_result", "thinking", "image", "audio", "video")


class Step(Protocol):
    """Chooses what leaves. A last resort is asked only if all others were not enough for the
    budget, and until it fits; the others go on to the low water mark."""

    @property
    def name(self) -> str:
        """What it does, in a word or two; a loss names it."""

    @property
    def is_last_resort(self) -> bool:
        """Whether it touches what had better stay."""

    def choose(self, draft: Draft) -> Iterable[Leave]:
        """Yield what may leave, what had better go first."""


class DropHints:
    """One-shot hints that the agent has had the use of."""

    name, is_last_resort = "drop hints", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        used = False
        leaves: list[Leave] = []
        for group in reversed(draft.groups):
            if used and len(group.originals) == 1 and group.id in draft.history.hints:
                leaves.append(Leave("drop", group, "a hint for one step, which is over"))
            used = used or group.originals[0].role == "assistant"
        yield from reversed(leaves)


class SummariseOldest:
    """The oldest of what would be summarised in the end, whatever else left before.

    That is so while even without all that old messages can do without, too much would stay. They
    go whole: to make stubs of them first would be work for nothing, and the summary sees it all.
    """

    name, is_last_resort = "summarise", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        thin = [_thinnable(group) for group in draft.groups]
        could_leave = sum(thin)
        for group, part in zip(draft.groups, thin, strict=True):
            if draft.total - could_leave <= draft.low_water:
                return
            if not group.is_recent:
                yield Leave("summarise", group, _OLDEST)
                could_leave -= part


class ClearRepeated:
    """Older results of calls that were made again, with the same arguments."""

    name, is_last_resort = "clear repeated results", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        later: set[str] = set()
        leaves: list[Leave] = []
        for group in reversed(draft.groups):
            calls = {call["id"]: _call_key(call) for call in calls_in(group.originals[0])}
            for at, msg in enumerate(group.originals):
                results = results_in(msg)
                is_repeated = results and all(
                    calls.get(result["id"]) in later for result in results
                )
                if is_repeated and not group.is_recent:
                    leaves.append(Leave("stub", group, "the same call was made again later", at))
            later.update(calls.values())
        yield from reversed(leaves)


class OffloadResults:
    """Results of tools that are big, oldest first."""

    name, is_last_resort = "off-load big results", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        big = draft.limits.tool_result
        for group, at, msg in _old_messages(draft):
            if group.costs[at] >= big and results_in(msg):
                yield Leave("stub", group, f"a result of {big:,} tokens or more", at)


class StubMedia:
    """Pictures, sounds and films, oldest first."""

    name, is_last_resort = "stub media", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group, at, msg in _old_messages(draft):
            if media_cost(msg):
                yield Leave("stub", group, "pictures, sounds or films of earlier", at)


class DropThoughts:
    """What the model thought in earlier steps; providers want to see that of the last one again."""

    name, is_last_resort = "drop thoughts", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        spoken = [group for group in draft.groups if group.originals[0].role == "assistant"]
        for group, at, msg in _old_messages(draft):
            if msg.has_content_blocks("thinking") and group not in spoken[-1:]:
                yield Leave("stub", group, "thoughts of earlier steps", at)


class ClearResults:
    """Results of tools that are not among the recent messages, oldest first."""

    name, is_last_resort = "clear old results", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group, at, msg in _old_messages(draft):
            if results_in(msg):
                yield Leave("stub", group, "a result of an earlier step", at)


class Summarise:
    """Everything that is not recent, oldest first."""

    name, is_last_resort = "summarise", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group in draft.groups:
            if not group.is_recent:
                yield Leave("summarise", group, _OLDEST)


class OffloadRecent:
    """Results of tools and media among the recent messages, the biggest first."""

    name, is_last_resort = "off-load recent results", True

    def choose(self, draft: Draft) -> Iterator[Leave]:
        found = [
            (group.costs[at], Leave("stub", group, "nothing older was left to go", at))
            for group in draft.resident()
            for at, msg in enumerate(group.originals)
            if results_in(msg) or media_cost(msg)
        ]
        yield from (leave for _, leave in sorted(found, key=lambda each: -each[0]))


class SummariseRecent:
    """The recent messages too, oldest first."""

    name, is_last_resort = "summarise recent", True

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group in draft.groups:
            yield Leave("summarise", group, "nothing older was left to go")


DEFAULT_STEPS: tuple[Step, ...] = (
    DropHints(),
    SummariseOldest(),
    ClearRepeated(),
    OffloadResults(),
    StubMedia(),
    DropThoughts(),
    ClearResults(),
    Summarise(),
    OffloadRecent(),
    SummariseRecent(),
)


def _thinnable(group: Group) -> int:
    """Return the tokens of messages that have parts which may leave before the whole does."""
    if group.is_recent or group.fate != "resident":
        return 0
    costs = zip(group.originals, group.costs, strict=True)
    open_to = [(msg, cost) for msg, cost in costs if msg.id not in group.verbatim]
    return sum(cost for msg, cost in open_to if msg.has_content_blocks(_MAY_BE_STUBS))


def _old_messages(draft: Draft) -> Iterator[tuple[Group, int, Msg]]:
    for group in draft.groups:
        if not group.is_recent and group.fate == "resident":
            for at, msg in enumerate(group.originals):
                yield group, at, msg


def _call_key(call: dict[str, Any]) -> str:
    arguments = json.dumps(call.get("input"), sort_keys=True, default=str)
    return f"{call.get('name')} {arguments}"
