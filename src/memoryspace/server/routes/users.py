"""Users: who has memories, how much, what they may store, and erasing them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from .. import forms
from ..access.quotas import Quota
from ..problems import Problem
from .asking import ADMIN, EVERYBODY, READ, Memory, User, note, problems, serving, shown

router = APIRouter(prefix="/v1", tags=["users"])


@router.get(
    "/users",
    operation_id="listUsers",
    summary="List users",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[ADMIN, EVERYBODY],
)
async def users(
    memory: Memory,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Return one page of the users who have memories; it may be short before the last page."""
    page = await memory.users(cursor=cursor, limit=limit)
    return shown({"users": list(page.users), "cursor": page.cursor})


@router.get(
    "/stats",
    operation_id="getStats",
    summary="See figures of the memory and of a user",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[READ],
)
async def stats(user: User, memory: Memory) -> Response:
    """Return what the memory stands on, and how much is remembered of a user."""
    return shown(await memory.stats(user=user))


@router.delete(
    "/users",
    operation_id="eraseUser",
    summary="Erase a user",
    response_model=forms.ErasedOut,
    responses=problems(),
    dependencies=[ADMIN],
)
async def erase(
    request: Request,
    user: User,
    memory: Memory,
    confirm: Annotated[str, Query(description="The user's name once more.")] = "",
) -> Response:
    """Erase everything of a user, then look whether anything is left."""
    if confirm != user:
        raise Problem(422, "not-confirmed", "erasing cannot be undone: add &confirm= with the user")
    erased = await memory.delete_user(user)
    await note(request, "users.erase", user, len(erased.deleted))
    return shown(erased)


@router.get(
    "/quotas",
    operation_id="getQuota",
    summary="See what a user may store",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[READ],
)
async def quota(request: Request, user: User, memory: Memory) -> Response:
    """Return a user's quota and usage."""
    found = await serving(request).quotas.of(user)
    usage = await memory.service.usage(user)
    return shown({"quota": found.to_dict(), "usage": usage.to_dict()})


@router.put(
    "/quotas",
    operation_id="setQuota",
    summary="Set what a user may store",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[ADMIN, EVERYBODY],
)
async def set_quota(
    request: Request, body: forms.QuotaRequest, user: User, memory: Memory
) -> Response:
    """Set a user's quota; 0 stands for no limit."""
    wanted = Quota(max_bytes=body.max_bytes, max_records=body.max_records)
    await serving(request).quotas.put(user, wanted)
    await note(request, "quotas.set", user, 1)
    return shown({"quota": wanted.to_dict()})
