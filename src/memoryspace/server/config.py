"""``ServerConfig``: how a server is reached, and what it allows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..configuring import Gathered, gathered
from ..door.config import config_file
from ..errors import InvalidInput

PREFIX = "MEMORYSPACE_SERVER_"
TABLE = "server"

_LEVELS = ("debug", "info", "warning", "error")


class ServerConfig(Struct, frozen=True, kw_only=True):
    """How a server is reached, and what it allows.

    Attributes:
        host: The address it listens on; the default is reached from this computer only.
        port: The port.
        workers: How many processes serve; a folder allows one.
        max_body: The most bytes of a request.
        max_depth: How deep the JSON of a request may be nested.
        requests_a_minute: The most requests a minute of each tenant; 0 for no limit.
        max_bytes: The most bytes each tenant may store; 0 for no limit.
        max_records: The most records each tenant may store; 0 for no limit.
        content_in_traces: Whether traces hold questions and memories.
        log_level: What is logged: ``debug``, ``info``, ``warning`` or ``error``.
    """

    host: str = "127.0.0.1"
    port: int = 8710
    workers: int = 1
    max_body: int = 4 << 20
    max_depth: int = 64
    requests_a_minute: int = 0
    max_bytes: int = 0
    max_records: int = 0
    content_in_traces: bool = False
    log_level: str = "info"

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidInput(f"port must be from 0 to 65535, got {self.port}")
        if self.log_level not in _LEVELS:
            raise InvalidInput(f"log_level must be one of {', '.join(_LEVELS)}")
        for name in ("workers", "max_body", "max_depth"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {getattr(self, name)}")
        for name in ("requests_a_minute", "max_bytes", "max_records"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"{name} must be 0 or more, got {getattr(self, name)}")


def load_server_config(
    given: Mapping[str, Any] | None = None,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Gathered[ServerConfig]:
    """Return the server's configuration: the table ``[server]``, variables and arguments.

    Raises:
        InvalidInput: A setting is unknown or its value is not valid.
    """
    environment = os.environ if environment is None else environment
    return gathered(
        ServerConfig,
        file=config_file(environment) if file is None else Path(file),
        table=TABLE,
        environment=environment,
        prefix=PREFIX,
        given={} if given is None else given,
    )
