"""Conversion between memories and records: the message body in an envelope of service fields."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from ...errors import CorruptData
from ...record import RESERVED_PREFIX, Origin, Record, is_number
from ...retrieval import Entry
from ...retrieval.entries import Value, items_of
from .forms import body_of, said_from
from .kinds import FACT, INSIGHT, NO_MEMORIES, RETIRED_BY, RETIRES, SUPERSEDED_BY
from .memory import RAW, WAITING, Draft, MemoryItem

VALID_FROM = "memoryspace:valid_from"
VALID_TO = "memoryspace:valid_to"

# The mark of memories that say what they retire, or are retired by, once approved.
LINEAGE = RESERVED_PREFIX + "lineage"


FORMAT = 1  # of a memory in a record; one without a number has the first


class _Envelope(Struct, omit_defaults=True):
    form: str
    body: Any
    updated_at: float
    version: int = 1
    role: str | None = None
    name: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = {}
    details: dict[str, Any] = {}
    valid_from: float | None = None
    valid_to: float | None = None
    format: int = FORMAT


_OWN = ("form", "body", "format")

# The fields that a memory has under the same names.
_ENVELOPED = tuple(name for name in _Envelope.__struct_fields__ if name not in _OWN)


def record_of(memory: MemoryItem) -> Record:
    """Return the record of a memory; its marks include one for each of its sources."""
    marks = memory.marks | frozenset(map(derived_mark, sources_of(memory)))
    if RETIRES in memory.details or RETIRED_BY in memory.details:
        marks |= {LINEAGE}
    form, body = body_of(memory.value)
    kept = {name: getattr(memory, name) for name in _ENVELOPED}
    envelope = _Envelope(form=form, body=body, **kept)
    return Record(
        id=memory.id,
        value=msgspec.to_builtins(envelope),
        text=memory.text,
        marks=marks,
        kind=memory.kind,
        created_at=memory.created_at,
        expires_at=memory.expires_at,
        importance=memory.importance,
        origin=memory.origin,
    )


def memory_of(user: str, record: Record) -> MemoryItem:
    """Return the memory in a record; raise ``CorruptData`` if there is none.

    It may share parts of the record's value: a store's results belong to the caller.
    """
    try:
        held = msgspec.convert(record.value, _Envelope)
    except msgspec.ValidationError as error:
        raise CorruptData(
            f"record {record.id!r} of kind {record.kind!r} is not a memory"
        ) from error
    if held.format > FORMAT:
        raise CorruptData(
            f"memory {record.id!r} has format {held.format}, this version of memoryspace reads up "
            f"to {FORMAT}; upgrade memoryspace"
        )
    return MemoryItem(
        id=record.id,
        user_id=user,
        session_id="" if record.session is None else record.session,
        value=said_from(held.form, held.body, is_own=True),
        text=record.text,
        kind=record.kind,
        marks=_users_own(record.marks),
        importance=record.importance,
        created_at=record.created_at,
        expires_at=record.expires_at,
        origin=record.origin,
        seq=record.seq,
        **{name: getattr(held, name) for name in _ENVELOPED},
    )


def _users_own(marks: frozenset[str]) -> frozenset[str]:
    if not marks:
        return marks
    kept = (each for each in marks if not each.startswith(RESERVED_PREFIX) or each == WAITING)
    return frozenset(kept)


def memory_from(draft: Draft, memory_id: str, user: str, session: str, now: float) -> MemoryItem:
    """Return the first version of a memory from a draft."""
    given = asdict(draft)
    given.update(
        id=memory_id,
        created_at=now if draft.created_at is None else draft.created_at,
        origin=Origin() if draft.origin is None else draft.origin,
    )
    return MemoryItem(user_id=user, session_id=session, updated_at=now, **given)


def sources_of(item: MemoryItem | Record) -> tuple[str, ...]:
    """Return the ids of what a memory was derived from."""
    return () if item.origin is None else item.origin.derived_from


def derived_mark(source_id: str) -> str:
    """Return the mark of every memory derived from this source."""
    return f"{RESERVED_PREFIX}from:{blake2b(source_id.encode(), digest_size=12).hexdigest()}"


def details_of(record: Record) -> Mapping[str, Any]:
    """Return the details in a memory's record without decoding the rest."""
    details = record.value.get("details") if isinstance(record.value, dict) else None
    return details if isinstance(details, dict) else {}


def entry_of(record: Record) -> Entry | None:
    """Return the index entry of a record; ``None`` if it is not a memory or waits for approval.

    The body is not decoded here: a corrupt one is reported when the memory is read.
    """
    held = record.value
    if record.kind in NO_MEMORIES or not isinstance(held, dict) or WAITING in record.marks:
        return None
    return Entry(
        str(record.seq),
        record.text,
        session=record.session,
        speaker=_text(held.get("name")),
        role=_text(held.get("role")),
        kind=record.kind,
        title=_text(held.get("title")),
        time=record.created_at,
        importance=record.importance,
        marks=record.marks,
        metadata=_items(held),
        record=record.id,
        sources=() if record.origin is None else record.origin.derived_from,
        superseded_by=_text(details_of(record).get(SUPERSEDED_BY)),
        is_told_itself=record.kind not in (RAW, FACT, INSIGHT),
        subject=_text(details_of(record).get("subject")) if record.kind == FACT else None,
    )


def _items(held: Mapping[str, Any]) -> dict[str, Value] | None:
    metadata = held.get("metadata")
    items = items_of(metadata) if isinstance(metadata, dict) else {}
    for key, name in ((VALID_FROM, "valid_from"), (VALID_TO, "valid_to")):
        if is_number(held.get(name)):
            items[key] = held[name]
    return items if items else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
