"""Conversion between records and table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...record import Record, Scope, Value, text_of
from ..codec import (
    clean_text,
    dump_origin,
    dump_value,
    pack_marks,
    parse_origin,
    parse_value,
    unpack_marks,
)
from .schema import records

_r = records.c
COLUMNS = (
    _r.seq,
    _r.session_id,
    _r.id,
    _r.kind,
    _r.marks,
    _r.created_at,
    _r.expires_at,
    _r.importance,
    _r.pinned,
    _r.origin,
    _r.text,
    _r.value,
)

VALUE_COLUMNS = (_r.seq, _r.kind, _r.value)


def row_of(scope: Scope, record: Record) -> dict[str, Any]:
    """Return the columns of a record's row, except its index in the session."""
    return {
        "user_id": scope.user,
        "session_id": scope.session,
        "id": record.id,
        "kind": record.kind,
        "marks": pack_marks(record.marks),
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "importance": record.importance,
        "pinned": int(record.pinned),
        "origin": dump_origin(record.origin),
        # not stored if it follows from the value
        "text": None if record.text == text_of(record.value) else clean_text(record.text),
        "value": dump_value(record),
    }


def record_of(row: Sequence[Any]) -> Record:
    """Decode a row of ``COLUMNS``; raise ``CorruptData`` if that is not possible."""
    seq, session, id_, kind, marks, created, expires, importance, pinned, origin, text, value = row
    parsed = parse_value(kind, value)
    return Record(
        id_,
        parsed,
        text_of(parsed) if text is None else text,
        unpack_marks(marks),
        kind,
        created,
        expires,
        importance,
        bool(pinned),
        parse_origin(origin),
        seq,
        session,
    )


def value_of(row: Sequence[Any]) -> Value:
    """Decode a row of ``VALUE_COLUMNS``; raise ``CorruptData`` if that is not possible."""
    return parse_value(row[1], row[2])
