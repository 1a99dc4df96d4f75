"""What mem0 keeps: its local vector store, its history, and what ``get_all`` returns.

mem0's local Qdrant keeps points as pickles. They are read as plain data; nothing is unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import ImportRefused
from ...service.base import DEFAULT_SESSION
from .contract import (
    AT_ONCE,
    Batches,
    Foreign,
    Importer,
    in_batches,
    said,
    session_named,
    text_in,
    user_named,
)
from .databases import is_sqlite, rows, tables_in
from .documents import document
from .pickles import Thing, plain_data

_STORAGE = "storage.sqlite"
_MOST_FOLDERS = 10_000
_LISTS = ("results", "memories")
_DELETED = "DELETE"
# Of a payload, fields that are not the user's metadata.
_OWN = frozenset({"data", "memory", "hash", "created_at", "updated_at", "user_id", "id", "score"})
_BOOKKEEPING = frozenset({"text_lemmatized", "attributed_to", "metadata", "role", "run_id"})


def _read(source: str) -> Batches:
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder(path)
    if is_sqlite(path):
        return _points(path) if "points" in tables_in(path) else _history(path)
    return in_batches(_memories(document(path), path.name))


async def _folder(path: Path) -> Batches:
    for file in _storages(path):
        async for batch in _points(file):
            yield batch


def _storages(folder: Path) -> list[Path]:
    found = []
    for number, (place, _, names) in enumerate(os.walk(folder)):
        if number > _MOST_FOLDERS:
            raise ImportRefused(f"{folder}: more than {_MOST_FOLDERS} folders; name mem0's own")
        if _STORAGE in names:
            found.append(Path(place, _STORAGE))
    if not found:
        raise ImportRefused(
            f"{folder}: no {_STORAGE} of a local Qdrant is there; pass mem0's folder, its "
            "history.db, or a JSON file with what get_all() returns"
        )
    return sorted(found)


async def _points(file: Path) -> Batches:
    batch: list[Foreign] = []
    async for point_id, pickled in rows(str(file), "points", ("id", "point")):
        held = plain_data(bytes(pickled), f"{file.name}, point {point_id!r:.80}")
        batch += _memory(_payload(held), f"{file.name}, point {point_id!r:.80}")
        if len(batch) >= AT_ONCE:
            yield batch
            batch = []
    yield batch


def _payload(point: object) -> dict[str, Any]:
    """Return the payload of a point with its id; empty if it is none of a memory."""
    state = point.state if isinstance(point, Thing) else None
    fields = state.get("__dict__") if isinstance(state, dict) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("payload"), dict):
        return {}
    plain = {
        name: each
        for name, each in fields["payload"].items()
        if isinstance(name, str) and isinstance(each, str | int | float | bool)
    }
    return {**plain, "id": fields.get("id")}


async def _history(file: Path) -> Batches:
    """Yield the memories that a history leaves; it does not say whose they are."""
    left: dict[str, dict[str, Any]] = {}
    columns = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted")
    async for memory_id, text, event, created, updated, deleted in rows(
        str(file), "history", columns, ("created_at", "updated_at")
    ):
        if deleted or event == _DELETED:
            left.pop(memory_id, None)
        else:
            first = left.get(memory_id, {}).get("created_at", created)
            held = {"id": memory_id, "memory": text, "created_at": first, "updated_at": updated}
            left[memory_id] = held
    yield [each for held in left.values() for each in _memory(held, file.name)]


def _memories(found: object, name: str) -> Iterator[Foreign]:
    for key in _LISTS:
        if isinstance(found, dict) and isinstance(found.get(key), list):
            found = found[key]
    if not isinstance(found, list):
        raise ImportRefused(f"{name}: this is not what mem0's get_all() returns")
    for number, each in enumerate(found):
        if not isinstance(each, dict):
            raise ImportRefused(f"{name}: memory {number} is a {type(each).__name__}")
        yield from _memory(each, f"{name}, memory {number}")


def _memory(held: dict[str, Any], name: str) -> Iterator[Foreign]:
    text = text_in(held.get("data")) or text_in(held.get("memory"))
    if text is None:
        return
    given = held.get("metadata")
    metadata = dict(given) if isinstance(given, dict) else {}
    metadata |= {k: each for k, each in held.items() if k not in _OWN and k not in _BOOKKEEPING}
    run = held.get("run_id")
    message = said(
        held["role"] if held.get("role") in ("user", "assistant") else "user",
        text,
        key=str(held.get("id") or name),
        at=held.get("created_at"),
        metadata={**metadata, "source": "mem0"},
    )
    owner = held.get("user_id") or held.get("agent_id")
    yield Foreign(
        message, user_named(owner), session_named(run) if run is not None else DEFAULT_SESSION
    )


MEM0 = Importer(
    "mem0",
    "what mem0 keeps: its local Qdrant's folder, its history.db, or JSON from get_all()",
    names_users=True,
    read=_read,
)
