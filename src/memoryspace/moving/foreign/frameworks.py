"""What agent frameworks keep in SQLite, on SQL servers and in JSON files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import ImportRefused
from .contract import (
    AT_ONCE,
    Batches,
    Foreign,
    Importer,
    in_batches,
    own_id,
    said,
    session_named,
    text_in,
    user_named,
)
from .databases import Row, is_server, is_sqlite, rows, sqlite_path
from .documents import document, parsed_json

_TEXT_KEYS = ("content", "text", "memory", "data", "fact", "value")
_ROLES = {"human": "user", "ai": "assistant", "HumanMessageChunk": "user"}


async def _from_rows(
    found: AsyncIterator[Row], read: Callable[[Row], Iterator[Foreign]]
) -> Batches:
    batch: list[Foreign] = []
    async for row in found:
        batch += read(row)
        if len(batch) >= AT_ONCE:
            yield batch
            batch = []
    yield batch


# -- LangGraph -------------------------------------------------------------------------------------


def _langgraph(source: str) -> Batches:
    columns = ("prefix", "key", "value", "created_at", "updated_at")
    return _from_rows(rows(source, "store", columns, ("created_at", "prefix", "key")), _item)


def _item(row: Row) -> Iterator[Foreign]:
    prefix, key, value, created, updated = row
    held = parsed_json(value, f"item {key!r:.80}") if isinstance(value, str | bytes) else value
    text = _text_in_value(held)
    names = str(prefix).split(".")
    user = names[1] if len(names) > 1 and names[0] == "memories" else names[0]
    metadata = {"namespace": prefix, "key": key, "source": "langgraph"}
    if isinstance(held, dict):
        rest = {name: each for name, each in held.items() if each != text}
        metadata.update({"value": rest} if rest else {})
    at = _utc(updated if updated is not None else created)
    message = said("user", text, key=own_id(f"langgraph:{prefix}:{key}"), at=at, metadata=metadata)
    yield Foreign(message, user_named(user), session_named(str(prefix)))


def _text_in_value(value: object) -> str:
    """Return the text that a stored value says, or the value as JSON."""
    held = value
    for _ in range(3):  # LangMem keeps {"kind": "Memory", "content": {"content": "…"}}
        if not isinstance(held, dict):
            break
        held = next((held[name] for name in _TEXT_KEYS if held.get(name)), None)
    text = text_in(held)
    return text if text is not None else json.dumps(value, ensure_ascii=False)


def _utc(time: object) -> object:
    """Return a time as text with its zone; databases keep UTC without one."""
    return time.isoformat() if hasattr(time, "isoformat") else time


# -- OpenAI Agents ---------------------------------------------------------------------------------


def _openai_agents(source: str) -> Batches:
    columns = ("id", "session_id", "message_data", "created_at")
    return _from_rows(rows(source, "agent_messages", columns, ("id",)), _turn_of_agents)


def _turn_of_agents(row: Row) -> Iterator[Foreign]:
    number, session, data, at = row
    item = parsed_json(data, f"message {number}")
    if not isinstance(item, dict):
        return
    key = own_id(f"openai-agents:{session}:{number}")
    message = _openai_message(item, key, at)
    if message is not None:
        yield Foreign(message, session=session_named(session))


def _openai_message(item: dict[str, Any], key: str, at: object) -> dict[str, Any] | None:
    metadata = {"source": "openai-agents"}
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return said(
            "assistant", "", key=key, at=at, metadata=metadata, beside={"tool_calls": [call]}
        )
    if kind == "function_call_output":
        output = item.get("output")
        told = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        called = item.get("call_id")
        return said(
            "tool", told, key=key, at=at, metadata=metadata, beside={"tool_call_id": called}
        )
    text = _text_of_blocks(item.get("content"))
    if kind != "message" or text is None:
        return None
    return said(str(item.get("role") or "user"), text, key=key, at=at, metadata=metadata)


def _text_of_blocks(content: object) -> str | None:
    """Return the text of a content: a text, or a list of blocks."""
    if isinstance(content, str):
        return text_in(content)
    if not isinstance(content, list):
        return None
    texts = (each if isinstance(each, str) else _text_of_block(each) for each in content)
    return text_in("\n".join(each for each in texts if each))


def _text_of_block(block: object) -> str | None:
    return text_in(block.get("text")) if isinstance(block, dict) else None


# -- LangChain -------------------------------------------------------------------------------------


def _langchain(source: str) -> Batches:
    path = sqlite_path(source)
    if is_server(source) or is_sqlite(path):
        columns = ("id", "session_id", "message")
        return _from_rows(rows(source, "message_store", columns, ("id",)), _turn_of_table)
    return in_batches(_turns_of_files(path))


def _turn_of_table(row: Row) -> Iterator[Foreign]:
    number, session, data = row
    yield from _turn_of_langchain(
        parsed_json(data, f"message {number}"), f"langchain:{session}:{number}", str(session)
    )


def _turns_of_files(path: Path) -> Iterator[Foreign]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    for file in files:
        found = document(file)
        if not isinstance(found, list):
            raise ImportRefused(f"{file.name}: this is no list of messages")
        for number, each in enumerate(found):
            yield from _turn_of_langchain(each, f"langchain:{file.stem}:{number}", file.stem)


def _turn_of_langchain(held: object, key: str, session: str) -> Iterator[Foreign]:
    data = held.get("data") if isinstance(held, dict) else None
    if not isinstance(held, dict) or not isinstance(data, dict):
        raise ImportRefused(f"{key}: this is no message of LangChain")
    kind = held.get("type")
    role = _ROLES.get(str(kind), str(kind))
    text = _text_of_blocks(data.get("content"))
    calls = [_call(each) for each in _listed(data.get("tool_calls")) if isinstance(each, dict)]
    if text is None and not calls:
        return
    more: dict[str, Any] = {"tool_calls": calls} if calls else {}
    if role == "tool":
        more["tool_call_id"] = data.get("tool_call_id")
    message = said(
        role,
        text or "",
        key=own_id(key),
        name=data.get("name"),
        metadata={"source": "langchain"},
        beside=more,
    )
    yield Foreign(message, session=session_named(session))


def _call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("args"), ensure_ascii=False)
    function = {"name": call.get("name"), "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


LANGGRAPH = Importer(
    "langgraph",
    "a LangGraph store: a SQLite file, or the address of its PostgreSQL database",
    names_users=True,
    read=_langgraph,
)
OPENAI_AGENTS = Importer(
    "openai-agents",
    "sessions of the OpenAI Agents SDK: the file of a SQLiteSession",
    names_users=False,
    read=_openai_agents,
)
LANGCHAIN = Importer(
    "langchain",
    "LangChain chat history: JSON files, or an SQL database with message_store",
    names_users=False,
    read=_langchain,
)
