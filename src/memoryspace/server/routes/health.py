"""Watching: health, metrics and the live feed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from ..metrics import MEDIA_TYPE
from ..problems import Problem
from .asking import ADMIN, EVERYBODY, READ, Memory, caller_of, is_count, problems, serving, watching

router = APIRouter(tags=["watching"])


@router.get("/health/live", operation_id="isAlive", summary="Is it running?")
async def live() -> dict[str, str]:
    """Return that the process answers; no key is needed."""
    return {"status": "alive"}


@router.get("/health/ready", operation_id="isReady", summary="Can it serve?", responses=problems())
async def ready(memory: Memory) -> Response:
    """Return whether the store answers."""
    if not await memory.health():
        raise Problem(503, "store-unavailable", "the store does not answer; is it running?")
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems()},
    dependencies=[ADMIN, EVERYBODY],
)
async def metrics(request: Request) -> Response:
    """Return the figures of this process and of the memory, in Prometheus's text format."""
    found = watching(request).metrics
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
        if not is_count(last):
            raise Problem(422, "invalid-input", "Last-Event-ID must be the id of an event")
        after = int(last)
    caller = caller_of(request)

    async def still() -> bool:
        return await serving(request).keys.is_valid(caller.key)

    stream = watching(request).feed.read(caller, after, still=still)
    return StreamingResponse(stream, media_type="text/event-stream")
