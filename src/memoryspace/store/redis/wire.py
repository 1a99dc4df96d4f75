"""Records as Redis holds them: a small header the scripts read, and a body they never look into."""

from __future__ import annotations

import re
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

BETWEEN = "\x1e"  # between records, or ids and their places
_DEFAULTS = Record("", "")
_SPECIAL = re.compile(r"[*?\[\]^\\-]")  # in the patterns that keys are looked for by


def escaped(id_: str) -> str:
    """Return an id as a part of a key: no two ids, however they are joined, make the same key."""
    return id_.replace("%", "%25").replace(":", "%3A")


def unescaped(part: str) -> str:
    """Return the id that ``escaped`` was given."""
    return part.replace("%3A", ":").replace("%25", "%")


def as_pattern(text: str) -> str:
    """Return a pattern that matches this very text."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def header_and_body(record: Record) -> tuple[str, str]:
    """Return a record as the two arguments the scripts take for it."""
    header = {"id": record.id, "kind": record.kind, "marks": pack_marks(record.marks)}
    if record.expires_at is not None:
        header["expires_at"] = repr(float(record.expires_at))
    return dump(header), _body(record)


def request_for(where: Where) -> dict[str, Any]:
    """Return the given fields as the scripts take them: numbers that may be big as text."""
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
    """Yield what the select script says of each record."""
    for reply in replies:
        yield from reply.decode("utf-8", "surrogateescape").split(BETWEEN)


def record_of(piece: str) -> Record:
    """Return the record of a piece; ``CorruptData`` if it does not read back."""
    place, id_, marks, stored = piece.split("\n", 3)
    seq, _, session = place.partition(" ")
    kind, _, body = stored.partition("\0")
    data = parse(body)
    if not isinstance(data, dict) or "value" not in data:
        raise CorruptData(f"{len(body)} characters that are no record")
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
    """Return the stamp and last seq of each session, of what the changes script says of now."""
    texts = iter([each.decode() for each in flat])
    return {
        session: (stamp, last) for session, stamp, last in zip(texts, texts, texts, strict=True)
    }


def kept_of(listed: Iterable[tuple[bytes, bytes]]) -> dict[str, dict[str, int]]:
    """Return what sessions hold, of what the changes script says of each."""
    kept = {}
    for session, joined in listed:
        flat = joined.decode().split(BETWEEN)
        seqs = map(int, map(float, flat[1::2]))
        kept[unescaped(session.decode())] = dict(zip(flat[::2], seqs, strict=True))
    return kept


def whose(user: str, piece: str) -> tuple[Scope, str]:
    """Return the scope and id of a piece, as far as they can be told."""
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
