"""Whatever ids, filters, cursors and metadata are passed: what is one user's stays that user's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryspace.errors import MemorySpaceError
from memoryspace.message import new_id
from memoryspace.testing.store_contract import AWKWARD_IDS

from services import BACKENDS, service_maker

SECRET = "pomegranate"

hostile = st.one_of(
    st.sampled_from([*AWKWARD_IDS, "*", "memoryspace:outbox", "memoryspace:history", "", "\0"]),
    st.text(max_size=20),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), hostile),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(hostile, inner, max_size=3)
    ),
    max_leaves=5,
)
keys = st.sampled_from(
    ["top_k", "page_num", "page_size", "session_id", "role", "kind", "marks", "without", "since",
     "until", "as_of", "metadata", "AND", "OR", "NOT", "quarantined", "superseded", "name", "x"]
)  # fmt: skip
filters = st.dictionaries(keys, values, max_size=4)
LIKE_ANN = ["{}", "{}:a:", "{}:a*", "{}:?", "{}%3Aa", "{}:A", "{}:a ", "{}:á", "{}:a/..", "{}_a"]
calls = st.lists(
    st.tuples(st.sampled_from(range(11)), hostile, hostile, filters), min_size=1, max_size=8
)


@pytest.mark.parametrize("backend", [*BACKENDS, "tablestore"])
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(calls=calls, like_ann=st.sampled_from(LIKE_ANN))
def test_nothing_that_bob_does_reaches_ann(
    backend: str, calls: list[tuple[int, str, str, dict[str, Any]]], like_ann: str
) -> None:
    asyncio.run(_bob_tries(backend, calls, like_ann))


async def _bob_tries(
    backend: str, calls: list[tuple[int, str, str, dict[str, Any]]], like_ann: str
) -> None:
    async with service_maker(backend) as make, make() as service:
        name = new_id()
        ann, bob = f"{name}:a", like_ann.format(name)  # one reads nearly like the other
        ids = await service.add_memory(ann, [f"{SECRET} one", f"{SECRET} two"], "s")
        await service.add_memory(bob, ["an apple"], "s")
        for number, one, other, asked in calls:
            try:
                found = await _call(service, number, bob, one, other, ids[0], asked)
            except (MemorySpaceError, TypeError):
                continue
            assert SECRET not in repr(found)
        assert await service.list_memory(ann) == [f"{SECRET} one", f"{SECRET} two"]
        assert len(await service.search_memory(ann, SECRET)) == 2
        assert len(await service.history(ann, ids[0])) == 1


async def _call(
    service: Any, number: int, bob: str, one: str, other: str, ann_id: str, asked: dict[str, Any]
) -> Any:
    match number:
        case 0:
            return await service.search_memory(bob, f"{SECRET} {one}"[:500], asked)
        case 1:
            return await service.list_memory(bob, asked)
        case 2:
            return await service.get(bob, ann_id, session_id=one)
        case 3:
            return await service.delete(bob, [ann_id, one], session_id=other)
        case 4:
            return await service.delete_memory(bob, one)
        case 5:
            return await service.update(bob, ann_id, other, session_id=one)
        case 6:
            return await service.page(bob, cursor=one, filters=asked)
        case 7:
            return await service.add_memory(
                bob, [{"role": "user", "content": other, "id": one}], one
            )
        case 8:
            return await service.release(bob, [ann_id, one])
        case 9:
            return [await service.delete_memory(bob), await service.verify_erasure(bob)]
        case _:
            return [await service.history(bob, ann_id), await service.quarantined(bob)]
