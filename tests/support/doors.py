"""Every address of the door under one roof: how to open a memory at each for a test."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from fastapi import FastAPI

from memoryspace import AsyncMemory, Config, Memory
from memoryspace.loops import wait_for
from memoryspace.server import ServerConfig, create_app

from backends import server_url

PLACES = ["memory", "folder", "sqlite", "postgres", "mariadb", "redis", "server"]
LASTING = PLACES[1:]  # what outlives the object

WORDS = Config(embedder="none")

Opener = Callable[[], Memory]


def address_in(place: str, folder: str | Path) -> str:
    """Return the address of a memory in a place; files are in the folder."""
    if place == "memory":
        return "memory:"
    if place == "folder":
        return f"{folder}/space"
    if place == "sqlite":
        return f"sqlite:///{folder}/memories.db"
    return server_url(place)


@contextmanager
def opener(place: str, config: Config = WORDS) -> Iterator[Opener]:
    """Yield a function that opens a memory in a place; all of them are closed in the end."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        made: list[Memory] = []
        key: str | None = None
        if place == "server":
            address, key = stack.enter_context(served(AsyncMemory(f"{folder}/s", config=config)))
        else:
            address = address_in(place, folder)

        def open_memory() -> Memory:
            made.append(Memory(address, api_key=key, config=config))
            return made[-1]

        yield open_memory
        for memory in made:
            memory.close()


class Started(uvicorn.Server):
    """A server that says when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_up.set()


@contextmanager
def served(memory: AsyncMemory, config: ServerConfig | None = None) -> Iterator[tuple[str, str]]:
    """Serve a memory over HTTP on a private port; yield its address and an admin key."""
    with running(memory, config) as (app, address):
        yield address, wait_for(app.state.serving.first_key()).key


@contextmanager
def running(
    memory: AsyncMemory, config: ServerConfig | None = None
) -> Iterator[tuple[FastAPI, str]]:
    """Serve a memory over HTTP on a private port; yield the application and its address."""
    app = create_app(memory, config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Started(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            server.is_up.wait()
            yield app, f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            app.state.watching.feed.close()
            server.should_exit = True
            thread.join()


def somebody() -> str:
    """Return a user whom no other test knows: servers are shared."""
    return f"user-{uuid.uuid4().hex}"
