"""Tablestore: every verb in one step, whatever fails; searches see what was just written."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import logging
import random
import threading
from typing import Any

import pytest
from msgspec.structs import replace as change
from tablestore import FieldSchema, FieldType, VectorMetricType

from memoryspace import MemoryStore, Msg, Record, Scope, Where
from memoryspace.embedding import CallableEmbedder
from memoryspace.errors import InvalidInput, NotSerializable, NotStarted, StoreError
from memoryspace.service.search import Query
from memoryspace.service.tablestore import (
    SearchStrategy,
    TablestoreMemoryService,
    TablestoreSearcher,
    TablestoreStore,
    create_tablestore_client,
)
from memoryspace.store.tablestore.documents import DocumentTable
from memoryspace.store.tablestore.rows import Layout, document_id, tenant_of
from memoryspace.testing import STORE_CONTRACT, ManualClock, StoreCheck, capture
from memoryspace.testing.service_contract import SERVICE_CONTRACT, ServiceCheck
from memoryspace.testing.tablestore import FakeTablestoreClient

LAYOUT = Layout(table_name="memories", search_index_name="index", vector_dimension=3)
LOG = "memories_log"
WORDS = ("tennis", "tea", "rain")

_blank: list[FakeTablestoreClient] = []


def new_client(*, index_lag: bool = False) -> FakeTablestoreClient:
    """Return a client whose tables are there; making them takes the package a second."""
    if not _blank:
        made = FakeTablestoreClient()
        asyncio.run(store_on(made).open())
        asyncio.run(service_on(made).store.open())  # type: ignore[attr-defined]  # its own kind of store
        _blank.append(made)
    client = copy.deepcopy(_blank[0])
    client.index_lag = index_lag
    return client


def store_on(client: FakeTablestoreClient, **options: Any) -> TablestoreStore:
    return TablestoreStore(client, DocumentTable(client, LAYOUT), **options)


def service_on(client: Any, **options: Any) -> TablestoreMemoryService:
    return TablestoreMemoryService(client, **{"vector_dimension": 3, **options})


def counted(texts: list[str]) -> list[list[float]]:
    return [[float(text.lower().count(word)) for word in WORDS] for text in texts]


def note(id_: str, *marks: str, **fields: Any) -> Record:
    return Record(id_, {"n": id_}, marks=frozenset(marks), kind="note", **fields)


def ids(records: list[Record]) -> list[str]:
    return [record.id for record in records]


def rows_of(client: FakeTablestoreClient, user: str) -> int:
    """Return how many rows of all tables belong to a user."""
    parts = {tenant_of(user), user}
    return sum(
        any(part[1] in parts for part in key)
        for table in client.tables.values()
        for key in table.rows
    )


@pytest.fixture(scope="module", autouse=True)
def _tables() -> None:
    new_client()


@pytest.fixture(scope="module")
def shared() -> FakeTablestoreClient:
    return new_client()


# -- the store ------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", STORE_CONTRACT, ids=lambda check: check.__name__[6:])
async def test_the_store_contract(shared: FakeTablestoreClient, check: StoreCheck) -> None:
    await check(lambda **options: store_on(shared, **options))


@pytest.mark.parametrize("verb", ["append", "replace", "mark", "delete", "delete all"])
async def test_a_crash_at_any_moment_leaves_all_or_nothing(verb: str) -> None:
    for moment in range(100):
        client, scope = new_client(), Scope("ann", "s")
        await store_on(client).append(scope, [note("a"), note("b", "x")])
        before = await seen(client, scope)
        store = store_on(client)
        client.fail(1000, skip=moment)
        try:
            await change_by(store, verb, scope)
            has_ended = True
        except StoreError:
            has_ended = False
        client.heal()
        after = await seen(client, scope)
        assert after in (before, EXPECTED[verb])
        if has_ended:
            assert after == EXPECTED[verb]
            return
        await change_by(store_on(client), verb, scope)
        assert await seen(client, scope) == EXPECTED[verb]
    raise AssertionError("it never came to an end")


EXPECTED = {
    "append": [("a", set()), ("b", {"x"}), ("c", set()), ("d", set())],
    "replace": [("b", {"x"}), ("c", set())],
    "mark": [("a", {"y"}), ("b", {"x", "y"})],
    "delete": [("b", {"x"})],
    "delete all": [],
}


async def change_by(store: TablestoreStore, verb: str, scope: Scope) -> None:
    a = Where(ids=frozenset({"a"}))
    if verb == "append":
        await store.append(scope, [note("c"), note("d")])
    elif verb == "replace":
        await store.replace(scope, a, [note("c")])
    elif verb == "mark":
        await store.mark(scope, Where(), add={"y"})
    else:
        await store.delete(scope, a if verb == "delete" else Where())


async def seen(client: FakeTablestoreClient, scope: Scope) -> list[tuple[str, set[str]]]:
    store = store_on(client)
    with capture(store.events, "record_corrupt") as events:
        found = [(record.id, set(record.marks)) for record in await store.select(scope)]
    assert events == []  # nothing was corrupt
    return found


@pytest.mark.parametrize("verb", ["append", "replace", "mark", "delete", "delete all"])
async def test_an_answer_that_is_lost_never_means_twice_or_half(verb: str) -> None:
    for moment in range(100):
        client, scope = new_client(), Scope("ann", "s")
        store = store_on(client)
        await store.append(scope, [note("a"), note("b", "x")])
        before = await seen(client, scope)
        client.fail(1, skip=moment, after=True)
        calls = client.calls.total()
        try:
            await change_by(store, verb, scope)
            is_over = client.calls.total() - calls <= moment
        except StoreError:
            is_over = False
            assert await seen(client, scope) in (before, EXPECTED[verb])
            await change_by(store, verb, scope)
        client.heal()
        assert await seen(client, scope) == EXPECTED[verb]
        if is_over:
            return
    raise AssertionError("it never came to an end")


async def test_a_lost_answer_to_the_deciding_write_is_found_out() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store = store_on(client)
    await store.append(scope, [note("a")])
    client.fail(
        on="update_row", skip=1, after=True
    )  # the first moves the counter, the next the head
    assert await store.append(scope, [note("b")]) == ["b"]
    assert ids(await store.select(scope)) == ["a", "b"]


async def test_of_many_who_change_one_record_one_wins_at_a_time() -> None:
    client, scope = new_client(), Scope("ann", "s")
    stores = [store_on(client) for _ in range(5)]
    await stores[0].append(scope, [Record("n", {"count": 0}, kind="note")])

    async def count_up(store: TablestoreStore) -> None:
        while True:
            (record,) = await store.select(scope, Where(ids=frozenset({"n"})))
            assert isinstance(record.value, dict)
            new = change(record, value={"count": record.value["count"] + 1})
            where = Where(ids=frozenset({"n"}), after=record.seq - 1, before=record.seq + 1)
            if await store.replace(scope, where, [new], if_found=True):
                return

    await asyncio.gather(*(count_up(stores[n % 5]) for n in range(20)))
    (record,) = await stores[0].select(scope)
    assert record.value == {"count": 20}
    assert len(client.tables["memories"].rows) == 1  # those who were late have taken theirs back


async def test_it_does_what_the_reference_does_with_any_operations() -> None:
    client, clock, chance = new_client(), ManualClock(), random.Random(7)
    reference = MemoryStore(clock=clock)
    stores = [store_on(client, clock=clock) for _ in range(3)]
    states: list[Any] = [None, None]
    for _ in range(400):
        scope = Scope(chance.choice(["ann", "bob"]), chance.choice(["s", "t"]))
        store, verb = chance.choice(stores), chance.choice(["append", "replace", "mark", "delete"])
        where = chance.choice(
            [
                Where(ids=frozenset(chance.sample("abcdef", 2))),
                Where(limit=2, newest=chance.random() < 0.5),
                Where(marks=frozenset({"x"})),
                Where() if chance.random() < 0.2 else Where(limit=1),
            ]
        )
        marks = chance.sample(["x", "y"], chance.randrange(3))
        due = clock.now + chance.randrange(1, 20) if chance.random() < 0.2 else None
        new = [note(id_, *marks, expires_at=due) for id_ in chance.sample("abcdef", 2)]
        is_strict = chance.random() < 0.5
        answers = []
        for each in (reference, store):
            if verb == "append":
                answers.append(await each.append(scope, new))
            elif verb == "replace":
                answers.append(await each.replace(scope, where, new, if_found=is_strict))
            elif verb == "mark":
                answers.append([str(await each.mark(scope, where, add={"y"}, remove={"x"}))])
            else:
                wide = Scope(scope.user) if is_strict else scope
                answers.append(sorted(await each.delete(wide, where)))
        assert answers[0] == answers[1]
        clock.advance(1)
        for user in ("ann", "bob"):
            assert await described(stores[0], user) == await described(reference, user)
        await check_changes(stores[1], states)


async def described(store: Any, user: str) -> list[tuple[Any, ...]]:
    return [(r.session, r.id, r.marks, r.value) for r in await store.select(Scope(user))]


async def check_changes(store: TablestoreStore, held: list[Any]) -> None:
    """Follow ann's records by changes alone, and compare with what is there."""
    changes = await store.changes("ann", held[0])
    view: dict[tuple[str, str], int] = {} if held[1] is None else held[1]
    view = {
        (session, id_): seq
        for (session, id_), seq in view.items()
        if session not in changes.gone
        and (session not in changes.kept or changes.kept[session].get(id_) == seq)
    }
    view |= {(record.session or "", record.id): record.seq for record in changes.records}
    held[:] = [changes.state, view]
    there = await store.select(Scope("ann"))
    assert view == {(record.session or "", record.id): record.seq for record in there}
    assert await store.sessions("ann") == sorted({record.session or "" for record in there})


@pytest.mark.parametrize("is_same", [False, True])
async def test_a_reader_never_sees_neither_the_old_nor_the_new(is_same: bool) -> None:
    client, scope = new_client(), Scope("ann", "s")
    writer = store_on(client)
    reader = writer if is_same else store_on(client)
    await writer.append(scope, [note("a")])
    is_over = asyncio.Event()

    async def write() -> None:
        for _ in range(30):
            await writer.replace(scope, Where(), [note("a")])
        is_over.set()

    async def read() -> None:
        while not is_over.is_set():
            with capture(reader.events, "record_corrupt") as events:
                assert ids(await reader.select(scope)) == ["a"]
            assert events == []

    await asyncio.gather(write(), read(), read())


class Slow:
    """A client that keeps the answers to changes of heads back until it is told."""

    def __init__(self, fake: FakeTablestoreClient) -> None:
        self._fake = fake
        self.gate = asyncio.Event()

    async def update_row(self, table: str, row: Any, condition: Any) -> Any:
        answer = await self._fake.update_row(table, row, condition)
        if row.primary_key[0] != ("tenant", "seq"):
            await self.gate.wait()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fake, name)


async def test_others_may_see_a_change_before_whoever_made_it_does() -> None:
    client, scope = Slow(new_client()), Scope("ann", "s")
    store = TablestoreStore(client, DocumentTable(client, LAYOUT))
    await store.append(scope, [note("a"), note("b")])
    change_it = asyncio.create_task(store.replace(scope, Where(limit=1), [note("c")]))
    while ids(await store.select(scope)) != ["b", "c"]:
        assert not change_it.done()
    client.gate.set()
    assert await change_it == ["c"]
    assert ids(await store.select(scope)) == ["b", "c"]


async def test_a_user_who_is_deleted_leaves_no_row() -> None:
    client = new_client()
    store = store_on(client)
    for session in ("s", "t"):
        await store.append(Scope("ann", session), [note(str(n)) for n in range(250)])
    await store.append(Scope("bob", "s"), [note("b")])
    await store.replace(Scope("ann", "s"), Where(limit=3), [note("new")])
    assert rows_of(client, "ann") > 400
    assert len(await store.delete(Scope("ann"))) == 498
    assert rows_of(client, "ann") == 0
    assert ids(await store.select(Scope("bob"))) == ["b"]


async def test_what_a_crashed_writer_left_is_swept_up_with_the_user() -> None:
    client, scope = new_client(), Scope("ann", "s")
    for moment in range(4, 9):
        client.fail(1000, skip=moment)
        with pytest.raises(StoreError):
            await store_on(client).append(scope, [note("a")])
        client.heal()
    assert rows_of(client, "ann") > 0
    store = store_on(client)
    assert await store.delete(Scope("ann")) == []
    await TablestoreSearcher(store).forget("ann")
    assert rows_of(client, "ann") == 0
    assert await store.append(scope, [note("a")]) == ["a"]


async def test_sweeping_never_takes_from_a_user_who_comes_back() -> None:
    for turn in range(12):
        client, scope = new_client(), Scope("ann", "s")
        client.fail(1000, skip=5)
        with pytest.raises(StoreError):
            await store_on(client).append(scope, [note("lost")])
        client.heal()
        sweeper, writer = store_on(client), store_on(client)

        async def write(writer: TablestoreStore = writer, turn: int = turn) -> list[str]:
            for _ in range(turn):
                await asyncio.sleep(0)
            return await writer.append(Scope("ann", "s"), [note("a")])

        added, _ = await asyncio.gather(write(), sweeper.sweep("ann"))
        assert added == ["a"]
        assert await seen(client, scope) == [("a", set())]


async def test_expired_records_leave_no_row_behind() -> None:
    client, clock = new_client(), ManualClock()
    store, scope = store_on(client, clock=clock), Scope("ann", "s")
    await store.append(scope, [note("a", expires_at=clock.now + 5), note("b")])
    clock.advance(5)
    await store.mark(scope, Where(), add={"x"})
    assert len(client.tables["memories"].rows) == 1
    await store.append(scope, [note("c", expires_at=clock.now + 5)])
    await store.delete(scope, Where(ids=frozenset({"b"})))
    clock.advance(5)
    assert await store.delete(Scope("ann")) == []
    await store.sweep("ann")
    assert rows_of(client, "ann") == 0


async def test_a_record_may_expire_while_it_is_marked() -> None:
    client, times = new_client(), itertools.count()
    store = store_on(client, clock=lambda: float(next(times)))
    for ticks in range(12):
        scope = Scope(f"user-{ticks}", "s")
        due = float(next(times) + ticks)
        await store.append(scope, [note("a", expires_at=due), note("b")])
        await store.mark(scope, Where(), add={"x"})
        found = await store_on(client, clock=lambda: 0.0).select(scope)
        assert ("b", {"x"}) in [(record.id, set(record.marks)) for record in found]


async def test_a_long_history_is_folded() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store, other = store_on(client), store_on(client)
    await store.append(scope, [note("a"), note("b")])
    for _ in range(200):
        await store.replace(scope, Where(ids=frozenset({"a"})), [note("a")])
        assert len(client.tables[LOG].rows) < 60
    assert len(client.tables["memories"].rows) == 2
    assert ids(await other.select(scope)) == ids(await store_on(client).select(scope)) == ["b", "a"]


async def test_a_history_in_several_parts_is_read_whole() -> None:
    client, scope = new_client(), Scope("ann", "s")
    marks = [f"{number:04}{'x' * 240}" for number in range(40)]
    await store_on(client).append(scope, [note(str(n), *marks) for n in range(300)])
    assert sum(key[2][1] > 0 for key in client.tables[LOG].rows) > 0
    found = await store_on(client).select(scope)
    assert len(found) == 300
    assert all(record.marks == set(marks) for record in found)


async def test_places_grow_even_if_the_counter_is_lost() -> None:
    client, scope = new_client(), Scope("ann", "s")
    await store_on(client).append(scope, [note(str(n)) for n in range(5)])
    table = client.tables[LOG]
    table.delete([("tenant", "seq"), ("stamp", 0), ("part", 0)], None)
    await store_on(client).append(scope, [note("newest")])
    reader = store_on(client)
    assert ids(await reader.select(scope))[-1] == "newest"
    await store_on(client).delete(scope)
    table.delete([("tenant", "seq"), ("stamp", 0), ("part", 0)], None)
    await store_on(client).append(scope, [note("anew")])
    assert ids(await reader.select(scope)) == ["anew"]


async def test_rows_that_a_busy_server_did_not_take_are_sent_again() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store = store_on(client)
    client.fail_rows(7, skip=5)  # the commit, and some of the records
    await store.append(scope, [note(str(n)) for n in range(20)])
    assert len(await store.select(scope)) == 20


async def test_a_row_that_does_not_read_back_is_reported_and_skipped() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store = store_on(client)
    await store.append(scope, [note("a"), note("b"), note("c")])
    first, second, _ = await store.select(scope)
    table = client.tables["memories"]
    table.delete([("document_id", document_id(first.seq)), ("tenant_id", "u:ann")], None)
    table.put(
        [("document_id", document_id(second.seq)), ("tenant_id", "u:ann")],
        [("memoryspace_record", '{"value":')],
        None,
    )
    with capture(store.events, "record_corrupt") as events:
        assert ids(await store.select(scope)) == ["c"]
    assert [(event.name, event.data["id"]) for event in events] == [
        ("record_corrupt", "a"),
        ("record_corrupt", "b"),
    ]
    assert sorted(await store.delete(scope)) == ["a", "b", "c"]


async def test_what_cannot_be_written_changes_nothing() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store = store_on(client)
    await store.append(scope, [note("a")])
    rows = rows_of(client, "ann")
    with pytest.raises(NotSerializable, match="record 'b'"):
        await store.replace(scope, Where(), [Record("b", {"at": object()}, kind="note")])
    with pytest.raises(InvalidInput, match="at most 2000000 fit"):
        await store.replace(scope, Where(), [Record("b", "x" * 2_000_001, kind="note")])
    assert ids(await store.select(scope)) == ["a"]
    assert rows_of(client, "ann") == rows


async def test_a_verb_that_changes_nothing_writes_nothing() -> None:
    client, scope = new_client(), Scope("ann", "s")
    store = store_on(client)
    await store.append(scope, [note("a", "x")])
    calls = dict(client.calls)
    assert await store.append(scope, [note("a", "x")]) == []
    assert await store.mark(scope, Where(), add={"x"}) == 0
    assert await store.delete(scope, Where(ids=frozenset({"b"}))) == []
    assert await store.replace(scope, Where(ids=frozenset({"b"})), [note("c")], if_found=True) == []
    writes = ("put_row", "update_row", "delete_row", "batch_write_row")
    assert [client.calls[verb] - calls.get(verb, 0) for verb in writes] == [0] * 4


def test_one_store_serves_several_event_loops_one_after_the_other() -> None:
    store, scope = store_on(new_client()), Scope("ann", "s")
    for number in range(3):
        asyncio.run(store.append(scope, [note(str(number))]))
    assert asyncio.run(store.count(scope)) == 3


# -- the service ----------------------------------------------------------------------------------


async def test_what_was_just_said_is_found_though_the_index_has_not_seen_it() -> None:
    client = new_client(index_lag=True)
    async with service_on(client) as service, service_on(client) as elsewhere:
        await service.add_memory("ann", ["I like tennis", "I like tea"], "s")
        assert await service.search_memory("ann", "tennis") == ["I like tennis"]
        assert await elsewhere.search_memory("ann", "tea") == ["I like tea"]
        client.settle()
        assert await service.search_memory("ann", "tennis") == ["I like tennis"]
        await elsewhere.add_memory("ann", "tennis again", "s")
        assert set(await service.search_memory("ann", "tennis")) == {
            "I like tennis",
            "tennis again",
        }


async def test_what_is_found_does_not_depend_on_how_far_the_index_is() -> None:
    client = new_client(index_lag=True)
    said = ["I was running home", "She likes cities", "我喜欢打网球", "It rained"]
    async with service_on(client) as service:
        await service.add_memory("ann", said)
        questions = ["run", "runs", "a city liked", "网球", "打网", "rain", "snow"]
        before = [await service.search_memory("ann", each) for each in questions]
        client.settle()
        await service.stop()
        await service.start()
        assert [await service.search_memory("ann", each) for each in questions] == before
        assert before == [[said[0]], [said[0]], [said[1]], [said[2]], [said[2]], [said[3]], []]


async def test_a_title_is_found_too() -> None:
    store = store_on(new_client())
    held = {"form": "text", "body": "x", "updated_at": 1.0, "title": "Booking flights"}
    record = Record("a", held, "Look at the price first.", kind="memory", created_at=1.0)
    await store.append(Scope("ann", "s"), [record])
    found = await TablestoreSearcher(store).search("ann", Query(text="flight", top_k=1))
    assert [each.id for each in found] == ["a"]


@pytest.mark.parametrize("index_lag", [False, True])
@pytest.mark.parametrize("check", SERVICE_CONTRACT, ids=lambda check: check.__name__[6:])
async def test_the_service_contract(check: ServiceCheck, index_lag: bool) -> None:
    client = new_client(index_lag=index_lag)
    await check(lambda **options: service_on(client, **options))


async def test_what_was_deleted_or_changed_is_not_found_though_the_index_still_has_it() -> None:
    client = new_client(index_lag=True)
    async with service_on(client) as service:
        first, second = await service.add_memory("ann", ["I like tennis", "tennis is loud"])
        client.settle()
        await service.delete("ann", first)
        assert await service.search_memory("ann", "tennis") == ["tennis is loud"]
        await service.update("ann", second, "football is loud")
        assert await service.search_memory("ann", "tennis") == []
        assert await service.search_memory("ann", "football") == ["football is loud"]
        client.settle()
        assert await service.search_memory("ann", "tennis") == []
        assert await service.search_memory("ann", "football") == ["football is loud"]
        assert [each.text for each in await service.history("ann", second)] == [
            "tennis is loud",
            "football is loud",
        ]


async def test_an_index_that_lags_by_much_hides_nothing() -> None:
    client = new_client(index_lag=True)
    async with service_on(client) as service:
        await service.add_memory("ann", [f"old {n}" for n in range(700)])
        client.settle()
        await service.add_memory("ann", [f"new {n}" for n in range(700)])
        client.settle(100)
        for word in ("old", "new"):
            for number in (0, 150, 699):
                wanted = f"{word} {number}"
                assert (await service.search_memory("ann", wanted, {"top_k": 1})) == [wanted]


async def test_once_the_index_is_known_to_be_up_to_date_it_is_not_asked_again() -> None:
    client = new_client()
    async with service_on(client) as service:
        await service.add_memory("ann", ["I like tennis"])
        await service.search_memory("ann", "tennis")
        before = client.calls["search"]
        await service.search_memory("ann", "tennis")
        assert client.calls["search"] - before == 1


async def test_the_index_is_asked_not_everything_read() -> None:
    client = new_client()
    async with service_on(client) as service:
        await service.add_memory("ann", [f"word{n} said" for n in range(600)])
        await service.search_memory("ann", "word7")
        before = client.calls["batch_get_row"]
        assert await service.search_memory("ann", "word7", {"top_k": 5}) == ["word7 said"]
        assert client.calls["batch_get_row"] - before <= 3


async def test_more_than_a_page_is_deleted() -> None:
    client = new_client()
    async with service_on(client) as service:
        await service.add_memory("ann", [f"tea {n}" for n in range(250)], "s")
        await service.add_memory("ann", ["tea"], "t")
        assert len(await service.delete_memory("ann", "s")) == 250
        assert await service.list_memory("ann") == ["tea"]
        assert len(await service.delete_memory("ann")) == 1
        assert await service.search_memory("ann", "tea") == []
        assert rows_of(client, "ann") == 0


async def test_nothing_is_left_of_a_deleted_user_though_the_index_has_not_seen_it_go() -> None:
    client = new_client(index_lag=True)
    async with service_on(client) as service:
        await service.add_memory("ann", ["tea", "tennis"], "s")
        client.settle()
        assert not (await service.verify_erasure("ann")).is_complete
        await service.delete_memory("ann")
        assert (await service.verify_erasure("ann")).is_complete
        client.settle()
        assert (await service.verify_erasure("ann")).is_complete


async def test_traces_of_a_crashed_writer_are_seen() -> None:
    client = new_client()
    async with service_on(client) as service:
        await service.add_memory("ann", "tea")
        await service.delete_memory("ann")
        client.fail(1000, on="put_row")  # the head of a new user
        with pytest.raises(StoreError):
            await service.add_memory("ann", "rain")
        client.heal()
        assert not (await service.verify_erasure("ann")).is_complete
        await service.delete_memory("ann")
        assert (await service.verify_erasure("ann")).is_complete


async def test_one_id_of_two_users_is_two_memories() -> None:
    async with service_on(new_client()) as service:
        for user in ("ann", "bob", "__default", "seq", "u:ann"):
            msg = Msg(user, f"tea for {user}", "user")
            msg.id = "same"
            await service.add_memory(user, msg)
        for user in ("ann", "bob", "__default", "seq", "u:ann"):
            (found,) = await service.search_memory(user, "tea")
            assert isinstance(found, Msg)
            assert found.content == f"tea for {user}"
        await service.delete_memory("__default")
        assert [await service.count(user) for user in ("ann", "seq", "__default")] == [1, 1, 0]


async def test_every_type_of_metadata_comes_back_as_it_was() -> None:
    metadata = {
        "code": "404", "truth": "true", "null": "null", "list": "[1]", "n": 404, "f": 1.0,
        "yes": True, "none": None, "deep": {"a": [1, {"b": "2"}]}, "empty": "", "长": "é",
    }  # fmt: skip
    async with service_on(new_client()) as service:
        msg = Msg("Ann", "tea", "user", metadata)
        (memory_id,) = await service.add_memory("ann", msg)
        memory = await service.get("ann", memory_id)
        assert memory is not None
        assert isinstance(memory.value, Msg)
        assert memory.value.to_dict() == msg.to_dict()
        assert type(memory.value.metadata["f"]) is float


async def test_memories_are_listed_by_time() -> None:
    async with service_on(new_client()) as service:
        for number in range(25):
            await service.add_memory("ann", f"tea {number}", f"s{number % 3}")
        pages = [
            await service.list_memory("ann", {"page_num": page, "page_size": 10})
            for page in (1, 2, 3, 4)
        ]
        assert [text for page in pages for text in page] == [f"tea {n}" for n in range(25)]


async def test_the_clients_owner_closes_it_and_a_stopped_service_starts_again() -> None:
    client = new_client()
    service = service_on(client)
    with pytest.raises(NotStarted):
        await service.search_memory("ann", "tea")
    assert await service.health() is False
    for _ in range(2):
        async with service:
            await service.add_memory("ann", "tea")
            assert await service.health() is True
        assert not client.is_closed
    async with service:
        assert await service.count("ann") == 2


async def test_a_service_whose_server_is_gone_says_so() -> None:
    client = new_client()
    async with service_on(client) as service:
        client.fail(1, error=OSError("connection refused"))
        assert await service.health() is False
        client.fail(1, error=OSError("connection refused"))
        with pytest.raises(StoreError, match="cannot be reached"):
            await service.add_memory("ann", "tea")
        client.fail(1, on="search")
        await service.add_memory("ann", "tea")
        with pytest.raises(StoreError, match="does not answer"):
            await service.search_memory("ann", "tea")
        assert await service.health() is True


async def test_conditions_are_looked_at_before_the_best_are_taken() -> None:
    async with service_on(new_client()) as service:
        await service.add_memory("ann", [Msg("Ann", f"tea {n}", "user") for n in range(400)], "s")
        wanted = Msg("Ann", "and some tea as well", "assistant", {"topic": "food", "stars": 4})
        await service.add_memory("ann", wanted, "t")
        for filters in (
            {"session_id": "t"},
            {"role": "assistant"},
            {"metadata": {"topic": "food"}},
            {"metadata": {"stars": {"gte": 4}}},
            {"OR": [{"session_id": "t"}, {"session_id": "absent"}]},
            {"OR": [{"session_id": "t"}, {"metadata": {"topic": "x"}}]},
            {"NOT": [{"session_id": "s"}]},
        ):
            found = await service.search_memory("ann", "tea", {"top_k": 3, **filters})
            assert [each.content for each in found] == [wanted.content], filters  # type: ignore[union-attr]  # messages


async def test_metadata_that_the_schema_names_is_a_column_of_the_index() -> None:
    schema = [
        FieldSchema("topic", FieldType.KEYWORD),
        FieldSchema("user_id", FieldType.KEYWORD),
        FieldSchema("session_id", FieldType.KEYWORD),
    ]
    client = new_client()
    service = service_on(client, table_name="own", search_index_schema=schema)
    async with service:
        said = [Msg("Ann", f"tea {n}", "user", {"topic": "a", "user_id": "7"}) for n in range(300)]
        await service.add_memory("ann", said, "s")
        await service.add_memory("ann", Msg("Ann", "tea at last", "user", {"topic": "b"}), "s")
        await service.search_memory("ann", "tea")
        before = client.calls["batch_get_row"]
        (found,) = await service.search_memory("ann", "tea", {"metadata": {"topic": "b"}})
        assert client.calls["batch_get_row"] - before == 2  # to look at it, and to hand it out
        assert found.content == "tea at last"  # type: ignore[union-attr]  # a message
        assert {row["user_id"] for row in client.tables["own"].rows.values()} == {"ann"}
        asked = {"metadata": {"user_id": "7"}, "top_k": 5}
        assert len(await service.search_memory("ann", "tea", asked)) == 5
    assert [field.field_name for field in schema] == ["topic", "user_id", "session_id"]


@pytest.mark.parametrize(
    "metric",
    [
        VectorMetricType.VM_COSINE,
        VectorMetricType.VM_EUCLIDEAN,
        VectorMetricType.VM_DOT_PRODUCT,
    ],
)
async def test_vectors_find_by_meaning_and_also_what_the_index_has_not_seen(metric: Any) -> None:
    client = new_client(index_lag=True)
    embedder = CallableEmbedder(counted, "counting", 3)
    service = service_on(
        client,
        search_strategy=SearchStrategy.VECTOR,
        embedding_model=embedder,
        vector_metric_type=metric,
    )
    async with service:
        await service.add_memory("ann", ["tennis tennis", "tea", "tennis and tea", "nothing"])
        for _ in range(2):
            found = await service.search_memory("ann", "tennis", {"top_k": 2})
            assert found == ["tennis tennis", "tennis and tea"]
            client.settle()
        assert "nothing" not in await service.search_memory("ann", "tennis")
        hits = await service.search("ann", "tea", top_k=1, explain=True)
        assert hits[0].memory.text == "tea"
        assert hits[0].why is not None
        assert hits[0].why.ranks == {"vectors": 1}


class Langchain:
    """The shape of model that users of the package have; asked for where it was called from."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.questions = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.threads.add(threading.get_ident())
        return counted(texts)

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return counted([text])[0]


async def test_a_model_with_embed_documents_works_and_holds_up_no_event_loop() -> None:
    model = Langchain()
    service = service_on(new_client(), search_strategy="vector", embedding_model=model)
    async with service:
        await service.add_memory("ann", ["tennis", "tea"])
        assert await service.search_memory("ann", "tea", {"top_k": 1}) == ["tea"]
    assert threading.get_ident() not in model.threads
    assert model.questions == 1


@pytest.mark.parametrize(
    ("metric", "best"),
    [
        (VectorMetricType.VM_COSINE, "tennis"),
        (VectorMetricType.VM_EUCLIDEAN, "tennis"),
        (VectorMetricType.VM_DOT_PRODUCT, "tennis tennis tea"),
    ],
)
async def test_the_metric_decides_what_is_near(metric: Any, best: str) -> None:
    service = service_on(
        new_client(),
        search_strategy="vector",
        embedding_model=Langchain(),
        vector_metric_type=metric,
    )
    async with service:
        await service.add_memory("ann", ["tennis", "tennis tennis tea", "rain"])
        assert await service.search_memory("ann", "tennis", {"top_k": 1}) == [best]


async def test_conditions_hold_for_vectors_too() -> None:
    service = service_on(
        new_client(), search_strategy="vector", embedding_model=CallableEmbedder(counted, "c", 3)
    )
    async with service:
        await service.add_memory("ann", [Msg("Ann", f"tea {n}", "user") for n in range(100)], "s")
        await service.add_memory("ann", Msg("Bob", "tea and rain and rain", "assistant"), "s")
        (found,) = await service.search_memory("ann", "tea", {"top_k": 3, "role": "assistant"})
        assert found.name == "Bob"  # type: ignore[union-attr]  # a message


async def test_a_model_that_fails_keeps_nothing_half() -> None:
    def fails(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no model")

    client = new_client()
    model = CallableEmbedder(fails, "failing", 3)
    async with service_on(client, search_strategy="vector", embedding_model=model) as service:
        with pytest.raises(ConnectionError):
            await service.add_memory("ann", "tea")
        assert await service.count("ann") == 0
        assert rows_of(client, "ann") == 0


async def test_why_something_is_not_found() -> None:
    async with service_on(new_client()) as service:
        tea, tennis, _ = await service.add_memory("ann", ["tea tea", "tennis", "some tea in rain"])
        assert (await service.why_not("ann", "tea", tea, top_k=1)).reason == "found"
        assert (await service.why_not("ann", "tea", "absent")).reason == "unknown"
        why = await service.why_not("ann", "tea", tennis, filters={"session_id": "absent"})
        assert why.reason == "filtered"
        searcher = service.searcher
        memory = await service.get("ann", tennis)
        assert memory is not None
        query = Query(text="tea", top_k=2)
        assert (await searcher.why_not("ann", query, memory.seq)).reason == "not matched"
        assert (await searcher.why_not("ann", query, memory.seq + 100)).reason == "unknown"


async def test_why_something_is_not_found_by_its_vector() -> None:
    model = CallableEmbedder(counted, "counting", 3)
    service = service_on(new_client(), search_strategy="vector", embedding_model=model)
    async with service:
        near, far, none = await service.add_memory("ann", ["tea", "tea and rain", "nothing"])
        reasons = [
            (await service.why_not("ann", "tea", each, top_k=1)).reason
            for each in (near, far, none)
        ]
        assert reasons == ["found", "outranked", "not matched"]
        assert (await service.why_not("ann", "tea", far, top_k=1)).by == (near,)
        filters = {"session_id": "absent"}
        assert (await service.why_not("ann", "tea", far, filters=filters)).reason == "filtered"


async def test_what_stands_beside_a_match_may_be_found_for_its_sake() -> None:
    async with service_on(new_client()) as service:
        await service.add_memory("ann", ["Where do you play?", "At the lake.", "Fine."], "s")
        beside = await service.search("ann", "play", top_k=3)
        assert "At the lake." in [hit.memory.text for hit in beside]
        alone = await service.search("ann", "play", top_k=3, neighbours=False)
        assert [hit.memory.text for hit in alone] == ["Where do you play?"]


async def test_no_log_shows_what_users_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client = new_client()
    async with service_on(client) as service:
        await service.add_memory("ann", "my secret is xyzzy")
        await service.search_memory("ann", "xyzzy plugh")
        client.fail(1, on="search")
        with pytest.raises(StoreError) as failed:
            await service.search_memory("ann", "xyzzy plugh")
        await service.delete_memory("ann")
    for word in ("xyzzy", "plugh"):
        assert word not in caplog.text
        assert word not in str(failed.value)


def test_the_best_embedder_installed_serves_unless_one_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = FakeTablestoreClient()
    TablestoreMemoryService(client, SearchStrategy.VECTOR)
    monkeypatch.setattr("memoryspace.service.tablestore.service.best_embedder", lambda: None)
    with pytest.raises(InvalidInput, match="needs an embedding model"):
        TablestoreMemoryService(client, SearchStrategy.VECTOR)


def test_options_that_cannot_work_are_refused() -> None:
    client = FakeTablestoreClient()
    with pytest.raises(InvalidInput, match="set vector_dimension=3"):
        TablestoreMemoryService(client, "vector", CallableEmbedder(counted, "counting", 3), 4)
    with pytest.raises(InvalidInput, match="use one of full_text, vector"):
        TablestoreMemoryService(client, "best")
    with pytest.raises(TypeError, match="embed_documents"):
        TablestoreMemoryService(client, "vector", object())


async def test_vectors_of_the_wrong_length_are_refused() -> None:
    model = Langchain()
    service = service_on(
        new_client(), search_strategy="vector", embedding_model=model, vector_dimension=4,
        table_name="four",
    )  # fmt: skip
    async with service:
        with pytest.raises(InvalidInput, match=r"shape \(1, 3\) for 1 texts"):
            await service.add_memory("ann", "tea")


async def test_two_processes_may_make_the_tables_at_once() -> None:
    client = FakeTablestoreClient()
    services = [service_on(client) for _ in range(2)]
    await asyncio.gather(*(service.start() for service in services))
    await services[0].add_memory("ann", "tea")
    assert await services[1].search_memory("ann", "tea") == ["tea"]


class Encoded:
    """A fake client whose every request is also encoded as the real one would send it."""

    def __init__(self, fake: FakeTablestoreClient) -> None:
        self._fake = fake
        self._real = create_tablestore_client("https://i.ots.aliyuncs.com", "key", "secret", "i")
        self._real._request_helper = self._encode
        self.encoded: set[str] = set()

    async def _encode(self, api_name: str, *arguments: Any, **options: Any) -> None:
        self._real.protocol.encoder.encode_request(api_name, *arguments, **options)
        self.encoded.add(api_name)
        raise InterruptedError  # nothing is sent

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            with contextlib.suppress(InterruptedError):
                await getattr(self._real, name)(*arguments, **options)
            return await getattr(self._fake, name)(*arguments, **options)

        return call


async def test_the_real_client_can_send_every_request() -> None:
    client = Encoded(FakeTablestoreClient())
    model = CallableEmbedder(counted, "counting", 3)
    for strategy in SearchStrategy:
        async with TablestoreMemoryService(client, strategy, model, 3) as service:
            msg = Msg("Ann", "tea 茶", "user", {"n": 1})
            await service.add_memory("ann", [msg, "rain"], "s")
            await service.update("ann", msg.id, metadata={"n": 2})
            assert (
                len(await service.search("ann", "tea", top_k=1, filters={"session_id": "s"})) == 1
            )
            assert len(await service.list_memory("ann")) == 2
            await service.delete_memory("ann")
            assert (await service.verify_erasure("ann")).is_complete
    assert client.encoded == {
        "ListTable", "CreateTable", "ListSearchIndex", "CreateSearchIndex", "GetRow", "PutRow",
        "UpdateRow", "DeleteRow", "BatchGetRow", "BatchWriteRow", "GetRange", "Search",
    }  # fmt: skip


# -- the client -----------------------------------------------------------------------------------


async def test_a_client_keeps_its_keys_to_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = create_tablestore_client(
        "https://i.cn-hangzhou.ots.aliyuncs.com", "key-id", "key-secret", "i", sts_token="key-token"
    )
    shown = f"{client!r} {client} {TablestoreMemoryService(client)!r} {caplog.text}"
    assert "key-" not in shown
    await client.close()
    unreachable = create_tablestore_client("http://127.0.0.1:9", "key-id", "key-secret", "i")
    with pytest.raises(StoreError, match="cannot be reached") as lost:
        await service_on(unreachable).start()
    await unreachable.close()
    assert "key-" not in f"{lost.value} {caplog.text}"
    with pytest.raises(InvalidInput) as wrong:
        create_tablestore_client("i.cn-hangzhou.ots.aliyuncs.com", "key-id", "key-secret", "i")
    assert "key-" not in str(wrong.value)
    for given in ({}, {"access_key_id": "key-id"}, {"access_key_secret": "key-secret"}):
        with pytest.raises(InvalidInput, match="access_key_id and access_key_secret") as missing:
            create_tablestore_client("https://i.ots.aliyuncs.com", instance_name="i", **given)  # type: ignore[arg-type]  # texts
        assert "key-id" not in str(missing.value)
