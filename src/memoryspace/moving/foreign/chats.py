"""Exports of chat programs: ChatGPT's and Claude's account exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import ImportRefused
from .contract import Batches, Foreign, Importer, in_batches, said, session_named, text_in
from .documents import in_zip, items_in

_PATTERN = "conversations*.json"
_MOST_TURNS = 1_000_000  # in one conversation; more would be a circle
_HIDDEN = "is_visually_hidden_from_conversation"
_SPEAKERS = {"user": "user", "assistant": "assistant", "human": "user"}


def _conversations(source: str) -> Iterator[dict[str, Any]]:
    """Yield the conversations in a zip, a folder or a JSON file, one at a time."""
    path = Path(source).expanduser()
    if path.suffix.lower() == ".zip":
        found = False
        with in_zip(path, _PATTERN) as members:
            for name, file in members:
                found = True
                yield from _dicts(items_in(file, name), name)
        if not found:
            raise ImportRefused(f"{path.name}: no {_PATTERN} is in the archive")
        return
    files = sorted(path.glob(_PATTERN)) if path.is_dir() else [path]
    if not files:
        raise ImportRefused(f"{path.name}: no {_PATTERN} is in the folder")
    for each in files:
        with each.open("rb") as file:
            yield from _dicts(items_in(file, each.name), each.name)


def _dicts(items: Iterator[Any], name: str) -> Iterator[dict[str, Any]]:
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            raise ImportRefused(f"{name}: item {number} is no conversation")
        yield item


def _chatgpt(source: str) -> Batches:
    return in_batches(turn for talk in _conversations(source) for turn in _turns_of_chatgpt(talk))


def _turns_of_chatgpt(talk: dict[str, Any]) -> Iterator[Foreign]:
    """Yield the branch of a conversation that its user saw last, oldest first."""
    talk_id = talk.get("conversation_id") or talk.get("id") or talk.get("title")
    session = session_named(talk_id)
    for message in _branch(talk):
        role = (message.get("author") or {}).get("role")
        metadata = message.get("metadata")
        is_hidden = isinstance(metadata, dict) and metadata.get(_HIDDEN)
        text = _text_of_parts(message.get("content"))
        if role not in _SPEAKERS or is_hidden or text is None:
            continue
        yield Foreign(
            said(
                role,
                text,
                key=str(message.get("id") or f"{session}:{text}"),
                at=message.get("create_time"),
                metadata={"title": talk.get("title"), "source": "chatgpt"},
            ),
            session=session,
        )


def _branch(talk: dict[str, Any]) -> list[dict[str, Any]]:
    nodes = talk.get("mapping")
    if not isinstance(nodes, dict):
        return []
    found: list[dict[str, Any]] = []
    at = talk.get("current_node")
    seen: set[str] = set()
    while isinstance(at, str) and at not in seen and len(seen) < _MOST_TURNS:
        seen.add(at)
        node = nodes.get(at)
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            found.append(node["message"])
        at = node.get("parent")
    return [each for each in reversed(found) if isinstance(each.get("author"), dict)]


def _text_of_parts(content: object) -> str | None:
    if not isinstance(content, dict):
        return None
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    parts = content.get("parts")
    return _joined(parts if isinstance(parts, list) else [])


def _claude(source: str) -> Batches:
    return in_batches(turn for talk in _conversations(source) for turn in _turns_of_claude(talk))


def _turns_of_claude(talk: dict[str, Any]) -> Iterator[Foreign]:
    session = session_named(talk.get("uuid") or talk.get("name"))
    turns = talk.get("chat_messages")
    for number, turn in enumerate(turns if isinstance(turns, list) else []):
        if not isinstance(turn, dict) or turn.get("sender") not in _SPEAKERS:
            continue
        text = _text_of_claude(turn)
        if text is None:
            continue
        yield Foreign(
            said(
                _SPEAKERS[turn["sender"]],
                text,
                key=str(turn.get("uuid") or f"{session}:{number}"),
                at=turn.get("created_at"),
                metadata={"title": talk.get("name"), "source": "claude"},
            ),
            session=session,
        )


def _text_of_claude(turn: dict[str, Any]) -> str | None:
    """Return what was said, and the text of attached documents."""
    blocks = turn.get("content")
    texts = [
        each.get("text")
        for each in (blocks if isinstance(blocks, list) else [])
        if isinstance(each, dict) and each.get("type") == "text"
    ]
    attached = turn.get("attachments")
    documents = [
        each.get("extracted_content")
        for each in (attached if isinstance(attached, list) else [])
        if isinstance(each, dict)
    ]
    spoken = _joined(texts)
    return _joined([spoken if spoken is not None else turn.get("text"), *documents])


def _joined(parts: list[Any]) -> str | None:
    texts = [each for each in parts if text_in(each) is not None]
    return "\n\n".join(texts) if texts else None


CHATGPT = Importer(
    "chatgpt",
    "a ChatGPT account export: the zip, its folder or conversations.json",
    names_users=False,
    read=_chatgpt,
)
CLAUDE = Importer(
    "claude",
    "a Claude account export: the zip, its folder or conversations.json",
    names_users=False,
    read=_claude,
)
