"""Turns: the intermediate form between stored messages and providers' formats, as plain data.

A repaired history is converted to turns in the same way for all providers: the speaker, text and
media, tool calls, and tool results.
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


class TextPart(NamedTuple):
    """A text; never blank."""

    text: str


class ThoughtPart(NamedTuple):
    """Reasoning of a model, with the provider's signature."""

    text: str
    signature: str


class ToolCall(NamedTuple):
    """A tool call."""

    id: str
    name: str
    arguments: dict[str, Any]


class ToolResult(NamedTuple):
    """The result of a tool call."""

    id: str
    name: str
    parts: tuple[TextPart | Media, ...]


Part: TypeAlias = TextPart | ThoughtPart | Media


class PromptTurn(Struct, frozen=True):
    """One turn of a speaker. Only the assistant has calls, only tools have results."""

    role: Speaker
    name: str = ""
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


_THOUGHTS = {ThoughtPart}
_WORDS = {TextPart}


def turns_of(group: Sequence[Msg]) -> list[PromptTurn]:
    """Return the turns of one atomic group; none if it is empty."""
    said = turn_of(group[0])
    if not said.calls:
        return [said] if has_content(said) else []
    results = {result.id: result for msg in group[1:] for result in _results_of(msg)}
    in_order = [results[call.id]._replace(name=call.name) for call in said.calls]
    return [said, PromptTurn("tool", results=tuple(in_order))]


def turn_of(msg: Msg) -> PromptTurn:
    """Return a message as a turn, without tool results. A message with calls is the assistant's."""
    content: Any = peek_content(msg)
    if isinstance(content, str):
        return PromptTurn(msg.role, plain_text(str(msg.name)), _words(content))
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block in content:
        if block["type"] == "tool_use":
            calls.append(ToolCall(block["id"], block["name"], plain_data(block["input"])))
        else:
            parts += part_of(block)
    role: Speaker = "assistant" if calls else msg.role
    return PromptTurn(role, plain_text(str(msg.name)), tuple(parts), tuple(calls))


def has_content(turn: PromptTurn) -> bool:
    """Return whether a turn has anything but reasoning."""
    if turn.calls or turn.results:
        return True
    kinds = set(map(type, turn.parts))
    return bool(kinds) and kinds != _THOUGHTS


def is_plain(turn: PromptTurn) -> bool:
    """Return whether a turn is text only."""
    return not turn.calls and not turn.results and set(map(type, turn.parts)) == _WORDS


def parts_of_output(output: Any) -> tuple[TextPart | Media, ...]:
    """Return the text and media of a tool's output."""
    if isinstance(output, str):
        return _words(output)
    found = [part for block in output for part in part_of(block)]
    return tuple(part for part in found if not isinstance(part, ThoughtPart))


def part_of(block: dict[str, Any]) -> tuple[Part, ...]:
    """Return a block as a part, or nothing if it is empty."""
    kind = block["type"]
    if kind in KINDS:
        return (media_of(block),)
    if kind == "thinking":
        return _thought(block.get("thinking"), block.get("signature"))
    text = block.get("text", "") if kind == "text" else f"[a block of the type {kind}]"
    return _words(text if isinstance(text, str) else json_text(text))


def _words(text: str) -> tuple[TextPart, ...]:
    text = plain_text(text)
    return (TextPart(text),) if text and not text.isspace() else ()


def _thought(thinking: Any, signature: Any) -> tuple[ThoughtPart, ...]:
    if not isinstance(thinking, str) or not thinking.strip():
        return ()
    signature = signature if isinstance(signature, str) else ""
    return (ThoughtPart(plain_text(thinking), plain_text(signature)),)


def _results_of(msg: Msg) -> Iterator[ToolResult]:
    for block in results_in(msg):
        yield ToolResult(block["id"], block["name"], parts_of_output(block["output"]))
