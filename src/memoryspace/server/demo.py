"""A few memories to try a server with."""

from __future__ import annotations

from ..door import AsyncMemory

USER = "alice"

_SAID = (
    ("demo-1", "I'm Alice. I live in Rome and work as a nurse.", "2026-03-02T09:00+00:00"),
    ("demo-2", "My sister Clara is allergic to peanuts.", "2026-04-11T18:30+00:00"),
    ("demo-3", "I moved to Oslo last week.", "2026-09-14T20:15+00:00"),
)


async def add_demo(memory: AsyncMemory) -> None:
    """Add them, unless they are there."""
    messages = [
        {"id": memory_id, "role": "user", "content": text, "timestamp": when}
        for memory_id, text, when in _SAID
    ]
    await memory.add(messages, user=USER)
