"""Trajectories: the task, the tool calls and their answers, read from messages.

AgentScope's blocks, OpenAI's dicts and the runtime's call messages are understood. A call without
an answer is kept; an answer without a call is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...schema.reading import text_of_content
from ...values.forms import body_of
from ...values.memory import MemoryItem, Said

MAX_ARGUMENTS = 240  # characters kept of a call's arguments
MAX_OUTPUT = 200  # of its answer
MAX_STATEMENT = 400

_FAILS_AT_START = re.compile(
    r"\W{0,8}(?:error|failed|failure|fatal|exception|traceback|invalid|unknown|denied|forbidden"
    r"|unauthori[sz]ed|timed? ?out|cannot|could not|unable to|no such"
    r"|错误|失败|异常|无效|超时|无法|未找到"
    r"|没有权限)",
    re.IGNORECASE,
)
_FAILS_ANYWHERE = re.compile(
    r"\btraceback \(most recent call last\)|\b[A-Z]\w{0,40}(?:Error|Exception): "
    r"|\bexit(?:ed with)? code:? [1-9]|\bcommand not found\b"
    r"|\bpermission denied\b|\bno such file or directory\b",
    re.IGNORECASE,
)
_COMPLAINS = re.compile(  # like a program's error: its name, then what is wrong
    r"^[\w./-]{1,40}: [^\n]{0,160}?\b(?:invalid|illegal|unknown|unrecogni[sz]ed|unexpected|missing"
    r"|not found|no such|cannot|can't|unable|denied|refused|failed|fatal|error|usage)\b",
    re.IGNORECASE,
)
_COMPLAINT = 300  # characters at most
_LOOKED_AT = 2000  # characters searched at either end of an answer
_CALLED_OFF = {"", "none", "null", "false", "0", "[]", "{}"}


class ToolStep(Struct, frozen=True):
    """A tool call. ``output`` is ``None`` if there was no answer."""

    tool: str
    arguments: str
    output: str | None = None
    is_failure: bool = False

    @property
    def call(self) -> str:
        """The call in source form: ``tool(arguments)``."""
        return f"{self.tool}({self.arguments})"


class Trajectory(Struct, frozen=True):
    """One attempt at a task.

    ``conclusion`` is the last answer, ``correction`` the user's reaction to it.
    """

    statement: str
    steps: tuple[ToolStep, ...]
    conclusion: str
    correction: str = ""

    @property
    def tools(self) -> list[str]:
        """The tools used, in the order of their first use."""
        return list(dict.fromkeys(step.tool for step in self.steps))


def read_trajectory(memories: Sequence[MemoryItem], task: str | None = None) -> Trajectory:
    """Return the trajectory of raw memories, given in conversation order."""
    bodies = [_as_dict(memory.value, memory.role) for memory in memories]
    asked = [_words(body) for body in bodies if body.get("role") == "user"]
    answered = [_words(body) for body in bodies if body.get("role") == "assistant"]
    statement = task if task else next((text for text in asked if text.strip()), "")
    conclusion = next((text for text in reversed(answered) if text.strip()), "")
    return Trajectory(
        clipped(statement, MAX_STATEMENT),
        tuple(_steps(bodies)),
        clipped(conclusion, MAX_STATEMENT),
        clipped(_said_last(bodies), MAX_STATEMENT),
    )


def answered_calls(messages: Sequence[Said]) -> list[tuple[int, str, Any, str | None]]:
    """Return the calls in messages as (message index, tool, arguments, answer)."""
    return list(_answered([_as_dict(said, None) for said in messages]))


def is_failure(output: str) -> bool:
    """Return whether a tool's answer reads like a failure."""
    if (told := _told_outcome(output)) is not None:
        return told
    if _FAILS_AT_START.match(output):
        return True
    if len(output) <= _COMPLAINT and _COMPLAINS.match(output):
        return True
    ends = output if len(output) <= 2 * _LOOKED_AT else output[:_LOOKED_AT] + output[-_LOOKED_AT:]
    return _FAILS_ANYWHERE.search(ends) is not None


def clipped(text: str, most: int) -> str:
    """Return a text on one line, cut at a word boundary if it is too long."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    head = text[: most - 1]
    cut = head.rfind(" ", most // 2)
    return (head[:cut] if cut > 0 else head) + "…"


def _as_dict(said: Said, role: str | None) -> Mapping[str, Any]:
    _, body = body_of(said)
    if isinstance(body, str):
        return {"role": "user" if role is None else role, "content": body}
    return body


def _words(body: Mapping[str, Any]) -> str:
    """Return the plain text of a message, without tool calls and answers."""
    content = body.get("content")
    if isinstance(content, list):
        content = [part for part in content if not isinstance(part, dict) or _is_text(part)]
    return text_of_content(content)


def _said_last(bodies: Sequence[Mapping[str, Any]]) -> str:
    """Return the user's last message after an answer in words."""
    is_answered, said = False, ""
    for body in bodies:
        text = _words(body).strip()
        if body.get("role") == "assistant" and text:
            is_answered = True
        elif body.get("role") == "user" and text and is_answered:
            said = text
    return said


def _is_text(part: Mapping[str, Any]) -> bool:
    return bool(part.get("type", "text") == "text")


def _steps(bodies: Sequence[Mapping[str, Any]]) -> Iterator[ToolStep]:
    for _, tool, arguments, output in _answered(bodies):
        yield ToolStep(
            tool,
            clipped(_as_text(arguments), MAX_ARGUMENTS),
            None if output is None else clipped(output, MAX_OUTPUT),
            output is not None and is_failure(output),
        )


def _answered(bodies: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, Any, str | None]]:
    answers = dict(_answers(bodies))
    for number, body in enumerate(bodies):
        for call_id, tool, arguments in _calls(body):
            yield number, tool, arguments, None if call_id is None else answers.get(call_id)


def _calls(body: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    for part in _parts(body):
        if part.get("type") == "tool_use":
            yield _named(part.get("id"), part.get("name"), part.get("input"))
        data = part.get("data")
        if isinstance(data, dict) and "arguments" in data:
            yield _named(data.get("call_id"), data.get("name"), data["arguments"])
    calls = body.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield _named(call.get("id"), function.get("name"), function.get("arguments"))


def _answers(bodies: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for body in bodies:
        call_id = body.get("tool_call_id")
        if isinstance(call_id, str):
            yield call_id, text_of_content(body.get("content"))
        for part in _parts(body):
            data = part.get("data")
            if part.get("type") == "tool_result" and isinstance(part.get("id"), str):
                yield part["id"], _as_text(part.get("output"))
            elif (
                isinstance(data, dict) and isinstance(data.get("call_id"), str) and "output" in data
            ):
                yield data["call_id"], _as_text(data["output"])


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = body.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _named(call_id: Any, name: Any, arguments: Any) -> tuple[str | None, str, Any]:
    tool = name if isinstance(name, str) and name else "unnamed tool"
    return (call_id if isinstance(call_id, str) else None), tool, arguments


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        text = text_of_content(value)
        if text:
            return text
    return json.dumps(value, ensure_ascii=False) if value is not None else ""


def _told_outcome(output: str) -> bool | None:
    """Return whether a JSON answer declares itself a failure; ``None`` if it does not say."""
    if output.lstrip()[:1] != "{" or len(output) > 100_000:
        return None
    try:
        data = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("success"), bool):
        return not data["success"]
    if "error" in data:
        return str(data["error"]).strip().lower() not in _CALLED_OFF
    return None
