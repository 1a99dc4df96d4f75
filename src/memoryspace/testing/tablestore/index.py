"""A search index of the fake Tablestore: the rows it has seen, and pages of matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tablestore import ColumnReturnType, SearchHit, SearchResponse

from .queries import Searching
from .tables import Columns, Key, Table, refused

MAX_HITS = 1000


class SearchIndex:
    """An index over one table, limited to the rows it has seen."""

    def __init__(self, table: Table, meta: Any) -> None:
        self._table = table
        self._fields = {field.field_name: field for field in meta.fields}
        self._rows: dict[Key, Columns] = {}
        for key in table.rows:
            self.see(key)

    def see(self, key: Key) -> None:
        """Update the index with the current state of a row, which may be deleted."""
        row = self._table.rows.get(key)
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = {**row, **dict(self._table.primary_key(key))}

    def search(self, asked: Any, columns_to_get: Any, routing_keys: Any) -> SearchResponse:
        """Return a page of matches."""
        limit = 10 if asked.limit is None else asked.limit
        if not 0 <= limit <= MAX_HITS:
            raise refused("OTSParameterInvalid", f"limit must be from 0 to {MAX_HITS}")
        rows = dict(self._routed(routing_keys))
        scores = Searching(self._fields, rows).run(asked.query)
        order = _sorted(scores, rows, asked.sort)
        start = int(asked.next_token) if asked.next_token else (asked.offset or 0)
        end = start + limit
        is_scored = asked.sort is not None and _kind(asked.sort.sorters[0]) == "ScoreSort"
        hits = [
            self._hit(rows[key], key, columns_to_get, scores[key] if is_scored else float("nan"))
            for key in order[start:end]
        ]
        onward = str(end).encode() if end < len(order) else b""
        rows_found = [hit.row for hit in hits]
        response = SearchResponse(rows_found, [], [], onward, True, len(order), hits)
        response.request_id = "fake-request"
        return response

    def _routed(self, routing_keys: Any) -> Iterator[tuple[Key, Columns]]:
        for key, row in self._rows.items():
            if not routing_keys or any(
                all(row.get(name) == value for name, value in each) for each in routing_keys
            ):
                yield key, row

    def _hit(self, row: Columns, key: Key, wanted: Any, score: float) -> SearchHit:
        shown = (self._table.primary_key(key), self._shown(row, wanted))
        return SearchHit(shown, score, None, [], None)

    def _shown(self, row: Columns, wanted: Any) -> list[tuple[str, Any, int]]:
        if wanted is None or wanted.return_type == ColumnReturnType.NONE:
            return []
        is_some = wanted.return_type == ColumnReturnType.SPECIFIED
        keys = {name for name, _ in self._table.schema}
        return [
            (name, value, 0)
            for name, value in row.items()
            if name not in keys and (not is_some or name in wanted.column_names)
        ]


def _kind(sorter: Any) -> str:
    return type(sorter).__name__


def _sorted(scores: Mapping[Key, float], rows: Mapping[Key, Columns], sort: Any) -> list[Key]:
    order = sorted(scores)
    for sorter in [] if sort is None else reversed(sort.sorters):
        is_down = sorter.sort_order is not None and sorter.sort_order.name == "DESC"
        if _kind(sorter) == "ScoreSort":
            order.sort(key=lambda key: scores[key], reverse=is_down)
        elif _kind(sorter) == "FieldSort":
            field = sorter.field_name
            order.sort(key=lambda key, field=field: rows[key].get(field, 0), reverse=is_down)
        else:
            order.sort(reverse=is_down)
    return order
