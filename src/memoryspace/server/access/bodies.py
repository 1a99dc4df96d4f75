"""Bodies of requests: read whole, within bounds, before anything parses them.

JSON that is nested too deep, and JSON's invalid relatives that Python's reader accepts (NaN,
infinity, UTF-16), are refused here, so that no route and no library has to.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import accumulate
from typing import Any, TypeAlias

from msgspec import Struct
from starlette.datastructures import Headers

from ..problems import Problem

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

_LENGTH = re.compile(r"[0-9]{1,15}")
# Never backtracks, also where a string has no end.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STEPS = {ord(each): 1 for each in "[{"} | {ord(each): -1 for each in "]}"}
_NO_BRACKETS = bytes(each for each in range(256) if each not in _STEPS)


class Bounds(Struct, frozen=True):
    """What a body may be.

    Attributes:
        most: The most bytes.
        deepest: How deep its JSON may be nested.
    """

    most: int
    deepest: int


async def whole(receive: Receive, headers: Headers, bounds: Bounds) -> Receive:
    """Read the body of a request; return a ``receive`` that gives it in one piece.

    Raises:
        Problem: The body is too large, nested too deep, or no JSON.
    """
    length = headers.get("content-length")
    if length is not None and not (_LENGTH.fullmatch(length) and int(length) <= bounds.most):
        raise _too_large(bounds.most)
    body, is_here = bytearray(), True
    more = length != "0" and (length is not None or "transfer-encoding" in headers)
    while more and is_here:
        message = await receive()
        is_here = message["type"] == "http.request"
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > bounds.most:
            raise _too_large(bounds.most)
    check_json(bytes(body), deepest=bounds.deepest)
    waiting = [{"type": "http.request", "body": bytes(body), "more_body": False}]
    if not is_here:
        waiting = [{"type": "http.disconnect"}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def check_json(body: bytes, *, deepest: int) -> None:
    """Refuse a body that is nested too deep, or that is no JSON although Python reads it."""
    if b"\0" in body:
        raise Problem(422, "invalid-input", "the body must be JSON in UTF-8")
    brackets = body.count(b"[") + body.count(b"{")
    is_odd = b"NaN" in body or b"Infinity" in body
    if brackets <= deepest and not is_odd:
        return
    bare = _STRINGS.sub(b"", body)
    if b"NaN" in bare or b"Infinity" in bare:
        raise Problem(422, "invalid-input", "JSON has neither NaN nor Infinity")
    steps = map(_STEPS.__getitem__, bare.translate(None, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > deepest:
        what = f"a request may be nested {deepest} levels deep at most"
        raise Problem(413, "too-deep", what)


def _too_large(most: int) -> Problem:
    return Problem(413, "too-large", f"a request may have {most} bytes at most; send less at once")
