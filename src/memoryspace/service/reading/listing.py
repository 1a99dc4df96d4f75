"""Lists of memories in the order of time, page by page.

Filters on one kind, one session and excluded marks are left to the store, which skips to the page.
Any other filter is applied to records as they are read.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...record import Record, Scope, Where
from ...retrieval.conditions import Condition, refusal
from ..values.envelope import entry_of
from ..values.memory import RAW, WAITING, MemoryItem
from ..values.results import Page
from ..writing.repository import MemoryRepository
from .filters import CheckedFilters

_BATCH = 500  # records read at a time


class Listing:
    """Lists memories of ``kinds`` in a store, unless the filters name others."""

    def __init__(self, repository: MemoryRepository, kinds: Sequence[str]) -> None:
        self._repository = repository
        self._store = repository.store
        self._kinds = tuple(kinds)

    async def numbered(self, scope: Scope, checked: CheckedFilters) -> list[MemoryItem]:
        """Return the page with the number in the filters, oldest first."""
        skip = (checked.page_num - 1) * checked.page_size
        direct = self._direct(scope, checked)
        if direct is not None:
            scope, where = direct
            chosen = Where(
                kind=where.kind, without=where.without, limit=checked.page_size, skip=skip
            )
            return await self._repository.select(scope, chosen)
        matching = self._matching(scope, checked.condition(self._kinds), None, newest=False)
        records = [each async for each in _first(matching, skip + checked.page_size)]
        return self._repository.read(scope.user, records[skip:])

    async def after(
        self, scope: Scope, checked: CheckedFilters, cursor: str | None, limit: int, newest: bool
    ) -> Page:
        """Return the page after a cursor."""
        begin = seq_of(cursor)
        matching = self._matching(scope, checked.condition(self._kinds), begin, newest=newest)
        records = [each async for each in _first(matching, limit + 1)]
        page = records[:limit]
        end = str(page[-1].seq) if len(records) > limit else None
        return Page(tuple(self._repository.read(scope.user, page)), end)

    async def newest(self, scope: Scope, checked: CheckedFilters) -> list[MemoryItem]:
        """Return the newest memories, newest first, up to the maximum number of hits."""
        direct = self._direct(scope, checked)
        if direct is None:
            return list(
                (await self.after(scope, checked, None, checked.hits, newest=True)).memories
            )
        scope, where = direct
        found = await self._repository.select(scope, change(where, limit=checked.hits, newest=True))
        return found[::-1]

    async def count(self, scope: Scope, checked: CheckedFilters) -> int:
        """Return the number of matching memories."""
        direct = self._direct(scope, checked)
        if direct is not None:
            return await self._store.count(*direct)
        matching = self._matching(scope, checked.condition(self._kinds), None, newest=False)
        return sum([1 async for _ in matching])

    def _direct(self, scope: Scope, checked: CheckedFilters) -> tuple[Scope, Where] | None:
        """Return the filters as a store query, or ``None`` if the store cannot apply them."""
        kinds = self._kinds if checked.kinds is None else checked.kinds
        sessions = (None,) if checked.sessions is None else checked.sessions
        if not checked.is_plain or len(kinds) != 1 or len(sessions) != 1:
            return None
        without = checked.without if kinds[0] == RAW else checked.without | {WAITING}
        return Scope(scope.user, sessions[0]), Where(kind=kinds[0], without=without)

    async def _matching(
        self, scope: Scope, condition: Condition, begin: int | None, *, newest: bool
    ) -> AsyncIterator[Record]:
        """Yield matching records after the seq ``begin``, oldest or newest first."""
        while True:
            where = Where(
                after=None if newest else begin,
                before=begin if newest else None,
                limit=_BATCH,
                newest=newest,
            )
            records = await self._store.select(scope, where)
            for record in reversed(records) if newest else records:
                entry = entry_of(record)
                if entry is not None and refusal(condition, entry) is None:
                    yield record
            if not records:  # a short batch may only mean that some cannot be read
                return
            begin = records[0].seq if newest else records[-1].seq


async def _first(records: AsyncIterator[Record], count: int) -> AsyncIterator[Record]:
    """Yield the first ``count`` records and read no further."""
    if count < 1:
        return
    async for record in records:
        yield record
        count -= 1
        if count == 0:
            return


def seq_of(cursor: str | None) -> int | None:
    """Return the seq that a cursor stands for; raise ``InvalidInput`` if it stands for none."""
    if cursor is None:
        return None
    if not isinstance(cursor, str) or not re.fullmatch("[0-9]{1,16}", cursor):
        raise InvalidInput(f"{cursor!r} is not a cursor; pass the one of the previous page")
    return int(cursor)
