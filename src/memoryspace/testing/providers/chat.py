"""Rules for OpenAI's chat messages and for the providers that use the same form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from .rules import (
    Prompt,
    check_base64,
    check_json,
    check_name,
    check_text,
    checking,
    demand,
    is_media_url,
)

Check: TypeAlias = Callable[[str, Any], None]

_CALL_ID = re.compile(r"[!-~]{1,40}", re.ASCII)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class _Rules:
    """The rules in which providers differ."""

    part: Check | None  # None: content is text, never a list
    arguments: Check
    empty: tuple[object, ...]  # what content may be beside tool calls
    system_first: bool  # system messages come first, followed by a user message
    alternates: bool  # no two of the user or of the assistant in a row; the assistant is not last


@checking
def check_openai(messages: Prompt) -> None:
    """Raise ``AssertionError`` if OpenAI would refuse these chat messages."""
    _check(messages, _OPENAI)


@checking
def check_dashscope(messages: Prompt) -> None:
    """Raise ``AssertionError`` if DashScope's own API would refuse these messages."""
    _check(messages, _DASHSCOPE)


@checking
def check_deepseek(messages: Prompt) -> None:
    """Raise ``AssertionError`` if DeepSeek would refuse these messages."""
    _check(messages, _DEEPSEEK)


@checking
def check_ollama(messages: Prompt) -> None:
    """Raise ``AssertionError`` if Ollama's own API would refuse these messages."""
    _check(messages, _OLLAMA)
    for number, message in enumerate(messages):
        for image in message.get("images", ()):
            check_base64(f"message {number}", image)


def _check(messages: Prompt, rules: _Rules) -> None:
    check_json(messages)
    waiting: list[str] = []  # calls that are not answered yet
    seen: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role")
        demand(role in _ROLES, f"message {number}", f"role is one of {', '.join(_ROLES)}")
        where = f"message {number} ({role})"
        if role == "tool":
            _check_answer(where, message, waiting)
            continue
        demand(not waiting, where, "every tool call is answered right behind it")
        waiting = _check_calls(where, message, rules, seen)
        _check_content(where, message, rules)
        if "name" in message:
            check_name(where, message["name"], _SPEAKER)
    demand(not waiting, "the end", "every tool call is answered right behind it")
    _check_order([str(message["role"]) for message in messages], rules)


def _check_answer(where: str, message: Mapping[str, Any], waiting: list[str]) -> None:
    id = message.get("tool_call_id")
    demand(id in waiting, where, "it answers an unanswered call right before it")
    waiting.remove(str(id))
    check_text(where, message.get("content"))
    demand("tool_calls" not in message, where, "only the assistant calls tools")


def _check_calls(
    where: str, message: Mapping[str, Any], rules: _Rules, seen: set[str]
) -> list[str]:
    if "tool_calls" not in message:
        return []
    calls = message["tool_calls"]
    demand(message["role"] == "assistant", where, "only the assistant calls tools")
    demand(isinstance(calls, list) and calls, where, "tool_calls is a list, and not empty")
    for call in calls:
        demand(call.get("type") == "function", where, "a tool call is of the type function")
        check_name(where, call.get("id"), _CALL_ID)
        demand(call["id"] not in seen, where, "every tool call has a unique id")
        seen.add(call["id"])
        check_name(where, call["function"].get("name"), _TOOL_NAME)
        rules.arguments(where, call["function"].get("arguments"))
    return [call["id"] for call in calls]


def _check_content(where: str, message: Mapping[str, Any], rules: _Rules) -> None:
    demand("content" in message, where, "it has content")
    content = message["content"]
    if ("tool_calls" in message or message.get("images")) and content in rules.empty:
        return
    if isinstance(content, list) and rules.part is not None:
        demand(content, where, "content is not empty")
        for part in content:
            demand(isinstance(part, dict), where, "a part of the content is a dict")
            is_text = "text" in part and part.get("type", "text") == "text"
            demand(is_text or message["role"] == "user", where, "only users send media")
            rules.part(where, part)
    else:
        check_text(where, content)


def _check_order(roles: list[str], rules: _Rules) -> None:
    if rules.system_first:
        said = [role for role in roles if role != "system"]
        demand(said[:1] == ["user"], "the beginning", "the first turn is the user's")
        demand("system" not in roles[1:], "the prompt", "there is one system message, the first")
    if rules.alternates:
        demand(roles[-1] != "assistant", "the end", "the last turn is not the assistant's")
        for number, (one, other) in enumerate(pairwise(roles)):
            in_turns = one != other or one not in ("user", "assistant")
            demand(in_turns, f"message {number + 1}", "user and assistant take turns")


def _openai_part(where: str, part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if kind == "text":
        check_text(where, part.get("text"))
    elif kind == "image_url":
        demand(
            is_media_url(part["image_url"].get("url")), where, "an image is a web address or inline"
        )
    else:
        demand(kind == "input_audio", where, "a part is a text, an image_url or an input_audio")
        check_base64(where, part["input_audio"].get("data"))
        demand(part["input_audio"].get("format") in ("wav", "mp3"), where, "audio is wav or mp3")


def _dashscope_part(where: str, part: Mapping[str, Any]) -> None:
    demand(len(part) == 1, where, "a part is one of text, image, audio and video")
    kind, value = next(iter(part.items()))
    if kind == "text":
        check_text(where, value)
    else:
        demand(kind in ("image", "audio", "video"), where, "a part is text, image, audio or video")
        demand(is_media_url(value), where, "media is a web address or inline")


def _json_object(where: str, arguments: object) -> None:
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        found = None
    demand(isinstance(found, dict), where, "arguments are the JSON of an object")


def _object(where: str, arguments: object) -> None:
    demand(isinstance(arguments, dict), where, "arguments are an object")


_OPENAI = _Rules(
    part=_openai_part,
    arguments=_json_object,
    empty=(None, ""),
    system_first=False,
    alternates=False,
)
_DASHSCOPE = _Rules(
    part=_dashscope_part,
    arguments=_json_object,
    empty=("", []),
    system_first=True,
    alternates=False,
)
_DEEPSEEK = _Rules(
    part=None,
    arguments=_json_object,
    empty=(None, ""),
    system_first=False,
    alternates=True,
)
_OLLAMA = _Rules(
    part=None,
    arguments=_object,
    empty=(None, ""),
    system_first=False,
    alternates=False,
)
