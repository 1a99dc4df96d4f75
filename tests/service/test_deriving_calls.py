"""Deriving asks the store for little: what was just written or read is handed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memoryspace import MemoryStore, Record, Scope, Where
from memoryspace.service import PersonalMemoryService
from memoryspace.service.values.kinds import JOB

from services import WORDS

VERBS = ("append", "select", "replace", "mark", "delete", "count", "changes", "sessions", "values")

Meanwhile = Callable[[], Awaitable[object]]


class CountingStore(MemoryStore):
    """Counts the calls of its verbs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in VERBS:
            self.calls[name] += 1
        return super().__getattribute__(name)


class InterruptedStore(MemoryStore):
    """Lets something happen once, when a job's decisions have been written down."""

    meanwhile: Meanwhile | None = None

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        added = await super().replace(scope, where, records, if_found=if_found)
        if self.meanwhile is not None and records[0].kind == JOB:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return added


async def facts_of(service: PersonalMemoryService) -> list[str]:
    return [each.text for each in await service.facts("ann")]


async def test_a_fact_that_supersedes_another_takes_nine_calls() -> None:
    store = CountingStore()
    async with PersonalMemoryService(store, settings=WORDS) as service:
        await service.add_memory("ann", ["I live in Rome."])
        await service.add_memory("ann", ["I love hiking."])
        store.calls.clear()
        receipt = await service.add_memory("ann", ["I moved to Oslo."])
        assert receipt.derived == ("personal",)
        assert store.calls.total() <= 9, store.calls
        assert await facts_of(service) == [
            "The user moved to Oslo.",
            "The user loves hiking.",
        ]


async def test_it_takes_no_more_however_much_is_known() -> None:
    store = CountingStore()
    async with PersonalMemoryService(store, settings=WORDS) as service:
        pets = [f"I have a cat called Tom{n}." for n in range(40)]
        await service.add_memory("ann", ["I live in Rome.", *pets])
        await service.search("ann", "cat")
        store.calls.clear()
        await service.add_memory("ann", ["I moved to Oslo."])
        assert store.calls.total() <= 9, store.calls
        assert (await facts_of(service))[0] == "The user moved to Oslo."


async def test_what_nothing_follows_from_takes_fewer() -> None:
    store = CountingStore()
    async with PersonalMemoryService(store, settings=WORDS) as service:
        await service.add_memory("ann", ["I live in Rome."])
        store.calls.clear()
        await service.add_memory("ann", ["Thanks!"])
        assert store.calls.total() <= 6, store.calls


async def test_what_is_changed_while_it_is_thought_about_puts_an_end_to_nothing() -> None:
    store = InterruptedStore()
    async with (
        PersonalMemoryService(store, settings=WORDS) as service,
        PersonalMemoryService(store, settings=WORDS) as other,
    ):
        await service.add_memory("ann", ["I live in Rome."])
        told = {"id": "told", "role": "user", "content": "I moved to Oslo."}
        store.meanwhile = lambda: other.update("ann", "told", "I love hiking.")
        await service.add_memory("ann", [told])
        assert store.meanwhile is None
        for each in (service, other):
            assert (await each.settled("ann")).is_settled
        assert sorted(await facts_of(service)) == [
            "The user lives in Rome.",
            "The user loves hiking.",
        ]


async def test_what_is_deleted_while_it_is_thought_about_leaves_nothing() -> None:
    store = InterruptedStore()
    async with (
        PersonalMemoryService(store, settings=WORDS) as service,
        PersonalMemoryService(store, settings=WORDS) as other,
    ):
        await service.add_memory("ann", ["I live in Rome."])
        told = {"id": "told", "role": "user", "content": "I love hiking."}
        store.meanwhile = lambda: other.delete("ann", "told")
        await service.add_memory("ann", [told])
        assert (await service.settled("ann")).is_settled
        assert await facts_of(service) == ["The user lives in Rome."]
        await service.delete_memory("ann")
        assert (await service.verify_erasure("ann")).is_complete


async def test_what_is_deleted_while_it_is_thought_about_puts_an_end_to_nothing() -> None:
    store = InterruptedStore()
    async with (
        PersonalMemoryService(store, settings=WORDS) as service,
        PersonalMemoryService(store, settings=WORDS) as other,
    ):
        await service.add_memory("ann", ["I live in Rome."])
        told = {"id": "told", "role": "user", "content": "I moved to Oslo."}
        store.meanwhile = lambda: other.delete("ann", "told")
        await service.add_memory("ann", [told])
        assert (await service.settled("ann")).is_settled
        assert await facts_of(service) == ["The user lives in Rome."]


async def test_a_repeated_message_is_thought_about_once() -> None:
    store = CountingStore()
    async with PersonalMemoryService(store, settings=WORDS) as service:
        told = {"id": "told", "role": "user", "content": "I live in Rome."}
        await service.add_memory("ann", [told])
        await service.add_memory("ann", [told, "I love hiking."])
        await service.add_memory("ann", [told, told])
        assert len(await facts_of(service)) == 2
        [rome] = [each for each in await service.facts("ann") if "Rome" in each.text]
        assert rome.details["confirmations"] == 0
