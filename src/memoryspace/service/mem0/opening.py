"""Opening and closing what mem0 works on: a client of the platform, or a memory of one's own.

mem0 sends statistics about its use to its makers unless it is told not to. Whoever wants that sets
``MEM0_TELEMETRY=True``; here it is off. mem0 writes users' text to its log at INFO, so its logger
is raised to WARNING unless it has a level of its own.
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
    """Say which extra brings mem0 if it is not there: before anything else of it is asked for."""
    if find_spec("mem0") is None:
        raise MissingExtra("mem0", "mem0")


def load() -> Any:
    """Import mem0, or say which extra brings it."""
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    try:
        return import_module("mem0")
    except ImportError as error:
        raise MissingExtra("mem0", "mem0") from error


def quieten() -> None:
    """Keep what users said out of the log, where mem0 writes it at INFO."""
    logger = logging.getLogger("mem0")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def open_platform(api_key: str | None, host: str | None) -> Any:
    """Make a client of the platform. It asks the platform whether the key is good, and blocks."""
    key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
    if not key:
        raise InvalidInput(f"mem0's platform needs a key: give api_key or set {KEY_VARIABLE}")
    mem0 = load()
    # What mem0 raises may repeat the answer or the headers, and with them the key: not chained.
    try:
        return mem0.AsyncMemoryClient(api_key=key, host=host)
    except OSError as error:
        raise StoreUnavailable(
            f"mem0's platform cannot be reached ({type(error).__name__}); try again later"
        ) from None
    except ValueError:
        raise InvalidInput("mem0's platform does not accept the key; look at api_key") from None


def open_memory(config: Mapping[str, Any]) -> Any:
    """Make an open-source memory from mem0's own configuration. It opens files, and blocks."""
    return load().AsyncMemory.from_config(dict(config))


async def close(client: Any) -> None:
    """Close a client that was opened here, with all that it holds."""
    if hasattr(client, "async_client"):
        await client.async_client.aclose()
    else:
        close_memory(client)


def close_memory(memory: Any) -> None:
    """Close an open-source memory. mem0 itself leaves its vector store open, and so locked."""
    stores = (getattr(memory, "vector_store", None), getattr(memory, "_entity_store", None))
    for each in stores:
        shut: Callable[[], object] | None = getattr(getattr(each, "client", None), "close", None)
        if shut is not None:
            shut()
    if hasattr(memory, "close"):
        memory.close()
