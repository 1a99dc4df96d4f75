"""The scripts, each put together from its parts."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

# The parts of each script. A part may use those before it. The server runs through the whole script
# every time, so each has only what it needs.
_CHOOSING = ("keys", "choosing", "paging", "lifetime")
PARTS = {
    "append": ("keys", "lifetime", "adding", "once"),
    "select": (*_CHOOSING, "sending"),
    "replace": (*_CHOOSING, "adding", "removing", "once"),
    "mark": (*_CHOOSING, "once"),
    "delete": (*_CHOOSING, "removing", "once"),
    "count": _CHOOSING,
    "sessions": ("keys",),
    "users": ("keys",),
    "usage": ("keys",),
    "changes": ("keys", "choosing", "sending"),
    "read_vectors": ("keys", "vectors"),
    "put_vectors": ("keys", "vectors"),
    "list_vectors": ("keys", "vectors"),
    "drop_vectors": ("keys", "vectors"),
    "adopt": ("keys", "lifetime"),
    "probe": (),
}

Post = Callable[..., Awaitable[Any]]


async def run_script(
    post: Post, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes]
) -> Any:
    """Run a script by its digest; send the source if the server does not have it yet."""
    source, digest = _script(verb)
    rest = (len(keys), *keys, *arguments)
    try:
        return await post("EVALSHA", digest, *rest)
    except NoScriptError:
        return await post("EVAL", source, *rest)


@cache
def _script(verb: str) -> tuple[str, str]:
    folder = files(__package__).joinpath("lua")
    source = "\n".join(
        folder.joinpath(f"{name}.lua").read_text("utf-8") for name in (*PARTS[verb], verb)
    )
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
