"""Recall: search, context, why not, and whether it helped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from .. import forms
from .asking import READ, WRITE, Memory, User, problems, shown
from .memories import restored_filters

router = APIRouter(prefix="/v1", tags=["recall"], dependencies=[READ])


@router.post(
    "/search",
    operation_id="search",
    summary="Find memories",
    response_model=forms.SearchOut,
    responses=problems(),
)
async def search(body: forms.Search, user: User, memory: Memory) -> Response:
    """Return the memories that answer a question, best first, each with a score and reasons."""
    found = await memory.search(
        body.question,
        user=user,
        limit=body.limit,
        session=body.session,
        kind=body.kind,
        filters=restored_filters(body.filters),
        min_relevance=body.min_relevance,
        when=body.when,
        explain=body.explain,
    )
    return shown(found)


@router.post(
    "/context",
    operation_id="context",
    summary="Get the text for a prompt",
    response_model=forms.ContextOut,
    responses=problems(),
)
async def context(body: forms.ContextRequest, user: User, memory: Memory) -> Response:
    """Return what bears on a question as quoted text within a budget; "" if nothing does."""
    made = await memory.context(
        body.question,
        user=user,
        max_tokens=body.max_tokens,
        session=body.session,
        filters=restored_filters(body.filters),
        min_relevance=body.min_relevance,
        when=body.when,
    )
    return shown(made)


@router.post(
    "/why-not",
    operation_id="whyNot",
    summary="Explain why a memory was not found",
    response_model=forms.AnyOut,
    responses=problems(),
)
async def why_not(body: forms.WhyNotRequest, user: User, memory: Memory) -> Response:
    """Say at which step a search dropped a memory, and what ranks above it."""
    told = await memory.why_not(
        body.question,
        body.memory_id,
        user=user,
        limit=body.limit,
        session=body.session,
        filters=restored_filters(body.filters),
        when=body.when,
    )
    return shown(told)


@router.get(
    "/recalls",
    operation_id="listRecalls",
    summary="Read the recall log",
    response_model=forms.AnyOut,
    responses=problems(),
)
async def recalls(
    user: User, memory: Memory, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Response:
    """Return what was asked and found, how often nothing was, and what helped."""
    return shown(await memory.recalls(user=user, limit=limit))


@router.get(
    "/recalls/never",
    operation_id="listNeverRecalled",
    summary="List memories that were never recalled",
    response_model=forms.MemoriesOut,
    responses=problems(),
)
async def never_recalled(
    user: User, memory: Memory, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> Response:
    """Return memories that no logged recall has returned, oldest first."""
    return shown(await memory.never_recalled(user=user, limit=limit))


@router.post(
    "/recalls/{recall_id}/feedback",
    operation_id="giveFeedback",
    summary="Say which memories helped",
    response_model=forms.AnyOut,
    responses=problems(404),
    dependencies=[WRITE],
)
async def feedback(recall_id: str, body: forms.Used, user: User, memory: Memory) -> Response:
    """Note which memories of a recall helped; none, if the list is empty."""
    return shown(await memory.feedback(recall_id, body.used, user=user))
