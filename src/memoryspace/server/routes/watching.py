"""Watching: health, metrics and the live feed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from ..metrics import MEDIA_TYPE, Metrics
from ..problems import Problem
from .asking import ADMIN, READ, Memory, caller_of, problems

router = APIRouter(tags=["watching"])


@router.get("/health/live", operation_id="isAlive", summary="Is it running?")
async def live() -> dict[str, str]:
    """Return that the process answers; no key is needed."""
    return {"status": "alive"}


@router.get("/health/ready", operation_id="isReady", summary="Can it serve?", responses=problems())
async def ready(memory: Memory) -> Response:
    """Return whether the store answers."""
    is_ready = await memory.health()
    status = "ready" if is_ready else "the store does not answer"
    return JSONResponse({"status": status}, status_code=200 if is_ready else 503)


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems()},
    dependencies=[ADMIN],
)
async def metrics(request: Request) -> Response:
    """Return the figures of this process and of the memory, in Prometheus's text format."""
    found: Metrics = request.app.state.metrics
    return Response(await found.text(), media_type=MEDIA_TYPE)


@router.get(
    "/v1/events",
    operation_id="watchEvents",
    summary="Watch what happens",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, **problems()},
    dependencies=[READ],
)
async def events(
    request: Request,
    after: Annotated[int | None, Query(ge=0, description="Begin after this event.")] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> StreamingResponse:
    """Stream operations and events of the memory space; a reader resumes where it was cut off.

    An event names an operation, its user and its figures; it never holds what users said.
    """
    if last is not None:
        if not last.isdigit():
            raise Problem(422, "invalid-input", "Last-Event-ID must be the id of an event")
        after = int(last)
    stream = request.app.state.feed.read(caller_of(request), after)
    return StreamingResponse(stream, media_type="text/event-stream")
