"""Pages of memories that follow each other by place, not by number: nothing shifts between two."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...errors import InvalidInput
from ..values.memory import MemoryItem
from ..values.results import Page
from .reading import Place, place


def page_of(
    memories: Sequence[MemoryItem], cursor: str | None, limit: int, *, newest: bool
) -> Page:
    """Return the page behind a cursor, of memories in order; with ``newest``, from the end."""
    after = None if cursor is None else _place(cursor)
    ordered = list(reversed(memories)) if newest else list(memories)
    if after is not None:
        ordered = [
            each for each in ordered if (place(each) < after if newest else place(each) > after)
        ]
    page = tuple(ordered[:limit])
    return Page(page, json.dumps(place(page[-1])) if len(ordered) > limit else None)


def _place(cursor: str) -> Place:
    try:
        seq, memory_id = json.loads(cursor)
        return int(seq), str(memory_id)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"cursor {cursor!r} is none that a page gave") from error
