"""The memory space: its figures, its garbage, its past."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from .. import forms
from .asking import ADMIN, EVERYBODY, Memory, is_count, note, problems, shown

router = APIRouter(prefix="/v1/space", tags=["space"], dependencies=[ADMIN, EVERYBODY])


When = Annotated[
    str, Query(max_length=100, description="The number of a change, or a time as ISO text.")
]


@router.get(
    "",
    operation_id="getSpace",
    summary="See the figures of the space",
    response_model=forms.AnyOut,
    responses=problems(501),
)
async def figures(memory: Memory) -> Response:
    """Return the figures of the memory space, or none if the memory is elsewhere."""
    found = await memory.stats()
    return shown({"backend": found.backend, "space": found.space})


@router.post(
    "/snapshot",
    operation_id="snapshot",
    summary="Write a checkpoint",
    status_code=201,
    response_model=forms.AnyOut,
    responses=problems(501),
)
async def snapshot(request: Request, memory: Memory) -> Response:
    """Write a checkpoint and return the moment, to look at or go back to."""
    moment = await memory.snapshot()
    await note(request, "space.snapshot", None, 1)
    return shown(moment, 201)


@router.get(
    "/diff",
    operation_id="diff",
    summary="Compare two moments",
    response_model=forms.AnyOut,
    responses=problems(501),
)
async def diff(
    memory: Memory,
    before: When,
    after: When | None = None,
) -> Response:
    """Return which memories were added, removed or changed between two moments."""
    return shown(await memory.diff(_moment(before), None if after is None else _moment(after)))


@router.post(
    "/restore",
    operation_id="restore",
    summary="Go back to a moment",
    response_model=forms.AnyOut,
    responses=problems(501),
)
async def restore(request: Request, body: forms.At, memory: Memory) -> Response:
    """Make the memory what it was; return the moment before, to go back again."""
    moment = await memory.restore(_moment(body.moment))
    await note(request, "space.restore", None, 1)
    return shown(moment)


@router.post(
    "/gc",
    operation_id="collectGarbage",
    summary="Collect garbage, or explain it",
    response_model=forms.AnyOut,
    responses=problems(501),
)
async def gc(request: Request, body: forms.Collect, memory: Memory) -> Response:
    """Free what is garbage, or say what would be freed and why."""
    collected = await memory.gc(explain=body.explain)
    if not body.explain:
        await note(request, "space.gc", None, collected.freed)
    return shown(collected)


def _moment(given: int | str) -> int | str:
    return int(given) if isinstance(given, str) and is_count(given) else given
