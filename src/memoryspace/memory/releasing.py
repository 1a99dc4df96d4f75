"""Removal of deleted messages from the archive of a window."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..context import Archive
from ..context.draft import SUMMARY_HOLDER
from ..context.rendering import parse
from ..errors import CorruptData, UnknownHandle
from .base import MemoryBase


async def release_deleted(archive: Archive, memory: MemoryBase) -> list[str]:
    """Release the contents of messages that the memory no longer has; return their handles.

    Holders are read before messages. A holder was in the memory before it was archived, so one that
    is missing afterwards was deleted; it is not a message about to be added.
    """
    holders = await asyncio.to_thread(archive.holders)
    if not holders:
        return []
    ids = {msg.id for msg in await memory.all_messages()}
    gone = {holder for holder in holders if not _is_there(holder, ids)}
    return await asyncio.to_thread(_release, archive, gone) if gone else []


def _release(archive: Archive, gone: Collection[str]) -> list[str]:
    """Release also contents that deleted messages share with others, which the memory still has."""
    sharing: set[str] = set(gone)
    for kept in archive.list():
        if kept.kind == "messages":
            ids = _ids_in(archive, kept.handle)
            sharing |= ids if ids.intersection(gone) else set()
    return archive.release([*sharing])


def _ids_in(archive: Archive, handle: str) -> set[str]:
    """Return the ids of archived messages; none if they were just released or are damaged."""
    try:
        return {str(each.get("id")) for each in parse(archive.get(handle).data)}
    except (UnknownHandle, CorruptData):
        return set()


def _is_there(holder: str, ids: Collection[str]) -> bool:
    """Return whether a holder is a message of the memory, or a repaired part of one."""
    if holder == SUMMARY_HOLDER:
        return bool(ids)
    parts = (holder[:at] for at, sign in enumerate(holder) if sign in ".#")
    return holder in ids or any(part in ids for part in parts)
