"""Every address of the door under one roof: how to open a memory at each for a test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from memoryspace import Config, Memory

from backends import server_url

PLACES = ["memory", "folder", "sqlite", "postgres", "mariadb", "redis"]
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
    with TemporaryDirectory() as folder:
        made: list[Memory] = []

        def open_memory() -> Memory:
            made.append(Memory(address_in(place, folder), config=config))
            return made[-1]

        yield open_memory
        for memory in made:
            memory.close()


def somebody() -> str:
    """Return a user whom no other test knows: servers are shared."""
    return f"user-{uuid.uuid4().hex}"
