"""Sessions: save and restore the state of several modules together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .base import SessionBase
from .json_file import JSONSession

if TYPE_CHECKING:
    from .redis import RedisSession
    from .sql import SQLSession

__all__ = ["JSONSession", "RedisSession", "SQLSession", "SessionBase"]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "SQLSession": Lazy("sql", "sqlalchemy", "sql postgres mysql"),
        "RedisSession": Lazy("redis", "redis", "redis"),
    },
)
