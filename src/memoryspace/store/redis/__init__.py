"""Records in Redis or Valkey, on one server or a cluster (needs the extra ``redis``)."""

from .migrating import Migration, migrate
from .store import RedisStore

__all__ = ["Migration", "RedisStore", "migrate"]
