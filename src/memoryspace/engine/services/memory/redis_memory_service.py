"""Compatibility: the runtime's path of the Redis service."""

from __future__ import annotations

from ....service import RedisMemoryService

__all__ = ["RedisMemoryService"]
