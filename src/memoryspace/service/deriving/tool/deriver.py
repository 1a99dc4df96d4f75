"""``ToolDeriver``: statistics and guidelines for each tool, from the results of its calls.

There is one memory per tool, by exact name: statistics over its newest calls, its errors, and the
arguments that worked or failed. It lists every call it covers as a source, so it is deleted with
any of them. A call recorded twice counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ....errors import ModelFailed, ModelUnavailable
from ....model import ChatModel, Spending, ask, prompt_messages, read_prompt
from ....record import Origin
from ...values.memory import Draft, MemoryItem
from ..contract import Add, Decision, Drop, Job, Known
from ..task.grounding import Sources
from ..task.trajectory import clipped
from .call import call_of
from .statistics import (
    KEPT_CALLS,
    KeptCall,
    guidelines,
    headline,
    in_order,
    kept_call,
    kept_calls_in,
    merged_calls,
    statistics,
)

TOOL = "tool"

_MAX_LINE = 300  # characters of a guideline
_MAX_LINES = 8

# The JSON schema sent to the model contains the name and docstring of this struct.


class Guidelines(Struct):
    """How to use a tool, as a model words it."""

    guidelines: list[str]


class ToolDeriver:
    """Derives one memory (kind ``tool``) per tool from the results of its calls.

    Args:
        model: A chat model that words the guidelines; rules do so if it is ``None``.
        spending: Where to account for model calls.

    Example::

        service = InMemoryMemoryService(derivers=[ToolDeriver(model)])
    """

    name = "tool memory"
    kinds = (TOOL,)

    def __init__(self, model: ChatModel | None = None, *, spending: Spending | None = None) -> None:
        self._model = model
        self._spending = spending

    @property
    def is_quick(self) -> bool:
        """Whether it works by rules alone, without a model."""
        return self._model is None

    def concerns(self, memories: Sequence[MemoryItem], details: Mapping[str, Any]) -> bool:
        """Return whether one of the memories is a tool call."""
        return any(call_of(memory) is not None for memory in memories)

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return decisions that replace the memory of each tool that was called.

        The old memory is dropped, not changed, so that the new one lists all its sources. If two
        processes do this at once, there are two memories until the next job merges them.
        """
        there = await known.of_kind(TOOL)
        decisions: list[Decision] = []
        for tool, fresh in _calls_by_tool(job.memories).items():
            old = [memory for memory in there if memory.details.get("tool_name") == tool]
            before = merged_calls(*(kept_calls_in(memory.details) for memory in old))
            hashes = {call.hash for call in before}
            new = merged_calls(call for call in fresh if call.hash not in hashes)
            if new or len(old) > 1:
                calls = in_order([*await _still_there(before, known), *new])
                decisions += await self._renewed(tool, old, calls)
        return decisions

    async def _renewed(
        self, tool: str, old: Sequence[MemoryItem], calls: Sequence[KeptCall]
    ) -> list[Decision]:
        earlier = max((_earlier(memory) for memory in old), default=0)
        earlier += max(0, len(calls) - KEPT_CALLS)
        draft = await self._draft(tool, calls[-KEPT_CALLS:], earlier)
        return [*(Drop(memory.id, (memory.id,)) for memory in old), Add(draft)]

    async def _draft(self, tool: str, calls: Sequence[KeptCall], earlier: int) -> Draft:
        figures = statistics(calls)
        text = "\n".join([headline(tool, figures), *await self._advice(tool, calls)])
        details = {
            **msgspec.to_builtins(figures),
            "tool_name": tool,
            "calls": figures.calls + earlier,
            "earlier_calls": earlier,
            "success_rate": figures.success_rate,
            "recent": msgspec.to_builtins(calls),
        }
        return Draft(
            value=text,
            text=text,
            kind=TOOL,
            title=tool,
            metadata={"tool_name": tool},
            details=details,
            importance=0.6,
            origin=Origin(self.name, tuple(dict.fromkeys(call.source for call in calls))),
        )

    async def _advice(self, tool: str, calls: Sequence[KeptCall]) -> list[str]:
        by_rules = guidelines(calls)
        if self._model is None:
            return by_rules
        data = {
            "tool": tool,
            "figures": statistics(calls),
            "found": by_rules,
            "calls": _told(calls),
        }
        prompt = prompt_messages(read_prompt(__package__, "guidelines.md"), data)
        try:
            answer = await ask(
                self._model, prompt, Guidelines, spending=self._spending, purpose="tool guidelines"
            )
        except ModelUnavailable:
            raise  # temporary: the job is retried
        except ModelFailed:
            return by_rules
        sources = Sources([msgspec.json.encode(data).decode()])
        true = (line for line in answer.guidelines if not sources.lacks_a_name_of(line))
        worded = [clipped(line, _MAX_LINE) for line in true if line.strip()]
        return worded[:_MAX_LINES] if worded else by_rules


def _calls_by_tool(memories: Sequence[MemoryItem]) -> dict[str, list[KeptCall]]:
    """Return the calls in memories by tool; quarantined memories are skipped."""
    by_tool: dict[str, list[KeptCall]] = {}
    for memory in memories:
        call = None if memory.is_quarantined else call_of(memory)
        if call is not None:
            by_tool.setdefault(call.tool_name, []).append(kept_call(call, memory.id))
    return by_tool


async def _still_there(calls: Sequence[KeptCall], known: Known) -> list[KeptCall]:
    """Return the calls whose memories still exist."""
    there = await known.there({call.source for call in calls})
    return [call for call in calls if call.source in there]


def _earlier(memory: MemoryItem) -> int:
    earlier = memory.details.get("earlier_calls")
    return earlier if isinstance(earlier, int) else 0


def _told(calls: Sequence[KeptCall]) -> list[dict[str, Any]]:
    hidden = ("hash", "source")
    told: list[dict[str, Any]] = msgspec.to_builtins(calls)
    return [{name: each[name] for name in each if name not in hidden} for each in told]
