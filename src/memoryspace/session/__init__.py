"""Sessions: the state of several modules, saved and restored together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extras import need
from .base import SessionBase
from .json_file import JSONSession

if TYPE_CHECKING:
    from .redis import RedisSession
    from .sql import SQLSession

__all__ = ["JSONSession", "RedisSession", "SQLSession", "SessionBase"]


def __getattr__(name: str) -> Any:
    if name == "RedisSession":
        need("redis", "redis")
        from .redis import RedisSession

        return RedisSession
    if name == "SQLSession":
        need("sqlalchemy", "sql")
        from .sql import SQLSession

        return SQLSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
