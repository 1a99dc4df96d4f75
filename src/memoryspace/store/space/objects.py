"""Records as objects of a space, and back.

The user is the object's tenant, the marks are its tags, and the seq is the stamp of the change that
stored it. Everything else of a record stands in the payload.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ...errors import CorruptData
from ...kernel import LivingObject, NewObject
from ...record import Record, text_of
from ..codec import clean_text, dump_origin, dump_value, parse_origin, parse_value

FORMAT = 1  # of a record in an object; one without a number has the first


class RecordEntry(Struct, frozen=True, gc=False):
    """What is known of a record without reading its object."""

    id: str
    kind: str
    marks: frozenset[str]
    seq: int
    user: str
    session: str
    expires_at: float | None
    handle: int


class Payload(
    Struct, frozen=True, omit_defaults=True, rename={"id": "i", "session": "s", "format": "f"}
):
    """A record as the payload of an object."""

    id: str
    session: str
    kind: str
    value: str
    created_at: float
    text: str | None = None
    origin: str | None = None
    format: int = FORMAT


class _Body(Struct, frozen=True, array_like=True):
    payload: Payload
    embedding: Any = None
    name: Any = None


_decode = msgspec.msgpack.Decoder(_Body).decode


def payload_of(body: bytes) -> Payload:
    """Return the payload in the bytes of an object; ``CorruptData`` if they do not read back."""
    try:
        payload: Payload = _decode(body).payload
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptData("its bytes in the space do not read back") from error
    if payload.format > FORMAT:
        raise CorruptData(
            f"it has format {payload.format}, this version of memoryspace reads up to {FORMAT}; "
            "upgrade memoryspace"
        )
    return payload


def entry_of(found: LivingObject, payload: Payload) -> RecordEntry:
    """Return the entry of an object that is in the space already."""
    return RecordEntry(
        payload.id,
        payload.kind,
        found.tags,
        found.stamp,
        found.tenant,
        payload.session,
        found.expires_at,
        found.handle,
    )


def record_of(entry: RecordEntry, body: bytes, importance: float, pinned: bool) -> Record:
    """Return the record of an entry; ``CorruptData`` if its bytes do not read back."""
    payload = payload_of(body)
    value = parse_value(entry.kind, payload.value)
    return Record(
        entry.id,
        value,
        text_of(value) if payload.text is None else payload.text,
        entry.marks,
        entry.kind,
        payload.created_at,
        entry.expires_at,
        importance,
        pinned,
        parse_origin(payload.origin),
        entry.seq,
        entry.session,
    )


def object_of(user: str, session: str, record: Record) -> NewObject:
    """Return a record as an object to be stored."""
    payload = Payload(
        record.id,
        session,
        record.kind,
        dump_value(record),
        record.created_at,
        None if record.text == text_of(record.value) else clean_text(record.text),
        dump_origin(record.origin),
    )
    return NewObject(
        msgspec.to_builtins(payload),
        tags=record.marks,
        importance=record.importance,
        pin=record.pinned,
        tenant=user,
        expires_at=record.expires_at,
    )
