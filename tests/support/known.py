"""What a deriver may ask about, for tests that control what is known."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memoryspace.service.values.memory import MemoryItem


class NothingKnown:
    """A memory that knows nothing yet."""

    async def similar(self, text: str, **_: Any) -> list[tuple[MemoryItem, float]]:
        return []

    async def of_kind(self, kind: str, **_: Any) -> list[MemoryItem]:
        return []

    async def there(self, memory_ids: Collection[str]) -> set[str]:
        return {each for each in memory_ids if await self.get(each) is not None}

    async def get(self, memory_id: str) -> MemoryItem | None:
        return None
