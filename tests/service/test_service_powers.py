"""A service of one's own has seven verbs; of the others it can be asked which it offers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memoryspace.events import EventStream
from memoryspace.service import (
    InMemoryMemoryService,
    Mem0MemoryService,
    MemoryService,
    PersonalMemoryService,
    SpaceMemoryService,
)
from memoryspace.service.base import Filters
from memoryspace.service.powers import (
    KnowsInstructions,
    KnowsTools,
    LearnsFromAttempts,
    LearnsFromCalls,
    PrunesLessons,
    Scrubs,
    StandsOnStore,
)
from memoryspace.service.values.memory import Said
from memoryspace.service.values.receipt import Receipt
from memoryspace.service.values.results import Deleted

OPTIONAL = [
    *("get", "update", "delete", "count", "history", "search", "why_not", "facts", "page"),
    *("quarantined", "release", "verify_erasure", "users", "usage"),
]


class Seven(MemoryService):
    """Remembers nothing, in seven verbs."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def health(self) -> bool:
        return True

    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> Receipt:
        return Receipt(["one"])

    async def search_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        filters: Filters | None = None,
        *,
        top_k: int | None = None,
    ) -> list[Any]:
        return []

    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        return []

    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        return Deleted()


async def test_what_a_service_does_not_offer_says_so() -> None:
    service: Any = Seven()
    for verb in OPTIONAL:
        assert not service.offers(verb)
        with pytest.raises(NotImplementedError, match=rf"Seven does not offer {verb}\(\)"):
            await getattr(service, verb)(*["ann", "one", "two"][: _given(verb)])


def _given(verb: str) -> int:
    return {"users": 0, "why_not": 3, "get": 2, "update": 2, "delete": 2, "history": 2,
            "search": 2, "release": 2}.get(verb, 1)  # fmt: skip


async def test_where_nothing_is_derived_nothing_waits() -> None:
    service = Seven()
    assert service.offers("status")
    assert (await service.settled("ann")).is_settled
    assert await service.retry("ann") == 0
    assert isinstance(service.events, EventStream)
    assert service.events is service.events
    receipt = await service.add_memory("ann", "hello")
    assert (receipt.ids, receipt.known, receipt.is_settled) == (("one",), (), True)


def test_ours_offer_the_whole_contract() -> None:
    service = InMemoryMemoryService()
    assert all(map(service.offers, OPTIONAL))
    assert not service.offers("fly")
    assert service.events is service.store.events
    mem0 = Mem0MemoryService(client=object())
    assert mem0.offers("quarantined")
    assert not mem0.offers("why_not")


def test_further_powers_are_asked_for_by_their_protocols(tmp_path: Path) -> None:
    service = PersonalMemoryService()
    for power in (
        *(LearnsFromAttempts, LearnsFromCalls, PrunesLessons, KnowsTools, KnowsInstructions),
        StandsOnStore,
    ):
        assert isinstance(service, power)
        assert not isinstance(Seven(), power)
    assert isinstance(SpaceMemoryService(tmp_path), Scrubs)
    assert not isinstance(service, Scrubs)
