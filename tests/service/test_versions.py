"""Old versions of a memory: so many and no more, whatever reply was lost, and gone with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace import MemoryStore, Scope, Store, Where
from memoryspace.errors import StoreUnavailable
from memoryspace.service import ServiceSettings
from memoryspace.service.stored import StoredMemoryService
from memoryspace.testing.service_tools import fresh_user

from services import BACKENDS, service_maker

THREE = ServiceSettings(embedder=None, max_versions=3)
Step = tuple[str, list[str]]  # what is done, and what befalls its calls
VERBS = ("delete", "replace")


class Line:
    """The line to a store: it may break before a call, or lose the reply to one that was done."""

    def __init__(self, store: Store) -> None:
        self.faults: list[str] = []  # for the next calls, one each
        for verb in VERBS:
            setattr(store, verb, self._faulty(getattr(store, verb)))

    def _faulty(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def send(*args: Any, **options: Any) -> Any:
            fault = self.faults.pop(0) if self.faults else "none"
            if fault == "unsent":
                raise StoreUnavailable("the line broke")
            reply = await call(*args, **options)
            if fault == "unanswered":
                raise StoreUnavailable("the reply was lost")
            return reply

        return send


async def versions(service: StoredMemoryService, user: str, memory_id: str) -> list[int]:
    return [each.version for each in await service.history(user, memory_id)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fault", ["unsent", "unanswered"])
async def test_what_a_lost_reply_left_goes_with_the_next_change(backend: str, fault: str) -> None:
    async with service_maker(backend) as make, make(settings=THREE) as service:
        user, line = fresh_user(), Line(service.store)
        [memory_id] = await service.add_memory(user, ["text 1"])
        for number in range(2, 6):
            await service.update(user, memory_id, f"text {number}")
        line.faults = ["none", fault]  # the change is done, and then the oldest is to go
        with pytest.raises(StoreUnavailable):
            await service.update(user, memory_id, "text 6")
        assert await versions(service, user, memory_id) == [3, 4, 5, 6]
        for number in range(7, 12):
            await service.update(user, memory_id, f"text {number}")
        assert await versions(service, user, memory_id) == [8, 9, 10, 11]
        assert await service.store.count(Scope(user), Where(kind="version")) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["update", "delete", "add"]),
            st.lists(st.sampled_from(["none", "unsent", "unanswered"]), max_size=5),
        ),
        max_size=25,
    )
)
def test_no_version_outlives_its_memory_or_the_limit(steps: Sequence[Step]) -> None:
    asyncio.run(_no_version_outlives(steps))


async def _no_version_outlives(steps: Sequence[Step]) -> None:
    store, message = MemoryStore(), {"id": "m", "role": "user", "content": "text"}
    line = Line(store)
    async with StoredMemoryService(store, settings=THREE) as service:
        for number, (step, faults) in enumerate(steps):
            line.faults = list(faults)
            with suppress(StoreUnavailable):
                if step == "add":
                    await service.add_memory("ann", [message])
                elif step == "delete":
                    await service.delete("ann", "m")
                elif await service.get("ann", "m") is not None:
                    await service.update("ann", "m", {**message, "content": f"text {number}"})
            line.faults = []
            kept = await versions(service, "ann", "m")
            assert kept == sorted(set(kept))[-4:]
            if not kept:
                assert await service.store.count(Scope("ann"), Where(kind="version")) == 0


async def test_what_is_evicted_takes_its_versions_along_although_a_reply_is_lost() -> None:
    settings = ServiceSettings(embedder=None, max_messages_per_session=1)
    store = MemoryStore()
    async with StoredMemoryService(store, settings=settings) as service:
        line = Line(store)
        [memory_id] = await service.add_memory("ann", ["an apple"])
        await service.update("ann", memory_id, "a pear")
        for faults in (["unanswered"], ["none", "unsent"], ["none", "unanswered"]):
            line.faults = faults
            with suppress(StoreUnavailable):
                await service.add_memory("ann", ["a plum"])
        line.faults = []
        await service.add_memory("ann", ["a cherry"])
        assert await service.list_memory("ann") == ["a cherry"]
        assert await store.count(Scope("ann"), Where(kind="version")) == 0
