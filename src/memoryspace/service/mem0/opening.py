"""Opening and closing of mem0 clients: the hosted platform or an open-source memory.

mem0 sends usage statistics by default. Here they are off; set ``MEM0_TELEMETRY=True`` to enable
them. mem0 logs users' text at INFO, so its logger is set to WARNING unless it has a level.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ...errors import InvalidInput, MissingExtra, StoreUnavailable

KEY_VARIABLE = "MEM0_API_KEY"


def check_installed() -> None:
    """Raise ``MissingExtra`` if mem0 is not installed."""
    if find_spec("mem0") is None:
        raise MissingExtra("mem0", "mem0")


def load() -> Any:
    """Import and return mem0; raise ``MissingExtra`` if it is not installed."""
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    try:
        return import_module("mem0")
    except ImportError as error:
        raise MissingExtra("mem0", "mem0") from error


def quieten() -> None:
    """Keep users' text out of the log, where mem0 writes it at INFO."""
    logger = logging.getLogger("mem0")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def open_platform(api_key: str | None, host: str | None) -> Any:
    """Return a client of the platform. It verifies the key with a request, and blocks."""
    key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
    if not key:
        raise InvalidInput(f"mem0's platform needs a key: pass api_key= or set {KEY_VARIABLE}")
    mem0 = load()
    # mem0's errors may quote the response or the headers, and so the key: they are not chained.
    try:
        return mem0.AsyncMemoryClient(api_key=key, host=host)
    except OSError as error:
        raise StoreUnavailable(
            f"mem0's platform cannot be reached ({type(error).__name__}); try again later"
        ) from None
    except ValueError:
        raise InvalidInput("mem0's platform rejected the key: check api_key") from None


def open_memory(config: Mapping[str, Any]) -> Any:
    """Return an open-source memory from mem0's configuration. It opens files, and blocks."""
    return load().AsyncMemory.from_config(dict(config))


async def close(client: Any) -> None:
    """Close a client that was opened here, with its resources."""
    if hasattr(client, "async_client"):
        await client.async_client.aclose()
    else:
        close_memory(client)


def close_memory(memory: Any) -> None:
    """Close an open-source memory. mem0 itself leaves its vector store open and locked."""
    stores = (getattr(memory, "vector_store", None), getattr(memory, "_entity_store", None))
    for each in stores:
        shut: Callable[[], object] | None = getattr(getattr(each, "client", None), "close", None)
        if shut is not None:
            shut()
    if hasattr(memory, "close"):
        memory.close()
