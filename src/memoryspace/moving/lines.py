"""The export format: JSON Lines, one record a line.

::

    {"memoryspace":{"format":1,"made_by":"memoryspace 0.1.0","made_at":1763496000.0}}
    {"user":"alice"}
    {"record":{"id":"r1","session":"s","kind":"memory","created_at":1.0,"importance":0.5,"value":{…}}}
    {"check":{"records":1,"sha256":"…"}}
    {"done":{"user":"alice","records":1,"sha256":"…"}}
    {"end":{"users":1,"records":1,"sha256":"…"}}

Every checksum covers all bytes of the file before its line, so a line that was changed, lost, added
or moved is noticed at the next one. A record's value is written as ``portable`` data. Other
fields at their default are left out; so is ``text`` if it is what the value says itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ..errors import CorruptData, InvalidInput
from ..message import Msg
from ..portable import portable, restored
from ..record import MESSAGE, RESERVED_PREFIX, SUMMARY, SUMMARY_ID, Origin, Record, Scope, text_of
from ..service.values.kinds import DERIVED, JOB, REJECTION, VERSION
from ..service.values.memory import RAW
from ..store.codec import MAX_DEPTH, value_from
from ..store.contract import check_new
from ..store.vectors import Place, check_vectors
from .arrivals import Arrival

FORMAT = 1
MAX_LINE = 64 << 20  # bytes

_MARKERS = (b'"$text"', b'"$number"', b'"$dict"')  # of portable data that must be restored

# Reserved ids that a record of this kind has.
_OWN_IDS = {
    VERSION: RESERVED_PREFIX + "was:",
    JOB: RESERVED_PREFIX + "job:",
    REJECTION: RESERVED_PREFIX + "rejected:",
    SUMMARY: SUMMARY_ID,
}
_TOLD = frozenset({RAW, MESSAGE, *DERIVED})  # by users or derivers; they have no reserved ids


class Header(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The first line: the format, what made it, and the kinds of custom derivers."""

    format: int
    made_by: str
    made_at: float
    kinds: list[str] = []


class RecordLine(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A record of the user whose section it is in."""

    id: str
    session: str
    kind: str
    created_at: float
    importance: float
    value: Any
    text: Any = None
    marks: list[str] = []
    expires_at: float | None = None
    pinned: bool = False
    origin: Any = None
    vectors: dict[str, bytes] = {}
    late: bool = False


class Check(Struct, forbid_unknown_fields=True):
    """A checksum in the middle of a section."""

    records: int
    sha256: str


class Done(Struct, forbid_unknown_fields=True):
    """The end of a user's section."""

    user: str
    records: int
    sha256: str


class End(Struct, forbid_unknown_fields=True):
    """The last line."""

    users: int
    records: int
    sha256: str


class Line(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Any line; exactly one field is set."""

    memoryspace: Header | None = None
    user: str | None = None
    record: RecordLine | None = None
    check: Check | None = None
    done: Done | None = None
    end: End | None = None

    def held(self) -> Header | str | RecordLine | Check | Done | End:
        """Return the field that is set."""
        found = [held for name in self.__struct_fields__ if (held := getattr(self, name))]
        if len(found) != 1:
            raise InvalidInput("the line holds none of the parts of an export, or several")
        return found[0]  # type: ignore[no-any-return]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def encoded(line: Line) -> bytes:
    """Return a line as bytes."""
    return _encode(line) + b"\n"


def record_line(arrival: Arrival) -> bytes:
    """Return a record's line; raise ``InvalidInput`` if its value cannot be written."""
    record = arrival.record
    value = record.value.to_dict() if isinstance(record.value, Msg) else record.value
    try:
        line = RecordLine(
            id=record.id,
            session=record.session or "",
            kind=record.kind,
            created_at=record.created_at,
            importance=record.importance,
            value=portable(value),
            text=None if record.text == text_of(record.value) else portable(record.text),
            marks=sorted(record.marks),
            expires_at=record.expires_at,
            pinned=record.pinned,
            origin=None if record.origin is None else portable(record.origin),
            vectors=dict(arrival.vectors),
            late=arrival.is_late,
        )
    except (TypeError, RecursionError) as error:
        raise InvalidInput(
            f"record {record.id!r} of user {arrival.user!r} cannot be exported: {error}; "
            "store plain data instead"
        ) from error
    data = encoded(Line(record=line))
    if len(data) > MAX_LINE:
        raise InvalidInput(
            f"record {record.id!r} of user {arrival.user!r} takes {len(data)} bytes, more than "
            f"the {MAX_LINE} that a line of an export may have; delete it, or leave its user out"
        )
    return data


def parsed(data: bytes) -> Line:
    """Return a line; raise ``InvalidInput`` if it is not one of an export."""
    try:
        return _decode(data)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{error}, where $ is the line") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInput(f"it is not JSON in UTF-8 ({error})") from None
    except RecursionError:
        raise InvalidInput(f"it is nested deeper than {MAX_DEPTH}") from None


def arrival_in(user: str, line: RecordLine, data: bytes) -> Arrival:
    """Return the record in a line of a user's section; raise ``InvalidInput`` if it is not valid.

    ``data`` are the bytes of the line.
    """
    _check_depth(data, line)
    if any(marker in data for marker in _MARKERS):
        line = msgspec.structs.replace(
            line,
            value=restored(line.value),
            text=restored(line.text),
            origin=restored(line.origin),
        )
    record = check_new(_record(line))
    _check_place(user, record)
    if line.vectors:
        for space, vector in line.vectors.items():
            check_vectors(user, space, {Place(line.session, line.id, 0): vector})
    return Arrival(user, record, line.vectors, line.late)


def _record(line: RecordLine) -> Record:
    try:
        value = value_from(line.kind, line.value)
        origin = None if line.origin is None else msgspec.convert(line.origin, Origin)
        text = text_of(value) if line.text is None else msgspec.convert(line.text, str)
    except (CorruptData, msgspec.ValidationError) as error:
        raise InvalidInput(f"record {line.id!r:.80}: {error}") from None
    if not isinstance(value, Msg | str | dict | list):
        raise InvalidInput(f"record {line.id!r:.80}: a value cannot be {type(value).__name__}")
    return Record(
        id=line.id,
        value=value,
        text=text,
        marks=frozenset(line.marks),
        kind=line.kind,
        created_at=line.created_at,
        expires_at=line.expires_at,
        importance=line.importance,
        pinned=line.pinned,
        origin=origin,
        session=line.session,
    )


def _check_place(user: str, record: Record) -> None:
    """Raise unless a record of this kind may have its user, session and id."""
    Scope(user, record.session)
    if record.kind in _TOLD and _is_reserved(record.session):
        raise InvalidInput(f"session {record.session!r} is reserved, also for {record.kind!r}")
    if _is_reserved(record.id) and not _may_have(record.kind, record.id):
        raise InvalidInput(
            f"record id {record.id!r} is reserved, also for the kind {record.kind!r}"
        )


def _may_have(kind: str, record_id: str) -> bool:
    own = _OWN_IDS.get(kind)
    if own is not None:
        return record_id == own if kind == SUMMARY else record_id.startswith(own)
    return kind not in _TOLD and not record_id.startswith(tuple(_OWN_IDS.values()))


def _is_reserved(name: str | None) -> bool:
    return name is not None and name.startswith(RESERVED_PREFIX)


def _check_depth(data: bytes, line: RecordLine) -> None:
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _is_deep(line.value):
        raise InvalidInput(f"record {line.id!r:.80}: it is nested deeper than {MAX_DEPTH}")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
