"""Conversion of memories to mem0's form, and back.

A memory stored verbatim carries its envelope as JSON in mem0's metadata, so that it is restored in
its original form. A memory that mem0 derived has none: it becomes a fact, and a ``Message``. A
user's metadata is also stored item by item, for mem0's filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import CorruptData, InvalidInput
from ...record import RESERVED_PREFIX, Origin, Record, is_number
from ...retrieval import Entry
from ..reading.filters import moment
from ..schema import Message, Role, TextContent
from ..schema.message import AgentRole
from ..trust import suspicion
from ..values.envelope import entry_of, memory_of, record_of
from ..values.memory import QUARANTINED, MemoryItem
from .calls import Mem0Item

FACT = "fact"  # the kind of memories that mem0 derived

# Quarantined memories have another owner: mem0 shows its model a user's other memories.
_HELD = RESERVED_PREFIX + "held:"

ENVELOPE = "memoryspace"
GIVEN_ID = "memoryspace_id"

# mem0's own items among a user's metadata.
_WHOSE = ("user_id", "agent_id", "run_id", "actor_id")
_ABOUT = ("id", "role", "hash", "created_at", "updated_at", "expiration_date")
_TEXT = ("data", "memory", "text_lemmatized", "attributed_to")
_OWN = frozenset((*_WHOSE, *_ABOUT, *_TEXT))
_ROLES: tuple[AgentRole, ...] = ("assistant", "system", "user", "tool")


class _Envelope(Struct, omit_defaults=True):
    value: dict[str, Any]
    kind: str
    digest: str  # of the text: if mem0 has changed the text, the envelope is outdated
    id: str
    marks: list[str] = []
    said_at: float | None = None  # None: mem0's own time applies
    importance: float = 0.5
    origin: Origin | None = None


def quarantine_owner(user: str) -> str:
    """Return the user id under which mem0 stores a user's quarantined memories."""
    return _HELD + user


def wire_message(memory: MemoryItem, *, infer: bool) -> dict[str, str]:
    """Return a memory as a message that mem0 does not ignore."""
    role = mem0_role(memory.role, infer=infer)
    message = {"role": role, "content": memory.text}
    return message if memory.name is None else {**message, "name": memory.name}


def mem0_role(role: str | None, *, infer: bool) -> str:
    """Return the role under which mem0 reads a message of this role.

    mem0 ignores system messages unless it derives, and always ignores other roles.
    """
    known = (Role.USER, Role.ASSISTANT, Role.SYSTEM) if infer else (Role.USER, Role.ASSISTANT)
    given = Role.USER if role is None else role
    return given if given in known else Role.ASSISTANT


def metadata_of(memory: MemoryItem, said_at: float | None) -> dict[str, Any]:
    """Return the metadata that mem0 stores with a memory's text, with the envelope."""
    record = record_of(memory)
    assert isinstance(record.value, dict)
    envelope = _Envelope(
        value=record.value,
        kind=memory.kind,
        digest=_digest(memory.text),
        id=memory.id,
        marks=sorted(memory.marks),
        said_at=said_at,
        importance=memory.importance,
        origin=memory.origin,
    )
    items = {key: value for key, value in memory.metadata.items() if key not in _OWN}
    return {**items, ENVELOPE: msgspec.json.encode(envelope).decode(), GIVEN_ID: memory.id}


def shared_metadata(memories: Sequence[MemoryItem]) -> dict[str, Any]:
    """Return the metadata items that all messages share: mem0 derives from all of them."""
    first, *others = memories
    shared = {
        key: value
        for key, value in first.metadata.items()
        if all(key in each.metadata and each.metadata[key] == value for each in others)
    }
    taken = sorted(_OWN & shared.keys())
    if taken:
        raise InvalidInput(f"metadata key {taken[0]!r} is reserved by mem0: use another name")
    return shared


def memory_from(found: Mem0Item, user: str, *, quarantine: bool) -> MemoryItem:
    """Return a user's memory from mem0's form. It never fails: text remains as text."""
    given = found.get("metadata")
    metadata: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    derived = _derived(found, metadata, user)
    kept = _kept(metadata.get(ENVELOPE), derived)
    if kept is not None:
        return kept
    if quarantine and suspicion(derived.text, role=derived.role) is not None:
        return change(derived, marks=frozenset({QUARANTINED}))
    return derived


def entry_from(memory: MemoryItem) -> Entry:
    """Return a memory's entry, which conditions are checked against."""
    record = record_of(memory)
    entry = entry_of(change(record, session=memory.session_id))
    assert entry is not None
    return entry


def message_about(memory_id: str, role: object, text: str) -> Message:
    """Return a text as a message."""
    return Message(id=memory_id, role=_role(role), content=[TextContent(text=text)])


def _derived(found: Mem0Item, metadata: Mapping[str, Any], user: str) -> MemoryItem:
    text, role = found.get("memory"), found.get("role")
    created = _moment(found.get("created_at"))
    updated = _moment(found.get("updated_at"))
    items = {key: value for key, value in metadata.items() if key not in (ENVELOPE, GIVEN_ID)}
    memory_id, said = str(found["id"]), text if isinstance(text, str) else ""
    return MemoryItem(
        id=memory_id,
        user_id=user,
        session_id=_text(found.get("run_id")) or "",
        value=message_about(memory_id, role, said),
        text=said,
        kind=FACT,
        role=_role(role),
        name=_text(found.get("actor_id")),
        metadata=items,
        details={key: found[key] for key in ("categories", "expiration_date") if found.get(key)},
        created_at=created,
        updated_at=max(created, updated),
        origin=Origin(author="mem0"),
        seq=int(created * 1_000_000),
    )


def _kept(envelope: object, derived: MemoryItem) -> MemoryItem | None:
    """Return the memory in an envelope, if there is one and mem0's text still matches it."""
    if not isinstance(envelope, str):
        return None
    try:
        decoded = msgspec.json.decode(envelope, type=_Envelope)
        if decoded.digest != _digest(derived.text):
            return None
        memory = memory_of(derived.user_id, _record(decoded, derived))
    except (msgspec.MsgspecError, CorruptData):
        return None
    return change(
        memory,
        details={**memory.details, "message_id": decoded.id},
        updated_at=derived.updated_at,
    )


def _record(decoded: _Envelope, derived: MemoryItem) -> Record:
    return Record(
        derived.id,
        decoded.value,
        derived.text,
        frozenset(decoded.marks),
        decoded.kind,
        derived.created_at if decoded.said_at is None else decoded.said_at,
        importance=decoded.importance,
        origin=decoded.origin,
        seq=derived.seq,
        session=derived.session_id,
    )


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _moment(value: object) -> float:
    if is_number(value) or isinstance(value, str):
        try:
            return moment("time", value)
        except InvalidInput:
            return 0.0
    return 0.0


def _role(value: object) -> AgentRole | None:
    return next((each for each in _ROLES if each == value), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
