"""What a step of an agent needed of the past, judged without a model.

A step that calls a tool shows in the arguments what it had to know: ids, paths, names, amounts.
Those that stand word for word in an earlier message are *facts* that the step needed; a context in
which one of them does not stand any more cannot have led to this call. What the instructions say is
left out: they never leave. Facts that were inferred rather than copied are not seen, so this is a
lower bound of what was needed, the same for every way to keep a context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..message import Msg
from ..message.msg import peek_content

SHORT = 80  # characters up to which a whole argument is one fact
LEAST = 4  # characters; shorter ones stand everywhere by chance

# A word that was hardly said by chance: it holds a digit, or a sign within, or a hump.
_SPECIFIC = re.compile(r"[A-Za-z0-9_]+(?:[./@#:_-][A-Za-z0-9_]+)+|\w*\d\w*|[A-Za-z]*[a-z][A-Z]\w*")


@dataclass(frozen=True)
class Need:
    """A fact, and how many messages before the step it was said for the last time."""

    fact: str
    age: int


@dataclass(frozen=True)
class Step:
    """A call of tools: how many messages came before it, and what of them it needed."""

    at: int
    needs: tuple[Need, ...]


def steps_of(messages: Sequence[Msg], instructions: str = "") -> list[Step]:
    """Return the steps of a run that needed anything."""
    texts = [text_of(msg) for msg in messages]
    steps = [_step(at, msg, texts, instructions) for at, msg in enumerate(messages)]
    return [step for step in steps if step.needs]


def text_of(msg: Msg) -> str:
    """Return everything that a message says to a model, as one text."""
    content = peek_content(msg)
    return content if isinstance(content, str) else "\n".join(_texts_in(content))


def facts_in(arguments: Any) -> list[str]:
    """Return what a call's arguments name, each once."""
    facts: dict[str, None] = {}
    for leaf in _leaves(arguments):
        if len(leaf) <= SHORT:
            facts[leaf] = None
        facts.update(dict.fromkeys(_SPECIFIC.findall(leaf)))
    return [fact for fact in facts if len(fact) >= LEAST]


def _step(at: int, msg: Msg, texts: Sequence[str], instructions: str) -> Step:
    content = peek_content(msg)
    calls = [] if isinstance(content, str) else [b for b in content if b["type"] == "tool_use"]
    facts = dict.fromkeys(fact for call in calls for fact in facts_in(call["input"]))
    found = [(fact, _last(fact, texts[:at])) for fact in facts if fact not in instructions]
    return Step(at, tuple(Need(fact, at - last) for fact, last in found if last is not None))


def _last(fact: str, texts: Sequence[str]) -> int | None:
    return next((at for at in range(len(texts) - 1, -1, -1) if fact in texts[at]), None)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of blocks; arguments as they are written, for facts to stand in."""
    for block in value:
        match block.get("type"):
            case "text":
                yield str(block.get("text", ""))
            case "tool_use":
                yield f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
            case "tool_result":
                output = block.get("output", "")
                yield output if isinstance(output, str) else "\n".join(_texts_in(output))
