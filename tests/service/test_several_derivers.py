"""One service with all three derivers: one worker, one index of a user, whatever is derived."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryspace import MemoryStore, SpaceStore
from memoryspace.errors import InvalidInput
from memoryspace.service import (
    PersonalMemoryService,
    StoredMemoryService,
    TaskMemoryService,
    ToolMemoryService,
)
from memoryspace.service.deriving.personal import PersonalDeriver
from memoryspace.service.deriving.task import TaskDeriver
from memoryspace.service.deriving.tool import ToolDeriver

from backends import server_url, sql_url
from services import BACKENDS, WORDS, service_maker

CALL = {
    "tool_name": "train_search",
    "input": {"to": "Oslo"},
    "output": "timeout after 30 s",
    "success": False,
    "create_time": "2026-01-05 10:00:00",
}
ATTEMPT = [
    {"role": "user", "content": "Book a train to Bergen"},
    {"role": "assistant", "content": "Booked by calling the station first."},
]


def everything() -> list[Any]:
    return [PersonalDeriver(), TaskDeriver(), ToolDeriver()]


@asynccontextmanager
async def told(backend: str) -> AsyncIterator[StoredMemoryService]:
    """Yield a service that was told of a life, an attempt and a call."""
    async with service_maker(backend) as make, make(derivers=everything()) as service:
        await service.delete_memory("ann")
        await service.add_memory("ann", ["I live in Rome.", "I have a dog called Otis."])
        await service.add_memory("ann", ["I moved to Oslo last week."])
        await service.add_trajectory("ann", ATTEMPT, score=1.0, task="Book a train")
        await service.add_tool_call_results("ann", [CALL])
        status = await service.settled("ann")
        assert (status.pending, status.failed, status.errors) == (0, 0, {})
        yield service
        await service.delete_memory("ann")


async def kinds_in(service: StoredMemoryService) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in (await service.page("ann", limit=1000)).memories:
        found[each.kind] = found.get(each.kind, 0) + 1
    return found


@pytest.mark.parametrize("backend", BACKENDS)
async def test_each_derives_from_what_concerns_it_alone(backend: str) -> None:
    async with told(backend) as service:
        found = await kinds_in(service)
        assert found["tool"] == 1
        assert found["experience"] == 1
        assert found["fact"] >= 2
        [guide] = await service.guidelines("ann", "train_search")
        assert guide.details["calls"] == 1


@pytest.mark.parametrize("backend", BACKENDS)
async def test_one_search_finds_what_was_said_and_what_was_learnt(backend: str) -> None:
    async with told(backend) as service:
        hits = await service.search("ann", "Where do I live?")
        best = hits[0]
        assert best.memory.text == "I moved to Oslo last week."
        assert [fact.details["value"] for fact in best.facts] == ["Oslo"]
        assert "fact" not in {hit.memory.kind for hit in hits}  # they lead to what was said
        former = next(hit for hit in hits if hit.memory.text == "I live in Rome.")
        assert former.superseded_by == best.memory.id
        assert best.holds
        found = await service.search("ann", "train_search timeout")
        assert "tool" in {hit.memory.kind for hit in found}
        lessons = await service.search("ann", "book a train", filters={"kind": "experience"})
        assert [hit.memory.kind for hit in lessons] == ["experience"]
        anything = await service.search("ann", "book a train", top_k=50)
        assert "experience" in {hit.memory.kind for hit in anything}


LIFE = [
    "I live in Rome, near the river.",
    "My sister lives in Ghent with her two cats.",
    "I work as a nurse at the city hospital.",
    "I have a dog called Otis, he is three.",
    "The weather was terrible on our trip to the coast.",
    "I love hiking and I hate cold soup.",
    "I moved to Oslo for a new start.",
    "My sister moved to Antwerp in spring.",
    "Otis died, we buried him under the apple tree.",
    "I quit the hospital and became a teacher.",
    *(f"We talked about recipe number {n} and the price of flour." for n in range(20)),
]
ASKED = {
    "Where do I live?": "I moved to Oslo for a new start.",
    "Where does my sister live?": "My sister moved to Antwerp in spring.",
    "What is my job?": "I quit the hospital and became a teacher.",
    "What do I love?": "I love hiking and I hate cold soup.",
}


@pytest.mark.parametrize("backend", ["memory", "postgres", "postgres-server"])
async def test_a_personal_search_is_the_same_in_the_process_and_in_the_server(
    backend: str,
) -> None:
    async with service_maker(backend) as make, make(derivers=everything()) as service:
        await service.delete_memory("liv")
        for text in LIFE:
            await service.add_memory("liv", [text])
        assert (await service.settled("liv")).is_settled
        for question, answer in ASKED.items():
            best, *others = await service.search("liv", question, top_k=20, explain=True)
            assert best.memory.text == answer
            assert best.why is not None
            assert {hit.memory.kind for hit in (best, *others)} == {"memory"}
        [rome] = [hit for hit in await service.search("liv", "Where do I live?", top_k=30)
                  if hit.memory.text.startswith("I live in Rome")]  # fmt: skip
        assert rome.superseded_by is not None
        told = await service.why_not("liv", "Where do I live?", rome.memory.id, top_k=30)
        assert told.reason == "found"
        [home] = await service.search("liv", "live", filters={"kind": "fact"}, top_k=1)
        assert home.memory.kind == "fact"
        await service.delete_memory("liv")


@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_is_erased_is_erased_of_every_kind(backend: str) -> None:
    async with told(backend) as service:
        gone = await service.delete_memory("ann")
        assert len(gone.derived) >= 4
        assert (await service.verify_erasure("ann")).is_complete


async def test_a_lesson_goes_when_what_it_came_from_is_changed() -> None:
    async with told("memory") as service:
        raw = (await service.page("ann", limit=100, filters={"kind": "memory"})).memories
        attempt = next(each.id for each in raw if "Bergen" in each.text)
        await service.update("ann", attempt, "Book a flight")
        assert (await service.settled("ann")).is_settled
        assert await service.count("ann", {"kind": "experience"}) == 0


async def test_verbs_without_their_deriver_say_which_is_missing() -> None:
    async with PersonalMemoryService(settings=WORDS) as service:
        with pytest.raises(InvalidInput, match=r"'experience'.*TaskDeriver\(\) among its derivers"):
            await service.add_trajectory("ann", ATTEMPT, score=1.0)
        with pytest.raises(InvalidInput, match=r"'tool'.*ToolDeriver\(\) among its derivers"):
            await service.add_tool_call_results("ann", [CALL])


def test_derivers_are_told_apart_by_their_names() -> None:
    twice = [PersonalDeriver(), PersonalDeriver()]
    with pytest.raises(InvalidInput, match="two derivers are called 'personal'"):
        StoredMemoryService(MemoryStore(), derivers=twice)
    with pytest.raises(InvalidInput, match="not both"):
        StoredMemoryService(MemoryStore(), deriver=twice[0], derivers=twice[1:])
    with pytest.raises(TypeError, match="str is not a deriver"):
        StoredMemoryService(MemoryStore(), derivers=["personal"])  # type: ignore[list-item]


@pytest.mark.parametrize("kind", [PersonalMemoryService, TaskMemoryService, ToolMemoryService])
@pytest.mark.parametrize("place", ["folder", "sqlite", "postgres", "mariadb", "redis", "memory"])
async def test_services_open_an_address_and_close_it(kind: Any, place: str, tmp_path: Path) -> None:
    address = address_of(place, tmp_path)
    service = kind(address, settings=WORDS)
    async with service:
        await service.delete_memory("bob")
        await service.add_memory("bob", ["I live in Rome"])
    async with service:  # opened anew
        assert await service.count("bob", {"kind": "memory"}) == 1
    if place != "memory":
        async with kind(address, settings=WORDS) as other:  # nothing held the folder any more
            assert await other.count("bob", {"kind": "memory"}) == 1
            await other.delete_memory("bob")


def address_of(place: str, folder: Path) -> Any:
    match place:
        case "folder":
            return folder / "space"
        case "memory":
            return "memory:"
        case "redis":
            return server_url("redis")
        case _:
            return sql_url(place, folder).replace("+aiosqlite", "").replace("+asyncpg", "")


async def test_a_store_that_was_given_stays_open(tmp_path: Path) -> None:
    store = SpaceStore(tmp_path / "space")
    async with PersonalMemoryService(store, settings=WORDS) as service:
        await service.add_memory("bob", ["I live in Rome"])
    assert store._manager is not None
    await store.close()


def test_search_in_the_server_needs_postgresql() -> None:
    with pytest.raises(InvalidInput, match="needs a PostgreSQL store, got MemoryStore"):
        PersonalMemoryService(search="server")
    with pytest.raises(InvalidInput, match='"process" or "server"'):
        PersonalMemoryService(search="here")  # type: ignore[arg-type]
