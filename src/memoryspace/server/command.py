"""``serve`` and ``serve_mcp``: the server as a program, from its first start to its end.

A signal (Ctrl-C, or what a service manager sends) lets requests finish, ends streams, and closes
the memory; a second Ctrl-C does not wait.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI

from ..door import AsyncMemory
from ..door.config import Config
from ..door.home import default_folder
from ..door.memory import is_server
from ..errors import InvalidInput, StoreUnavailable
from ..record import check_id
from .access.keys import IssuedKey
from .app import create_app
from .config import ServerConfig
from .demo import add_demo
from .logs import log_as_json
from .mcp import OneUser, create_mcp
from .serving import Serving

Say = Callable[[str], None]

_GRACE = 30  # seconds for requests that are under way at the end
_HANDED_ON = "MEMORYSPACE_SERVER_WORKER"  # how workers get the configuration
_DEMO_KEY = "demo"


def serve(config: Config, server: ServerConfig, *, say: Say, demo: bool = False) -> None:
    """Serve a memory until a signal ends the process.

    Args:
        config: The memory; its address must not be a server's.
        server: How it is reached, and what it allows.
        say: Is told the address and, once, the first key.
        demo: Whether to add a few memories of a user "alice", and make a key each time.

    Raises:
        InvalidInput: The memory cannot be served, or not by several processes.
        StoreUnavailable: The port is in use.
    """
    place = _checked_place(config, server)
    log_as_json(server.log_level)
    if server.workers > 1:
        said: list[str] = []
        asyncio.run(_prepared(config, server, place, say=said.append, demo=demo))
        watch = threading.Thread(
            target=_say_when_up, args=(server, say, "".join(said)), daemon=True
        )
        watch.start()
        _run_workers(config, server)
        return
    app = create_app(AsyncMemory(place, config=config), server)

    with _listening(server) as listening:
        port = listening.getsockname()[1]

        async def begun() -> None:
            await _begin(app.state.serving, _url(server.host, port), place, say=say, demo=demo)

        running = _Server(_settings(app, server), begun)
        before = [(each, signal.signal(each, _stay)) for each in (signal.SIGINT, signal.SIGTERM)]
        try:
            running.run(sockets=[listening])
        finally:
            for number, handler in before:
                signal.signal(number, handler)


def serve_mcp(config: Config, *, user: str) -> None:
    """Serve one user's memory over standard input and output, by the Model Context Protocol."""
    check_id("user", user)

    async def run() -> None:
        async with AsyncMemory(config=config) as memory:
            await create_mcp(memory, OneUser(user)).run_stdio_async()

    asyncio.run(run())


def worker() -> FastAPI:
    """Return the application of one of several worker processes."""
    config, server = msgspec.json.decode(
        os.environ[_HANDED_ON].encode(), type=tuple[Config, ServerConfig]
    )
    log_as_json(server.log_level)
    return create_app(AsyncMemory(config=config), server)


class _Server(uvicorn.Server):
    """Does something when it is up."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            await self._begun()


def _checked_place(config: Config, server: ServerConfig) -> str:
    if is_server(None, config):
        raise InvalidInput("this address is a server's: serve where the memory itself is")
    place = str(default_folder()) if config.address is None else config.address
    if server.workers > 1 and not place.partition("://")[2]:
        raise InvalidInput(
            f"a folder can be served by one process, not by {server.workers}: leave workers at 1, "
            "or put the memory into PostgreSQL or Redis"
        )
    if server.workers > 1 and server.port == 0:
        raise InvalidInput("several processes need a port: name one with --port")
    return place


def _say_when_up(server: ServerConfig, say: Say, text: str) -> None:
    """Say something when a worker accepts connections."""
    while True:
        try:
            socket.create_connection((server.host, server.port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            say(text)
            return


def _run_workers(config: Config, server: ServerConfig) -> None:
    os.environ[_HANDED_ON] = msgspec.json.encode((config, server)).decode()
    uvicorn.run(
        f"{__name__}:worker",
        factory=True,
        host=server.host,
        port=server.port,
        workers=server.workers,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
    )


def _settings(app: FastAPI, server: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=server.host,
        log_config=None,
        access_log=False,  # it would log addresses, which hold ids
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )


def _listening(server: ServerConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        return socket.create_server((server.host, server.port), family=family)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {server.host}, port {server.port}: {error.strerror}; "
            "choose another one with --port"
        ) from error


async def _prepared(
    config: Config, server: ServerConfig, place: str, *, say: Say, demo: bool
) -> None:
    async with Serving.of(AsyncMemory(place, config=config), server) as parts:
        await _begin(parts, _url(server.host, server.port), place, say=say, demo=demo)


async def _begin(parts: Serving, url: str, place: str, *, say: Say, demo: bool) -> None:
    """Say where the server is and, at its first start, its key."""
    key = await parts.first_key()
    if demo:
        await add_demo(parts.memory)
        key = key if key is not None else await _demo_key(parts)
    say(f"memoryspace serves {parts.memory.address} on {url}\n")
    if key is not None:
        say(f"\nThe key, which is shown this once:\n  {key.key}\n")
    shown = "$MEMORYSPACE_API_KEY" if key is None else key.key
    body = json.dumps({"question": "Where do I live?"})
    say(
        f"\nTry it:\n  curl -s '{url}/v1/search?user=alice' -H \"Authorization: Bearer {shown}\" "
        f"-H 'Content-Type: application/json' -d '{body}'\n\nCtrl-C ends it.\n"
    )


async def _demo_key(parts: Serving) -> IssuedKey:
    """Make a key in place of the one that an earlier demo has shown."""
    for info in await parts.keys.list():
        if info.name == _DEMO_KEY and info.revoked_at is None:
            await parts.keys.revoke(info.id)
    return await parts.keys.issue(name=_DEMO_KEY)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _stay(_number: int, _frame: Any) -> None:
    """Do nothing: the server has ended by this signal already, and sends it once more."""
