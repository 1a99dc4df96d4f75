"""Conversion of SDK errors to errors of this package, without text of the conversation.

A server's message may repeat the prompt or the key, so only its status and code are shown. The SDKs
of OpenAI and Anthropic use the same attribute names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ModelFailed, ModelUnavailable

_TRANSIENT = frozenset({408, 409, 425, 429})  # and every status of 500 or more
_NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})  # responses to an unknown request form
_CODE = re.compile(r"[a-z][a-z0-9_.-]{2,59}")
_PERMANENT = re.compile("invalid|authentication|permission|not_found|too_large|billing|context_len")
_SDKS = ("openai", "anthropic")
_ADVICE = {
    401: "check api_key",
    403: "check what api_key may do",
    404: "check model_name and base_url",
    413: "shorten the conversation",
}


class FormRefused(ModelFailed):
    """The server rejects this form of request, or rejects the request for another reason."""


def fault(
    error: Exception, model: str, key: str | None, what: str = "did not answer"
) -> ModelFailed:
    """Return the error of this package that replaces an SDK error."""
    if not hasattr(error, "body") and type(error).__module__.startswith(_SDKS):
        return ModelFailed(f"model {model!r} cannot be called without a key; pass api_key")
    status, code = _status(error), _code(error, key)
    reason = ", ".join(each for each in (f"status {status}" if status else "", code) if each)
    text = f"model {model!r} {what}: {reason or type(error).__name__}"
    if status is None or status < 400:  # no answer, or a failure in the middle of one
        return (ModelFailed if _PERMANENT.search(code) else ModelUnavailable)(text)
    if status in _TRANSIENT or (status >= 500 and status not in _NOT_UNDERSTOOD):
        return ModelUnavailable(text)
    kind = FormRefused if status in _NOT_UNDERSTOOD else ModelFailed
    return kind(f"{text}; {_ADVICE.get(status, 'see the DEBUG log of the SDK')}")


def broken_off(model: str) -> ModelUnavailable:
    """Return the error for an answer that ended before it was complete."""
    return ModelUnavailable(
        f"model {model!r} broke off in the middle: the end is missing; try again"
    )


def no_answer(model: str) -> ModelFailed:
    """Return the error for a response that is not a completion."""
    return ModelFailed(
        f"the response of model {model!r} is not a completion; check base_url and model_name"
    )


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _code(error: Exception, key: str | None) -> str:
    """Return the first plain error code, such as ``context_length_exceeded``."""
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
