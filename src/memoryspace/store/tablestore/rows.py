"""Conversion of records to rows of the searchable table, and back.

A row holds the whole record as JSON in one column, so every type is restored. Other columns hold
what the search index reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from tablestore import FieldSchema, FieldType, Row, VectorMetricType
from tablestore_for_agent_memory.base.base_knowledge_store import Document

from ...errors import CorruptData, InvalidInput, NotSerializable
from ...message import Msg
from ...record import RESERVED_PREFIX, Origin, Record
from ...retrieval.text.analysis import tokens
from ...retrieval.text.words import words
from ..codec import clean_text, dump, parse, value_from
from .ledger import RecordHeader

MAX_BODY_BYTES = 2_000_000  # of 2 MiB in one column
MAX_INDEXED_BYTES = 1_000_000

BODY = "memoryspace_record"
SEQ = "memoryspace_seq"
KIND = "memoryspace_kind"

_TAKEN = {BODY, SEQ, KIND, "user_id", "session_id", "document_id", "tenant_id"}


class Layout(Struct, frozen=True, kw_only=True):
    """The names and fields of the table of documents and its search index."""

    table_name: str
    search_index_name: str
    vector_dimension: int
    search_index_schema: tuple[Any, ...] = ()
    text_field: str = "text"
    embedding_field: str = "embedding"
    vector_metric_type: Any = VectorMetricType.VM_COSINE

    @property
    def own_fields(self) -> dict[str, str]:
        """The caller's index fields, which hold metadata: name → type."""
        taken = {self.text_field, self.embedding_field, *_TAKEN}
        return {
            field.field_name: field.field_type.name
            for field in self.search_index_schema
            if field.field_name not in taken
        }


def with_stems(text: str) -> str:
    """Return a text followed by the stems of its words, for an index without stemming.

    The index must find what a ``Recall`` matches: the question "run" and the text "I am running".
    """
    known = set(words(text))
    stems = dict.fromkeys(token for token in tokens(text) if token not in known)
    return f"{text}\n{' '.join(stems)}" if stems else text


def tenant_of(user: str) -> str:
    """Return the tenant of a user. The prefix avoids the SDK's name for all tenants."""
    return f"u:{user}"


def is_user(tenant: str) -> bool:
    """Return whether a tenant is a user and not an internal name."""
    return tenant.startswith(tenant_of(""))


def user_of(tenant: str) -> str:
    """Return the user of a tenant."""
    return tenant.removeprefix("u:")


def document_id(seq: int) -> str:
    """Return the key of a record: its digits reversed, so that new rows spread over partitions."""
    return str(seq)[::-1]


def seq_of(document_key: str) -> int:
    """Return the seq of a document's key."""
    return int(document_key[::-1])


def key_of(tenant: str, seq: int) -> list[tuple[str, str]]:
    """Return the primary key of a record."""
    return [("document_id", document_id(seq)), ("tenant_id", tenant)]


def is_searched(record: Record) -> bool:
    """Return whether a record is searchable: internal records are not."""
    is_ours = record.session is not None and record.session.startswith(RESERVED_PREFIX)
    return not is_ours and bool(record.text.strip())


def row_of(
    layout: Layout, tenant: str, record: Record, body: str, vector: list[float] | None
) -> Row:
    """Return the row of a record with the body from ``body_of``."""
    columns: list[tuple[str, Any]] = [
        (BODY, body),
        (SEQ, record.seq),
        (KIND, record.kind),
        ("user_id", user_of(tenant)),
        ("session_id", record.session),
    ]
    if is_searched(record):
        columns.append((layout.text_field, _index_text(record)))
        columns += _own_columns(layout, record)
    if vector is not None and any(vector):  # a vector of zeros has no direction
        columns.append((layout.embedding_field, dump(vector)))
    return Row(key_of(tenant, record.seq), columns)


class _Body(Struct):
    value: Any
    text: str
    created_at: float
    importance: float
    pinned: bool
    origin: Origin | None = None


def record_from(header: RecordHeader, document: Document) -> Record:
    """Return the record of a document; raise ``CorruptData`` if it cannot be decoded."""
    body = document.metadata.get(BODY)
    if not isinstance(body, str):
        raise CorruptData("its row holds no record")
    try:
        held = msgspec.convert(parse(body), _Body)
    except msgspec.ValidationError as error:
        raise CorruptData("its fields cannot be decoded") from error
    return Record(
        header.id,
        value_from(header.kind, held.value),
        held.text,
        header.marks,
        header.kind,
        held.created_at,
        header.expires_at,
        held.importance,
        held.pinned,
        held.origin,
        header.seq,
        header.session,
    )


def body_of(record: Record) -> str:
    """Return a record as JSON.

    Raises:
        NotSerializable: If a value has no JSON form.
        InvalidInput: If the JSON is too large for a row.
    """
    value = record.value
    try:
        body = dump(
            {
                "value": value.to_dict() if isinstance(value, Msg) else value,
                "text": clean_text(record.text),
                "created_at": record.created_at,
                "importance": record.importance,
                "pinned": record.pinned,
                "origin": None if record.origin is None else msgspec.to_builtins(record.origin),
            }
        )
    except NotSerializable as error:
        raise NotSerializable(f"record {record.id!r}: {error}") from error
    if len(body.encode()) > MAX_BODY_BYTES:
        raise InvalidInput(
            f"record {record.id!r} takes {len(body.encode())} bytes, at most {MAX_BODY_BYTES} fit "
            "into a row: store the large part elsewhere and keep a reference"
        )
    return body


def schema_of(own: Sequence[Any]) -> list[Any]:
    """Return the caller's fields and ours, in a new list: the SDK appends to it."""
    ours = [
        FieldSchema("user_id", FieldType.KEYWORD),
        FieldSchema("session_id", FieldType.KEYWORD),
        FieldSchema(KIND, FieldType.KEYWORD),
        FieldSchema(SEQ, FieldType.LONG, enable_sort_and_agg=True),
    ]
    taken = {field.field_name for field in own}
    return [*own, *(field for field in ours if field.field_name not in taken)]


def _own_columns(layout: Layout, record: Record) -> list[tuple[str, Any]]:
    """Return the metadata items that the caller's index schema names."""
    held = record.value.get("metadata") if isinstance(record.value, dict) else None
    items = held if isinstance(held, dict) else {}
    return [
        (name, items[name])
        for name in layout.own_fields
        if isinstance(items.get(name), str | int | float)
    ]


def _index_text(record: Record) -> str:
    """Return the text to index: the text that a ``Recall`` would index, as far as it fits."""
    title = record.value.get("title") if isinstance(record.value, dict) else None
    text = f"{title}. {record.text}" if isinstance(title, str) and title else record.text
    return with_stems(clean_text(text)).encode()[:MAX_INDEXED_BYTES].decode(errors="ignore")
