"""Rules for Anthropic's messages. The first may be a system message, which models send apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .rules import Prompt, check_base64, check_json, check_name, check_text, checking, demand

Block: TypeAlias = Mapping[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


@checking
def check_anthropic(messages: Prompt) -> None:
    """Raise ``AssertionError`` if Anthropic would refuse these messages."""
    check_json(messages)
    turns = list(messages)
    if turns[0].get("role") == "system":
        _check_system(turns.pop(0))
    demand(turns, "the prompt", "it has more than a system message")
    for number, turn in enumerate(turns):
        expected = "assistant" if number % 2 else "user"
        demand(turn.get("role") == expected, f"turn {number}", "user and assistant take turns")
    demand(turns[-1]["role"] == "user", "the end", "the last turn is the user's")
    _check_turns(turns)


def _check_system(message: Mapping[str, Any]) -> None:
    for block in _blocks_of("the system message", message):
        demand(block.get("type") == "text", "the system message", "it has texts only")
        check_text("the system message", block.get("text"))


def _check_turns(turns: Sequence[Mapping[str, Any]]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    for number, turn in enumerate(turns):
        where = f"turn {number} ({turn['role']})"
        blocks = _blocks_of(where, turn)
        if turn["role"] == "user":
            _check_results(where, blocks, waiting)
            waiting = []
        else:
            waiting = _check_assistant(where, blocks, seen)


def _blocks_of(where: str, turn: Mapping[str, Any]) -> list[Block]:
    content = turn.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    demand(isinstance(content, list) and content, where, "content is a text or blocks, not empty")
    assert isinstance(content, list)
    demand(all(isinstance(block, dict) for block in content), where, "a block is a dict")
    return content


def _check_results(where: str, blocks: Sequence[Block], waiting: list[str]) -> None:
    """Demand results first, exactly one for each call of the previous turn."""
    results, others = blocks[: len(waiting)], blocks[len(waiting) :]
    ids = [block.get("tool_use_id") for block in results if block.get("type") == "tool_result"]
    demand(sorted(map(str, ids)) == sorted(waiting), where, "it begins with a result for each call")
    for block in results:
        for part in _parts_of(block.get("content")):
            _check_said(where, part)
    for block in others:
        demand(block.get("type") != "tool_result", where, "a result has a call right before it")
        _check_said(where, block)


def _parts_of(content: Any) -> list[Block]:
    if content is None or isinstance(content, str):
        return []
    demand(isinstance(content, list), "a tool result", "its content is a text or blocks")
    return list(content)


def _check_said(where: str, block: Block) -> None:
    kind = block.get("type")
    demand(kind in ("text", "image"), where, "a user sends texts, images and tool results")
    if kind == "text":
        check_text(where, block.get("text"))
        return
    source = block["source"]
    if source.get("type") == "url":
        demand(str(source.get("url")).startswith("https://"), where, "an address is https")
    else:
        demand(source.get("type") == "base64", where, "a source is a url or base64")
        demand(source.get("media_type") in _IMAGES, where, f"an image is {', '.join(_IMAGES)}")
        check_base64(where, source.get("data"))


def _check_assistant(where: str, blocks: Sequence[Block], seen: set[str]) -> list[str]:
    demand(blocks[-1].get("type") != "thinking", where, "the last block is not thinking")
    ids: list[str] = []
    for block in blocks:
        kind = block.get("type")
        demand(kind == "tool_use" or not ids, where, "tool calls come last")
        if kind == "tool_use":
            _check_call(where, block, seen)
            ids.append(block["id"])
        elif kind == "thinking":
            check_text(where, block.get("thinking"))
            demand(block.get("signature"), where, "thinking has its signature")
        else:
            demand(kind == "text", where, "an assistant sends texts, thinking and tool calls")
            check_text(where, block.get("text"))
    return ids


def _check_call(where: str, block: Block, seen: set[str]) -> None:
    check_name(where, block.get("id"), _ID)
    demand(block["id"] not in seen, where, "every tool call has a unique id")
    seen.add(block["id"])
    check_name(where, block.get("name"), _TOOL_NAME)
    demand(isinstance(block.get("input"), dict), where, "the input of a call is an object")
