"""What one process has embedded, no other embeds again, nor the same one after a restart."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counting import DIMENSIONS, CountingEmbedder
from memoryspace import MemoryStore
from memoryspace.record import Scope
from memoryspace.service import PersonalMemoryService, ServiceSettings
from memoryspace.service.search.packed import pack, rounded, unpack
from memoryspace.service.stored import StoredMemoryService
from memoryspace.store.vectors import place_of
from memoryspace.testing import fresh_scope

from services import service_maker

KEEPING = ["memory", "space", "sqlite", "postgres", "mariadb", "redis"]
MANY = 300
PACKED = 13 + DIMENSIONS  # bytes of a vector


def settings(embedder: CountingEmbedder, *, keep_vectors: bool = True) -> ServiceSettings:
    return ServiceSettings(embedder=embedder, keep_vectors=keep_vectors)


def said(count: int, begin: int = 0) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"number {each} is my house in street {each}"}
        for each in range(begin, begin + count)
    ]


@pytest.mark.parametrize("backend", KEEPING)
async def test_a_second_process_embeds_nothing_that_the_first_has_embedded(backend: str) -> None:
    user, first, second, third = fresh_scope().user, *(CountingEmbedder() for _ in range(3))
    async with service_maker(backend) as make:
        async with make(settings=settings(first)) as service:
            await service.add_memory(user, said(MANY))
            await service.settled(user)
            assert len(first.texts) == MANY
            async with make(settings=settings(second)) as other:
                theirs = await other.search(user, "which house is in street 7")
            ours = await service.search(user, "which house is in street 7")
            assert (len(first.texts), second.texts) == (MANY, [])
        async with make(settings=settings(third)) as service:
            again = await service.search(user, "which house is in street 7")
        assert (third.texts, len(third.questions)) == ([], 1)
        assert theirs
        assert theirs == again == ours


@pytest.mark.parametrize("backend", KEEPING)
async def test_what_is_deleted_takes_its_vectors_along(backend: str) -> None:
    user, embedder = fresh_scope().user, CountingEmbedder()
    async with service_maker(backend) as make, make(settings=settings(embedder)) as service:
        ids = await service.add_memory(user, said(5))
        await service.add_memory(user, said(3, 10), "another session")
        await service.settled(user)
        assert (await service.verify_erasure(user)).vectors == 8
        usage = await service.usage(user)
        assert (usage.vectors, usage.vector_bytes) == (8, 8 * PACKED)
        await service.delete(user, ids[:2])
        assert (await service.verify_erasure(user)).vectors == 6
        await service.delete_memory(user, "another session")
        assert (await service.verify_erasure(user)).vectors == 3
        await service.update(user, ids[2], "it says something else now")
        await service.settled(user)
        assert (await service.verify_erasure(user)).vectors == 3
        assert embedder.texts[-1] == "it says something else now"
        await service.delete_memory(user)
        assert await service.verify_erasure(user)


@pytest.mark.parametrize("backend", KEEPING)
async def test_what_a_search_has_to_embed_is_kept_too(backend: str) -> None:
    user, first, second = fresh_scope().user, CountingEmbedder(), CountingEmbedder()
    async with service_maker(backend) as make:
        async with make(settings=settings(CountingEmbedder(), keep_vectors=False)) as service:
            await service.add_memory(user, said(20))
        async with make(settings=settings(first)) as service:
            await service.search(user, "street 3")
            await service.settled(user)
        async with make(settings=settings(second)) as service:
            await service.search(user, "street 3")
        assert (len(first.texts), len(second.texts)) == (20, 0)


async def test_an_embedder_that_fails_midway_keeps_what_it_has_made() -> None:
    user, store = fresh_scope().user, MemoryStore()
    failing, second = CountingEmbedder(fails_after=100), CountingEmbedder()
    async with StoredMemoryService(store, settings=settings(failing)) as service:
        await service.add_memory(user, said(MANY))
        await service.settled(user)
        made = len(failing.texts)
        assert 0 < made <= 100
        assert await service.search(user, "street 3")  # by words
        assert len(failing.texts) <= 100
    async with StoredMemoryService(store, settings=settings(second)) as service:
        await service.search(user, "street 3")
        assert len(second.texts) == MANY - made
        assert not set(second.texts) & set(failing.texts)


async def test_an_embedder_that_works_again_embeds_the_rest_once() -> None:
    user, store = fresh_scope().user, MemoryStore()
    embedder, second = CountingEmbedder(fails_after=0), CountingEmbedder()
    async with StoredMemoryService(store, settings=settings(embedder)) as service:
        await service.add_memory(user, said(50))
        await service.settled(user)
        await service.search(user, "street 3")
        embedder.fails_after = None
        assert await service.searcher.embed_waiting() == 0  # type: ignore[attr-defined]  # a resident one
        await service.settled(user)
        assert len(embedder.texts) == 50
    async with StoredMemoryService(store, settings=settings(second)) as service:
        await service.search(user, "street 3")
    assert second.texts == []


async def test_vectors_of_another_embedder_are_never_taken() -> None:
    user, store = fresh_scope().user, MemoryStore()
    old, new = CountingEmbedder("old/32"), CountingEmbedder("new/32")
    for embedder in (old, new):
        async with StoredMemoryService(store, settings=settings(embedder)) as service:
            await service.add_memory(user, said(10))
            await service.search(user, "street 3")
            await service.settled(user)
            index = service.searcher._slots[user].index.recall.vectors.index  # type: ignore[attr-defined]
            assert index is not None
            assert len(index) == len(await store.select(Scope(user)))
    assert set(new.texts) == set(old.texts)
    spaces = await store.vector_spaces(user)
    assert {name: kept.count for name, kept in spaces.items()} == {"old/32": 10, "new/32": 20}


async def test_damaged_vectors_are_embedded_again_and_mended() -> None:
    user, store = fresh_scope().user, MemoryStore()
    async with StoredMemoryService(store, settings=settings(CountingEmbedder())) as service:
        await service.add_memory(user, said(6))
        await service.settled(user)
    records = await store.select(Scope(user))
    kept = await store.vectors(user, "counting/32", [place_of(each) for each in records])
    bad = [
        b"\0", kept[records[1].seq][:-1], kept[records[2].seq] + b"\0",
        bytes([*kept[records[3].seq][:20], 77, *kept[records[3].seq][21:]]),
        kept[records[5].seq],  # another text's
    ]  # fmt: skip
    places = [place_of(each) for each in records[:5]]
    await store.put_vectors(user, "counting/32", dict(zip(places, bad, strict=True)))
    second, third = CountingEmbedder(), CountingEmbedder()
    for embedder in (second, third):
        async with StoredMemoryService(store, settings=settings(embedder)) as service:
            await service.search(user, "street 3")
            await service.settled(user)
    assert sorted(second.texts) == sorted(each.text for each in records[:5])
    assert third.texts == []


@pytest.mark.parametrize("backend", ["sqlite", "redis"])
async def test_those_who_race_embed_each_text_twice_at_most_and_answer_alike(backend: str) -> None:
    user, embedders = fresh_scope().user, [CountingEmbedder() for _ in range(2)]
    async with service_maker(backend) as make:
        async with (
            make(settings=settings(embedders[0])) as one,
            make(settings=settings(embedders[1])) as two,
        ):
            await asyncio.gather(
                *(
                    (one, two)[each % 2].add_memory(user, said(10, 10 * each), f"s{each}")
                    for each in range(10)
                )
            )
            answers = await asyncio.gather(
                *((one, two)[each % 2].search(user, "street 33") for each in range(6))
            )
            await asyncio.gather(one.settled(user), two.settled(user))
        third = CountingEmbedder()
        async with make(settings=settings(third)) as service:
            calm = await service.search(user, "street 33")
    assert third.texts == []
    assert all(each == calm for each in answers)
    made = embedders[0].texts + embedders[1].texts
    assert len(set(made)) == 100
    assert max(made.count(each) for each in set(made)) <= 2
    assert all(len(each.texts) == len(set(each.texts)) for each in embedders)


async def test_facts_and_what_they_supersede_are_kept_as_well() -> None:
    user, store, second = fresh_scope().user, MemoryStore(), CountingEmbedder()
    async with PersonalMemoryService(store, settings=settings(CountingEmbedder())) as service:
        await service.add_memory(user, {"role": "user", "content": "I live in Rome."})
        await service.add_memory(
            user, {"role": "user", "content": "I moved to Oslo, I live there."}
        )
        await service.settled(user)
    async with PersonalMemoryService(store, settings=settings(second)) as service:
        await service.search(user, "where do I live?")
    assert second.texts == []


async def test_a_store_that_keeps_no_vectors_serves_as_before() -> None:
    user, embedder = fresh_scope().user, CountingEmbedder()
    store = MemoryStore()
    async with StoredMemoryService(store, settings=settings(embedder, keep_vectors=False)) as one:
        await one.add_memory(user, said(10))
        await one.settled(user)
        assert embedder.texts == []
        await one.search(user, "street 3")
        assert len(embedder.texts) == 10
    assert await store.vector_spaces(user) == {}


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=64), st.text(), st.text())
def test_a_packed_vector_comes_back_nearly_as_it_was(
    numbers: list[float], space: str, text: str
) -> None:
    vector = np.array(numbers, np.float32)
    kept = pack(vector, space, text)
    found = unpack(kept, space, text, len(vector))
    assert found is not None
    assert np.array_equal(found, rounded(vector[np.newaxis])[0])
    assert np.abs(found - vector).max() <= np.abs(vector).max() / 127 * 0.501 + 1e-38
    assert unpack(kept, space, text, len(vector) + 1) is None
    assert unpack(kept, space + "x", text, len(vector)) is None
    assert unpack(kept, space, text + "x", len(vector)) is None


@given(st.binary(max_size=60), st.integers(1, 40))
def test_bytes_of_any_kind_are_no_vector(kept: bytes, dimensions: int) -> None:
    assert unpack(kept, "space", "text", dimensions) is None
