"""Metrics for task and tool memory: does it return what earlier runs taught? No model judges.

The data are task families: scored runs, insights that separate good runs from bad ones, and new
tasks that need an insight. An insight is recognised by strings, one of which must appear in the
returned lesson. The data also hold tools with their calls, and unseen tasks and tools for which
nothing must be returned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import CorruptData
from ..service import MemoryHit, MemoryItem, ServiceSettings, TaskMemoryService, ToolMemoryService

MOST = 3  # lessons returned
USES = 5  # uses after which a lesson's utility has moved and it may be pruned

_AGENT = "agent"
_PAGE = 1000  # lessons read
_RATE_ROOM, _SECONDS_ROOM = 0.02, 0.2  # tolerances: absolute for rates, relative for seconds
_WARNS = re.compile(r"fail|avoid|did not work|instead of|失败|不要|避免", re.IGNORECASE)
_WARNING_TYPES = ("failure", "comparison")


class Insight(Struct, frozen=True):
    """What separates good runs from bad ones. ``misleading`` is a method that no longer works."""

    id: str
    kind: str
    gold: list[str]
    also: list[str] = []
    misleading: list[str] = []

    def is_in(self, text: str) -> bool:
        """Return whether a text contains the insight."""
        return holds(text, [*self.gold, *self.also])


class Attempt(Struct, frozen=True):
    """A scored run."""

    score: float
    messages: list[dict[str, Any]]


class NewTask(Struct, frozen=True):
    """A task that needs an insight."""

    id: str
    category: str
    insight: str
    query: str


class Family(Struct, frozen=True, tag_field="type", tag="family"):
    """Tasks of one kind, with their runs and insights."""

    id: str
    insights: list[Insight]
    trajectories: list[Attempt]
    questions: list[NewTask]


class Unseen(Struct, frozen=True, tag_field="type", tag="abstain"):
    """A task that belongs to no family."""

    id: str
    query: str


class ToolQuestion(Struct, frozen=True):
    """A question about a tool: a cause or use to find, or a figure to report."""

    id: str
    category: str
    gold: list[str] | float
    query: str = ""


class Tool(Struct, frozen=True, tag_field="type", tag="tool"):
    """A tool with its calls."""

    name: str
    calls: list[dict[str, Any]]
    questions: list[ToolQuestion]


class UnseenTool(Struct, frozen=True, tag_field="type", tag="abstain_tool"):
    """A question about a tool without any calls."""

    id: str
    query: str


Row = Family | Unseen | Tool | UnseenTool


@dataclass(frozen=True)
class Value:
    """One case's value in one measure; ``cluster`` is its family, tool or question."""

    measure: str
    cluster: str
    value: float


def read_lessons(content: bytes) -> list[Row]:
    """Read the rows from JSON Lines."""
    try:
        rows: list[Row] = msgspec.json.Decoder(Row).decode_lines(content)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"these are no families, tasks and tools: {error}") from error
    return rows


async def judge(rows: Sequence[Row], settings: ServiceSettings) -> list[Value]:
    """Return every measure of task and tool memory under these settings."""
    async with TaskMemoryService(settings=settings) as tasks:
        values = await _judge_tasks(rows, tasks)
    async with ToolMemoryService(settings=settings) as tools:
        return values + await _judge_tools(rows, tools)


def holds(text: str, strings: Iterable[str]) -> bool:
    """Return whether a text contains one of the strings, ignoring white space and case."""
    flat = _flat(text)
    return any(_flat(each) in flat for each in strings)


def _flat(text: str) -> str:
    return re.sub(r"\s+", "", text).casefold()


# -- tasks -----------------------------------------------------------------------------------------


async def _judge_tasks(rows: Sequence[Row], tasks: TaskMemoryService) -> list[Value]:
    """Measure task memory; all families share one memory, in their order."""
    families = [row for row in rows if isinstance(row, Family)]
    for run in (run for family in families for run in family.trajectories):
        await tasks.add_trajectory(_AGENT, run.messages, score=run.score)
    stored = await _stored(tasks)
    values = [value for family in families for value in _kept(family, stored)]
    for family in families:
        insights = {each.id: each for each in family.insights}
        for task in family.questions:
            hits = await tasks.search(_AGENT, task.query, top_k=MOST)
            values += _handed_over(family.id, task, insights[task.insight], hits)
    for row in rows:
        if isinstance(row, Unseen):
            found = await tasks.search(_AGENT, row.query, top_k=MOST)
            values.append(Value("silent", row.id, not found))
    return values + await _judge_uses(families, tasks)


async def _stored(tasks: TaskMemoryService) -> list[MemoryItem]:
    return list((await tasks.page(_AGENT, limit=_PAGE)).memories)


def _kept(family: Family, stored: Sequence[MemoryItem]) -> Iterator[Value]:
    """Yield whether each insight is in a lesson, and whether it is in more than one."""
    for insight in family.insights:
        copies = sum(insight.is_in(each.text) for each in stored)
        yield Value("stored", family.id, copies > 0)
        if copies:
            yield Value("stored_twice", family.id, copies > 1)


def _handed_over(
    family: str, task: NewTask, insight: Insight, hits: Sequence[MemoryHit]
) -> Iterator[Value]:
    """Yield the insight's rank, overall and by category, and whether the first lesson misleads."""
    right = [insight.is_in(hit.memory.text) for hit in hits]
    for name in ("", f" [{task.category}]"):
        yield Value(f"first{name}", family, any(right[:1]))
        yield Value(f"in_3{name}", family, any(right))
    if task.category == "failure_only":
        yield Value("in_3_by_failures", family, any(right))
    if insight.kind == "outdated":
        is_wrong = bool(hits) and not right[0] and holds(hits[0].memory.text, insight.misleading)
        yield Value("misled", family, is_wrong and not _warns(hits[0].memory))


def _warns(lesson: MemoryItem) -> bool:
    advice = lesson.text.partition("\n")[2]  # the first line describes the lesson's purpose
    return lesson.details.get("type") in _WARNING_TYPES or bool(_WARNS.search(advice))


async def _judge_uses(families: Sequence[Family], tasks: TaskMemoryService) -> list[Value]:
    """Report uses of the first lessons, every other one as unhelpful; then prune."""
    same = [(each.id, q.query) for each in families for q in each.questions if q.category == "same"]
    used: dict[str, tuple[str, bool]] = {}
    values: list[Value] = []
    for number, (family, query) in enumerate(same):
        first = await _first(tasks, query)
        if first is None or first in used:
            continue
        used[first] = family, number % 2 == 1
        for _ in range(USES):
            await tasks.record_use(_AGENT, first, helped=number % 2 == 1)
        has_stayed = await _first(tasks, query) == first
        values.append(Value("used_right", family, has_stayed is (number % 2 == 1)))
    await tasks.prune(_AGENT)
    left = {each.id for each in await _stored(tasks)}
    return values + [
        Value("pruned_right", family, (lesson in left) is helped)
        for lesson, (family, helped) in used.items()
    ]


async def _first(tasks: TaskMemoryService, query: str) -> str | None:
    hits = await tasks.search(_AGENT, query, top_k=1)
    return hits[0].memory.id if hits else None


# -- tools -----------------------------------------------------------------------------------------


async def _judge_tools(rows: Sequence[Row], tools: ToolMemoryService) -> list[Value]:
    known = [row for row in rows if isinstance(row, Tool)]
    for row in known:
        await tools.add_tool_call_results(_AGENT, row.calls)
    values = [await _about(tools, row.name, each) for row in known for each in row.questions]
    for unseen in rows:
        if isinstance(unseen, UnseenTool):
            found = await tools.search(_AGENT, unseen.query, top_k=MOST)
            values.append(Value("tool_silent", unseen.id, not found))
    return values


async def _about(tools: ToolMemoryService, name: str, question: ToolQuestion) -> Value:
    gold = question.gold
    if not isinstance(gold, list):
        known = await tools.guidelines(_AGENT, name)
        return Value("tool_figures", name, bool(known) and _is_near(known[0], question))
    if question.query and question.category in ("cause", "usage"):
        hits = await tools.search(_AGENT, question.query, top_k=MOST)
        right = any(holds(hit.memory.text, gold) for hit in hits)
        return Value(f"tool_{question.category}", name, right)
    texts = [each.text for each in await tools.guidelines(_AGENT, name)]
    return Value("tool_figures", name, any(holds(text, gold) for text in texts))


def _is_near(known: MemoryItem, question: ToolQuestion) -> bool:
    """Return whether a success rate or median is within tolerance."""
    wanted = question.gold
    assert not isinstance(wanted, list)
    is_rate = question.category == "rate"
    told = known.details.get("success_rate" if is_rate else "p50_seconds")
    off = abs(told - wanted) if told is not None else math.inf
    return off <= (_RATE_ROOM if is_rate else _SECONDS_ROOM * wanted)
