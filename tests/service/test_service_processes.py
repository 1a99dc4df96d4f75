"""Several processes on one database: nothing is lost, nothing is doubled, nothing is seen late."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from counting import CountingEmbedder
from memoryspace.service import ServiceSettings
from memoryspace.service.search.background import AT_ONCE
from memoryspace.testing.service_tools import fresh_user
from service_worker import Echo, service_at, service_on
from vector_worker import sentences

from backends import server_url, sql_url
from services import SHARED_BACKENDS, service_maker

WORKER = Path(__file__).parents[1] / "support" / "service_worker.py"
EMBEDDING_WORKER = Path(__file__).parents[1] / "support" / "vector_worker.py"
DURABLE_BACKENDS = ["space", *SHARED_BACKENDS]


def url_of(backend: str, folder: Path) -> str:
    kind = backend.partition("-")[0]
    if kind == "space":
        return str(folder / "space")
    return server_url("redis") if kind == "redis" else sql_url(kind, folder)


async def start_worker(
    backend: str, url: str, user: str, *options: object, program: Path = WORKER
) -> Process:
    arguments = [str(program), backend, url, user, *map(str, options)]
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=PIPE, stderr=PIPE
    )


@pytest.mark.parametrize("backend", SHARED_BACKENDS)
async def test_a_hundred_adds_of_four_processes_are_all_there(backend: str, tmp_path: Path) -> None:
    url, user = url_of(backend, tmp_path), fresh_user()
    workers = [await start_worker(backend, url, user, n * 25, 25) for n in range(4)]
    for worker in workers:
        _, errors = await worker.communicate()
        assert worker.returncode == 0, errors.decode()
    async with service_at(backend, url) as service:
        found = await service.search_memory(user, "apple", {"top_k": 200})
        assert sorted(found) == sorted(f"apple {number}" for number in range(100))
        assert await service.count(user) == 100


@pytest.mark.parametrize("backend", SHARED_BACKENDS)
async def test_a_reader_sees_what_another_process_has_acknowledged(
    backend: str, tmp_path: Path
) -> None:
    url, user = url_of(backend, tmp_path), fresh_user()
    async with service_at(backend, url) as service:
        worker = await start_worker(backend, url, user, 0, 30)
        assert worker.stdout is not None
        async for line in worker.stdout:
            number = int(line)
            found = await service.search_memory(user, f"apple {number}", {"top_k": 100})
            assert f"apple {number}" in found
        assert await worker.wait() == 0
        assert len(await service.search_memory(user, "apple", {"top_k": 100})) == 30


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
async def test_a_process_killed_between_keeping_and_deriving_is_made_up_for_at_the_start(
    backend: str, tmp_path: Path
) -> None:
    url, user = url_of(backend, tmp_path), fresh_user()
    worker = await start_worker(backend, url, user, 0, 1, "hang")
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"0\n"  # it is kept, and about to be thought about
    worker.kill()
    await worker.communicate()
    derived = asyncio.Event()
    async with service_at(backend, url) as service:
        assert await service.list_memory(user) == ["apple 0"]
        assert await service.list_memory(user, {"kind": "fact"}) == []
    service = service_on(backend, url, Echo())
    service.events.subscribe(
        lambda event: derived.set() if event.name == "memories_derived" else None
    )
    async with service:  # nobody asks for anything to be derived
        await asyncio.wait_for(derived.wait(), 30)
        [fact] = await service.list_memory(user, {"kind": "fact"})
        assert fact.get_text_content() == "apple 0"
        assert (await service.status(user)).is_settled


@pytest.mark.parametrize("backend", ["space", "sqlite", "postgres", "mariadb", "redis"])
async def test_a_process_killed_between_keeping_and_embedding_leaves_only_the_rest_to_embed(
    backend: str, tmp_path: Path
) -> None:
    url, user, texts = url_of(backend, tmp_path), fresh_user(), sentences(AT_ONCE + 36)
    worker = await start_worker(backend, url, user, len(texts), program=EMBEDDING_WORKER)
    assert worker.stdout is not None
    said = [await worker.stdout.readline() for _ in range(2)]
    assert sorted(said) == [b"added\n", b"embedding\n"]
    worker.kill()
    await worker.communicate()
    second, third = CountingEmbedder(), CountingEmbedder()
    for embedder in (second, third):
        settings = ServiceSettings(embedder=embedder)
        async with service_on(backend, url, settings=settings) as service:
            assert await service.count(user) == len(texts)
            hits = await service.search(user, "which house is in street 7")
            assert hits
            assert all(each.by_meaning for each in hits)
            await service.settled(user)
    assert len(second.texts) == len(set(second.texts)) == 36
    assert third.texts == []


async def test_four_processes_add_to_one_folder_in_turn_and_not_at_once(tmp_path: Path) -> None:
    folder, user = tmp_path / "space", fresh_user()
    for number in range(4):
        worker = await start_worker("space", str(folder), user, number * 25, 25)
        _, errors = await worker.communicate()
        assert worker.returncode == 0, errors.decode()
    async with service_at("space", str(folder)) as service:
        assert await service.count(user) == 100
        late = await start_worker("space", str(folder), user, 100, 1)
        _, errors = await late.communicate()
        assert late.returncode != 0
        assert b"FolderInUse" in errors
        assert await service.count(user) == 100


@pytest.mark.parametrize("backend", ["memory", "space", "sqlite"])
async def test_a_hundred_adds_of_four_threads_are_all_there(backend: str) -> None:
    async with service_maker(backend) as make, make() as service:
        user = fresh_user()

        async def add(first: int) -> None:
            texts = [f"apple {number}" for number in range(first, first + 25)]
            await asyncio.gather(*(service.add_memory(user, [each]) for each in texts))

        threads = [asyncio.to_thread(asyncio.run, add(first)) for first in range(0, 100, 25)]
        await asyncio.gather(*threads)
        found = await service.search_memory(user, "apple", {"top_k": 200})
        assert sorted(found) == sorted(f"apple {number}" for number in range(100))
        assert await service.count(user) == 100


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
async def test_what_a_killed_process_acknowledged_is_there_and_derived_once(
    backend: str, tmp_path: Path
) -> None:
    url, user = url_of(backend, tmp_path), fresh_user()
    for round_ in range(3):
        worker = await start_worker(backend, url, user, round_ * 1000, 1000, "derive")
        assert worker.stdout is not None
        acknowledged = []
        async for line in worker.stdout:
            acknowledged.append(int(line))
            if len(acknowledged) == 5 + round_:
                worker.kill()
                break
        await worker.communicate()
        async with service_at(backend, url, Echo()) as service:
            assert (await service.settled(user)).is_settled
            filters = {"page_size": 1000}
            said = await service.list_memory(user, {**filters, "kind": "memory"})
            facts = await service.list_memory(user, {**filters, "kind": "fact"})
            assert {f"apple {number}" for number in acknowledged} <= set(said)
            assert sorted(each.get_text_content() for each in facts) == sorted(said)
