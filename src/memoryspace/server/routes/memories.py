"""Memories: add, list, get, change, delete, and what was derived from them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from ...door import AsyncMemory
from ...errors import InvalidInput
from ...portable import restored
from ...service.values.forms import said_from
from ...service.values.receipt import Receipt
from .. import forms
from ..access.repeats import KEYED, checked_key, fingerprint_of, message_id
from ..problems import Problem
from .asking import READ, WRITE, Memory, User, is_count, note, problems, serving, shown

router = APIRouter(prefix="/v1", tags=["memories"])

IfMatch = Annotated[str | None, Header(alias="If-Match", description="The version, as in ETag.")]
RepeatKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Any unique text. A request that is sent again with the same key has no second "
        "effect and gets the same answer.",
    ),
]


@router.post(
    "/memories",
    operation_id="addMemories",
    summary="Remember messages",
    status_code=201,
    response_model=forms.ReceiptOut,
    responses=problems(507),
    dependencies=[WRITE],
)
async def add(
    request: Request, body: forms.Add, user: User, memory: Memory, key: RepeatKey = None
) -> Response:
    """Store messages durably, then derive facts from them. The receipt says what happened."""
    key = checked_key(key)
    repeats, quotas = serving(request).repeats, serving(request).quotas
    if key is None:
        await quotas.check(user)
        return shown(await _added(request, body, user, memory), 201)
    fingerprint = fingerprint_of("add", body.model_dump())
    try:
        await quotas.check(user)
    except Problem:  # an earlier request may have been the one that filled it
        earlier = await repeats.find(user, key, fingerprint)
        if earlier is None:
            raise
        return shown(earlier, 201)
    earlier = await repeats.begin(user, key, fingerprint)
    if earlier is not None:
        return shown(earlier, 201)
    try:
        receipt = await _added(request, body, user, memory, key=key)
    except (InvalidInput, TypeError, Problem):
        await repeats.drop(user, key)
        raise
    return shown(await repeats.keep(user, key, _as_first_sent(receipt).to_dict()), 201)


async def _added(
    request: Request, body: forms.Add, user: str, memory: AsyncMemory, *, key: str | None = None
) -> Receipt:
    messages = said(body.messages)
    if key is not None:
        messages = [_named(each, message_id(user, key, at)) for at, each in enumerate(messages)]
    receipt = await memory.add(
        messages, user=user, session=body.session, marks=body.marks, when=body.when
    )
    await note(request, "memories.add", user, len(receipt))
    return receipt


@router.get(
    "/memories",
    operation_id="listMemories",
    summary="List memories",
    response_model=forms.MemoriesOut,
    responses=problems(),
    dependencies=[READ],
)
async def list_memories(
    user: User,
    memory: Memory,
    session: forms.Id | None = None,
    kind: Annotated[list[str] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    newest: bool = True,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
    quarantined: bool = False,
) -> Response:
    """Return one page of memories; pass its cursor for the next one."""
    found = await memory.list(
        user=user,
        session=session,
        kind=kind if kind else "memory",
        limit=limit,
        newest=newest,
        cursor=cursor,
        filters={"quarantined": True} if quarantined else None,
    )
    return shown(found)


@router.post(
    "/memories/delete",
    operation_id="deleteMemories",
    summary="Delete several memories",
    response_model=forms.DeletedOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def delete_many(request: Request, body: forms.Ids, user: User, memory: Memory) -> Response:
    """Delete memories by id, with everything derived from them."""
    deleted = await memory.delete(body.ids, user=user, session=body.session)
    await note(request, "memories.delete", user, len(deleted))
    return shown(deleted)


@router.post(
    "/memories/list",
    operation_id="queryMemories",
    summary="List memories that match conditions",
    response_model=forms.MemoriesOut,
    responses=problems(),
    dependencies=[READ],
)
async def query_memories(body: forms.Query, user: User, memory: Memory) -> Response:
    """Return one page of memories that match the filters."""
    found = await memory.list(
        user=user,
        session=body.session,
        kind=body.kind,
        limit=body.limit,
        newest=body.newest,
        cursor=body.cursor,
        filters=restored_filters(body.filters),
    )
    return shown(found)


@router.get(
    "/history/{memory_id:path}",
    operation_id="getHistory",
    summary="List the versions of a memory",
    response_model=forms.MemoriesOut,
    responses=problems(404),
    dependencies=[READ],
)
async def history(
    memory_id: str, user: User, memory: Memory, session: forms.Id | None = None
) -> Response:
    """Return every version, oldest first, the present one last."""
    return shown(await memory.history(memory_id, user=user, session=session))


@router.get(
    "/memories/{memory_id:path}",
    operation_id="getMemory",
    summary="Get a memory",
    response_model=forms.MemoryOut,
    responses=problems(404),
    dependencies=[READ],
)
async def get(
    memory_id: str, user: User, memory: Memory, session: forms.Id | None = None
) -> Response:
    """Return a memory; its ETag is its version."""
    found = await memory.get(memory_id, user=user, session=session)
    if found is None:
        raise _unknown(memory_id)
    return shown(found, headers={"ETag": f'"{found.version}"'})


@router.patch(
    "/memories/{memory_id:path}",
    operation_id="updateMemory",
    summary="Change a memory",
    response_model=forms.MemoryOut,
    responses=problems(404, 412),
    dependencies=[WRITE],
)
async def update(
    request: Request,
    memory_id: str,
    body: forms.Change,
    user: User,
    memory: Memory,
    session: forms.Id | None = None,
    if_match: IfMatch = None,
) -> Response:
    """Change a memory; the old version stays in its history."""
    message = None if body.message is None else said(body.message)[0]
    changed = await memory.update(
        memory_id,
        message,
        user=user,
        session=session,
        metadata=body.metadata,
        importance=body.importance,
        marks=body.marks,
        version=_version(if_match),
    )
    await note(request, "memories.update", user, 1)
    return shown(changed, headers={"ETag": f'"{changed.version}"'})


@router.delete(
    "/memories/{memory_id:path}",
    operation_id="deleteMemory",
    summary="Delete a memory",
    response_model=forms.DeletedOut,
    responses=problems(),
    dependencies=[WRITE],
)
async def delete(
    request: Request,
    memory_id: str,
    user: User,
    memory: Memory,
    session: forms.Id | None = None,
) -> Response:
    """Delete a memory with everything derived from it; no error if it is gone already."""
    deleted = await memory.delete(memory_id, user=user, session=session)
    await note(request, "memories.delete", user, len(deleted))
    return shown(deleted)


@router.get(
    "/facts",
    operation_id="listFacts",
    summary="List what is believed about a user",
    response_model=forms.MemoriesOut,
    responses=problems(),
    dependencies=[READ],
)
async def facts(
    user: User,
    memory: Memory,
    as_of: Annotated[str | None, Query(description="What was believed at this time.")] = None,
    superseded: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Return facts that hold now, or held at a time, or no longer hold."""
    found = await memory.facts(user=user, as_of=as_of, superseded=superseded, limit=limit)
    return shown(found)


def said(messages: forms.Messages) -> list[Any]:
    """Return messages as the door takes them."""
    several = messages if isinstance(messages, list) else [messages]
    return [each if isinstance(each, str) else _message(each) for each in several]


def _message(each: forms.Said | forms.Sent) -> Any:
    if isinstance(each, forms.Sent):
        return said_from(each.form, restored(each.body))
    return each.model_dump(exclude_none=True)


def restored_filters(filters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return filters as they were before they were sent."""
    return None if filters is None else dict(restored(filters))


def _named(message: Any, memory_id: str) -> Any:
    """Return a message with an id of its request, unless it has one of its own."""
    if isinstance(message, str):
        return {"id": memory_id, "role": "user", "content": message}
    return {"id": memory_id, **message} if isinstance(message, dict) else message


def _as_first_sent(receipt: Receipt) -> Receipt:
    """Return a receipt in which messages of this request are new, also if it is repeated."""
    own = [each for each in receipt.ids if each.startswith(KEYED) or each in receipt]
    return Receipt.from_dict({**receipt.to_dict(), "new": own})


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match == "*":
        return None
    text = if_match.removeprefix("W/").strip('"')
    if not is_count(text):
        raise Problem(422, "invalid-input", 'If-Match must be a version such as "3", as in ETag')
    return int(text)


def _unknown(memory_id: str) -> Problem:
    return Problem(404, "unknown-memory", f"there is no memory {memory_id!r} of this user")
