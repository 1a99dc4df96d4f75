"""Records in Redis (needs the extra ``redis``)."""

from .store import RedisStore

__all__ = ["RedisStore"]
