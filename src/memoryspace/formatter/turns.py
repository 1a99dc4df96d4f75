"""A conversation between what we store and what providers take: turns, in plain data.

A repaired history becomes turns once, for all providers alike: who speaks, what they say or show,
which tools they call, and what the tools answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..message import Msg
from ..message.msg import peek_content
from ..message.tool_blocks import json_text, results_in
from .media import KINDS, Media, media_of
from .plain import plain_data, plain_text

Speaker: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(NamedTuple):
    """Words; never blank."""

    text: str


class Thought(NamedTuple):
    """What a model thought, and how its provider knows that it did."""

    text: str
    signature: str


class Call(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    """What a tool answered."""

    id: str
    name: str
    parts: tuple[Text | Media, ...]


Part: TypeAlias = Text | Thought | Media


class Turn(Struct, frozen=True):
    """What somebody says in one go. Only the assistant has calls, only tools have results."""

    role: Speaker
    name: str = ""
    parts: tuple[Part, ...] = ()
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


_THOUGHTS = {Thought}
_WORDS = {Text}


def turns_of(group: Sequence[Msg]) -> list[Turn]:
    """Return the turns of one atomic group; none if it says nothing."""
    said = turn_of(group[0])
    if not said.calls:
        return [said] if has_content(said) else []
    results = {result.id: result for msg in group[1:] for result in _results_of(msg)}
    in_order = [results[call.id]._replace(name=call.name) for call in said.calls]
    return [said, Turn("tool", results=tuple(in_order))]


def turn_of(msg: Msg) -> Turn:
    """Return what a message says, without tool results. Whoever calls a tool is the assistant."""
    content: Any = peek_content(msg)
    if isinstance(content, str):
        return Turn(msg.role, plain_text(str(msg.name)), _words(content))
    parts: list[Part] = []
    calls: list[Call] = []
    for block in content:
        if block["type"] == "tool_use":
            calls.append(Call(block["id"], block["name"], plain_data(block["input"])))
        else:
            parts += part_of(block)
    role: Speaker = "assistant" if calls else msg.role
    return Turn(role, plain_text(str(msg.name)), tuple(parts), tuple(calls))


def has_content(turn: Turn) -> bool:
    """Tell whether there is anything in a turn besides thoughts."""
    if turn.calls or turn.results:
        return True
    kinds = set(map(type, turn.parts))
    return bool(kinds) and kinds != _THOUGHTS


def is_plain(turn: Turn) -> bool:
    """Tell whether a turn is nothing but words."""
    return not turn.calls and not turn.results and set(map(type, turn.parts)) == _WORDS


def parts_of_output(output: Any) -> tuple[Text | Media, ...]:
    """Return what a tool answered, texts and media."""
    if isinstance(output, str):
        return _words(output)
    found = [part for block in output for part in part_of(block)]
    return tuple(part for part in found if not isinstance(part, Thought))


def part_of(block: dict[str, Any]) -> tuple[Part, ...]:
    """Return the part that a block is, or nothing if it says nothing."""
    kind = block["type"]
    if kind in KINDS:
        return (media_of(block),)
    if kind == "thinking":
        return _thought(block.get("thinking"), block.get("signature"))
    text = block.get("text", "") if kind == "text" else f"[a block of the type {kind}]"
    return _words(text if isinstance(text, str) else json_text(text))


def _words(text: str) -> tuple[Text, ...]:
    text = plain_text(text)
    return (Text(text),) if text and not text.isspace() else ()


def _thought(thinking: Any, signature: Any) -> tuple[Thought, ...]:
    if not isinstance(thinking, str) or not thinking.strip():
        return ()
    signature = signature if isinstance(signature, str) else ""
    return (Thought(plain_text(thinking), plain_text(signature)),)


def _results_of(msg: Msg) -> Iterator[Result]:
    for block in results_in(msg):
        yield Result(block["id"], block["name"], parts_of_output(block["output"]))
