"""Saved indexes: hints that make the first search quick, never wrong, and leave with the user."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.embedding import CallableEmbedder
from memoryspace.errors import InvalidInput
from memoryspace.events import Event
from memoryspace.message import new_id
from memoryspace.retrieval import saving
from memoryspace.service import (
    PersonalMemoryService,
    RedisMemoryService,
    ServiceSettings,
    SpaceMemoryService,
    SQLMemoryService,
)
from memoryspace.service.search.saved import FEWEST
from memoryspace.service.stored import StoredMemoryService

from backends import server_url

MANY = FEWEST + 20
ASKED = ("which lantern stands in house 17?", "lantern", "the red boat", "何处")
EVENTS = ("saved_index_opened", "saved_index_refused", "index_saved", "index_not_saved")


def said(number: int) -> str:
    colour = ("red", "green", "blue")[number % 3]
    return f"the {colour} lantern of house {number} stands beside boat {number * 7 % 31}"


class Counting:
    """An embedder that counts what it embeds."""

    def __init__(self, name: str = "counting/8") -> None:
        self.count = 0
        self.embedder = CallableEmbedder(self._embed, name=name, dimensions=8)

    def _embed(self, texts: Sequence[str]) -> Any:
        self.count += len(texts)
        return [np.random.default_rng(len(text)).standard_normal(8) for text in texts]


class Place:
    """A database or folder, and a folder for indexes."""

    def __init__(self, backend: str, folder: Path) -> None:
        self.backend, self.folder, self.user = backend, folder, f"user-{new_id()}"
        self.saved, self.heard = folder / "saved", list[Event]()
        self.embedding = Counting()

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[StoredMemoryService]:
        given = {"saved_indexes": self.saved, "embedder": self.embedding.embedder, **options}
        async with self.service(ServiceSettings(**given)) as service:
            service.events.subscribe(self.heard.append, *EVENTS)
            yield service

    def service(self, settings: ServiceSettings) -> StoredMemoryService:
        if self.backend == "space":
            return SpaceMemoryService(self.folder / "space", settings=settings)
        if self.backend == "redis":
            return RedisMemoryService(server_url("redis"), settings=settings)
        if self.backend == "postgres":
            return SQLMemoryService(server_url("postgres"), settings=settings)
        return SQLMemoryService(f"sqlite:///{self.folder}/records.db", settings=settings)

    async def fill(self, **options: Any) -> None:
        """Store memories, and let the service save its index when it stops."""
        async with self.open(**options) as service:
            await service.add_memory(self.user, [*map(said, range(MANY))], "one")
            await service.settled(self.user)
            await service.search(self.user, "anything")
        assert self.heard_of("index_saved")

    def heard_of(self, name: str) -> list[Event]:
        return [each for each in self.heard if each.name == name]

    def files(self) -> list[Path]:
        return [each for each in self.saved.rglob("*") if each.is_file()]

    def hold(self, text: str) -> bool:
        return any(text.encode() in each.read_bytes() for each in self.files())


def names_in(folder: Path) -> set[str]:
    """The names of all files in a folder, without those of SQLite's log."""
    found = (each.name.split("-")[0] for each in folder.rglob("*") if each.is_file())
    return set(found)


async def answers(service: StoredMemoryService, user: str) -> list[list[tuple[str, float]]]:
    found = [await service.search(user, question) for question in ASKED]
    return [[(hit.memory.text, hit.score) for hit in hits] for hits in found]


@pytest.fixture(params=["sqlite", "space", "postgres", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Place:
    return Place("sqlite", tmp_path)


async def built(place: Place) -> list[list[tuple[str, float]]]:
    """The answers of an index that was built from the store."""
    async with place.open(saved_indexes=place.folder / "another") as service:
        return await answers(service, place.user)


# What a restart finds


async def test_after_a_restart_nothing_is_embedded_and_the_answers_are_the_same(
    place: Place,
) -> None:
    await place.fill()
    before = place.embedding.count
    async with place.open() as service:
        found = await answers(service, place.user)
        assert place.embedding.count - before <= len(ASKED)  # the questions
    [opened] = place.heard_of("saved_index_opened")
    assert opened.data["entries"] == MANY
    assert found == await built(place)


async def test_what_changed_after_the_save_is_found_as_it_is_now(place: Place) -> None:
    await place.fill()
    async with place.open(saved_indexes=place.folder / "another") as other:
        ids = {hit.memory.text: hit.memory.id for hit in await other.search(
            place.user, "lantern", top_k=MANY
        )}  # fmt: skip
        await other.add_memory(place.user, ["a lantern at sea"], "two")
        await other.update(place.user, ids[said(3)], "a candle instead")
        await other.delete(place.user, ids[said(4)])
        expected = await answers(other, place.user)
    async with place.open() as service:
        assert await answers(service, place.user) == expected
        hits = await service.search(place.user, "lantern", top_k=MANY + 1)
        texts = {hit.memory.text for hit in hits}
    assert place.heard_of("saved_index_opened")
    assert "a lantern at sea" in texts
    assert texts.isdisjoint({said(3), said(4)})


async def test_a_personal_index_keeps_its_facts(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    lines = ["I live in Rome.", "I moved to Oslo last week.", "My sister Ana has a dog."]
    settings = ServiceSettings(saved_indexes=place.saved, embedder=place.embedding.embedder)

    def service() -> PersonalMemoryService:
        return PersonalMemoryService(f"sqlite:///{tmp_path}/records.db", settings=settings)

    async def asked(of: PersonalMemoryService) -> list[Any]:
        found = [await of.search("ann", q) for q in ("Where do I live?", "Does Ana have a pet?")]
        return [[(h.memory.text, h.score, [f.text for f in h.facts]) for h in hs] for hs in found]

    async with service() as first:
        await first.add_memory("ann", [*lines, *map(said, range(MANY))])
        await first.settled("ann")
        expected = await asked(first)
    async with service() as second:
        second.events.subscribe(place.heard.append, *EVENTS)
        assert await asked(second) == expected
    assert place.heard_of("saved_index_opened")


async def test_a_new_store_with_the_same_names_is_not_taken_for_the_old_one(file: Place) -> None:
    await file.fill()
    (file.folder / "records.db").unlink()
    async with file.open() as service:
        await service.add_memory(file.user, ["a lantern"] * MANY, "one")
        texts = {hit.memory.text for hit in await service.search(file.user, "lantern")}
    assert texts == {"a lantern"}
    assert not file.heard_of("saved_index_opened")


# Files that cannot be used


@pytest.mark.parametrize("seed", range(6))
async def test_a_damaged_file_is_refused_and_changes_no_answer(file: Place, seed: int) -> None:
    await file.fill()
    expected, rng = await built(file), random.Random(seed)
    damaged = rng.choice(sorted(each for each in file.files() if each.stat().st_size))
    body = bytearray(damaged.read_bytes())
    if seed % 3 == 0:
        damaged.write_bytes(body[: len(body) // 2])
    elif seed % 3 == 1:
        body[rng.randrange(len(body))] ^= 0xFF
        damaged.write_bytes(body)
    else:
        damaged.write_bytes(rng.randbytes(len(body)))
    async with file.open() as service:
        assert await answers(service, file.user) == expected
    assert file.heard_of("saved_index_opened") or file.heard_of("saved_index_refused")


async def test_an_index_of_another_embedder_or_version_is_built_anew(
    file: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await file.fill()
    file.embedding = Counting("another/8")
    expected = await built(file)
    async with file.open() as service:
        assert await answers(service, file.user) == expected
    assert len(file.heard_of("saved_index_refused")) == 1
    monkeypatch.setattr(saving, "FORM", saving.FORM + 1)
    async with file.open() as service:
        assert await answers(service, file.user) == expected
    assert len(file.heard_of("saved_index_refused")) == 2
    assert not file.heard_of("saved_index_opened")


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
import test_saved_indexes as tests
from memoryspace.retrieval import saving

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

saving.save_arrays = killed  # what makes a save count is written last
place = tests.Place("sqlite", Path(sys.argv[1]))
place.user = sys.argv[2]
asyncio.run(place.fill())
"""


async def test_a_process_killed_while_it_saves_leaves_nothing_that_counts(file: Place) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(file.folder), file.user, cwd=Path(__file__).parent
    )
    assert await process.wait() == -signal.SIGKILL
    assert file.files()  # it had begun
    expected = await built(file)
    async with file.open() as service:
        assert await answers(service, file.user) == expected
        assert not file.heard_of("saved_index_opened")
        await service.delete_memory(file.user)
    assert not file.files()


# Erasure


async def test_erasing_a_user_leaves_nothing_in_any_file(place: Place) -> None:
    await place.fill()
    assert place.hold("lantern of house 17")
    async with place.open() as service:
        await service.search(place.user, "lantern")
        await service.delete_memory(place.user)
        assert not place.files()
        assert (await service.verify_erasure(place.user)).is_complete
    assert not place.files()


async def test_erasing_a_user_who_was_not_searched_removes_the_files_too(file: Place) -> None:
    await file.fill()
    async with file.open() as service:
        await service.delete_memory(file.user)
        assert not file.files()


async def test_a_deleted_memory_leaves_the_files_at_once(file: Place) -> None:
    await file.fill()
    for is_searched in (True, False):
        async with file.open() as service:
            if is_searched:
                await service.search(file.user, "lantern")
            [hit] = await service.search(file.user, "lantern of house 17", top_k=1) if (
                is_searched
            ) else (await service.page(file.user, limit=1)).memories  # fmt: skip
            memory = hit.memory if is_searched else hit
            assert file.hold(memory.text)
            await service.delete(file.user, memory.id)
            assert not file.hold(memory.text)
            if is_searched:
                await service.search(file.user, "lantern")
        assert not file.hold(memory.text)


async def test_what_expires_leaves_the_files_with_the_next_search(file: Place) -> None:
    await file.fill(ttl_seconds=3600)
    async with file.open() as service:
        later = service.store.clock() + 4000
        service.store.clock = lambda: later
        assert await service.search(file.user, "lantern") == []
    assert not file.files()


async def test_files_of_a_user_erased_elsewhere_go_at_the_next_start(file: Place) -> None:
    await file.fill()
    async with file.open(saved_indexes=file.folder / "another") as other:
        await other.delete_memory(file.user)
        assert file.files()
    async with file.open() as service:
        await service.add_memory("bob", "hello")
        await service.search("bob", "hello")
        sweeping = service.searcher._saving._sweeping  # type: ignore[attr-defined]
        await sweeping
        assert not file.files()


async def test_verify_erasure_reports_files_that_are_left(file: Place) -> None:
    await file.fill()
    async with file.open() as service:
        assert await service.searcher.traces(file.user) == 1
        await service.delete_memory(file.user)
        assert await service.searcher.traces(file.user) == 0


# Many, and bounds


async def test_all_files_stay_within_their_bound(file: Place) -> None:
    await file.fill()
    one = sum(512 * each.stat().st_blocks for each in file.saved.rglob("*"))
    users = [file.user, *(f"user-{new_id()}" for _ in range(3))]
    async with file.open(max_saved=int(2.5 * one)) as service:
        for user in users[1:]:
            await service.add_memory(user, [*map(said, range(MANY))])
            await service.settled(user)
            await service.search(user, "lantern")
    async with file.open() as service:
        held = [user for user in users if await service.searcher.traces(user)]
    assert held == users[-2:]


async def test_the_indexes_of_a_service_stay_within_their_budget(file: Place) -> None:
    users = [f"user-{new_id()}" for _ in range(4)]
    async with file.open(max_indexed=1_000_000) as service:
        dropped = list[Event]()
        service.events.subscribe(dropped.append, "index_dropped")
        for user in users:
            await service.add_memory(user, [*map(said, range(MANY))])
            await service.search(user, "lantern")
        held = [user for user in users if user in service.searcher._slots]  # type: ignore[attr-defined]
        assert [each.data["user"] for each in dropped] == users[: len(dropped)]
        assert dropped
        assert held == users[len(dropped) :]
        assert service.searcher._bytes <= 1_000_000  # type: ignore[attr-defined]


async def test_services_that_share_a_folder_search_save_and_erase_at_once(file: Place) -> None:
    await file.fill()
    async with file.open() as one, file.open() as two:

        async def work(service: StoredMemoryService, name: str) -> None:
            for number in range(6):
                await service.add_memory(file.user, [f"{name} {number} has a lantern"])
                await service.search(file.user, "lantern")
                await service.searcher.refresh(file.user)

        await asyncio.gather(work(one, "one"), work(two, "two"))
        assert await answers(one, file.user) == await answers(two, file.user)
        await asyncio.gather(one.delete_memory(file.user), two.search(file.user, "lantern"))
        assert await two.search(file.user, "lantern") == []
    assert not file.files()


async def test_without_a_folder_nothing_is_saved(tmp_path: Path) -> None:
    async with SQLMemoryService(
        f"sqlite:///{tmp_path}/records.db", settings=ServiceSettings(embedder=None)
    ) as service:
        await service.add_memory("ann", [*map(said, range(MANY))])
        await service.search("ann", "lantern")
    assert names_in(tmp_path) == {"records.db"}


async def test_a_space_saves_indexes_in_its_folder_and_a_scrub_removes_them(tmp_path: Path) -> None:
    async with SpaceMemoryService(tmp_path, settings=ServiceSettings(embedder=None)) as service:
        await service.add_memory("ann", [*map(said, range(MANY))])
        await service.search("ann", "lantern")
    assert "entries.json" in names_in(tmp_path / "searches")
    async with SpaceMemoryService(tmp_path, settings=ServiceSettings(embedder=None)) as service:
        assert len(await service.search("ann", "lantern")) == 10
        await service.scrub()
        assert names_in(tmp_path / "searches") == set()


def test_a_bound_must_leave_room() -> None:
    with pytest.raises(InvalidInput, match="max_saved"):
        ServiceSettings(max_saved=0)
