"""Problem details (RFC 9457): what went wrong, as a code, in words, with what to do.

A message of one of our own errors names ids and limits and never what users said, so it is passed
on. Of any other error nothing is: it is logged with the id of the request.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..door.faults import FAULTS
from ..errors import MemorySpaceError

MEDIA_TYPE = "application/problem+json"

_MOST_SHOWN = 20  # of what is wrong with one request
_LONGEST = 200  # characters of a place: it may be a name that was sent

logger = logging.getLogger(__name__)


class Problem(Exception):
    """A request that is refused.

    Args:
        status: The HTTP status.
        code: Names the kind of problem; programs may rely on it.
        detail: What was wrong and what to do, in words.
        headers: Headers of the answer.
        more: Further members of the document.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = {} if headers is None else headers
        self.more = {} if more is None else more

    def document(self, request_id: str) -> dict[str, Any]:
        """Return the problem as a document."""
        return {
            "type": f"urn:memoryspace:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "request_id": request_id,
            **self.more,
        }


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error is to a caller."""
    if isinstance(error, Problem):
        return error
    for kind, code, status in FAULTS:
        if isinstance(error, kind):
            headers = {"Retry-After": "2"} if status == 503 else None
            return Problem(status, code, str(error), headers=headers)
    if isinstance(error, TypeError) and type(error) is TypeError:
        return Problem(422, "invalid-input", str(error))
    return Problem(500, "internal-error", "the server failed; its log has the details")


def failed(problem: Problem, error: Exception, request_id: str) -> None:
    """Log an error that is the server's own fault: its kind, and its traceback for ``debug``."""
    if problem.code == "internal-error":
        logger.error("request %s failed: %s", request_id, type(error).__name__)
        logger.debug("request %s failed", request_id, exc_info=error)


def answer(problem: Problem, request_id: str) -> JSONResponse:
    """Return the response of a problem."""
    return JSONResponse(
        problem.document(request_id),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
    )


def handle_problems(app: FastAPI) -> None:
    """Answer every error with problem details."""

    async def ours(request: Request, error: Exception) -> JSONResponse:
        problem = problem_of(error)
        failed(problem, error, _id_of(request))
        return answer(problem, _id_of(request))

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return answer(_invalid(error), _id_of(request))

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        if error.status_code == 400:  # the body's encoding is wrong, or a number is too long
            unreadable = Problem(422, "invalid-input", "the body must be JSON in UTF-8")
            return answer(unreadable, _id_of(request))
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        problem = Problem(
            error.status_code, code, str(error.detail), headers=dict(error.headers or {})
        )
        return answer(problem, _id_of(request))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    for kind in (Problem, MemorySpaceError, TypeError):  # all others end at the gate
        app.add_exception_handler(kind, ours)


def _invalid(error: RequestValidationError) -> Problem:
    """Return what is wrong with a request, without the values that were sent."""
    found = [
        {"where": "/".join(map(str, each["loc"]))[:_LONGEST], "what": str(each["msg"])}
        for each in error.errors()[:_MOST_SHOWN]
    ]
    first = found[0]
    detail = f"{first['where']}: {first['what']}"
    return Problem(422, "invalid-input", detail, more={"errors": found})


def _id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))
