"""Salvage of a damaged LMDB file: set it aside and copy its intact values to a new one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ...durable.disk import Disk
from .lmdb_copy import Pair, write_pairs
from .lmdb_form import MARK_KEY, OUR_MARK, as_key
from .lmdb_pages import FramePosition, LMDBPages

logger = logging.getLogger(__name__)

_PAGES_EACH = 2**14  # bytes of address space reserved per value beside its own size
_LEAST_MAP = 2**20


def salvage_file(path: Path, copy: Path, disk: Disk) -> Path:
    """Replace a file by a new one with its intact values; return the damaged one's new path.

    The new file is complete and durable before it gets the name, and the old one has another name
    by then. A crash leaves one or the other.
    """
    with open(path, "rb") as file:
        pages = LMDBPages(file.fileno())
        found = pages.intact()
        map_size = _LEAST_MAP + 2 * pages.size + _PAGES_EACH * len(found)
        write_pairs(_pairs(pages, found), path, copy, disk, map_size=map_size)
    aside = _set_aside(path)
    disk.replace(copy, path)
    disk.sync_folder(path.parent)
    logger.warning("%s was damaged: %d values were salvaged; see %s", path, len(found), aside)
    return aside


def _pairs(pages: LMDBPages, found: dict[int, FramePosition]) -> Iterator[Pair]:
    yield MARK_KEY, OUR_MARK
    for key, place in found.items():
        yield as_key(key), pages.frame(place)


def _set_aside(path: Path) -> Path:
    """Give a file a second name that is not in use."""
    for number in count(1):
        aside = path.with_name(f"{path.name}.damaged{number}")
        try:
            os.link(path, aside)
        except FileExistsError:
            continue
        return aside
    raise AssertionError("numbers never end")
