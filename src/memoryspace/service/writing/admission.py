"""Admission: checks messages and turns them into memories.

Text that looks like an attack on a model is quarantined. A message with a secret is marked, masked
or refused.
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
from ..values.memory import QUARANTINED, SECRET, WAITING, Draft, MemoryItem, Said
from .secrecy import Secrecy

_LONG = 50_000  # characters from which text is checked in a thread

_OWN_MARKS = frozenset({QUARANTINED, SECRET, SUPERSEDED, WAITING})  # only the service sets these

_NUMBERS = frozenset({int, float, bool})

_UUID = re.compile(r"(?:msg_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Names of fields and their usual values, which are not checked.
_FIELD_WORDS = frozenset(
    {"id", "name", "role", "content", "metadata", "timestamp", "type", "text", "message",
     "tool_use", "tool_result", "user", "assistant", "system", "tool", "object", "status",
     "created"}
)  # fmt: skip

SUSPICION = "suspicion"  # in the details: why a memory is quarantined


class Admission:
    """Checks messages and returns them as memories."""

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
        """Return messages as memories of a session with these marks; all or none."""
        drafts = drafts_of(as_list(messages))
        if marks:
            drafts = [change(draft, marks=marks) for draft in drafts]
        memories = [self._admitted(scope, draft, now) for draft in drafts]
        if sum(len(each.text) for each in memories) < _LONG:
            return self._screened(memories)
        return await asyncio.to_thread(self._screened, memories)

    def edited(
        self, memory: MemoryItem, value: Said | None, metadata: Mapping[str, Any] | None
    ) -> MemoryItem:
        """Return a memory with another value or other metadata and the same identity."""
        if value is not None:
            draft = self._checked(draft_of(value))
            memory = self._screened_one(
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
            return self._screened_one(retitled)
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
                f"a message has {len(draft.text)} characters, more than {most}; keep long "
                "documents elsewhere, or raise max_message_characters"
            )
        _check_keys_of(draft)
        return draft

    def _screened(self, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        return [self.judged(each) for each in self._secrecy.applied(memories)]

    def _screened_one(self, memory: MemoryItem) -> MemoryItem:
        [screened] = self._screened([memory])
        return screened

    def judged(self, memory: MemoryItem) -> MemoryItem:
        """Return a memory, quarantined with the reason if its text is suspicious."""
        if not self._settings.quarantine:
            return memory
        found = suspicion(words_in(memory), role=memory.role)
        if found is None:
            return memory
        details = {**memory.details, SUSPICION: found.pattern}
        return change(memory, marks=memory.marks | {QUARANTINED}, details=details)


def own_marks(marks: str | Sequence[str] | None) -> frozenset[str]:
    """Return a caller's marks; raise ``InvalidInput`` if a mark is reserved."""
    given = as_marks(list(marks) if isinstance(marks, tuple | list) else marks)
    for mark in given:
        if mark in _OWN_MARKS or mark.startswith(RESERVED_PREFIX):
            raise InvalidInput(f"the mark {mark!r} is reserved; choose another")
    return given


def remarked(memory: MemoryItem, marks: frozenset[str]) -> MemoryItem:
    """Return a memory with other marks; the service's own marks stay."""
    return change(memory, marks=marks | (memory.marks & _OWN_MARKS))


def words_in(memory: MemoryItem) -> str:
    """Return all text of a memory that a model may see: its text and every other string.

    Common field names and values, and random ids, are left out.
    """
    beside: dict[str, None] = {}
    value = memory.value.to_dict() if isinstance(memory.value, Msg) else memory.value
    _collect_strings((memory.title, memory.name, memory.metadata, value), beside)
    others = [each for each in beside if each not in memory.text and not _is_field_word(each)]
    return "\n".join([memory.text, *others])


def _is_field_word(text: str) -> bool:
    return text in _FIELD_WORDS or _UUID.fullmatch(text) is not None


def _collect_strings(data: Any, found: dict[str, None]) -> None:
    """Collect every distinct string in some data, keys included, in order."""
    kind = type(data)
    if kind is str:
        found[data] = None
    elif data is None or kind in _NUMBERS:
        return
    elif isinstance(data, Mapping):
        for key, value in data.items():
            _collect_strings(key, found)
            _collect_strings(value, found)
    elif isinstance(data, list | tuple):
        for value in data:
            _collect_strings(value, found)
    elif isinstance(data, Struct):  # its field names are not data
        _collect_strings(astuple(data), found)
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
        raise InvalidInput(
            f"message id {draft.id!r} starts with {RESERVED_PREFIX!r}, which is reserved"
        )
    _check_keys(draft.metadata)


def _check_keys(metadata: Mapping[str, Any]) -> None:
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict, got {type(metadata).__name__}")
    for key in metadata:
        if not isinstance(key, str) or key.startswith(RESERVED_PREFIX):
            raise InvalidInput(
                f"metadata key {key!r} must be a str that does not start with {RESERVED_PREFIX!r}"
            )
