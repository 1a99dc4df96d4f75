"""What AgentScope v1 and its runtime keep: SQL tables, Redis keys, JSON sessions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ImportRefused, InvalidMessage, MissingExtra
from ...message import Msg
from ...service.values.memory import Said
from .contract import (
    AT_ONCE,
    Batches,
    Foreign,
    Importer,
    in_batches,
    marks_named,
    own_id,
    session_named,
    user_named,
)
from .databases import is_server, is_sqlite, rows, sqlite_path
from .documents import document, parsed_json

if TYPE_CHECKING:
    from redis.asyncio import Redis

_REDIS = ("redis://", "rediss://", "unix://")
_MESSAGES = re.compile(r"(.*?)user_id:(.*):session:(.*):messages", re.DOTALL)
_STATE = re.compile(r"(.*?)user_id:(.*):session:(.*):state", re.DOTALL)
_USER = "user_memory:"
_MAX_DEPTH = 20  # of modules within modules in a saved state


def _agentscope(source: str) -> Batches:
    if source.startswith(_REDIS):
        return _redis_memories(source)
    path = sqlite_path(source)
    if is_server(source) or is_sqlite(path):
        return _sql(source)
    return in_batches(_sessions_in_files(path))


async def _sql(source: str) -> Batches:
    users = {session: user async for session, user in rows(source, "session", ("id", "user_id"))}
    marks: dict[str, list[str]] = {}
    async for message, mark in rows(source, "message_mark", ("msg_id", "mark")):
        marks.setdefault(message, []).append(mark)
    batch: list[Foreign] = []
    columns = ("id", "session_id", "msg")
    async for key, session, data in rows(source, "message", columns, ("session_id", "index")):
        name = f"message {key!r:.80}"
        batch += _message(_json(data, name), users.get(session), session, marks.get(key, ()), name)
        if len(batch) >= AT_ONCE:
            yield batch
            batch = []
    yield batch


def _json(data: object, name: str) -> object:
    """Return a JSON column, which a driver may have read already."""
    return parsed_json(data, name) if isinstance(data, str | bytes) else data


def _sessions_in_files(path: Path) -> Iterator[Foreign]:
    """Yield the messages in saved states; the name of a file is the name of its session."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        state = document(file)
        if not isinstance(state, dict):
            raise ImportRefused(f"{file.name}: this is no saved state of a session")
        yield from _messages_in_state(state, None, file.stem, file.name)


def _messages_in_state(
    state: object, user: str | None, session: str, name: str, depth: int = 0
) -> Iterator[Foreign]:
    """Yield the messages of every memory in a saved state."""
    if not isinstance(state, dict) or depth > _MAX_DEPTH:
        return
    content = state.get("content")
    if isinstance(content, list) and "role" not in state:
        for each in content:
            pair = each if isinstance(each, list) and len(each) == 2 else [each, []]
            yield from _message(pair[0], user, session, pair[1], name)
        return
    for inner in state.values():
        yield from _messages_in_state(inner, user, session, name, depth + 1)


def _message(
    data: object, user: object, session: object, marks: Sequence[str], name: str
) -> Iterator[Foreign]:
    if not isinstance(data, dict):
        raise ImportRefused(f"{name}: a message is a {type(data).__name__}")
    try:
        msg = Msg.from_dict(data)
    except InvalidMessage as error:
        raise ImportRefused(f"{name}: {error}") from None
    msg.id = own_id(str(data.get("id") or f"{session}:{data.get('timestamp')}:{data['content']}"))
    yield Foreign(msg, user_named(user), session_named(session), marks_named(list(marks)))


async def _redis_memories(address: str) -> Batches:
    async with _connected(address) as client:
        async for key in _keys(client, "*user_id:*:session:*:messages"):
            if (found := _MESSAGES.fullmatch(key)) is not None:
                async for batch in _redis_session(client, *found.groups()):
                    yield batch
        async for key in _keys(client, "*user_id:*:session:*:state"):
            if (found := _STATE.fullmatch(key)) is not None:
                state = parsed_json(_text(await client.get(key)), f"key {key!r:.80}")
                yield list(_messages_in_state(state, found[2], found[3], f"key {key!r:.80}"))


async def _redis_session(client: Redis, prefix: str, user: str, session: str) -> Batches:
    base = f"{prefix}user_id:{user}:session:{session}:"
    marks: dict[str, list[str]] = {}
    for mark in await client.smembers(base + "marks_index"):
        name = _text(mark)
        name = name.removeprefix(base + "mark:")
        for each in await client.lrange(f"{base}mark:{name}", 0, -1):
            marks.setdefault(_text(each), []).append(name)
    ids = [_text(each) for each in await client.lrange(base + "messages", 0, -1)]
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        held = await client.mget([f"{base}msg:{each}" for each in some])
        yield [
            message
            for msg_id, data in zip(some, held, strict=True)
            if data is not None
            for message in _message(
                parsed_json(_text(data), f"message {msg_id!r:.80}"),
                user,
                session,
                marks.get(msg_id, ()),
                f"message {msg_id!r:.80}",
            )
        ]


async def _runtime(source: str) -> Batches:
    if not source.startswith(_REDIS):
        raise ImportRefused(f"{source!r} is not the address of a Redis server (redis://…)")
    async with _connected(source) as client:
        async for key in _keys(client, _USER + "*"):
            user = key.removeprefix(_USER)
            async for session, data in client.hscan_iter(key):
                name = f"session {_text(session)!r:.80} of user {user!r:.80}"
                yield list(_messages_of_runtime(_text(data), user, _text(session), name))


def _messages_of_runtime(data: str, user: str, session: str, name: str) -> Iterator[Foreign]:
    found = parsed_json(data, name)
    if not isinstance(found, list):
        raise ImportRefused(f"{name}: this is no list of messages")
    for number, each in enumerate(found):
        yield Foreign(
            _runtime_message(each, name, number), user_named(user), session_named(session)
        )


def _runtime_message(data: object, name: str, number: int) -> Said:
    from pydantic import ValidationError

    from ...service.schema import Message

    if not isinstance(data, dict):
        raise ImportRefused(f"{name}: message {number} is a {type(data).__name__}")
    try:
        message = Message.model_validate({k: each for k, each in data.items() if each is not None})
    except ValidationError:
        raise ImportRefused(f"{name}: message {number} is not one of the runtime's") from None
    message.id = own_id(str(message.id))
    return message


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Redis]:
    try:
        from redis.asyncio import Redis
    except ImportError as error:
        raise MissingExtra("redis", "redis") from error
    client = Redis.from_url(address)
    try:
        yield client
    finally:
        await client.aclose()


async def _keys(client: Redis, pattern: str) -> AsyncIterator[str]:
    """Yield each key that matches once."""
    seen: set[str] = set()
    async for key in client.scan_iter(match=pattern, count=1000):
        name = _text(key)
        if name not in seen:
            seen.add(name)
            yield name


def _text(data: Any) -> str:
    return data if isinstance(data, str) else bytes(data or b"").decode("utf-8", "replace")


AGENTSCOPE = Importer(
    "agentscope",
    "memory of AgentScope v1: its SQL database, its Redis server, or its JSON sessions",
    names_users=True,
    read=_agentscope,
)
RUNTIME = Importer(
    "agentscope-runtime",
    "memory of agentscope-runtime up to 1.0: the address of its Redis server",
    names_users=True,
    read=_runtime,
)
