"""Listing users: one list for each slot of a cluster, read in the order of the slots.

A user's slot follows from the name, and a list is read by its key, wherever the slot is. So each
user appears once however slots move, and one who stays is never skipped.
"""

from __future__ import annotations

import asyncio

from ..codec import dump
from .layout import SLOTS, bucket_of, keys_to_read, slot_of, tag_of
from .link import Link

LISTS_AT_ONCE = 2048  # looked at in one go
_SCRIPTS_AT_ONCE = 16


async def page_of_users(
    link: Link, prefix: str, now: float, after: str, limit: int
) -> tuple[list[str], str]:
    """Return the next users that have records, and the last one visited; '' at the end.

    Args:
        link: To the server or cluster.
        prefix: The prefix of every key.
        now: The time, to leave out expired records.
        after: The escaped name of the last user visited; '' to begin.
        limit: How many users to visit at most.
    """
    found: list[str] = []
    reading = _Reading(link, prefix, now)
    for first in range(slot_of(after) if after else 0, SLOTS, LISTS_AT_ONCE):
        tags = [*map(tag_of, range(first, min(first + LISTS_AT_ONCE, SLOTS)))]
        names, last = await reading.visit(tags, after, limit - len(found))
        found.extend(names)
        if last:
            return found, last
        after = ""  # it is a user of the first list
    return found, ""


class _Reading:
    def __init__(self, link: Link, prefix: str, now: float) -> None:
        self._link, self._prefix = link, prefix
        self._request = {"prefix": prefix, "name": "", "now": repr(now), "tag": ""}

    async def visit(self, tags: list[str], after: str, limit: int) -> tuple[list[str], str]:
        """Visit the lists until so many users are found; return the last one then."""
        found: list[str] = []
        groups = await self._link.groups([bucket_of(self._prefix, tag) for tag in tags])
        for at in range(0, len(groups), _SCRIPTS_AT_ONCE):
            pages = [
                self._page([tags[place] for place in group], "" if group[0] else after, limit)
                for group in groups[at : at + _SCRIPTS_AT_ONCE]
            ]
            for names, last in await asyncio.gather(*pages):
                room = limit - len(found)
                found.extend(names[:room])
                if len(names) > room or (len(names) == room and not last):
                    return found, found[-1]
                if last:
                    return found, last
        return found, ""

    async def _page(self, tags: list[str], after: str, limit: int) -> tuple[list[str], str]:
        request = {**self._request, "tags": tags, "after": after, "limit": limit}
        keys = keys_to_read(self._prefix, tags[0])
        names, last = await self._link.read("users", keys, [dump(request)])
        return [each.decode() for each in names], last.decode()
