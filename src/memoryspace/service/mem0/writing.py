"""Writing memories into mem0: what was said, word for word or derived, and changes of it.

Word for word, a message whose id the session has is skipped, so a call that failed half-way can be
made again. mem0 compares nothing while it writes: two processes that add one message at the same
moment may both succeed.
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
from .shapes import GIVEN_ID, held, metadata_of, shared_metadata, wire_message

MESSAGE_ID = "message_id"  # among a memory's details: the id its message came with


class Writing:
    """Puts memories into a client."""

    def __init__(self, calls: Mem0Calls, *, infer: bool, events: EventStream) -> None:
        self._calls = calls
        self._infer = infer
        self._events = events

    async def add(self, ids: Ids, memories: Sequence[MemoryItem], now: float) -> list[str]:
        """Remember what was said at ``now``; return the ids that mem0 gave, as far as it says.

        What has no text cannot be held by mem0 and is left out, which is told as an event.
        """
        said = [each for each in memories if each.text.strip()]
        if len(said) < len(memories):
            left_out = [each.id for each in memories if not each.text.strip()]
            self._events.emit("messages_without_text", ids=dict(ids), messages=left_out)
        held_back = [each for each in said if each.is_quarantined]
        trusted = [each for each in said if not each.is_quarantined]
        kept = await self.keep({**ids, "user_id": held(ids["user_id"])}, held_back, now)
        how = self._derive(ids, trusted) if self._infer else self.keep(ids, trusted, now)
        return kept + await how

    async def update(self, memory: MemoryItem) -> None:
        """Put a changed memory in the place of the one with its id."""
        if not memory.text.strip():
            raise InvalidInput(f"memory {memory.id!r} would have no text, which mem0 cannot hold")
        metadata = metadata_of(as_given(memory), memory.created_at)
        await self._calls.update(memory.id, memory.text, metadata)

    async def keep(self, ids: Ids, memories: Sequence[MemoryItem], now: float) -> list[str]:
        """Remember word for word, one after another; return the ids that mem0 gave."""
        added: list[str] = []
        for each in memories:
            if _came_with_id(each) and await self._calls.having(ids, GIVEN_ID, each.id):
                continue
            metadata = metadata_of(each, None if each.created_at == now else each.created_at)
            message = wire_message(each, infer=False)
            added += _ids_in(await self._calls.add(ids, [message], infer=False, metadata=metadata))
        return added

    async def _derive(self, ids: Ids, memories: Sequence[MemoryItem]) -> list[str]:
        """Have mem0 derive; its model sees no secrets."""
        if not memories:
            return []
        memories = without_secrets(memories)
        messages = [wire_message(each, infer=True) for each in memories]
        metadata = shared_metadata(memories)
        return _ids_in(await self._calls.add(ids, messages, infer=True, metadata=metadata))


def as_given(memory: MemoryItem) -> MemoryItem:
    """Return a memory under the id that its message came with, if it came with one."""
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
