"""``CallStyle``: the calling conventions of a mem0 client, read from its signatures.

    client               whose memories     how many      new text
    AsyncMemory 1.x      keywords           limit         data
    AsyncMemory 2.x      filters            top_k         text
    AsyncMemoryClient    filters            top_k, pages  text

Trial and error would not work: the platform ignores an unknown keyword and returns the memories of
all users.
"""

from __future__ import annotations

import asyncio
import inspect

from msgspec import Struct

from ...errors import InvalidInput

VERBS = ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history")


class CallStyle(Struct, frozen=True, kw_only=True):
    """The differences between the clients of mem0."""

    hosted: bool  # the platform: pages, nested filters, null unless a wildcard is given
    ids_in_filters: bool
    limit: str
    text: str
    async_mode: bool  # whether ``add`` returns early unless ``async_mode`` is false
    show_expired: bool


def style_of(client: object) -> CallStyle:
    """Return the style of a client; raise ``InvalidInput`` if it is not one of mem0."""
    _check_coroutines(client)
    asked = _names(client, "search")
    hosted = not {"user_id", "filters"} & asked  # it accepts any keyword
    return CallStyle(
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
            f"{', '.join(missing)}: pass an AsyncMemory or an AsyncMemoryClient"
        )
    blocking = [verb for verb in VERBS if not _is_coroutine(getattr(client, verb))]
    if blocking:
        raise InvalidInput(
            f"{blocking[0]}() of {type(client).__name__} is not a coroutine and would block: pass "
            "an AsyncMemory or an AsyncMemoryClient"
        )


def _is_coroutine(verb: object) -> bool:
    # mem0 1.x wraps its coroutines in plain functions; only asyncio recognizes AsyncMock.
    inner = inspect.unwrap(verb)  # type: ignore[arg-type]  # it is callable
    return inspect.iscoroutinefunction(inner) or asyncio.iscoroutinefunction(verb)


def _names(client: object, verb: str) -> set[str]:
    parameters = inspect.signature(getattr(client, verb)).parameters.values()
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {each.name for each in parameters if each.kind not in loose}
