"""Review: messages that are held back, and derivations that failed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from .. import forms
from .asking import READ, WRITE, Memory, User, note, problems, shown

router = APIRouter(prefix="/v1", tags=["review"])


@router.get(
    "/review/facts",
    operation_id="listWaiting",
    summary="List facts that wait for approval",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[READ],
)
async def waiting(
    user: User,
    memory: Memory,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Return what would be believed, from which messages, and what it would retire."""
    return shown(await memory.review.waiting(user=user, cursor=cursor, limit=limit))


@router.post(
    "/review/approve",
    operation_id="approve",
    summary="Believe facts",
    response_model=forms.AnyOut,
    responses=problems(404),
    dependencies=[WRITE],
)
async def approve(request: Request, body: forms.Ids, user: User, memory: Memory) -> Response:
    """Believe facts from now on; what they contradict ends."""
    decided = await memory.review.approve(body.ids, user=user)
    await note(request, "review.approve", user, len(decided.ids))
    return shown(decided)


@router.post(
    "/review/reject",
    operation_id="reject",
    summary="Drop facts",
    response_model=forms.AnyOut,
    responses=problems(404),
    dependencies=[WRITE],
)
async def reject(request: Request, body: forms.Ids, user: User, memory: Memory) -> Response:
    """Drop facts; they do not come back from the same messages."""
    decided = await memory.review.reject(body.ids, user=user)
    await note(request, "review.reject", user, len(decided.ids))
    return shown(decided)


@router.post(
    "/review/undo",
    operation_id="undoDecision",
    summary="Take a decision back",
    response_model=forms.AnyOut,
    responses=problems(404),
    dependencies=[WRITE],
)
async def undo(request: Request, body: forms.Ids, user: User, memory: Memory) -> Response:
    """Let facts wait again that were approved or rejected."""
    decided = await memory.review.undo(body.ids, user=user)
    await note(request, "review.undo", user, len(decided.ids))
    return shown(decided)


@router.get(
    "/review/quarantine",
    operation_id="listQuarantined",
    summary="List messages that are held back",
    response_model=forms.MemoriesOut,
    responses=problems(),
    dependencies=[READ],
)
async def quarantined(user: User, memory: Memory) -> Response:
    """Return messages that look like instructions to a model; their details say why."""
    return shown(await memory.review.quarantined(user=user))


@router.post(
    "/review/release",
    operation_id="release",
    summary="Let held back messages be found",
    response_model=forms.ItemsOut,
    responses=problems(404),
    dependencies=[WRITE],
)
async def release(request: Request, body: forms.Ids, user: User, memory: Memory) -> Response:
    """Release messages from quarantine; return their ids."""
    released = await memory.review.release(body.ids, user=user, session=body.session)
    await note(request, "review.release", user, len(released))
    return shown({"items": released, "cursor": None})


@router.get(
    "/operations",
    operation_id="getOperations",
    summary="See what is still being derived",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[READ],
)
async def operations(user: User, memory: Memory) -> Response:
    """Return how many derivations wait or failed, and the state of the embedder."""
    return shown(await memory.service.status(user))


@router.post(
    "/operations/settle",
    operation_id="settle",
    summary="Finish derivations now",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def settle(user: User, memory: Memory) -> Response:
    """Finish what is still being derived or embedded; return what failed."""
    return shown(await memory.settle(user=user))


@router.post(
    "/operations/retry",
    operation_id="retry",
    summary="Start failed derivations again",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def retry(request: Request, user: User, memory: Memory) -> Response:
    """Start derivations again that failed for good; return how many."""
    again = await memory.retry(user=user)
    await note(request, "operations.retry", user, again)
    return shown({"restarted": again})
