"""The gate: what every request passes before anything of it is read.

In this order: an id for the request, the key, the limit of requests, the size of the body, and how
deep it is nested. A request without a valid key is refused before its body is read. Written as
plain ASGI, so that streams pass through.

Errors that nobody expected end here too: the caller learns that the server failed, and the log
which kind of error it was, never its message, which may hold what users said.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from starlette.datastructures import Headers, MutableHeaders

from ...message import new_id
from ..problems import Problem, answer, failed, problem_of
from .bodies import Bounds, Message, Receive, whole
from .keys import Caller, KeyRing
from .rates import Rates

ASGIScope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[ASGIScope, Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)

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
    """Wraps an application so that only requests with a valid key reach it.

    Args:
        app: The application.
        keys: Returns the keys.
        rates: Counts requests.
        bounds: What a body may be.
        ended: Called at the end of every request with its scope, its status and its seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Callable[[], KeyRing],
        rates: Rates,
        bounds: Bounds,
        ended: Callable[[ASGIScope, int, float], None],
    ) -> None:
        self._app = app
        self._keys = keys
        self._rates = rates
        self._bounds = bounds
        self._ended = ended

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Serve one request; nothing but HTTP is served."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = Headers(scope=scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id = _request_id(headers)
        sending = _Sending(send, request_id, began)
        try:
            if not is_open(scope["path"], scope["method"]):
                state["caller"] = caller = await self._caller(headers)
                self._rates.count(caller)
            received = await whole(receive, headers, self._bounds)
            await self._app(scope, received, sending)
        except Exception as error:
            problem = problem_of(error)
            failed(problem, error, request_id)
            if sending.status is None:
                await answer(problem, request_id)(scope, receive, sending)
        finally:
            self._ended(scope, sending.status or 0, time.perf_counter() - began)

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


class _Sending:
    """Sends an answer with the headers that every answer has; ``status`` is that of the answer."""

    def __init__(self, send: Send, request_id: str, began: float) -> None:
        self._send = send
        self._request_id = request_id
        self._began = began
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _SAFE.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self._request_id
            took = (time.perf_counter() - self._began) * 1000
            headers.append("Server-Timing", f"total;dur={took:.2f}")
        await self._send(message)
