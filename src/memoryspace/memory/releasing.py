"""What is deleted from a memory does not live on in the archive of its window."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..context import Archive
from ..context.draft import SUMMARY_HOLDER
from ..context.rendering import parse
from ..errors import CorruptData, UnknownHandle
from .base import MemoryBase


async def release_deleted(archive: Archive, memory: MemoryBase) -> list[str]:
    """Release what is held by messages that the memory no longer has; return the handles.

    Who holds something is asked first. Whoever did so was in the memory before that, so if it is
    not there afterwards, it was deleted, and is not just about to come.
    """
    holders = await asyncio.to_thread(archive.holders)
    if not holders:
        return []
    ids = {msg.id for msg in await memory.all_messages()}
    gone = {holder for holder in holders if not _is_there(holder, ids)}
    return await asyncio.to_thread(_release, archive, gone) if gone else []


def _release(archive: Archive, gone: Collection[str]) -> list[str]:
    """Release also what deleted messages share with others: the whole of it is in the memory."""
    sharing: set[str] = set(gone)
    for kept in archive.list():
        if kept.kind == "messages":
            ids = _ids_in(archive, kept.handle)
            sharing |= ids if ids.intersection(gone) else set()
    return archive.release([*sharing])


def _ids_in(archive: Archive, handle: str) -> set[str]:
    """Return the ids of archived messages; none if they have just been released, or are damaged."""
    try:
        return {str(each.get("id")) for each in parse(archive.get(handle).data)}
    except (UnknownHandle, CorruptData):
        return set()


def _is_there(holder: str, ids: Collection[str]) -> bool:
    """Tell whether a holder is a message of the memory, or a repaired part of one."""
    if holder == SUMMARY_HOLDER:
        return bool(ids)
    parts = (holder[:at] for at, sign in enumerate(holder) if sign in ".#")
    return holder in ids or any(part in ids for part in parts)
