"""Recorded agent runs, converted to this package's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..message import ContentBlock, Msg
from . import raw


class _Function(msgspec.Struct, frozen=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, frozen=True):
    id: str
    function: _Function


class _ChatMessage(msgspec.Struct, frozen=True):
    role: str
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""
    name: str = ""


class _Run(msgspec.Struct, frozen=True):
    id: str
    messages: list[_ChatMessage]


@dataclass(frozen=True)
class Trajectory:
    """One run: the agent's instructions and all its messages."""

    id: str
    instructions: str
    messages: list[Msg]


def load_trajectories(path: str | Path) -> list[Trajectory]:
    """Read runs from gzipped JSON Lines of OpenAI chat messages; skip empty ones."""
    runs = [run for run in raw.read(path, _Run) if run.messages]
    return [
        Trajectory(run.id, _instructions(run.messages), _spoken(run.id, run.messages))
        for run in runs
    ]


def joined(runs: Sequence[Trajectory], by: int, most: int) -> list[Trajectory]:
    """Join every ``by`` short runs into a long one; return at most ``most``, evenly spaced."""
    apart = max(by, len(runs) // most)
    starts = range(0, len(runs) - by + 1, apart)
    return [_one_of(runs[start : start + by]) for start in starts][:most]


def _one_of(runs: Sequence[Trajectory]) -> Trajectory:
    instructions = "\n".join(dict.fromkeys(run.instructions for run in runs))
    return Trajectory(
        "+".join(run.id for run in runs),
        instructions,
        [msg for run in runs for msg in run.messages],
    )


def _instructions(said: Sequence[_ChatMessage]) -> str:
    return "\n".join(each.content or "" for each in said if each.role == "system")


def _spoken(run: str, said: Sequence[_ChatMessage]) -> list[Msg]:
    messages = [_msg(each) for each in said if each.role != "system"]
    for number, msg in enumerate(messages):
        msg.id = f"{run}-{number}"  # the same in every run of a benchmark
        msg.timestamp = "2024-01-01 00:00:00.000"
    return messages


def _msg(said: _ChatMessage) -> Msg:
    if said.role == "tool":
        result: Any = {
            "type": "tool_result",
            "id": said.tool_call_id,
            "name": said.name or "tool",
            "output": said.content or "",
        }
        return Msg("system", [result], "system")
    blocks: list[Any] = [{"type": "text", "text": said.content}] if said.content else []
    blocks += [_call(each) for each in said.tool_calls or []]
    return Msg(said.role, blocks, "assistant" if said.role == "assistant" else "user")


def _call(call: _Call) -> ContentBlock:
    try:
        arguments = json.loads(call.function.arguments)
    except ValueError:
        arguments = None
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.function.name,
        "input": arguments if isinstance(arguments, dict) else {},
        "raw_input": call.function.arguments,
    }
