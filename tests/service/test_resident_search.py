"""A searcher that holds an index for each user: always up to date, bounded, never half changed."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from counting import CountingEmbedder
from memoryspace import MemoryStore, Store
from memoryspace.embedding import CallableEmbedder
from memoryspace.errors import InvalidInput, StoreUnavailable
from memoryspace.events import Event
from memoryspace.record import Record, Scope, Where
from memoryspace.retrieval import Entry, Item, Only
from memoryspace.service.search import Found, Query, ResidentSearcher
from memoryspace.service.search.keeping import RecordText, VectorKeeper
from memoryspace.service.search.slots import KnownVectors
from memoryspace.store.contract import Changes
from memoryspace.store.vectors import Place

from backends import STORE_BACKENDS, store_maker

WORDS = ["tea", "cake", "milk", "river", "stone", "cloud", "garden", "winter", "music", "paper"]
HIDDEN = "hidden"


def entry_of(record: Record) -> Entry | None:
    if HIDDEN in record.marks:
        return None
    value = record.value if isinstance(record.value, dict) else {}
    return Entry(
        str(record.seq),
        record.text,
        session=record.session,
        kind=record.kind,
        time=record.created_at,
        marks=record.marks,
        metadata=value or None,
    )


def note(record_id: str, text: str, **more: Any) -> Record:
    more = {"created_at": 1e9, "kind": "memory", **more}
    return Record(record_id, more.pop("value", {}), text, **more)


def resident(store: Store, **options: Any) -> ResidentSearcher:
    return ResidentSearcher(store, entry_of, **{"embedder": None, **options})


def ask(text: str, top_k: int = 10, **more: Any) -> Query:
    return Query(text=text, top_k=top_k, now=1.1e9, **more)


async def ids(searcher: ResidentSearcher, user: str, text: str, **more: Any) -> list[str]:
    return [found.id for found in await searcher.search(user, ask(text, **more))]


async def change(store: Store, user: str, session: str, record: Record) -> None:
    """Put another version in the place of a record, as the service does."""
    where = Where(ids=frozenset({record.id}))
    await store.replace(Scope(user, session), where, [record])


class Gate(MemoryStore):
    """A store whose changes wait at a gate until it is opened; it counts who asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def changes(self, user: str, state: Any = None) -> Changes:
        self.asked += 1
        found = await super().changes(user, state)
        self.reached.set()
        await self.open.wait()
        return found


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_everything_acknowledged_is_seen_and_nothing_deleted(backend: str) -> None:
    user, other = uuid4().hex, uuid4().hex
    async with store_maker(backend) as make:
        store = make()
        searcher = resident(store)
        assert await ids(searcher, user, "tea") == []
        await store.append(Scope(user, "s"), [note("a", "green tea"), note("b", "black tea")])
        await store.append(Scope(user, "t"), [note("a", "tea in t")])
        await store.append(Scope(other, "s"), [note("z", "tea of another")])
        assert set(await ids(searcher, user, "tea")) == {"a", "b"}
        await change(store, user, "s", note("a", "now coffee"))
        assert [(f.id, f.session) for f in await searcher.search(user, ask("coffee"))] == [
            ("a", "s")
        ]
        assert sorted(await ids(searcher, user, "tea")) == ["a", "b"]
        await store.delete(Scope(user, "s"), Where(ids=frozenset({"b"})))
        assert [f.session for f in await searcher.search(user, ask("tea"))] == ["t"]
        await store.delete(Scope(user, "t"))
        assert await ids(searcher, user, "tea") == []
        assert await searcher.traces(user) == 1
        await store.delete(Scope(user))
        assert await ids(searcher, user, "coffee") == []
        assert await searcher.traces(user) == 0
        assert await ids(searcher, other, "tea") == ["z"]
        await store.delete(Scope(other))


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_however_it_came_about_the_same_is_found_in_the_same_order(backend: str) -> None:
    """An index that saw every step answers like one made of the end, to the last digit told."""
    user, dice = uuid4().hex, random.Random(backend)
    async with store_maker(backend) as make:
        store = make()
        kept, now_and_then = resident(store), resident(store)
        for step in range(30):
            await random_step(store, user, dice, step)
            await kept.search(user, ask(dice.choice(WORDS)))
            if step % 7 == 0:
                await now_and_then.search(user, ask("tea"))
        for text in [*WORDS, "tea with cake and milk", "winter garden music"]:
            for near in (False, True):
                query = ask(text, 7, neighbours=near)
                fresh = await resident(store).search(user, query)
                assert await kept.search(user, query) == fresh
                assert await now_and_then.search(user, query) == fresh
        check(kept)
        await store.delete(Scope(user))


async def random_step(store: Store, user: str, dice: random.Random, step: int) -> None:
    session = dice.choice(["s", "t"])
    scope = Scope(user, session)
    if dice.random() < 0.6:
        new = [note(f"{step}-{n}", said(dice)) for n in range(dice.randint(1, 9))]
        await store.append(scope, new)
        return
    here = [record.id for record in await store.select(scope)]
    for each in dice.sample(here, min(len(here), 3)):
        if dice.random() < 0.5:
            await change(store, user, session, note(each, said(dice)))
        else:
            await store.delete(scope, Where(ids=frozenset({each})))


def said(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(1, 6)))


def check(searcher: ResidentSearcher) -> None:
    for slot in searcher._slots.values():
        slot.index.check()
    assert searcher._bytes == sum(slot.counted for slot in searcher._slots.values())


async def test_the_size_of_portions_makes_no_difference() -> None:
    dice = random.Random(5)
    texts = [said(dice) for _ in range(300)]
    answers: list[list[tuple[str, float]]] = []
    for portion in (1, 7, 300):
        store = MemoryStore()
        searcher = resident(store)
        for start in range(0, len(texts), portion):
            records = [note(str(n), texts[n]) for n in range(start, min(start + portion, 300))]
            await store.append(Scope("u", "s"), records)
            await searcher.search("u", ask("tea"))
        found = [await searcher.search("u", ask(text, 20)) for text in WORDS]
        answers.append([(each.id, each.score) for one in found for each in one])
    assert answers[0] == answers[1] == answers[2]


async def test_equals_come_newest_first_and_a_change_makes_new() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note(each, "the same tea") for each in "abc"])
    assert await ids(searcher, "u", "tea", top_k=2) == ["c", "b"]
    await change(store, "u", "s", note("a", "the same tea"))
    assert await ids(searcher, "u", "tea") == ["a", "c", "b"]


async def test_a_writer_who_was_slow_changes_nothing_about_the_order() -> None:
    """Records may become visible after others that have a higher seq."""
    store = MemoryStore()
    await store.append(Scope("u", "s"), [note(str(n), f"tea {WORDS[n]}") for n in range(8)])
    everything = (await store.changes("u")).records
    late = Told([everything[:2] + everything[5:], everything[2:5]])
    searcher, fresh = resident(late), resident(store)
    await searcher.search("u", ask("tea"))
    for near in (False, True):
        query = ask("tea stone", neighbours=near)
        assert await searcher.search("u", query) == await fresh.search("u", query)
    check(searcher)


async def test_what_stands_behind_a_late_record_is_not_embedded_again() -> None:
    embedder, store = CountingEmbedder(), Told([])
    await store.append(Scope("u", "s"), [note(str(n), f"tea {WORDS[n]}") for n in range(8)])
    everything = await store.select(Scope("u"))
    store.tell_next(everything[:2] + everything[5:], everything[2:5])
    searcher = resident(store, embedder=embedder)
    await searcher.search("u", ask("tea"))
    assert len(await searcher.search("u", ask("tea"))) == 8
    assert sorted(embedder.texts) == sorted(each.text for each in everything)
    check(searcher)


async def test_what_is_being_written_down_is_known_at_once() -> None:
    store, text = MemoryStore(), RecordText(Place("s", "a", 1), "tea")
    keeper = VectorKeeper(store, CountingEmbedder())
    writing = keeper.keep("u", {text: np.ones(32, np.float32)})
    assert (await keeper.known("u", [text])).seqs == {1}
    await writing


async def test_an_older_version_that_comes_late_is_passed_over() -> None:
    store = MemoryStore()
    await store.append(Scope("u", "s"), [note("a", "old tea")])
    old = (await store.changes("u")).records
    await change(store, "u", "s", note("a", "new tea"))
    new = (await store.changes("u")).records
    for portions in ([new, old], [old, new], [old + new], [new + old]):
        searcher = resident(Told(portions))
        for _ in portions:
            found = await searcher.search("u", ask("tea"))
        assert [each.seq for each in found] == [new[0].seq]
        check(searcher)


class Told(MemoryStore):
    """A store that tells these records, a portion each time, and nothing else.

    With ``kept``, from the second time on it says that only these are there.
    """

    def __init__(
        self, portions: Sequence[list[Record]], kept: dict[str, dict[str, int]] | None = None
    ) -> None:
        super().__init__()
        self._portions = list(portions)
        self._kept = {} if kept is None else kept

    def tell_next(self, *portions: list[Record]) -> None:
        self._portions += portions

    async def changes(self, user: str, state: Any = None) -> Changes:
        records = self._portions.pop(0) if self._portions else []
        kept = {} if state is None else self._kept
        return Changes(object(), records, kept, frozenset())


async def test_a_version_that_was_replaced_goes_even_if_the_new_one_cannot_be_read() -> None:
    old = [note("a", "tea", seq=1, session="s"), note("b", "tea", seq=2, session="s")]
    searcher = resident(Told([old], {"s": {"a": 3, "b": 2}}))
    assert await ids(searcher, "u", "tea") == ["b", "a"]
    assert await ids(searcher, "u", "tea") == ["b"]
    check(searcher)


async def test_of_two_versions_told_at_once_the_later_counts_also_if_it_must_not_be_found() -> None:
    one = note("a", "tea", seq=1, session="s")
    two = note("b", "tea", seq=2, session="s")
    three = note("a", "tea", seq=3, session="s")
    hidden = note("a", "tea", seq=3, session="s", marks=frozenset({HIDDEN}))
    assert await ids(resident(Told([[one, two, three]])), "u", "tea") == ["a", "b"]
    assert await ids(resident(Told([[one, two, hidden]])), "u", "tea") == ["b"]


async def test_what_is_told_again_is_not_indexed_again() -> None:
    read: list[str] = []

    def counted(record: Record) -> Entry | None:
        read.append(record.id)
        return entry_of(record)

    told = [note("a", "tea", seq=1, session="s"), note("b", "tea", seq=2, session="s")]
    searcher = ResidentSearcher(Told([told, told, told]), counted, embedder=None)
    for _ in range(3):
        assert await ids(searcher, "u", "tea") == ["b", "a"]
    assert read == ["a", "b"]


async def test_what_must_not_be_found_leaves_when_it_is_changed() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note("a", "tea"), note("b", "more tea")])
    assert set(await ids(searcher, "u", "tea")) == {"a", "b"}
    await change(store, "u", "s", note("a", "tea", marks=frozenset({HIDDEN})))
    assert await ids(searcher, "u", "tea") == ["b"]
    await change(store, "u", "s", note("a", "tea"))
    assert await ids(searcher, "u", "tea") == ["a", "b"]
    check(searcher)


async def test_what_expires_leaves_by_itself_at_its_time() -> None:
    now = [100.0]
    store = MemoryStore(clock=lambda: now[0])
    searcher = resident(store)
    await store.append(
        Scope("u", "s"),
        [note("a", "tea", expires_at=110.0), note("b", "tea", expires_at=120.0), note("c", "tea")],
    )
    assert set(await ids(searcher, "u", "tea")) == {"a", "b", "c"}
    now[0] = 109.9
    assert set(await ids(searcher, "u", "tea")) == {"a", "b", "c"}
    now[0] = 110.0
    assert set(await ids(searcher, "u", "tea")) == {"b", "c"}
    await change(store, "u", "s", note("b", "tea", expires_at=None))
    now[0] = 500.0
    assert set(await ids(searcher, "u", "tea")) == {"b", "c"}
    check(searcher)


async def test_expiry_is_by_the_clock_of_the_store_also_if_the_store_tells_nothing() -> None:
    now = [100.0]
    records = [note("a", "tea", expires_at=110.0, seq=1, session="s")]
    store = Told([records])
    store.clock = lambda: now[0]
    searcher = resident(store)
    assert await ids(searcher, "u", "tea") == ["a"]
    now[0] = 110.0
    assert await ids(searcher, "u", "tea") == []
    assert await searcher.traces("u") == 0


async def test_a_memory_changed_often_leaves_no_trail_of_expiries() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note("a", "tea", expires_at=1e12)])
    for _ in range(200):
        await change(store, "u", "s", note("a", "tea", expires_at=1e12))
        await searcher.search("u", ask("tea"))
    check(searcher)


async def test_a_query_is_heeded_in_all_its_fields() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(
        Scope("u", "s"),
        [note("a", "tea", value={"n": 1}), note("b", "a remark"), note("c", "tea", value={"n": 2})],
    )
    assert await ids(searcher, "u", "tea") == ["c", "a"]
    assert set(await ids(searcher, "u", "tea", neighbours=True)) == {"a", "b", "c"}
    assert await ids(searcher, "u", "tea", only=Item("n", "lt", 2)) == ["a"]
    assert await ids(searcher, "u", "tea", only=Only(session="t")) == []
    assert await ids(searcher, "u", "tea", top_k=1) == ["c"]
    plain = await searcher.search("u", ask("tea"))
    explained = await searcher.search("u", ask("tea", explain=True))
    assert all(found.why is None for found in plain)
    assert all(found.why is not None and "tea" in found.why.words for found in explained)
    with pytest.raises(InvalidInput, match="top_k"):
        await searcher.search("u", ask("tea", top_k=0))
    assert await ids(searcher, "u", "tea") == ["c", "a"]


async def test_why_not_says_where_it_fell_out_and_names_the_others_by_id() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note(each, f"tea {each}") for each in ("a", "b", "c")])
    await store.append(Scope("u", "s"), [note("d", "a remark")])
    seqs = {record.id: record.seq for record in await store.select(Scope("u"))}
    told = await searcher.why_not("u", ask("tea", 1), seqs["a"])
    assert told.reason == "outranked"
    assert told.by == ("c", "b")
    assert (await searcher.why_not("u", ask("tea"), seqs["d"])).reason == "not matched"
    assert (await searcher.why_not("u", ask("tea"), seqs["a"])).reason == "found"
    filtered = await searcher.why_not("u", ask("tea", only=Only(session="t")), seqs["a"])
    assert filtered.reason == "filtered"
    await store.delete(Scope("u", "s"), Where(ids=frozenset({"a"})))
    assert (await searcher.why_not("u", ask("tea"), seqs["a"])).reason == "unknown"


async def bytes_of_four() -> int:
    """Return the bytes that the index of a user with four notes takes."""
    store, heard = MemoryStore(), list[Event]()
    store.events.subscribe(heard.append, "index_dropped")
    searcher = resident(store, max_bytes=1)
    await store.append(Scope("a", "s"), [note(str(n), "tea") for n in range(4)])
    await searcher.search("a", ask("tea"))
    await searcher.search("nobody", ask("tea"))
    return int(heard[0].data["bytes"])


async def test_a_long_memory_takes_the_room_of_many_short_ones() -> None:
    store = MemoryStore()
    searcher = resident(store, max_bytes=1_000_000)
    await store.append(Scope("long", "s"), [note("a", "tea " * 300_000)])
    for user in ("short", "shorter"):
        await store.append(Scope(user, "s"), [note(str(n), "tea") for n in range(50)])
    await searcher.search("short", ask("tea"))
    await searcher.search("shorter", ask("tea"))
    assert [await searcher.traces(user) for user in ("short", "shorter")] == [50, 50]
    await searcher.search("long", ask("tea"))
    assert [await searcher.traces(user) for user in ("short", "shorter", "long")] == [0, 0, 1]


async def test_what_an_index_takes_is_counted_about_as_python_counts_it() -> None:
    store, words = MemoryStore(), [f"word{number} tea" for number in range(2000)]
    notes = [note(str(n), f"{text} " * 20) for n, text in enumerate(words)]
    await store.append(Scope("a", "s"), notes)
    searcher = resident(store)
    await searcher.search("nobody", ask("tea"))
    gc.collect()
    tracemalloc.start()
    try:
        await searcher.search("a", ask("tea"))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    texts = sum(sys.getsizeof(each.text) for each in notes)  # which the store holds already
    assert 0.5 < searcher._slots["a"].nbytes / (taken + texts) < 2


async def test_whoever_was_not_asked_for_longest_is_dropped_and_comes_back_when_asked() -> None:
    heard: list[Event] = []
    store = MemoryStore()
    store.events.subscribe(heard.append, "index_dropped")
    searcher = resident(store, max_bytes=2 * await bytes_of_four() + 1)
    for user in ("a", "b", "c"):
        await store.append(Scope(user, "s"), [note(str(n), "tea") for n in range(4)])
        assert len(await ids(searcher, user, "tea")) == 4
    assert [await searcher.traces(user) for user in ("a", "b", "c")] == [0, 4, 4]
    assert searcher.dropped == 1
    told = {"user": "a", "entries": 4, "bytes": await bytes_of_four()}
    assert [(event.name, event.data) for event in heard] == [("index_dropped", told)]
    await searcher.search("b", ask("tea"))
    assert len(await ids(searcher, "a", "tea")) == 4
    assert [await searcher.traces(user) for user in ("a", "b", "c")] == [4, 4, 0]
    check(searcher)


async def test_the_user_who_is_asked_stays_however_large() -> None:
    store = MemoryStore()
    searcher = resident(store, max_bytes=3)
    await store.append(Scope("small", "s"), [note("a", "tea")])
    await store.append(Scope("large", "s"), [note(str(n), "tea") for n in range(9)])
    await searcher.search("small", ask("tea"))
    assert len(await ids(searcher, "large", "tea")) == 9
    assert await searcher.traces("large") == 9
    assert await searcher.traces("small") == 0


@pytest.mark.parametrize("wrong", [0, -1, True])
def test_a_bound_that_nothing_fits_in_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidInput, match="max_bytes"):
        resident(MemoryStore(), max_bytes=wrong)


async def test_forgetting_a_user_and_closing_leave_nothing_and_can_be_gone_back_on() -> None:
    store = MemoryStore()
    searcher = resident(store)
    for user in ("a", "b"):
        await store.append(Scope(user, "s"), [note("x", "tea")])
        await searcher.search(user, ask("tea"))
    await searcher.forget("a")
    await searcher.forget("nobody")
    assert [await searcher.traces("a"), await searcher.traces("b")] == [0, 1]
    check(searcher)
    await searcher.close()
    assert await searcher.traces("b") == 0
    assert await ids(searcher, "b", "tea") == ["x"]
    check(searcher)


async def test_traces_and_forgetting_ask_nothing_of_the_store() -> None:
    store = Gate()
    searcher = resident(store)
    assert await searcher.traces("u") == 0
    await searcher.forget("u")
    assert store.asked == 0


async def test_many_at_once_all_see_the_same_and_take_turns() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note(str(n), f"tea {n}") for n in range(50)])
    answers = await asyncio.gather(*(searcher.search("u", ask("tea 7")) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    check(searcher)


async def test_a_caller_cancelled_while_the_store_answers_leaves_at_once() -> None:
    store = Gate()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note("a", "tea")])
    store.open.clear()
    task = asyncio.create_task(searcher.search("u", ask("tea")))
    await store.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    store.open.set()
    assert await ids(searcher, "u", "tea") == ["a"]
    check(searcher)


async def test_a_caller_cancelled_while_others_have_their_turn_does_not_take_one() -> None:
    store = Gate()
    searcher = resident(store)
    store.open.clear()
    first = asyncio.create_task(searcher.search("u", ask("tea")))
    await store.reached.wait()
    second = asyncio.create_task(searcher.search("u", ask("tea")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    store.open.set()
    assert await first == []
    assert store.asked == 1


async def test_what_a_cancelled_caller_began_is_done_to_the_end() -> None:
    store, entered, go_on = Gate(), threading.Event(), threading.Event()

    def slow(record: Record) -> Entry | None:
        entered.set()
        go_on.wait()
        return entry_of(record)

    searcher = ResidentSearcher(store, slow, embedder=None)
    await store.append(Scope("u", "s"), [note("a", "tea")])
    task = asyncio.create_task(searcher.search("u", ask("tea")))
    await asyncio.to_thread(entered.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    later = asyncio.create_task(searcher.search("u", ask("tea")))
    for _ in range(10):
        await asyncio.sleep(0)
    assert store.asked == 1  # it is still the first one's turn
    go_on.set()
    assert [found.id for found in await later] == ["a"]
    check(searcher)


async def test_the_loop_is_not_held_up_while_an_index_is_built() -> None:
    store, go_on = MemoryStore(), threading.Event()

    def waits_for_the_loop(record: Record) -> Entry | None:
        assert go_on.wait(60), "the loop did not run"
        return entry_of(record)

    searcher = ResidentSearcher(store, waits_for_the_loop, embedder=None)
    await store.append(Scope("u", "s"), [note("a", "tea")])
    task = asyncio.create_task(searcher.search("u", ask("tea")))
    await asyncio.sleep(0)
    go_on.set()
    assert len(await task) == 1


class Counting(ThreadPoolExecutor):
    """Threads for whoever needs one; it counts how often that was."""

    asked = 0

    def submit(self, *args: Any, **options: Any) -> Any:
        self.asked += 1
        return super().submit(*args, **options)


async def test_a_short_question_waits_for_no_thread_unless_something_changed() -> None:
    store, threads = MemoryStore(), Counting()
    asyncio.get_running_loop().set_default_executor(threads)
    searcher = resident(store)
    for number in range(3):
        await store.append(Scope("u", "s"), [note(f"{number}", "tea with milk")])
        assert len(await ids(searcher, "u", "tea")) == number + 1
        assert threads.asked == number + 1  # to take it in
        assert len(await ids(searcher, "u", "milk", only=Only(kind="memory"))) == number + 1
        assert threads.asked == number + 1
    for slow in ({"text": "tea " * 1000}, {"top_k": 1000}, {"only": Item("a", "exists", False)}):
        asked = threads.asked
        await searcher.search("u", Query(**{"text": "tea", "top_k": 10, **slow}))
        assert threads.asked == asked + 1
    check(searcher)


async def test_a_question_that_a_model_reads_never_holds_up_the_loop() -> None:
    store, threads = MemoryStore(), Counting()
    asyncio.get_running_loop().set_default_executor(threads)
    searcher = resident(store, embedder=spell(lambda: False))
    await store.append(Scope("u", "s"), [note("a", "tea")])
    for number in range(1, 4):
        assert await ids(searcher, "u", "tea") == ["a"]
        assert threads.asked == number


async def test_a_change_that_fails_halfway_is_seen_by_nobody() -> None:
    store, broken = MemoryStore(), ["b"]

    def fails(record: Record) -> Entry | None:
        if record.id in broken:
            raise RuntimeError("no entry")
        return entry_of(record)

    searcher = ResidentSearcher(store, fails, embedder=None)
    await store.append(Scope("u", "s"), [note("a", "tea"), note("c", "tea")])
    await searcher.search("u", ask("tea"))
    await change(store, "u", "s", note("a", "coffee"))
    await store.append(Scope("u", "s"), [note("b", "tea")])
    with pytest.raises(RuntimeError, match="no entry"):
        await searcher.search("u", ask("tea"))
    assert await searcher.traces("u") == 0
    broken.clear()
    assert await ids(searcher, "u", "tea") == ["b", "c"]
    assert await ids(searcher, "u", "coffee") == ["a"]
    check(searcher)


async def test_a_store_that_cannot_be_reached_leaves_the_index_as_it_was() -> None:
    class Away(MemoryStore):
        is_away = False

        async def changes(self, user: str, state: Any = None) -> Changes:
            if self.is_away:
                raise StoreUnavailable("the server is away")
            return await super().changes(user, state)

    store = Away()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note("a", "tea")])
    await searcher.search("u", ask("tea"))
    store.is_away = True
    with pytest.raises(StoreUnavailable):
        await searcher.search("u", ask("tea"))
    store.is_away = False
    assert await ids(searcher, "u", "tea") == ["a"]


def test_loops_in_different_threads_share_an_index_and_never_use_it_at_once() -> None:
    store, inside = MemoryStore(), list[int]()
    overlaps: list[int] = []

    def watched(record: Record) -> Entry | None:
        inside.append(1)
        overlaps.append(len(inside))
        found = entry_of(record)
        inside.pop()
        return found

    searcher = ResidentSearcher(store, watched, embedder=None)
    found: dict[int, int] = {}

    async def work(number: int) -> None:
        for step in range(25):
            await store.append(Scope("u", "s"), [note(f"{number}-{step}", f"tea {step}")])
            answer = await searcher.search("u", ask(f"tea {step}", 200))
            assert f"{number}-{step}" in {each.id for each in answer}
        found[number] = len(await searcher.search("u", ask("tea", 200)))

    threads = [threading.Thread(target=lambda n=n: asyncio.run(work(n))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2]
    assert max(found.values()) == 75
    assert set(overlaps) == {1}
    check(searcher)


async def test_changes_that_are_older_than_what_was_applied_are_not() -> None:
    """Loop A reads, loop B reads more and applies it, then A comes: it must read again."""
    store = Gate()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note("a", "tea")])
    store.open.clear()
    slow = asyncio.create_task(searcher.search("u", ask("tea")))
    await store.reached.wait()
    await store.append(Scope("u", "s"), [note("b", "tea")])
    slot = searcher._slots["u"]
    newer = await MemoryStore.changes(store, "u")
    assert slot.update_and_run(None, newer, 0.0, len, KnownVectors({})) == (2, (None, {}))
    store.open.set()
    assert [found.id for found in await slow] == ["b", "a"]
    assert store.asked == 2


def spell(fails: Callable[[], bool]) -> CallableEmbedder:
    def embed(texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        if fails():
            raise ConnectionError("no embedder today")
        return np.array([[1.0, float(len(text))] for text in texts])

    return CallableEmbedder(embed, "spell", 2)


async def test_a_failing_embedder_fails_no_search_and_is_made_up_for() -> None:
    store, is_down = MemoryStore(), [True]
    searcher = resident(store, embedder=spell(lambda: is_down[0]))
    await store.append(Scope("u", "s"), [note("a", "tea"), note("b", "cake")])
    assert await ids(searcher, "u", "tea") == ["a"]
    assert await searcher.embed_waiting() == 2
    is_down[0] = False
    assert await searcher.embed_waiting(1) == 1
    assert await searcher.embed_waiting() == 0
    found = await searcher.search("u", ask("tea", explain=True))
    assert {each.id for each in found} == {"a", "b"}
    assert all(each.why is not None and each.why.likeness is not None for each in found)


async def test_scores_are_told_with_nine_digits() -> None:
    store = MemoryStore()
    searcher = resident(store)
    await store.append(Scope("u", "s"), [note(str(n), said(random.Random(n))) for n in range(40)])
    for found in await searcher.search("u", ask("tea cake winter", 40)):
        assert isinstance(found, Found)
        assert found.score == float(f"{found.score:.9g}")
