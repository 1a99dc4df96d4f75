"""Rules that all providers share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

Prompt: TypeAlias = Sequence[Mapping[str, Any]]

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,", re.ASCII)


def checking(check: Callable[[Prompt], None]) -> Callable[[Prompt], None]:
    """Make a check raise ``AssertionError`` for prompts of an unexpected structure too."""

    @wraps(check)
    def checked(messages: Prompt) -> None:
        try:
            check(messages)
        except (AttributeError, KeyError, TypeError) as error:
            raise AssertionError(f"the prompt has an unexpected structure ({error!r})") from None

    return checked


def demand(holds: object, where: str, what: str) -> None:
    """Raise ``AssertionError`` with a place and a rule if the rule is broken."""
    if not holds:
        raise AssertionError(f"{where}: {what}")


def check_json(messages: Prompt) -> None:
    """Demand a non-empty list of dicts that can be sent as JSON in UTF-8."""
    demand(isinstance(messages, list) and messages, "the prompt", "it is a list, and not empty")
    for number, message in enumerate(messages):
        demand(isinstance(message, dict), f"message {number}", "it is a dict")
    try:
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise AssertionError(f"the prompt is not JSON: {type(error).__name__}") from None


def check_text(where: str, text: object) -> None:
    """Demand a text that is not blank."""
    demand(isinstance(text, str) and text.strip(), where, "a text is a string, and not blank")


def check_base64(where: str, data: object) -> None:
    """Demand base64 data that is not empty."""
    demand(isinstance(data, str) and is_base64(data), where, "inline data is base64, and not empty")


def is_base64(data: str) -> bool:
    """Return whether this is padded base64."""
    return len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


def is_media_url(url: object) -> bool:
    """Return whether this is a web address or a data URL."""
    if not isinstance(url, str):
        return False
    inline = _DATA_URL.match(url)
    return is_base64(url[inline.end() :]) if inline else url.startswith(("http://", "https://"))


def check_name(where: str, name: object, pattern: re.Pattern[str]) -> None:
    """Demand a name or id that matches a pattern."""
    fits = isinstance(name, str) and pattern.fullmatch(name)
    demand(fits, where, f"a name or id matches {pattern.pattern}")
