"""A server in this process, its clients, and users and keys that no other test knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from memoryspace import AsyncMemory
from memoryspace.loops import wait_for
from memoryspace.server import ServerConfig

from doors import WORDS, running


class Web:
    """A running server: its application, its address and an admin key."""

    def __init__(self, app: FastAPI, address: str, key: str) -> None:
        self.app, self.address, self.key = app, address, key
        self.admin = self.client(key)

    @property
    def serving(self) -> Any:
        return self.app.state.serving

    def client(self, key: str | None) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60)

    def new_key(self, users: Sequence[str] | None = None, **more: Any) -> str:
        answer = self.admin.post("/v1/keys", json={"users": users, **more})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["key"])

    def of(self, *users: str, **more: Any) -> httpx.Client:
        """Return a client with a key that is bound to users."""
        return self.client(self.new_key(users, **more))


@contextmanager
def web(place: str | Path = "memory:", config: ServerConfig | None = None) -> Iterator[Web]:
    """Serve a memory; yield the server."""
    with running(AsyncMemory(str(place), config=WORDS), config) as (app, address):
        yield Web(app, address, wait_for(app.state.serving.first_key()).key)
