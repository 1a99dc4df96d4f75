"""Servers that die in the middle of a call and come back: a clear error, then all is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from memoryspace import MemoryBase, Msg
from memoryspace.errors import StoreUnavailable
from memoryspace.message import new_id
from worker import memory_at

import servers
from backends import no_server

KINDS = ["redis", "postgres", "mariadb"]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    try:
        started = servers.start(request.param)
        if request.param == "mariadb":
            servers.create_mariadb_database(started)
    except servers.NoServerError as error:
        no_server(error)
    yield started
    started.remove()


@asynccontextmanager
async def memory_on(server: servers.Server, user: str) -> AsyncIterator[MemoryBase]:
    async with memory_at(server.name, server.url, user) as memory:
        yield memory


async def test_a_memory_outlives_the_death_of_its_server(server: servers.Server) -> None:
    acknowledged: list[str] = []

    async def keep_adding(memory: MemoryBase) -> None:
        while True:
            msg = Msg("Ann", "x" * 2000, "user")
            await memory.add(msg, marks="x")
            acknowledged.append(msg.id)
            if len(acknowledged) == 40:
                server.kill()  # while the other writers are in the middle of a call

    async with memory_on(server, f"user-{new_id()}") as memory:
        await memory.update_compressed_summary("kept")
        writers = [asyncio.create_task(keep_adding(memory)) for _ in range(4)]
        outcomes = await asyncio.gather(*writers, return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in outcomes), outcomes
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await memory.get_memory()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await memory.add(Msg("Ann", "not now", "user"))

        server.start()
        found = await memory.get_memory(mark="x")
        assert found[0].content == "kept"
        present = [msg.id for msg in found[1:]]
        assert set(acknowledged) <= set(present)
        assert len(present) == len(set(present))
        await memory.add(Msg("Ann", "again", "user"))
        assert (await memory.get_memory())[-1].content == "again"


async def test_a_restart_between_two_calls_is_not_noticed(server: servers.Server) -> None:
    async with memory_on(server, f"user-{new_id()}") as memory:
        for text in ("before", "after"):
            await memory.add(Msg("Ann", text, "user"))
            server.kill()
            server.start()
        assert [msg.content for msg in await memory.get_memory()] == ["before", "after"]
