"""Admission: what users give becomes memories, checked and dated.

What looks like an attack on whoever will read it is held back; what holds a secret is marked,
masked or refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple
from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...message import Msg, new_id
from ...record import RESERVED_PREFIX, Scope, as_marks, check_id
from ..schema import Message
from ..schema.plain import plain
from ..settings import ServiceSettings
from ..trust import suspicion
from ..values.envelope import memory_from
from ..values.forms import draft_of, drafts_of, rewritten, title_in
from ..values.kinds import SUPERSEDED
from ..values.memory import QUARANTINED, SECRET, Draft, MemoryItem, Said
from .secrecy import Secrecy

_LONG = 50_000  # characters that are looked at beside the event loop

_OURS = frozenset({QUARANTINED, SECRET, SUPERSEDED})

_NUMBERS = frozenset({int, float, bool})

_UUID = re.compile(r"(?:msg_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Names of fields, and what stands in them as a rule.
_FORM = frozenset(
    {"id", "name", "role", "content", "metadata", "timestamp", "type", "text", "message",
     "tool_use", "tool_result", "user", "assistant", "system", "tool", "object", "status",
     "created"}
)  # fmt: skip

SUSPICION = "suspicion"  # the details that say why a memory is held back


class Admission:
    """Lets messages in as memories."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._secrecy = Secrecy(settings.secrets)

    async def admit(
        self,
        scope: Scope,
        messages: Sequence[Said] | Said,
        now: float,
        marks: frozenset[str] = frozenset(),
    ) -> list[MemoryItem]:
        """Return messages as memories of a session with these marks; all of them, or an error."""
        drafts = drafts_of(as_list(messages))
        if marks:
            drafts = [change(draft, marks=marks) for draft in drafts]
        memories = [self._admitted(scope, draft, now) for draft in drafts]
        if sum(len(each.text) for each in memories) < _LONG:
            return self._let_in(memories)
        return await asyncio.to_thread(self._let_in, memories)

    def edited(
        self, memory: MemoryItem, value: Said | None, metadata: Mapping[str, Any] | None
    ) -> MemoryItem:
        """Return a memory with another value or other metadata; who it is stays the same."""
        if value is not None:
            draft = self._checked(draft_of(value))
            memory = self._let_in_one(
                change(
                    memory,
                    value=draft.value,
                    text=draft.text,
                    role=draft.role if draft.role is not None else memory.role,
                    name=draft.name if draft.name is not None else memory.name,
                    title=draft.title,
                    metadata=draft.metadata,
                )
            )
        if metadata is not None:
            _check_keys(metadata)
            own = plain(dict(metadata), "metadata")
            memory = change(memory, metadata=own, title=title_in(own))
            retitled = change(memory, value=rewritten(memory.value, memory.id, own))
            return self._let_in_one(retitled)
        return change(memory, value=rewritten(memory.value, memory.id, memory.metadata))

    def _admitted(self, scope: Scope, draft: Draft, now: float) -> MemoryItem:
        memory_id = new_id() if draft.id is None else draft.id
        session = scope.session if scope.session is not None else ""
        memory = memory_from(self._checked(draft), memory_id, scope.user, session, now)
        ttl = self._settings.ttl_seconds
        if ttl is not None and memory.expires_at is None:
            memory = change(memory, expires_at=now + ttl)
        return memory

    def _checked(self, draft: Draft) -> Draft:
        most = self._settings.max_message_characters
        if len(draft.text) > most:
            raise InvalidInput(
                f"a message has {len(draft.text)} characters, {most} are the most; keep long "
                "documents elsewhere, or raise max_message_characters"
            )
        _check_keys_of(draft)
        return draft

    def _let_in(self, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        return [self.judged(each) for each in self._secrecy.applied(memories)]

    def _let_in_one(self, memory: MemoryItem) -> MemoryItem:
        [let_in] = self._let_in([memory])
        return let_in

    def judged(self, memory: MemoryItem) -> MemoryItem:
        """Return a memory held back if what it says is suspicious, with the reason."""
        if not self._settings.quarantine:
            return memory
        found = suspicion(words_in(memory), role=memory.role)
        if found is None:
            return memory
        details = {**memory.details, SUSPICION: found.pattern}
        return change(memory, marks=memory.marks | {QUARANTINED}, details=details)


def own_marks(marks: str | Sequence[str] | None) -> frozenset[str]:
    """Return marks that a user gives; ours are not among them."""
    given = as_marks(list(marks) if isinstance(marks, tuple | list) else marks)
    for mark in given:
        if mark in _OURS or mark.startswith(RESERVED_PREFIX):
            raise InvalidInput(f"the mark {mark!r} is not a user's to give")
    return given


def remarked(memory: MemoryItem, marks: frozenset[str]) -> MemoryItem:
    """Return a memory with other marks of its user; ours stay."""
    return change(memory, marks=marks | (memory.marks & _OURS))


def words_in(memory: MemoryItem) -> str:
    """Return all that a model may come to see of a memory: its text and every string beside it.

    Words that every message is made of, and random ids, are no one's.
    """
    beside: dict[str, None] = {}
    value = memory.value.to_dict() if isinstance(memory.value, Msg) else memory.value
    _note_strings((memory.title, memory.name, memory.metadata, value), beside)
    others = [each for each in beside if each not in memory.text and not _says_nothing(each)]
    return "\n".join([memory.text, *others])


def _says_nothing(text: str) -> bool:
    return text in _FORM or _UUID.fullmatch(text) is not None


def _note_strings(data: Any, found: dict[str, None]) -> None:
    """Note every string in some data, keys included, once and in its order."""
    kind = type(data)
    if kind is str:
        found[data] = None
    elif data is None or kind in _NUMBERS:
        return
    elif isinstance(data, Mapping):
        for key, value in data.items():
            _note_strings(key, found)
            _note_strings(value, found)
    elif isinstance(data, list | tuple):
        for value in data:
            _note_strings(value, found)
    elif isinstance(data, Struct):  # the names of its fields are ours
        _note_strings(astuple(data), found)
    elif isinstance(data, str):
        found[str(data)] = None


def as_list(messages: Sequence[Said] | Said) -> list[Said]:
    """Return messages as a list; a single one is a list of one."""
    if isinstance(messages, Message | Msg | dict | str):
        return [messages]
    if isinstance(messages, list | tuple):
        return list(messages)
    raise TypeError(
        f"messages must be a list of Message, Msg, dict or str, got {type(messages).__name__}"
    )


def _check_keys_of(draft: Draft) -> None:
    if draft.id is not None and check_id("message id", draft.id).startswith(RESERVED_PREFIX):
        raise InvalidInput(f"message id {draft.id!r} begins with {RESERVED_PREFIX!r}, our own")
    _check_keys(draft.metadata)


def _check_keys(metadata: Mapping[str, Any]) -> None:
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict, got {type(metadata).__name__}")
    for key in metadata:
        if not isinstance(key, str) or key.startswith(RESERVED_PREFIX):
            raise InvalidInput(f"metadata key {key!r} must be a str that is not our own")
