"""What routes need of a request: who asks, about whom, the memory, and a note in the audit log."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from ...door import AsyncMemory
from ...errors import InvalidInput
from ...service.reading.arguments import check_own
from ..access.keys import Caller, Scope
from ..forms import ProblemOut
from ..problems import MEDIA_TYPE, Problem
from ..serving import Serving
from ..watching import Watching

_USER = Query(description="Whose memory; not needed with a key that is bound to one user.")


def serving(request: Request) -> Serving:
    """Return what the server consists of."""
    found: Serving = request.app.state.serving
    return found


def watching(request: Request) -> Watching:
    """Return what watches the server."""
    found: Watching = request.app.state.watching
    return found


def caller_of(request: Request) -> Caller:
    """Return who asks; the gate has checked the key."""
    found: Caller = request.state.caller
    return found


def allowed(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    """Return a dependency that refuses keys without a scope."""

    async def check(request: Request) -> Caller:
        caller = caller_of(request)
        if not caller.may(scope):
            raise Problem(403, "forbidden", f"this needs a key with the scope {scope!r}")
        return caller

    return check


async def whose(request: Request, user: Annotated[str | None, _USER] = None) -> str:
    """Return the user a request is about, if the key may use that user's memory."""
    caller = caller_of(request)
    named = caller.only_user if user is None else user
    if named is None:
        raise InvalidInput("whose memory? Add ?user=… to the address")
    check_own("user", named)
    if not caller.may_use(named):
        raise Problem(403, "forbidden", "this key may not use that user's memory")
    return named


async def everybody(request: Request) -> Caller:
    """Return who asks, if the key may use everybody's memory."""
    caller = caller_of(request)
    if caller.users is not None:
        raise Problem(403, "forbidden", "this needs a key that is not bound to users")
    return caller


async def the_memory(request: Request) -> AsyncMemory:
    """Return the memory that is served."""
    return serving(request).memory


User = Annotated[str, Depends(whose)]
Memory = Annotated[AsyncMemory, Depends(the_memory)]
READ, WRITE, ADMIN = (Depends(allowed(scope)) for scope in ("read", "write", "admin"))
EVERYBODY = Depends(everybody)


def is_count(text: str) -> bool:
    """Return whether a text is a number from 0 on that every backend can store."""
    return re.fullmatch(r"[0-9]{1,15}", text) is not None


async def note(request: Request, action: str, user: str | None, count: int) -> None:
    """Write to the audit log that something was changed."""
    await serving(request).audit.note(
        key=caller_of(request).key,
        action=action,
        user=user,
        count=count,
        request=request.state.request_id,
    )


def shown(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    data = value.to_dict() if hasattr(value, "to_dict") else value
    return JSONResponse(data, status_code=status, headers=headers)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a route's errors; some every route has."""
    return {
        status: {"model": ProblemOut, "content": {MEDIA_TYPE: {}}}
        for status in sorted({401, 403, 404, 413, 422, 429, 503, *statuses})
    }
