"""The facts from the past that an agent's step needed, found without a model.

The arguments of a tool call show what the step had to know: ids, paths, names, amounts. Those that
appear verbatim in an earlier message are the *facts* that the step needed; a context that lacks one
of them cannot have led to this call. Facts in the system prompt are left out, because it is always
present. Facts that were inferred rather than copied go unnoticed, so this is a lower bound, the
same for every strategy.
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
LEAST = 4  # characters; shorter strings match by chance

# A distinctive word: it contains a digit, an inner symbol, or an inner capital.
_SPECIFIC = re.compile(r"[A-Za-z0-9_]+(?:[./@#:_-][A-Za-z0-9_]+)+|\w*\d\w*|[A-Za-z]*[a-z][A-Z]\w*")


@dataclass(frozen=True)
class Need:
    """A fact, and how many messages before the step it last appeared."""

    fact: str
    age: int


@dataclass(frozen=True)
class StepNeeds:
    """A tool call: the number of messages before it, and the facts it needed from them."""

    at: int
    needs: tuple[Need, ...]


def steps_of(messages: Sequence[Msg], instructions: str = "") -> list[StepNeeds]:
    """Return the steps of a run that needed any fact."""
    texts = [text_of(msg) for msg in messages]
    steps = [_step(at, msg, texts, instructions) for at, msg in enumerate(messages)]
    return [step for step in steps if step.needs]


def text_of(msg: Msg) -> str:
    """Return all text of a message that a model sees."""
    content = peek_content(msg)
    return content if isinstance(content, str) else "\n".join(_texts_in(content))


def facts_in(arguments: Any) -> list[str]:
    """Return the facts in a call's arguments, without duplicates."""
    facts: dict[str, None] = {}
    for leaf in _leaves(arguments):
        if len(leaf) <= SHORT:
            facts[leaf] = None
        facts.update(dict.fromkeys(_SPECIFIC.findall(leaf)))
    return [fact for fact in facts if len(fact) >= LEAST]


def _step(at: int, msg: Msg, texts: Sequence[str], instructions: str) -> StepNeeds:
    content = peek_content(msg)
    calls = [] if isinstance(content, str) else [b for b in content if b["type"] == "tool_use"]
    facts = dict.fromkeys(fact for call in calls for fact in facts_in(call["input"]))
    found = [(fact, _last(fact, texts[:at])) for fact in facts if fact not in instructions]
    return StepNeeds(at, tuple(Need(fact, at - last) for fact, last in found if last is not None))


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
    """Yield the texts of blocks; tool arguments verbatim, so that facts can be found in them."""
    for block in value:
        match block.get("type"):
            case "text":
                yield str(block.get("text", ""))
            case "tool_use":
                yield f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
            case "tool_result":
                output = block.get("output", "")
                yield output if isinstance(output, str) else "\n".join(_texts_in(output))
