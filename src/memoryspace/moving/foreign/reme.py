"""What ReMe keeps in files: one JSON Lines file of vector nodes for each workspace."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ...errors import ImportRefused
from .contract import Batches, Foreign, Importer, in_batches, said, text_in, user_named
from .documents import json_lines

_TIMES = ("time_modified", "modified_time", "time_created", "created_time", "timestamp")


def _read(source: str) -> Batches:
    return in_batches(_nodes(Path(source).expanduser()))


def _nodes(path: Path) -> Iterator[Foreign]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise ImportRefused(f"{path}: no JSON Lines file of a workspace is there")
    for file in files:
        for number, node in json_lines(file):
            if not isinstance(node, dict):
                raise ImportRefused(f"{file.name}, line {number}: this is no vector node")
            yield from _node(node, file.stem, f"{file.name}:{number}")


def _node(node: dict[str, Any], workspace: str, key: str) -> Iterator[Foreign]:
    metadata = node.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    text = text_in(metadata.get("content")) or text_in(node.get("content"))
    if text is None:
        return
    when = text_in(metadata.get("when_to_use")) or text_in(node.get("content"))
    held = {
        name: each
        for name, each in metadata.items()
        if name not in ("content", "vector") and isinstance(each, str | int | float | bool)
    }
    about = {"when_to_use": when if when != text else None, "source": "reme"}
    at = next((_in_local_time(metadata[name]) for name in _TIMES if metadata.get(name)), None)
    message = said(
        "user", text, key=str(node.get("unique_id") or key), at=at, metadata={**held, **about}
    )
    owner = node.get("workspace_id") or workspace
    yield Foreign(message, user_named(owner))


def _in_local_time(time: object) -> object:
    """Return a time with its zone; ReMe writes local time without one."""
    try:
        return datetime.fromisoformat(time).astimezone().isoformat()  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return time


REME = Importer(
    "reme",
    "ReMe's local vector store: a JSON Lines file, or the folder of all workspaces",
    names_users=True,
    read=_read,
)
