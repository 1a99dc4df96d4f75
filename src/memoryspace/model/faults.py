"""What the SDKs of providers raise, told without a word of what was said.

A server's own message may repeat the question or the key, so only its status and its code are
shown. The SDKs of OpenAI and Anthropic call the same things by the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ModelFailed, ModelUnavailable

_PASSING = frozenset({408, 409, 425, 429})  # and whatever is 500 or more
_NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})  # what servers say to an unknown form
_CODE = re.compile(r"[a-z][a-z0-9_.-]{2,59}")
_HOPELESS = re.compile("invalid|authentication|permission|not_found|too_large|billing|context_len")
_SDKS = ("openai", "anthropic")
_ADVICE = {
    401: "check api_key",
    403: "check what api_key may do",
    404: "check model_name and base_url",
    413: "shorten the conversation",
}


class FormRefused(ModelFailed):
    """The server does not take a request of this form, or refuses for some other reason."""


def fault(
    error: Exception, model: str, key: str | None, what: str = "did not answer"
) -> ModelFailed:
    """Return the error of this package for one that an SDK raised, in its place."""
    if not hasattr(error, "body") and type(error).__module__.startswith(_SDKS):
        return ModelFailed(f"model {model!r} cannot be asked without a key; give api_key")
    status, code = _status(error), _code(error, key)
    told = ", ".join(each for each in (f"status {status}" if status else "", code) if each)
    text = f"model {model!r} {what}: {told or type(error).__name__}"
    if status is None or status < 400:  # no answer at all, or trouble in the middle of one
        return (ModelFailed if _HOPELESS.search(code) else ModelUnavailable)(text)
    if status in _PASSING or (status >= 500 and status not in _NOT_UNDERSTOOD):
        return ModelUnavailable(text)
    kind = FormRefused if status in _NOT_UNDERSTOOD else ModelFailed
    return kind(f"{text}; {_ADVICE.get(status, 'the log of the SDK tells more at level DEBUG')}")


def broken_off(model: str) -> ModelUnavailable:
    """Return the error for an answer that ended before it was complete."""
    return ModelUnavailable(f"model {model!r} broke off in the middle: no end came; ask again")


def no_answer(model: str) -> ModelFailed:
    """Return the error for something that is no completion."""
    return ModelFailed(
        f"what came back from model {model!r} is no completion; check base_url and model_name"
    )


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _code(error: Exception, key: str | None) -> str:
    """Return the first code that is a plain word, such as ``context_length_exceeded``."""
    for found in _codes(error):
        is_plain = isinstance(found, str) and _CODE.fullmatch(found) and found != "error"
        if is_plain and not (key and key in found):
            return str(found)
    return ""


def _codes(error: Exception) -> Iterator[Any]:
    yield from (getattr(error, "code", None), getattr(error, "type", None))
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    for each in (inner, body):
        if isinstance(each, Mapping):
            yield from (each.get("code"), each.get("type"))
