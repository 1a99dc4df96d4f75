"""The compaction steps. A step decides what leaves next; the compactor decides how much.

A step is any object with the attributes of ``Step``. Its ``choose`` yields proposals, the best ones
first. The compactor takes one after another until the history fits, so a step should yield lazily.
Pinned messages and the newest user message stay, whatever a step proposes.
"""
# ruff: noqa: D102  # Step documents choose

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

_OLDEST = "among the oldest messages"
_NOTHING_OLDER = "nothing older was left to remove"
_MAY_BE_STUBS: tuple[BlockType, ...] = ("tool_result", "thinking", "image", "audio", "video")


class Step(Protocol):
    """Chooses what leaves the context.

    Examples:
        >>> class DropOldest:
        ...     name, is_last_resort = "drop oldest", False
        ...
        ...     def choose(self, draft):
        ...         yield from (Leave("drop", group, "old") for group in draft.groups[:10])
    """

    @property
    def name(self) -> str:
        """What the step does, in a word or two, for the report."""

    @property
    def is_last_resort(self) -> bool:
        """Whether the step touches recent messages.

        Such a step runs only if the others did not reach the budget, and stops there. The others
        continue to the low water mark.
        """

    def choose(self, draft: Draft) -> Iterable[Leave]:
        """Yield what may leave, the best candidates first."""


class DropHints:
    """Drops one-shot hints that the agent has used."""

    name, is_last_resort = "drop hints", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        used = False
        leaves: list[Leave] = []
        for group in reversed(draft.groups):
            if used and len(group.originals) == 1 and group.id in draft.history.hints:
                leaves.append(Leave("drop", group, "a hint for a step that is over"))
            used = used or group.originals[0].role == "assistant"
        yield from reversed(leaves)


class SummariseOldest:
    """Summarises the oldest messages that stubs alone cannot save.

    While stubs in all old messages would not reach the low water mark, the oldest group will be
    summarised anyway. It leaves whole: stubs would be wasted work, and the summary sees all of it.
    """

    name, is_last_resort = "summarise", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        parts = [_stubbable(group) for group in draft.groups]
        could_leave = sum(parts)
        for group, part in zip(draft.groups, parts, strict=True):
            if draft.total - could_leave <= draft.low_water:
                return
            if not group.is_recent:
                yield Leave("summarise", group, _OLDEST)
                could_leave -= part


class ClearRepeated:
    """Stubs results of calls that were repeated later with the same arguments."""

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
    """Stubs big tool results, oldest first."""

    name, is_last_resort = "off-load big results", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        big = draft.limits.tool_result
        for group, at, msg in _old_messages(draft):
            if group.costs[at] >= big and results_in(msg):
                yield Leave("stub", group, f"a result of {big:,} tokens or more", at)


class StubMedia:
    """Stubs images, audio and video, oldest first."""

    name, is_last_resort = "stub media", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group, at, msg in _old_messages(draft):
            if media_cost(msg):
                yield Leave("stub", group, "media of an earlier message", at)


class DropThoughts:
    """Removes thinking blocks, except those of the last step, which providers require."""

    name, is_last_resort = "drop thoughts", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        spoken = [group for group in draft.groups if group.originals[0].role == "assistant"]
        for group, at, msg in _old_messages(draft):
            if msg.has_content_blocks("thinking") and group not in spoken[-1:]:
                yield Leave("stub", group, "thinking of an earlier step", at)


class ClearResults:
    """Stubs all other tool results outside the recent messages, oldest first."""

    name, is_last_resort = "clear old results", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group, at, msg in _old_messages(draft):
            if results_in(msg):
                yield Leave("stub", group, "a result of an earlier step", at)


class Summarise:
    """Summarises everything outside the recent messages, oldest first."""

    name, is_last_resort = "summarise", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group in draft.groups:
            if not group.is_recent:
                yield Leave("summarise", group, _OLDEST)


class OffloadRecent:
    """Stubs tool results and media in the recent messages, biggest first."""

    name, is_last_resort = "off-load recent results", True

    def choose(self, draft: Draft) -> Iterator[Leave]:
        found = [
            (group.costs[at], Leave("stub", group, _NOTHING_OLDER, at))
            for group in draft.resident()
            for at, msg in enumerate(group.originals)
            if results_in(msg) or media_cost(msg)
        ]
        yield from (leave for _, leave in sorted(found, key=lambda each: -each[0]))


class SummariseRecent:
    """Summarises recent messages too, oldest first."""

    name, is_last_resort = "summarise recent", True

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group in draft.groups:
            yield Leave("summarise", group, _NOTHING_OLDER)


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


def _stubbable(group: Group) -> int:
    """Return the tokens of messages with parts that could become stubs."""
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
