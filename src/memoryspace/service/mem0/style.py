"""How a mem0 client wants to be called, found out by its signatures and never by trying.

    client               whose memories     how many      new text
    AsyncMemory 1.x      keywords           limit         data
    AsyncMemory 2.x      filters            top_k         text
    AsyncMemoryClient    filters            top_k, pages  text

A wrong guess would not fail: a keyword that is not known travels to the platform and is ignored
there, and the answer is everybody's.
"""

from __future__ import annotations

import asyncio
import inspect

from msgspec import Struct

from ...errors import InvalidInput

VERBS = ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history")


class Style(Struct, frozen=True, kw_only=True):
    """What differs between the clients of mem0."""

    hosted: bool  # the platform: pages, a nested filter, null unless a wildcard is asked for
    ids_in_filters: bool
    limit: str
    text: str
    async_mode: bool  # whether ``add`` returns early unless it is told to wait
    show_expired: bool


def style_of(client: object) -> Style:
    """Look at a client and tell how to call it; ``InvalidInput`` if it is none."""
    _check_coroutines(client)
    asked = _names(client, "search")
    hosted = not {"user_id", "filters"} & asked  # it takes whatever it is given
    return Style(
        hosted=hosted,
        ids_in_filters="user_id" not in asked,
        limit="limit" if "limit" in asked else "top_k",
        text="text" if hosted or "text" in _names(client, "update") else "data",
        async_mode=hosted and "options" not in _names(client, "add"),
        show_expired=hosted or "show_expired" in _names(client, "get_all"),
    )


def _check_coroutines(client: object) -> None:
    missing = [verb for verb in VERBS if not callable(getattr(client, verb, None))]
    if missing:
        raise InvalidInput(
            f"a mem0 client has {', '.join(VERBS)}; {type(client).__name__} lacks "
            f"{', '.join(missing)}: give an AsyncMemory or an AsyncMemoryClient"
        )
    blocking = [verb for verb in VERBS if not _is_coroutine(getattr(client, verb))]
    if blocking:
        raise InvalidInput(
            f"{blocking[0]}() of {type(client).__name__} is no coroutine and would block; give an "
            "AsyncMemory or an AsyncMemoryClient"
        )


def _is_coroutine(verb: object) -> bool:
    # mem0 1.x wraps its coroutines in plain functions; AsyncMock is known to asyncio alone.
    inner = inspect.unwrap(verb)  # type: ignore[arg-type]  # it was found to be callable
    return inspect.iscoroutinefunction(inner) or asyncio.iscoroutinefunction(verb)


def _names(client: object, verb: str) -> set[str]:
    parameters = inspect.signature(getattr(client, verb)).parameters.values()
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {each.name for each in parameters if each.kind not in loose}
