"""Operations: what stores, services, windows, models and embedders tell of their work."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace import EventStream, InMemoryMemory, MemoryStore, Msg, Scope, observed, operation
from memoryspace.context import Compactor, Limits
from memoryspace.embedding import CachedEmbedder, CallableEmbedder, VectorFiles
from memoryspace.embedding.contract import embed_questions, embed_texts
from memoryspace.errors import InvalidInput, ModelFailed
from memoryspace.events import Event
from memoryspace.memory import ContextWindow
from memoryspace.model import ChatResponse, ChatUsage
from memoryspace.model.calling import completed
from memoryspace.model.contract import Completion
from memoryspace.record import Record, Where
from memoryspace.service import (
    InMemoryMemoryService,
    MemoryService,
    PersonalMemoryService,
    ServiceSettings,
)
from memoryspace.testing import ManualClock, ScriptedModel, capture

from backends import STORE_BACKENDS, store_maker

SECRET = "zanzibar"  # what somebody says; no event may hold it
ANN = Scope("ann", "one")


def note(name: str, text: str = SECRET) -> Record:
    return Record(name, text, text=text, kind="note", created_at=1.0)


def told(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(each.data["name"], each.data["outcome"]) for each in events]


def facts(events: Sequence[Event], name: str) -> dict[str, Any]:
    [found] = [each.data for each in events if each.data["name"] == name]
    return found


# -- what is told ----------------------------------------------------------------------------------


def test_an_operation_says_what_for_whom_how_long_and_how_much() -> None:
    timer = ManualClock(10.0)
    events = EventStream(clock=ManualClock(5.0), timer=timer)
    with (
        capture(events) as heard,
        operation("import", on="Importer", scope=ANN, events=events) as done,
    ):
        done.count(given=3)
        timer.advance(2.5)
        done.count(returned=2)
    [event] = heard
    assert (event.name, event.at) == ("operation", 5.0)
    own = event.data["id"]
    assert len(own) == 16
    assert event.data == {
        "name": "import",
        "on": "Importer",
        "scope": ANN,
        "seconds": 2.5,
        "counts": {"given": 3, "returned": 2},
        "outcome": "done",
        "error": None,
        "id": own,
        "parent": None,
        "root": own,
    }


def test_a_failure_is_told_by_the_name_of_its_class_and_still_raised() -> None:
    events = EventStream()

    def fail() -> None:
        with operation("import", on="Importer", events=events):
            raise ValueError(SECRET)

    with capture(events) as heard, pytest.raises(ValueError, match=SECRET):
        fail()
    assert (heard[0].data["outcome"], heard[0].data["error"]) == ("failed", "ValueError")
    assert SECRET not in repr(heard)


async def test_one_that_is_cancelled_says_so() -> None:
    events = EventStream()

    async def wait() -> None:
        with operation("wait", on="Waiter", events=events):
            await asyncio.Event().wait()

    with capture(events) as heard:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert told(heard) == [("wait", "cancelled")]


async def test_parts_name_the_whole_across_tasks_and_threads() -> None:
    events = EventStream()

    def work(name: str) -> None:
        with operation(name, on="Part"):
            pass

    async def task() -> None:
        work("in a task")

    with capture(events) as heard, operation("whole", on="Whole", events=events):
        with operation("middle", on="Part"):
            await asyncio.to_thread(work, "in a thread")
        await asyncio.create_task(task())
    whole, middle = facts(heard, "whole"), facts(heard, "middle")
    assert facts(heard, "in a thread")["parent"] == middle["id"]
    assert middle["parent"] == facts(heard, "in a task")["parent"] == whole["id"]
    assert whole["parent"] is None
    assert {each.data["root"] for each in heard} == {whole["id"]}


async def test_what_outlives_its_operation_is_heard_without_a_parent() -> None:
    events, may_go = EventStream(), asyncio.Event()

    async def background() -> None:
        await may_go.wait()
        with operation("background", on="Part"):
            pass

    with capture(events) as heard:
        with operation("whole", on="Whole", events=events):
            task = asyncio.create_task(background())
        may_go.set()
        await task
    assert told(heard) == [("whole", "done"), ("background", "done")]
    assert heard[1].data["parent"] is None
    assert heard[1].data["root"] == heard[1].data["id"]


def test_an_operation_is_told_once_to_each_stream_around_it() -> None:
    inner, outer = EventStream(), EventStream()
    with (
        capture(inner) as near,
        capture(outer) as far,
        observed(outer),
        observed(inner),
        operation("a", on="A", events=inner),
        operation("b", on="B", events=outer),
    ):
        pass
    assert told(near) == told(far) == [("b", "done"), ("a", "done")]


def test_nothing_is_told_after_an_observed_block() -> None:
    events = EventStream()
    with capture(events) as heard:
        with observed(events):
            pass
        with operation("a", on="A"):
            pass
    assert heard == []


def test_where_nobody_listens_to_operations_none_is_made() -> None:
    events = EventStream()
    assert not operation("a", on="A", events=events).is_reported
    with capture(events, "record_corrupt"):
        assert not operation("a", on="A", events=events).is_reported
        with observed(events):
            assert not operation("a", on="A").is_reported
    with capture(events, "operation"):
        assert operation("a", on="A", events=events).is_reported


# -- stores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_every_verb_of_every_store_is_told(backend: str) -> None:
    async with store_maker(backend) as make:
        store = make()
        scope = Scope(f"ann-{id(store)}", "one")
        with capture(store.events, "operation") as heard:
            await store.append(scope, [note("a"), note("b")])
            await store.select(scope)
            await store.values(scope)
            await store.mark(scope, Where(ids=frozenset({"a"})), add={"seen"})
            await store.replace(scope, Where(ids=frozenset({"a"})), [note("c")])
            await store.count(scope)
            await store.sessions(scope.user)
            await store.changes(scope.user)
            await store.usage(scope.user)
            await store.delete(scope)
            with pytest.raises(InvalidInput):
                await store.append(Scope(scope.user), [note("d")])
        assert [
            (each["name"], each["counts"], each["outcome"]) for each in (e.data for e in heard)
        ] == [
            ("store.append", {"given": 2, "returned": 2}, "done"),
            ("store.select", {"returned": 2}, "done"),
            ("store.values", {"returned": 2}, "done"),
            ("store.mark", {"returned": 1}, "done"),
            ("store.replace", {"given": 1, "returned": 1}, "done"),
            ("store.count", {"returned": 2}, "done"),
            ("store.sessions", {"returned": 1}, "done"),
            ("store.changes", {"returned": 2}, "done"),
            ("store.usage", {"returned": 1}, "done"),
            ("store.delete", {"returned": 2}, "done"),
            ("store.append", {"given": 1}, "failed"),
        ]
        assert {each.data["on"] for each in heard} == {type(store).__name__}
        assert {each.data["scope"].user for each in heard} == {scope.user}
        assert all(each.data["seconds"] > 0 for each in heard)
        assert SECRET not in repr(heard)


async def test_a_store_of_ones_own_is_told_once_though_it_hands_on() -> None:
    class Own(MemoryStore):
        async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
            return await super().append(scope, records)

        async def purge(self, user: str) -> int:
            return len(await self.delete(Scope(user)))

    store = Own()
    with capture(store.events) as heard:
        await store.append(ANN, [note("a")])
        await store.purge("ann")
    assert told(heard) == [("store.append", "done"), ("store.purge", "done")]
    assert heard[1].data["scope"] == Scope("ann")


def test_a_verb_is_still_known_as_a_coroutine_function_with_its_signature() -> None:
    assert asyncio.iscoroutinefunction(MemoryStore.append)
    assert list(inspect.signature(MemoryStore.append).parameters) == ["self", "scope", "records"]
    assert MemoryStore.append.__name__ == "append"


def test_wrong_arguments_raise_what_they_always_do() -> None:
    store = MemoryStore()
    with capture(store.events) as heard, pytest.raises(TypeError, match=r"append\(\) missing 1"):
        store.append(ANN)  # type: ignore[call-arg]
    assert heard == []


async def test_defaults_and_options_are_handed_on() -> None:
    class Own(MemoryStore):
        async def verb(self, a: int, b: int = 2, *, d: int, e: int = 5) -> list[int]:
            return [a, b, d, e]

        async def loose(self, a: int, /, *args: int, **options: int) -> list[int]:
            return [a, *args, *options.values()]

    store = Own()
    assert await store.verb(1, d=4) == [1, 2, 4, 5]
    with capture(store.events) as heard:
        assert await store.verb(1, 3, d=6, e=7) == [1, 3, 6, 7]
        assert await store.verb(b=1, a=3, d=6) == [3, 1, 6, 5]
        assert await store.loose(1, 2, x=3, y=4) == [1, 2, 3, 4]
    assert [each.data["counts"] for each in heard] == [{"returned": 4}] * 3
    assert await store.loose(1, 2, x=3) == [1, 2, 3]


async def test_reading_a_memory_in_ram_is_told_as_well() -> None:
    memory = InMemoryMemory()
    await memory.add(Msg("Ann", SECRET, "user"))
    with capture(memory.events) as heard:
        await memory.get_memory()
    assert {each.data["on"] for each in heard} == {"MemoryStore"}
    assert heard


# -- services --------------------------------------------------------------------------------------


async def test_a_service_is_the_parent_of_what_its_store_and_embedder_do() -> None:
    embedder = CallableEmbedder(
        lambda texts: np.ones((len(texts), 2), np.float32), dimensions=2, name="ones"
    )
    service = InMemoryMemoryService(settings=ServiceSettings(embedder=embedder))
    with capture(service.events, "operation") as heard:
        async with service:
            await service.add_memory("ann", [SECRET, "tea"], "one")
            await service.settled("ann")
            await service.search("ann", SECRET)
            assert await service.get("ann", "nothing") is None
            await service.delete_memory("ann")
    added = facts(heard, "service.add_memory")
    assert added["counts"] == {"given": 2, "returned": 2}
    assert added["scope"] == ANN
    assert facts(heard, "store.append")["parent"] == added["id"]
    search = facts(heard, "service.search")
    assert search["counts"] == {"given": 1, "returned": 2}
    asked = [e.data for e in heard if e.data["on"] == "ones" and e.data["counts"] == {"given": 1}]
    assert [each["root"] for each in asked] == [search["id"]]
    assert facts(heard, "service.get")["counts"] == {"returned": 0}
    assert facts(heard, "service.delete_memory")["counts"] == {"returned": 2}
    assert SECRET not in repr(heard)


async def test_a_derivation_is_heard_with_its_model_and_never_says_what_was_said() -> None:
    model = ScriptedModel(ModelFailed(SECRET), ModelFailed(SECRET), ModelFailed(SECRET))
    settings = ServiceSettings(embedder=None)
    service = PersonalMemoryService(MemoryStore(), settings=settings, model=model)
    with capture(service.events) as heard:
        async with service:
            await service.add_memory("ann", [f"I love {SECRET}."])
            await service.settled("ann")
    assert any(each.data.get("name") == "model.call" for each in heard)
    assert SECRET not in repr(heard)


async def test_a_service_of_ones_own_without_a_stream_is_heard_where_it_is_observed() -> None:
    class Own(MemoryService):
        async def start(self) -> None:
            pass

        async def stop(self) -> None:
            pass

        async def health(self) -> bool:
            return True

        async def add_memory(
            self, user_id: str, messages: Any, session_id: str | None = None
        ) -> list[str]:
            return ["1"]

        async def search_memory(
            self, user_id: str, messages: Any, filters: Any = None
        ) -> list[Any]:
            return []

        async def list_memory(self, user_id: str, filters: Any = None) -> list[Any]:
            return []

        async def delete_memory(self, user_id: str, session_id: str | None = None) -> Any:
            raise LookupError(SECRET)

    events, service = EventStream(), Own()
    assert await service.add_memory("ann", "tea") == ["1"]
    with capture(events) as heard, observed(events):
        assert await service.health()
        await service.add_memory("ann", {"role": "user", "content": "tea"})
        await service.add_memory("", "tea")
        with pytest.raises(LookupError):
            await service.delete_memory("ann", "one")
    assert [(each.data["counts"], each.data["scope"]) for each in heard] == [
        ({}, None),
        ({"given": 1, "returned": 1}, Scope("ann")),
        ({"given": 1, "returned": 1}, None),
        ({}, ANN),
    ]
    assert SECRET not in repr(heard)


# -- the window, models, embedders -----------------------------------------------------------------


async def test_a_look_through_a_window_is_told_with_what_it_took() -> None:
    memory = InMemoryMemory(user_id="ann", session_id="one")
    for number in range(40):
        await memory.add(Msg("Ann", f"{SECRET} {number} " + "word " * 20, "user"))
    window = ContextWindow(memory, Compactor(Limits(budget=300)))
    with capture(memory.events, "operation") as heard:
        shown = await window.messages()
        await window.expand((await memory.all_messages())[0].id)
    look = facts(heard, "context.messages")
    assert look["counts"]["returned"] == len(shown) < 40
    assert (look["on"], look["scope"], look["outcome"]) == ("InMemoryMemory", ANN, "done")
    marks = [each.data for each in heard if each.data["name"] == "store.mark"]
    assert marks
    assert {each["parent"] for each in marks} == {look["id"]}
    assert facts(heard, "context.expand")["outcome"] == "done"
    assert SECRET not in repr(heard)


def answer(text: str = SECRET) -> ChatResponse:
    return ChatResponse([{"type": "text", "text": text}], usage=ChatUsage(7, 5, 0.1))


async def test_a_call_of_a_chat_model_is_told_with_its_tokens() -> None:
    events, model = EventStream(), ScriptedModel(answer(), answer(), ModelFailed(SECRET))
    prompt = [{"role": "user", "content": SECRET}]
    with capture(events) as heard, observed(events):
        await model(prompt)
        await completed(model, prompt)  # which calls the model itself: it is one operation
        with pytest.raises(ModelFailed):
            await model(messages=prompt)
    tokens = {"given": 1, "input_tokens": 7, "output_tokens": 5}
    assert [(each.data["on"], each.data["counts"]) for each in heard] == [
        ("scripted", tokens),
        ("scripted", tokens),
        ("scripted", {"given": 1}),
    ]
    assert told(heard) == [("model.call", "done")] * 2 + [("model.call", "failed")]
    assert SECRET not in repr(heard)


async def test_a_model_of_ones_own_is_told_where_the_package_asks_it() -> None:
    class Own:
        name = "own"

        async def complete(self, messages: Any, *, schema: Any = None) -> Completion:
            return Completion(SECRET, 3)

    events = EventStream()
    with capture(events) as heard, observed(events):
        await completed(Own(), [])
    assert facts(heard, "model.call")["counts"] == {"given": 0, "input_tokens": 3}


async def test_a_streamed_answer_ends_with_its_last_piece_or_when_it_is_left() -> None:
    events, model = EventStream(), ScriptedModel(answer(), answer(), stream=True)
    with capture(events) as heard, observed(events):
        stream: Any = await model([])
        assert heard == []
        pieces = [piece async for piece in stream]
        left: Any = await model([])
        await anext(left)
        with operation("after", on="Test"):
            pass
        await left.aclose()
    assert pieces[-1].text == SECRET
    assert told(heard) == [("model.call", "done"), ("after", "done"), ("model.call", "cancelled")]
    assert heard[0].data["counts"]["output_tokens"] == 5
    assert heard[1].data["parent"] is None


def test_an_embedder_is_told_by_its_name_and_only_for_what_it_embeds(tmp_path: Path) -> None:
    embedder = CallableEmbedder(
        lambda texts: np.ones((len(texts), 2), np.float32), dimensions=2, name="ones"
    )
    cached, events = CachedEmbedder(embedder, VectorFiles(tmp_path)), EventStream()
    with capture(events) as heard, observed(events):
        embed_texts(cached, [SECRET, "tea"])
        embed_texts(cached, [SECRET, "tea", "milk"])
        embed_questions(cached, ["milk"])
        embed_questions(embedder, ["milk"])
    assert [(each.data["name"], each.data["counts"]) for each in heard] == [
        ("embedder.embed", {"given": 2}),
        ("embedder.embed", {"given": 1}),
        ("embedder.embed", {"given": 1}),
    ]
    assert {each.data["on"] for each in heard} == {"ones"}
    assert SECRET not in repr(heard)
