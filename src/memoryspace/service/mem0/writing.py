"""``Mem0Writer``: adds memories to mem0, verbatim or derived, and updates them.

When messages are stored verbatim, one whose id the session already has is skipped, so a call that
failed half-way can be repeated. mem0 has no conditional writes: two processes that add one message
at the same time may both succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...events import EventStream
from ...message import Msg
from ..schema import Message
from ..values.memory import MemoryItem
from ..writing.secrecy import without_secrets
from .calls import Ids, Mem0Calls
from .shapes import GIVEN_ID, metadata_of, quarantine_owner, shared_metadata, wire_message

MESSAGE_ID = "message_id"  # among a memory's details: the id its message came with


class Mem0Writer:
    """Writes memories through a client."""

    def __init__(self, calls: Mem0Calls, *, infer: bool, events: EventStream) -> None:
        self._calls = calls
        self._infer = infer
        self._events = events

    async def add(self, ids: Ids, memories: Sequence[MemoryItem], now: float) -> list[str]:
        """Store messages received at ``now``; return the ids that mem0 reports.

        mem0 cannot store a message without text. Such messages are left out, with an event.
        """
        with_text = [each for each in memories if each.text.strip()]
        if len(with_text) < len(memories):
            left_out = [each.id for each in memories if not each.text.strip()]
            self._events.emit("messages_without_text", ids=dict(ids), messages=left_out)
        held_back = [each for each in with_text if each.is_quarantined]
        trusted = [each for each in with_text if not each.is_quarantined]
        kept = await self.keep({**ids, "user_id": quarantine_owner(ids["user_id"])}, held_back, now)
        how = self._derive(ids, trusted) if self._infer else self.keep(ids, trusted, now)
        return kept + await how

    async def update(self, memory: MemoryItem) -> None:
        """Replace the memory that has the same id."""
        if not memory.text.strip():
            raise InvalidInput(f"memory {memory.id!r} would have no text, which mem0 cannot store")
        metadata = metadata_of(as_given(memory), memory.created_at)
        await self._calls.update(memory.id, memory.text, metadata)

    async def keep(self, ids: Ids, memories: Sequence[MemoryItem], now: float) -> list[str]:
        """Store memories verbatim, one after another; return the ids that mem0 reports."""
        added: list[str] = []
        for each in memories:
            if _came_with_id(each) and await self._calls.having(ids, GIVEN_ID, each.id):
                continue
            metadata = metadata_of(each, None if each.created_at == now else each.created_at)
            message = wire_message(each, infer=False)
            added += _ids_in(await self._calls.add(ids, [message], infer=False, metadata=metadata))
        return added

    async def _derive(self, ids: Ids, memories: Sequence[MemoryItem]) -> list[str]:
        """Let mem0 derive memories. Its model sees no secrets."""
        if not memories:
            return []
        memories = without_secrets(memories)
        messages = [wire_message(each, infer=True) for each in memories]
        metadata = shared_metadata(memories)
        return _ids_in(await self._calls.add(ids, messages, infer=True, metadata=metadata))


def as_given(memory: MemoryItem) -> MemoryItem:
    """Return a memory under the original id of its message, if it had one."""
    details = dict(memory.details)
    return change(memory, id=str(details.pop(MESSAGE_ID, memory.id)), details=details)


def _came_with_id(memory: MemoryItem) -> bool:
    value = memory.value
    if isinstance(value, Message | Msg):
        return True
    return isinstance(value, dict) and value.get("id") == memory.id


def _ids_in(answer: dict[str, Any]) -> list[str]:
    results: list[dict[str, Any]] = answer["results"]
    return [str(each["id"]) for each in results if each.get("event", "ADD") == "ADD"]
