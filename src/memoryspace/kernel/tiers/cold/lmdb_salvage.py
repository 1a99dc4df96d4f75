"""A damaged LMDB file is set aside, and all that is intact in it goes on in a new one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ...durable.disk import Disk
from .lmdb_copy import Pair, write_pairs
from .lmdb_form import MARK_KEY, OUR_MARK, as_key
from .lmdb_pages import Pages, Place

logger = logging.getLogger(__name__)

_PAGES_EACH = 2**14  # bytes of pages that a value may need beside its own: room, not use
_LEAST_ROOM = 2**20


def salvage_file(path: Path, copy: Path, disk: Disk) -> Path:
    """Give ``path`` to a new file with what is intact; return where the damaged one is now.

    The new one is whole and durable before it takes the name, and the old one has another by then:
    a crash leaves the one or the other.
    """
    with open(path, "rb") as file:
        pages = Pages(file.fileno())
        found = pages.intact()
        room = _LEAST_ROOM + 2 * pages.size + _PAGES_EACH * len(found)
        write_pairs(_pairs(pages, found), path, copy, disk, room=room)
    aside = _set_aside(path)
    disk.replace(copy, path)
    disk.sync_folder(path.parent)
    logger.warning("%s was damaged: %d values were salvaged; see %s", path, len(found), aside)
    return aside


def _pairs(pages: Pages, found: dict[int, Place]) -> Iterator[Pair]:
    yield MARK_KEY, OUR_MARK
    for key, place in found.items():
        yield as_key(key), pages.frame(place)


def _set_aside(path: Path) -> Path:
    """Give a file a second name that no other has."""
    for number in count(1):
        aside = path.with_name(f"{path.name}.damaged{number}")
        try:
            os.link(path, aside)
        except FileExistsError:
            continue
        return aside
    raise AssertionError("numbers never end")
