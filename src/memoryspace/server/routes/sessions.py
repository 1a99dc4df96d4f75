"""Sessions: the working memory of conversations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ...portable import portable
from .. import forms
from .asking import READ, WRITE, Memory, User, note, problems, serving, shown
from .memories import said

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get(
    "",
    operation_id="listSessions",
    summary="List conversations",
    response_model=forms.ItemsOut,
    responses=problems(),
    dependencies=[READ],
)
async def list_sessions(user: User, memory: Memory) -> Response:
    """Return the names of a user's conversations."""
    return shown({"items": await memory.sessions(user=user), "cursor": None})


@router.post(
    "/{session_id:path}/messages",
    operation_id="addSessionMessages",
    summary="Add messages to a conversation",
    status_code=201,
    response_model=forms.ItemsOut,
    responses=problems(507),
    dependencies=[WRITE],
)
async def add(
    request: Request, session_id: str, body: forms.SessionAdd, user: User, memory: Memory
) -> Response:
    """Append messages to the working memory of a conversation; return their ids."""
    await serving(request).quotas.check(user)
    session = memory.session(session_id, user=user)
    ids = await session.add(said(body.messages), marks=body.marks)
    await note(request, "sessions.add", user, len(ids))
    return shown({"items": ids, "cursor": None}, 201)


@router.get(
    "/{session_id:path}/messages",
    operation_id="getSessionMessages",
    summary="Read a conversation within a budget",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[READ],
)
async def messages(
    session_id: str,
    user: User,
    memory: Memory,
    max_tokens: Annotated[int, Query(ge=100, le=10_000_000)] = 8000,
    mark: forms.Id | None = None,
    everything: Annotated[bool, Query(description="Every message, whatever the budget.")] = False,
) -> Response:
    """Return the messages that fit, older parts summarised, and a report of what left."""
    session = memory.session(session_id, user=user)
    if everything:
        found = await session.all_messages()
    else:
        found = await session.messages(max_tokens=max_tokens, mark=mark)
    report: Any = None if session.report() is None else portable(session.report())
    return shown({"messages": [portable(msg.to_dict()) for msg in found], "report": report})


@router.post(
    "/{session_id:path}/expand",
    operation_id="expand",
    summary="Read what left the context",
    response_model=forms.AnyOut,
    responses=problems(404),
    dependencies=[READ],
)
async def expand(session_id: str, body: forms.Handle, user: User, memory: Memory) -> Response:
    """Return what was paged out under a handle, or the message with this id."""
    text = await memory.session(session_id, user=user).expand(body.handle)
    return shown({"text": portable(text)})


@router.post(
    "/{session_id:path}/marks",
    operation_id="markMessages",
    summary="Put a mark on messages, or take it off",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def mark(session_id: str, body: forms.SessionMark, user: User, memory: Memory) -> Response:
    """Mark messages, such as ``pinned`` or ``hint``; return how many changed."""
    session = memory.session(session_id, user=user)
    if body.remove:
        changed = await session.unmark(body.mark, body.ids)
    else:
        changed = await session.mark(body.mark, body.ids or [])
    return shown({"changed": changed})


@router.post(
    "/{session_id:path}/messages/delete",
    operation_id="deleteSessionMessages",
    summary="Delete messages of a conversation",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def delete_messages(
    request: Request, session_id: str, body: forms.Ids, user: User, memory: Memory
) -> Response:
    """Delete messages, with what was paged out of them; return how many were there."""
    changed = await memory.session(session_id, user=user).delete(body.ids)
    await note(request, "sessions.delete_messages", user, changed)
    return shown({"changed": changed})


@router.delete(
    "/{session_id:path}/messages",
    operation_id="clearSession",
    summary="Empty the working memory of a conversation",
    response_model=forms.AnyOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def clear(request: Request, session_id: str, user: User, memory: Memory) -> Response:
    """Delete the messages of a conversation, with their summary and what was paged out."""
    await memory.session(session_id, user=user).clear()
    await note(request, "sessions.clear", user, 1)
    return shown({"cleared": True})


@router.delete(
    "",
    operation_id="deleteSession",
    summary="Delete a conversation",
    response_model=forms.DeletedOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def delete(
    request: Request, user: User, memory: Memory, session: Annotated[forms.Id, Query()]
) -> Response:
    """Delete what was said in a conversation, what was derived, and its working memory."""
    deleted = await memory.delete_session(session, user=user)
    await note(request, "sessions.delete", user, len(deleted))
    return shown(deleted)
