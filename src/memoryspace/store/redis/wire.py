"""The Redis encoding of records: a small header for the scripts, and a body they do not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ...errors import CorruptData
from ...message import Msg
from ...record import Record, Scope, Where, text_of
from ..codec import (
    clean_text,
    dump,
    origin_from,
    pack_marks,
    parse,
    unpack_marks,
    value_from,
)
from .layout import unescaped

BETWEEN = "\x1e"  # separates records, or ids and seqs
_DEFAULTS = Record("", "")


def header_and_body(record: Record) -> tuple[str, str]:
    """Return the two script arguments that describe a record."""
    header = {"id": record.id, "kind": record.kind, "marks": pack_marks(record.marks)}
    if record.expires_at is not None:
        header["expires_at"] = repr(float(record.expires_at))
    return dump(header), _body(record)


def request_for(where: Where) -> dict[str, Any]:
    """Return the fields of ``where`` for the scripts, with large numbers as text."""
    request: dict[str, Any] = {}
    if where.ids is not None:
        request["ids"] = list(where.ids)
    if where.kind is not None:
        request["kind"] = where.kind
    if where.marks:
        request["marks"] = sorted(where.marks)
    if where.without:
        request["without"] = sorted(where.without)
    if where.after is not None:
        request["after"] = str(where.after)
    if where.before is not None:
        request["before"] = str(where.before)
    if where.limit is not None:
        request.update(limit=where.limit, newest=where.newest, skip=where.skip)
    return request


def pieces_of(replies: Iterable[bytes]) -> Iterator[str]:
    """Yield the part of the select script's reply that describes each record."""
    for reply in replies:
        yield from reply.decode("utf-8", "surrogateescape").split(BETWEEN)


def record_of(piece: str) -> Record:
    """Decode a record; raise ``CorruptData`` if that is not possible."""
    place, id_, marks, stored = piece.split("\n", 3)
    seq, _, session = place.partition(" ")
    kind, _, body = stored.partition("\0")
    data = parse(body)
    if not isinstance(data, dict) or "value" not in data:
        raise CorruptData(f"{len(body)} characters that are not a record")
    value = value_from(kind, data["value"])
    get = data.get
    text = get("text")
    return Record(
        id_,
        value,
        text_of(value) if text is None else text,
        unpack_marks(marks),
        kind,
        get("created_at", 0.0),
        get("expires_at"),
        get("importance", _DEFAULTS.importance),
        get("pinned", False),
        origin_from(get("origin")),
        int(seq),
        unescaped(session),
    )


def states_of(flat: Sequence[bytes]) -> dict[str, tuple[str, str]]:
    """Return the stamp and last seq of each session from the reply of the changes script."""
    texts = iter([each.decode() for each in flat])
    return {
        session: (stamp, last) for session, stamp, last in zip(texts, texts, texts, strict=True)
    }


def kept_of(listed: Iterable[tuple[bytes, bytes]]) -> dict[str, dict[str, int]]:
    """Return the records of each session, id → seq, from the reply of the changes script."""
    kept = {}
    for session, joined in listed:
        flat = joined.decode().split(BETWEEN)
        seqs = map(int, map(float, flat[1::2]))
        kept[unescaped(session.decode())] = dict(zip(flat[::2], seqs, strict=True))
    return kept


def identity_of(user: str, piece: str) -> tuple[Scope, str]:
    """Return the scope and id of a record that cannot be decoded, as far as they are readable."""
    place, _, rest = piece.partition("\n")
    session = unescaped(place.partition(" ")[2])
    return Scope(user, session or None), rest.partition("\n")[0]


def _body(record: Record) -> str:
    value = record.value
    body: dict[str, Any] = {
        "value": value.to_dict() if isinstance(value, Msg) else value,
        "created_at": record.created_at,
    }
    if record.text != text_of(value):
        body["text"] = clean_text(record.text)
    for name in ("expires_at", "importance", "pinned"):
        if getattr(record, name) != getattr(_DEFAULTS, name):
            body[name] = getattr(record, name)
    if record.origin is not None:
        body["origin"] = msgspec.to_builtins(record.origin)
    return dump(body)
