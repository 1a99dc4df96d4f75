"""The gate: what every request passes before anything of it is read.

In this order: an id for the request, the key, the limit of requests, the size of the body. A
request without a valid key is refused before its body is read. Written as plain ASGI, so that
streams pass through.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from starlette.datastructures import Headers, MutableHeaders

from ...message import new_id
from ..problems import Problem, answer, problem_of
from .keys import Caller, KeyRing
from .rates import Rates

ASGIScope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[ASGIScope, Receive, Send], Awaitable[None]]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# What is served without a key: whether the process lives, and the dashboard's own files.
_OPEN = frozenset({"/health/live", "/"})
_OPEN_BELOW = ("/assets/",)


class Gate:
    """Wraps an application so that only requests with a valid key reach it."""

    def __init__(
        self, app: ASGIApp, *, keys: Callable[[], KeyRing], rates: Rates, max_body: int
    ) -> None:
        self._app = app
        self._keys = keys
        self._rates = rates
        self._max_body = max_body

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        guarded = _with_headers(send, request_id, began)
        try:
            if not is_open(scope["path"], scope["method"]):
                state["caller"] = caller = await self._caller(headers)
                self._rates.count(caller)
            received = _limited(receive, headers, self._max_body)
        except Exception as error:
            await answer(problem_of(error), request_id)(scope, receive, guarded)
            return
        await self._app(scope, received, guarded)

    async def _caller(self, headers: Headers) -> Caller:
        key = _key_in(headers)
        caller = await self._keys().caller(key) if key else None
        if caller is None:
            what = "is not valid, has expired or was revoked" if key else "is missing"
            raise Problem(
                401,
                "unauthorized",
                f"the API key {what}; send it as 'Authorization: Bearer ms_…'",
                headers={"WWW-Authenticate": 'Bearer realm="memoryspace"'},
            )
        return caller


def is_open(path: str, method: str) -> bool:
    """Return whether a path is served without a key."""
    return method in ("GET", "HEAD") and (path in _OPEN or path.startswith(_OPEN_BELOW))


def _key_in(headers: Headers) -> str:
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return key.strip()
    return headers.get("x-api-key", "").strip()


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else new_id()


def _with_headers(send: Send, request_id: str, began: float) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SAFE.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = request_id
            took = (time.perf_counter() - began) * 1000
            headers.append("Server-Timing", f"total;dur={took:.2f}")
        await send(message)

    return sending


def _limited(receive: Receive, headers: Headers, most: int) -> Receive:
    """Return a ``receive`` that refuses a body of more than ``most`` bytes."""
    length = headers.get("content-length")
    if length is not None and (not length.isdigit() or int(length) > most):
        raise _too_large(most)
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > most:
                raise _too_large(most)
        return message

    return receiving


def _too_large(most: int) -> Problem:
    return Problem(413, "too-large", f"a request may have {most} bytes at most; send less at once")
