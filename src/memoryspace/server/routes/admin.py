"""Administration: keys and the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from .. import forms
from .asking import ADMIN, EVERYBODY, note, problems, serving, shown

router = APIRouter(prefix="/v1", tags=["admin"], dependencies=[ADMIN, EVERYBODY])


@router.get(
    "/keys",
    operation_id="listKeys",
    summary="List API keys",
    response_model=forms.ItemsOut,
    responses=problems(),
)
async def keys(request: Request) -> Response:
    """Return what is known of all keys; never the keys themselves."""
    found = await serving(request).keys.list()
    return shown({"items": [each.to_dict() for each in found], "cursor": None})


@router.post(
    "/keys",
    operation_id="createKey",
    summary="Make an API key",
    status_code=201,
    response_model=forms.IssuedKeyOut,
    responses=problems(),
)
async def create_key(request: Request, body: forms.NewKey) -> Response:
    """Make a key. It is shown in this answer and never again."""
    issued = await serving(request).keys.issue(
        name=body.name, scopes=body.scopes, users=body.users, expires_at=body.expires_at
    )
    await note(request, "keys.create", None, 1)
    return shown({"key": issued.key, "info": issued.info.to_dict()}, 201)


@router.post(
    "/keys/{key_id}/rotate",
    operation_id="rotateKey",
    summary="Replace an API key",
    status_code=201,
    response_model=forms.IssuedKeyOut,
    responses=problems(404),
)
async def rotate_key(request: Request, key_id: str, body: forms.Rotate) -> Response:
    """Make a key that may do the same, and end the old one, at once or a little later."""
    issued = await serving(request).keys.rotate(key_id, keep_seconds=body.keep_seconds)
    await note(request, "keys.rotate", None, 1)
    return shown({"key": issued.key, "info": issued.info.to_dict()}, 201)


@router.delete(
    "/keys/{key_id}",
    operation_id="revokeKey",
    summary="Revoke an API key",
    response_model=forms.KeyOut,
    responses=problems(404),
)
async def revoke_key(request: Request, key_id: str) -> Response:
    """End a key at once, in every worker."""
    info = await serving(request).keys.revoke(key_id)
    await note(request, "keys.revoke", None, 1)
    return shown(info)


@router.get(
    "/audit",
    operation_id="exportAudit",
    summary="Export the audit log",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {}}}, **problems()},
)
async def audit(
    request: Request, after: Annotated[int, Query(ge=0, description="After this entry.")] = 0
) -> StreamingResponse:
    """Return the log as JSON Lines: who did what, when, to how many memories."""

    async def lines() -> AsyncIterator[str]:
        async for entry in serving(request).audit.entries(after=after):
            yield json.dumps(entry.to_dict()) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")
