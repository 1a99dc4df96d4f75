"""Rules for Gemini's contents, in the spelling of its REST API (``functionCall``) or its SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .rules import Prompt, check_base64, check_json, check_name, check_text, checking, demand

_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", re.ASCII)
_KINDS = ("text", "inline_data", "function_call", "function_response")
_SPELLING = {
    "inlineData": "inline_data",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "mimeType": "mime_type",
}


@checking
def check_gemini(messages: Prompt) -> None:
    """Raise ``AssertionError`` if Gemini would refuse these contents."""
    check_json(messages)
    demand(messages[0].get("role") == "user", "the beginning", "the first turn is the user's")
    demand(messages[-1].get("role") == "user", "the end", "the last turn is the user's")
    calls: list[Mapping[str, Any]] = []
    was_model = False
    for number, turn in enumerate(messages):
        where = f"turn {number} ({turn.get('role')})"
        demand(turn.get("role") in ("user", "model"), where, "role is user or model")
        is_model = turn["role"] == "model"
        demand(not (was_model and is_model), where, "consecutive turns of the model are one turn")
        parts = _parts_of(where, turn)
        _check_answers(where, parts, calls)
        calls = [part["function_call"] for part in parts if "function_call" in part]
        demand(is_model or not calls, where, "only the model calls functions")
        for call in calls:
            _check_call(where, call)
        was_model = is_model


def _parts_of(where: str, turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = turn.get("parts")
    demand(isinstance(parts, list) and parts, where, "it has parts")
    assert isinstance(parts, list)
    demand(all(isinstance(part, dict) for part in parts), where, "a part is a dict")
    spelled = [_spelled(part) for part in parts]
    for part in spelled:
        kinds = [kind for kind in _KINDS if kind in part]
        demand(len(kinds) == 1, where, f"a part is one of {', '.join(_KINDS)}")
        if kinds == ["text"]:
            check_text(where, part["text"])
        elif kinds == ["inline_data"]:
            data = _spelled(part["inline_data"])
            check_base64(where, data.get("data"))
            demand("/" in str(data.get("mime_type")), where, "inline data has a mime_type")
    return spelled


def _check_answers(
    where: str, parts: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]
) -> None:
    """Demand a turn of only responses after calls, one for each call, in the same order."""
    answers = [part["function_response"] for part in parts if "function_response" in part]
    demand(len(answers) == len(calls), where, "there is a response for each call right before it")
    demand(not answers or len(answers) == len(parts), where, "responses are alone in a turn")
    for call, answer in zip(calls, answers, strict=True):
        is_match = all(call.get(key) == answer.get(key) for key in ("name", "id"))
        demand(is_match, where, "responses are in the order of the calls")
        demand(isinstance(answer.get("response"), dict), where, "a response is an object")


def _check_call(where: str, call: Mapping[str, Any]) -> None:
    check_name(where, call.get("name"), _TOOL_NAME)
    demand(isinstance(call.get("args"), dict), where, "the args of a call are an object")


def _spelled(part: Mapping[str, Any]) -> dict[str, Any]:
    return {_SPELLING.get(key, key): value for key, value in part.items()}
