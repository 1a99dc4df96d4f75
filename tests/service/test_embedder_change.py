"""A changed embedder: what the former made serves until the new one has made it anew."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from counting import CountingEmbedder
from memoryspace import MemoryStore, SpaceStore
from memoryspace.record import Scope
from memoryspace.service import ServiceSettings
from memoryspace.service.search.background import AT_ONCE
from memoryspace.service.stored import StoredMemoryService
from memoryspace.store import KeepsVectors, Place
from memoryspace.testing import fresh_scope

from services import service_maker

OLD, NEW = "old/32", "new/32"
QUESTION = "which house is in street 7"


class HeldEmbedder(CountingEmbedder):
    """Embeds memories only once it is let; questions at once."""

    def __init__(self, name: str = NEW) -> None:
        super().__init__(name)
        self.may = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.may.wait()
        return super().embed(texts)


def said(count: int, begin: int = 0) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"number {each} is my house in street {each}"}
        for each in range(begin, begin + count)
    ]


def changed(
    new: CountingEmbedder, former: CountingEmbedder | None, *, keep_vectors: bool = True
) -> ServiceSettings:
    return ServiceSettings(embedder=new, former_embedder=former, keep_vectors=keep_vectors)


async def spaces(service: StoredMemoryService, user: str) -> dict[str, int]:
    assert isinstance(service.store, KeepsVectors)
    kept = await service.store.vector_spaces(user)
    return {name: each.count for name, each in kept.items()}


async def serving(service: StoredMemoryService, user: str) -> str | None:
    return (await service.status(user)).embedder.name


@pytest.mark.parametrize("backend", ["memory", "space", "sqlite", "postgres", "mariadb", "redis"])
async def test_the_former_vectors_serve_until_the_new_ones_are_made(backend: str) -> None:
    user, old, new = fresh_scope().user, CountingEmbedder(OLD), HeldEmbedder()
    async with service_maker(backend) as make:
        async with make(settings=changed(old, None)) as service:
            await service.add_memory(user, said(100))
            await service.settled(user)
            before = await service.search(user, QUESTION)
        old.texts.clear()
        async with make(settings=changed(new, old)) as service:
            assert await service.search(user, QUESTION) == before
            assert await serving(service, user) == OLD
            assert (old.texts, new.texts) == ([], [])  # nobody waited for anybody
            new.may.set()
            await service.settled(user)
            assert await serving(service, user) == NEW
            assert sorted(new.texts) == sorted(each["content"] for each in said(100))
            assert await spaces(service, user) == {NEW: 100}
            after = await service.search(user, QUESTION)
        third = CountingEmbedder(NEW)
        async with make(settings=changed(third, None)) as service:
            assert await service.search(user, QUESTION) == after
        assert (third.texts, old.texts) == ([], [])


async def test_what_is_added_meanwhile_is_found_and_changes_too() -> None:
    user, store = fresh_scope().user, MemoryStore()
    old, new = CountingEmbedder(OLD), HeldEmbedder()
    async with StoredMemoryService(store, settings=changed(old, None)) as service:
        await service.add_memory(user, said(40))
        await service.settled(user)
    async with StoredMemoryService(store, settings=changed(new, old)) as service:
        await service.search(user, QUESTION)
        new.may.set()
        await service.add_memory(user, said(40, begin=40))
        hits = await service.search(user, "which house is in street 77")
        assert "number 77 is my house in street 77" in [each.memory.text for each in hits[:3]]
        await service.settled(user)
        assert await serving(service, user) == NEW
        assert len(new.texts) == len(set(new.texts)) == 80
        ours = await service.search(user, QUESTION)
    async with StoredMemoryService(
        store, settings=changed(CountingEmbedder(NEW), None, keep_vectors=False)
    ) as service:
        theirs = await service.search(user, QUESTION)
    assert [each.memory.id for each in ours] == [each.memory.id for each in theirs]


class PausingStore(MemoryStore):
    """Holds back the answer that every one of so many vectors of a space is there."""

    def __init__(self, space: str, count: int) -> None:
        super().__init__()
        self._space, self._count = space, count
        self.has_paused, self.may = asyncio.Event(), asyncio.Event()

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        found = await super().vectors(user, space, places)
        if space.startswith(self._space) and len(found) == self._count:
            self.has_paused.set()
            await self.may.wait()
        return found


async def test_what_comes_when_the_change_is_all_but_done_is_embedded_once() -> None:
    user, store = fresh_scope().user, PausingStore(NEW, 40)
    old, new = CountingEmbedder(OLD), CountingEmbedder(NEW)
    async with StoredMemoryService(store, settings=changed(old, None)) as service:
        await service.add_memory(user, said(40))
        await service.settled(user)
    async with StoredMemoryService(store, settings=changed(new, old)) as service:
        await service.search(user, QUESTION)
        await store.has_paused.wait()
        await service.add_memory(user, said(40, begin=40))
        await service.search(user, QUESTION)
        await asyncio.to_thread(new.wait_for, 80)  # ahead of whoever needs them
        store.may.set()
        await service.settled(user)
        assert await serving(service, user) == NEW
        assert len(new.texts) == len(set(new.texts)) == 80


async def test_a_change_that_broke_off_goes_on_where_it_was(tmp_path: Path) -> None:
    user, old, many = fresh_scope().user, CountingEmbedder(OLD), 3 * AT_ONCE
    failing, second = CountingEmbedder(NEW, fails_after=AT_ONCE), CountingEmbedder(NEW)
    async with SpaceStore(tmp_path) as store:
        async with StoredMemoryService(store, settings=changed(old, None)) as service:
            await service.add_memory(user, said(many))
            await service.settled(user)
        async with StoredMemoryService(store, settings=changed(failing, old)) as service:
            await service.search(user, QUESTION)
            await service.settled(user)
            assert await serving(service, user) == OLD
            assert await spaces(service, user) == {OLD: many, NEW: AT_ONCE}
    async with (
        SpaceStore(tmp_path) as store,
        StoredMemoryService(store, settings=changed(second, old)) as service,
    ):
        await service.settled(user)
        assert await serving(service, user) == NEW
        assert not set(second.texts) & set(failing.texts)
        assert len(second.texts) == many - AT_ONCE
        assert await spaces(service, user) == {NEW: many}


async def test_an_embedder_that_works_again_goes_on_with_the_next_search() -> None:
    user, store = fresh_scope().user, MemoryStore()
    old, new = CountingEmbedder(OLD), CountingEmbedder(NEW, fails_after=0)
    async with StoredMemoryService(store, settings=changed(old, None)) as service:
        await service.add_memory(user, said(30))
        await service.settled(user)
    async with StoredMemoryService(store, settings=changed(new, old)) as service:
        assert all(each.by_meaning for each in await service.search(user, QUESTION))
        await service.settled(user)
        assert await serving(service, user) == OLD
        new.fails_after = None
        await service.search(user, QUESTION)
        await service.settled(user)
        assert await serving(service, user) == NEW


async def test_whoever_has_no_former_vectors_gets_new_ones_at_once() -> None:
    user, store = fresh_scope().user, MemoryStore()
    old, new = CountingEmbedder(OLD), CountingEmbedder(NEW)
    async with StoredMemoryService(store, settings=changed(new, old)) as service:
        await service.add_memory(user, said(20))
        await service.search(user, QUESTION)
        await service.settled(user)
        assert await serving(service, user) == NEW
        assert await spaces(service, user) == {NEW: 20}
    assert (old.texts, old.questions) == ([], [])


async def test_a_user_who_is_erased_during_the_change_leaves_nothing() -> None:
    user, store = fresh_scope().user, MemoryStore()
    old, new = CountingEmbedder(OLD), HeldEmbedder()
    async with StoredMemoryService(store, settings=changed(old, None)) as service:
        await service.add_memory(user, said(100))
        await service.settled(user)
    async with StoredMemoryService(store, settings=changed(new, old)) as service:
        await service.search(user, QUESTION)
        await service.delete_memory(user)
        new.may.set()
        await service.settled(user)
        assert await service.verify_erasure(user)
    assert await store.count(Scope(user)) == 0


async def test_two_workers_that_change_share_the_work() -> None:
    user, many = fresh_scope().user, 12 * AT_ONCE
    old, news = CountingEmbedder(OLD), [HeldEmbedder() for _ in range(2)]
    store = MemoryStore()
    async with StoredMemoryService(store, settings=changed(old, None)) as service:
        await service.add_memory(user, said(many))
        await service.settled(user)
    async with (
        StoredMemoryService(store, settings=changed(news[0], old)) as one,
        StoredMemoryService(store, settings=changed(news[1], old)) as two,
    ):
        await one.search(user, QUESTION)
        await two.search(user, QUESTION)
        for each in news:
            each.may.set()
        await one.settled(user)
        await two.settled(user)
        assert [await serving(each, user) for each in (one, two)] == [NEW, NEW]
        assert await one.search(user, QUESTION) == await two.search(user, QUESTION)
        assert await spaces(one, user) == {NEW: many}
    assert {*news[0].texts, *news[1].texts} == {each["content"] for each in said(many)}
    assert len(news[0].texts) == len(set(news[0].texts))
    assert len(news[1].texts) == len(set(news[1].texts))


def test_a_former_embedder_must_be_one() -> None:
    with pytest.raises(TypeError, match="former_embedder must be an Embedder or None"):
        ServiceSettings(former_embedder="best")  # type: ignore[arg-type]
