"""The service on Redis, where the runtime has it."""

from __future__ import annotations

from ....service import RedisMemoryService

__all__ = ["RedisMemoryService"]
