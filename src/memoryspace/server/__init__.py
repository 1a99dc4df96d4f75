"""The memory server: REST, keys, quotas, an audit log. Needs the extra ``server``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing

if TYPE_CHECKING:
    from .app import create_app
    from .config import ServerConfig, load_server_config

__all__ = ["ServerConfig", "create_app", "load_server_config"]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "create_app": Lazy("app", "fastapi", "server"),
        "ServerConfig": Lazy("config"),
        "load_server_config": Lazy("config"),
    },
)
