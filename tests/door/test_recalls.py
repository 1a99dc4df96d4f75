"""The recall log: what was asked and found, and whether it helped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memoryspace import Memory, MemoryStore
from memoryspace.door import Config
from memoryspace.door.recalls import RecallLog
from memoryspace.errors import InvalidInput, UnknownMemory

from doors import PLACES, WORDS, opener, somebody


@pytest.mark.parametrize("place", PLACES)
def test_every_recall_is_logged_with_what_helped(place: str) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        memory.add([{"id": "car", "content": "My car is a Volvo."}, "I like tea."], user=user)
        found = memory.search("Which car do I drive?", user=user)
        silent = memory.context("How do I sort a list in Python?", user=user)
        assert not silent
        told = memory.feedback(found.recall_id, ["car"], user=user)
        assert told.used == ("car",)
        log = memory.recalls(user=user)
        assert (log.count, log.silent, log.answered, log.helped) == (2, 1, 1, 1)
        assert {each.question for each in log.newest} == {
            "Which car do I drive?",
            "How do I sort a list in Python?",
        }


def test_feedback_names_what_the_recall_returned() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        memory.add("My car is a Volvo.")
        found = memory.search("Which car do I drive?")
        with pytest.raises(InvalidInput, match="did not return 'nothing'"):
            memory.feedback(found.recall_id, "nothing")
        with pytest.raises(UnknownMemory, match="no recall"):
            memory.feedback("nothing", [])
        assert memory.feedback(found.recall_id, []).used == ()
        assert memory.recalls().helped == 0


def test_feedback_on_somebody_elses_recall_is_refused() -> None:
    with Memory("memory:", config=WORDS) as memory:
        memory.add("My car is a Volvo.", user="ann")
        found = memory.search("Which car do I drive?", user="ann")
        with pytest.raises(UnknownMemory):
            memory.feedback(found.recall_id, [], user="bob")


def test_what_was_never_recalled_is_known() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        memory.add(["My car is a Volvo.", "The soup needs salt."])
        memory.search("Which car do I drive?", limit=1)
        assert memory.never_recalled().texts == ("The soup needs salt.",)


def test_the_log_is_bounded() -> None:
    config = Config(embedder="none", max_recalls=20)
    with Memory("memory:", user="ann", config=config) as memory:
        memory.add("My car is a Volvo.")
        for n in range(160):
            memory.search(f"car {n}")
            memory.recalls()  # written one by one
        log = memory.recalls(limit=5)
        assert 20 <= log.count <= 120
        assert [each.question for each in log.newest] == [f"car {n}" for n in range(159, 154, -1)]


def test_a_log_can_be_switched_off() -> None:
    config = Config(embedder="none", max_recalls=0)
    with Memory("memory:", user="ann", config=config) as memory:
        memory.add("My car is a Volvo.")
        assert memory.search("car").recall_id == ""
        assert memory.recalls().count == 0


def test_recalls_are_never_found_as_memories() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        memory.add("My car is a Volvo.")
        memory.search("xylophone lessons")
        memory.recalls()
        assert memory.search("xylophone lessons").texts in ((), ("My car is a Volvo.",))
        assert memory.list().texts == ("My car is a Volvo.",)
        assert memory.stats().memories == 1


class GatedStore(MemoryStore):
    """A store whose writes wait to be let through."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    async def append(self, *args: Any, **options: Any) -> Any:
        """Append when the gate is open."""
        self.begun.set()
        await self.gate.wait()
        return await super().append(*args, **options)


async def test_closing_waits_for_a_recall_that_is_being_written() -> None:
    store = GatedStore()
    log = RecallLog(store, most=10)
    log.note("ann", "Which car?", ["car"])
    await store.begun.wait()
    closing = asyncio.create_task(log.close())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not closing.done()
    store.gate.set()
    await closing
    assert len(await log.entries("ann")) == 1
