"""Search inside PostgreSQL: always up to date, one user's alone, ranked as a ``Recall`` ranks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, event, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memoryspace import Record, Scope, SQLStore, Where
from memoryspace.embedding import CallableEmbedder, StaticEmbedder
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.retrieval import Entry, Only, Recall
from memoryspace.retrieval.conditions import AllOf, AnyOf, Condition, Item, Not, refusal
from memoryspace.retrieval.vector_arm import EmbedderStatus
from memoryspace.service.search import Found, Query
from memoryspace.service.search.postgres.searcher import PostgresSearcher
from memoryspace.service.search.postgres.tables import entries, progress, vectors
from memoryspace.store.sql.schema import records as stored

from backends import server_url

DAY = 86400.0
START = 1.7e9


def remembered(said: str, id_: str | None = None, **options: Any) -> Record:
    """A record as the service keeps it: what a search needs to know stands in an envelope."""
    value = {key: options.pop(key, None) for key in ("role", "name", "metadata")}
    options.setdefault("created_at", START)
    return Record(new_id() if id_ is None else id_, value, said, kind="memory", **options)


def entry_of(record: Record) -> Entry | None:
    if not isinstance(record.value, dict) or record.kind == "job":
        return None
    return Entry(
        str(record.seq),
        record.text,
        session=record.session,
        speaker=record.value.get("name"),
        role=record.value.get("role"),
        kind=record.kind,
        time=record.created_at,
        importance=record.importance,
        marks=record.marks,
        metadata=record.value.get("metadata"),
    )


class Backend:
    """A store and a searcher on one engine, and a user of their own."""

    def __init__(self, engine: AsyncEngine, user: str, **options: Any) -> None:
        clock = options.get("clock")
        self.engine, self.user = engine, user
        self.store = SQLStore(engine) if clock is None else SQLStore(engine, clock=clock)
        self.searcher = PostgresSearcher(engine, entry_of, **{"embedder": None, **options})

    async def add(self, *records: Record, session: str = "session") -> None:
        await self.store.append(Scope(self.user, session), records)

    async def say(self, *texts: str, session: str = "session", **options: Any) -> None:
        await self.add(*(remembered(each, **options) for each in texts), session=session)

    async def find(
        self, question: str, top_k: int = 10, *, user: str | None = None, **options: Any
    ) -> list[Found]:
        query = Query(text=question, top_k=top_k, now=START, **options)
        return await self.searcher.search(self.user if user is None else user, query)

    async def texts(self, question: str, top_k: int = 10, **options: Any) -> list[str]:
        found = await self.find(question, top_k, **options)
        known = {each.seq: each.text for each in await self.store.select(Scope(self.user))}
        return [known[each.seq] for each in found]

    async def indexed(self, column: Any = entries.c.seq) -> list[Any]:
        async with self.engine.connect() as on:
            theirs = select(column).where(column.table.c.user_id == self.user)
            return sorted((await on.execute(theirs)).scalars())


@asynccontextmanager
async def backend(
    url: str | None = None, user: str | None = None, **options: Any
) -> AsyncIterator[Backend]:
    engine = create_async_engine(server_url("postgres") if url is None else url)
    yield Backend(engine, f"user-{new_id()}" if user is None else user, **options)
    await engine.dispose()


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    engine = create_async_engine(server_url("postgres"), isolation_level="AUTOCOMMIT")
    name = f"empty_{new_id().lower()}"
    async with engine.connect() as on:
        await on.execute(text(f"CREATE DATABASE {name}"))
        yield engine.url.set(database=name).render_as_string(hide_password=False)
        await on.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await engine.dispose()


# What is found


async def test_the_best_match_comes_first_and_of_equals_the_newest() -> None:
    async with backend() as at:
        await at.say("the cat sat on the mat", "a cat and a dog", session="one")
        await at.say("quantum theory", session="two")
        await at.say("a cat and a dog", session="three")
        found = await at.find("a dog and a cat")
        assert [each.session for each in found] == ["three", "one", "one"]
        assert found[0].score == found[1].score > found[2].score
        assert await at.find("nothing of that") == []
        assert await at.find("???") == []


async def test_what_stands_beside_a_match_is_found_only_if_neighbours_are_wanted() -> None:
    async with backend() as at:
        await at.say("the cat sat", "quantum theory", "I like tennis")
        await at.say("far away", session="other")
        assert await at.texts("the tennis") == ["I like tennis"]
        assert set(await at.texts("the tennis", neighbours=True)) == {
            "the cat sat",
            "quantum theory",
            "I like tennis",
        }


async def test_chinese_is_found_by_its_characters() -> None:
    async with backend() as at:
        await at.say("我喜欢打网球", "今天天气很好", "她在北京大学读书")
        assert await at.texts("网球") == ["我喜欢打网球"]
        assert (await at.texts("北京的大学"))[0] == "她在北京大学读书"


async def test_a_word_of_the_speakers_name_alone_is_enough_to_match() -> None:
    async with backend() as at:
        await at.say("Ann went home", "nothing else", role="user", name="Ann")
        await at.say("good", role="user", name="Bob", session="other")
        assert await at.texts("Ann") == ["Ann went home"]


SAID = [
    "I went to the lake with Ann last summer",
    "Which lake was it?",
    "The one near the old mill, we swam there twice",
    "My brother bought a red bicycle yesterday",
    "Always answer me in French",
    "The mill was closed in 2019 because of the flood",
    "I prefer tea to coffee in the morning",
    "今天我们去湖边散步",
]
ASKED = [
    "What did I say about the lake?",
    "when was the mill closed?",
    "what did Bob buy yesterday",
    "how many times did we swim",
    '"red bicycle"',
    "湖边",
    "tea or coffee?",
]


# Up to how many rows of a user are read whole: all of them here, or none.
WAYS = pytest.mark.parametrize("whole", [500, 1], ids=["whole", "candidates"])


@WAYS
@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("embedder", [None, StaticEmbedder()], ids=["words", "vectors"])
async def test_order_and_scores_are_those_of_a_recall_that_holds_everything(
    embedder: StaticEmbedder | None, neighbours: bool, whole: int
) -> None:
    async with backend(embedder=embedder, whole=whole) as at:
        for day, session in enumerate(("one", "two", "three")):
            for turn, said in enumerate(SAID[day:] + SAID[:day]):
                who = {"role": "user", "name": "Ann"} if turn % 2 else {"role": "assistant"}
                await at.say(said, session=session, created_at=START - DAY * day, **who)
        recall = Recall(embedder=embedder)
        recall.add(filter(None, map(entry_of, await at.store.select(Scope(at.user)))))
        some = () if neighbours else (Only(role="user"),)  # beside what is not allowed: not looked
        for question, only in product(ASKED, (Only(), *some)):
            hits = recall.search(question, 20, now=START, matching=not neighbours, only=only)
            found = await at.find(question, 20, neighbours=neighbours, only=only)
            assert [each.seq for each in found] == [int(hit.id) for hit in hits], question
            assert [each.score for each in found] == pytest.approx([hit.relevance for hit in hits])


@WAYS
async def test_what_is_not_allowed_is_no_measure_for_what_is(whole: int) -> None:
    async with backend(whole=whole) as at:
        for said, role in zip(("the lake", "x", "y", "z", "the mill"), "uaaau", strict=True):
            await at.say(said, role={"u": "user", "a": "assistant"}[role])
        recall = Recall(embedder=None)
        recall.add(filter(None, map(entry_of, await at.store.select(Scope(at.user)))))
        only = Only(role="user")
        hits = recall.search("lake mill", now=START, only=only, matching=True)
        found = await at.find("lake mill", only=only)
        assert [each.score for each in found] == pytest.approx([hit.relevance for hit in hits])


async def test_meaning_finds_what_no_word_does() -> None:
    async with backend(embedder=StaticEmbedder()) as at:
        await at.say("I like tennis", "the printer is out of paper", "我喜欢网球")
        assert await at.texts("what sport do you enjoy") == ["I like tennis"]
        assert len(await at.indexed(vectors.c.seq)) == 2  # it cannot rank Chinese
        found = await at.find("what sport do you enjoy", explain=True)
        assert found[0].why is not None
        assert found[0].why.likeness is not None


async def test_vectors_of_two_embedders_are_never_compared() -> None:
    def embedder(dimensions: int) -> CallableEmbedder:
        def embed(texts: Sequence[str]) -> Any:
            return np.ones((len(texts), dimensions), np.float32)

        return CallableEmbedder(embed, name=f"{dimensions}-{new_id()}", dimensions=dimensions)

    async with backend(embedder=embedder(2)) as one:
        other = Backend(one.engine, one.user, embedder=embedder(3))
        await one.say("a lantern", "a torch")
        for at in (one, other, one):
            assert len(await at.find("candle")) == 2  # to both all is alike
        assert len(await one.indexed(vectors.c.seq)) == 4


async def test_a_hit_can_say_why() -> None:
    async with backend() as at:
        await at.say("a lantern in the window")
        found = await at.find("lanterns", explain=True)
        assert found[0].why is not None
        assert list(found[0].why.words) == ["lanterns"]
        assert (await at.find("lanterns"))[0].why is None


# Always up to date


async def test_what_one_process_stores_another_finds_at_once() -> None:
    async with backend() as one, backend(user=one.user) as other:
        for number in range(3):
            await one.say(f"lantern number {number}", session=f"session {number % 2}")
            assert len(await other.find("lantern")) == number + 1
            assert await other.find("lantern") == await one.find("lantern")


async def test_what_is_deleted_leaves_the_index_with_it() -> None:
    async with backend(embedder=StaticEmbedder()) as at:
        await at.add(remembered("a lantern", "first"), remembered("a lantern", "second"))
        assert len(await at.find("lantern")) == 2
        await at.store.delete(Scope(at.user), Where(ids=frozenset({"first"})))
        assert [each.id for each in await at.find("lantern")] == ["second"]
        assert len(await at.indexed()) == len(await at.indexed(vectors.c.seq)) == 1
        await at.store.delete(Scope(at.user))
        assert await at.searcher.traces(at.user) == 0
        assert await at.find("lantern") == []


async def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    async with backend() as at:
        await at.add(remembered("a lantern", "x"), remembered("a candle", "y"))
        [before] = await at.find("lantern")
        one = Where(ids=frozenset({"x"}))
        await at.store.replace(Scope(at.user, "session"), one, [remembered("a torch", "x")])
        assert await at.find("lantern") == []
        [after] = await at.find("torch")
        assert (after.id, after.session) == ("x", "session")
        assert after.seq > before.seq


async def test_what_has_expired_is_not_found_and_counts_for_nothing() -> None:
    now = [START]
    async with backend(clock=lambda: now[0]) as at:
        await at.say("a lantern", expires_at=START + 10)
        await at.say("another lantern")
        assert len(await at.find("lantern")) == 2
        now[0] += 10
        [found] = await at.find("lantern", explain=True)
        alone = Recall(embedder=None)
        alone.add([Entry("1", "another lantern", session="session", time=START)])
        [hit] = alone.search("lantern", now=START, explain=True)
        assert found.why is not None
        assert hit.why is not None
        assert found.why.words == pytest.approx(hit.why.words)


async def test_a_session_that_was_erased_and_began_again_is_indexed_from_its_begin() -> None:
    async with backend() as at:
        await at.say(*(f"lantern {n}" for n in range(5)))
        assert len(await at.find("lantern")) == 5
        await at.store.delete(Scope(at.user))
        await at.say("one lantern")
        assert await at.texts("lantern") == ["one lantern"]


async def test_a_session_erased_while_it_is_embedded_is_not_mistaken_for_the_new_one() -> None:
    user, name = f"user-{new_id()}", f"late-{new_id()}"

    def fail(_: Sequence[str]) -> Any:
        raise RuntimeError("not now")

    async def begin_again() -> None:
        """Another process erases everything, says more, and begins to index it, in vain."""
        broken = CallableEmbedder(fail, name=name, dimensions=2)
        async with backend(user=user, embedder=broken) as other:
            await other.store.delete(Scope(user))
            await other.say(*(f"torch {n}" for n in range(7)))
            assert len(await other.find("torch")) == 7

    once = [lambda: asyncio.run(begin_again())]

    def embed(texts: Sequence[str]) -> Any:
        if once:
            once.pop()()
        return np.ones((len(texts), 2), np.float32)

    async with backend(user=user, embedder=CallableEmbedder(embed, name=name, dimensions=2)) as at:
        await at.say(*(f"lantern {n}" for n in range(3)))
        await at.find("lantern")
        assert len(await at.find("torch")) == 7
        assert len(await at.indexed(vectors.c.seq)) == 7


async def test_a_record_deleted_while_it_is_embedded_is_left_out() -> None:
    user = f"user-{new_id()}"

    async def remove_one() -> None:
        async with backend(user=user) as other:
            await other.store.delete(Scope(user), Where(ids=frozenset({"gone"})))

    once = [lambda: asyncio.run(remove_one())]

    def embed(texts: Sequence[str]) -> Any:
        if once:
            once.pop()()
        return np.ones((len(texts), 2), np.float32)

    embedder = CallableEmbedder(embed, name=f"late-{new_id()}", dimensions=2)
    async with backend(user=user, embedder=embedder) as at:
        await at.add(remembered("a lantern", "gone"), remembered("a lantern", "kept"))
        assert [each.id for each in await at.find("lantern")] == ["kept"]
        assert len(await at.indexed(vectors.c.seq)) == 1


async def test_more_than_one_batch_in_many_sessions_is_indexed_completely() -> None:
    async with backend() as at:
        for number in range(7):
            await at.say(*(f"lantern {n}" for n in range(400)), session=f"session {number}")
        assert len(await at.find("lantern", 3000)) == 2800
        assert len(await at.indexed()) == 2800


async def test_what_is_not_to_be_found_is_passed_over() -> None:
    async with backend() as at:
        job = Record("job", {}, "a lantern", kind="job")
        await at.add(remembered("a lantern", "before"), job, remembered("a lantern", "behind"))
        assert {each.id for each in await at.find("lantern")} == {"before", "behind"}
        assert len(await at.indexed()) == 2


@WAYS
async def test_a_record_that_cannot_be_read_hides_no_other(whole: int) -> None:
    async with backend(whole=whole) as at:
        await at.add(*(remembered("a lantern", id_) for id_ in ("good", "bad", "late")))
        await _damage(at, "bad")
        assert {each.id for each in await at.find("lantern")} == {"good", "late"}
        await _damage(at, "late")  # after it was indexed
        assert [each.id for each in await at.find("lantern")] == ["good"]


async def _damage(at: Backend, id_: str) -> None:
    async with at.engine.begin() as on:
        theirs = (stored.c.user_id == at.user, stored.c.id == id_)
        await on.execute(update(stored).where(*theirs).values(value="{"))


async def test_tables_that_were_dropped_are_made_and_filled_again() -> None:
    async with empty_database() as url, backend(url, embedder=StaticEmbedder()) as at:
        await at.say("a lantern")
        assert len(await at.find("lantern")) == 1
        async with at.engine.begin() as on:
            for table in (entries, progress, vectors):
                await on.execute(text(f"DROP TABLE {table.name}"))
        assert len(await at.find("lantern")) == 1
        assert await at.searcher.traces(at.user) == 4  # words, vector, and how far each has come


# One round trip


async def test_a_search_that_has_nothing_to_index_is_one_statement() -> None:
    statements: list[str] = []
    async with backend(embedder=StaticEmbedder()) as at:
        await at.say(*(f"lantern number {n}" for n in range(20)))
        await at.find("prepares everything")

        @event.listens_for(at.engine.sync_engine, "before_cursor_execute")
        def listen(_: Any, __: Any, statement: str, *___: Any) -> None:
            statements.append(statement)

        found = await at.find("lantern", 3, neighbours=True)
        assert len(statements) == 1
        texts = await at.texts("lantern", 3, neighbours=True)
        assert [each.record.text for each in found if each.record is not None] == texts


async def test_the_index_of_an_earlier_release_gets_the_columns_it_lacks() -> None:
    async with empty_database() as url, backend(url) as at:
        await at.say("a lantern")
        assert len(await at.find("lantern")) == 1
        async with at.engine.begin() as on:
            await on.execute(delete(progress))
            await on.execute(update(entries).values(reading=1))
            for name in ("title", "importance", "traits", "fullness"):
                await on.execute(text(f"ALTER TABLE {entries.name} DROP COLUMN {name}"))
        async with backend(url, at.user) as later:
            assert await later.texts("lantern") == ["a lantern"]


# Many at once


async def test_four_processes_index_everything_once() -> None:
    async with backend(embedder=StaticEmbedder()) as at:
        for number in range(4):
            await at.say(*(f"lantern {n}" for n in range(300)), session=f"session {number}")
        code = "import sys, asyncio, test_postgres_search as t; asyncio.run(t.work(*sys.argv[1:]))"
        url = at.engine.url.render_as_string(hide_password=False)
        started = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, url, at.user, str(number),
                cwd=Path(__file__).parent,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            for number in range(4)
        ]  # fmt: skip
        for process in started:
            output, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()
            assert [int(each) for each in output.split()] == sorted(map(int, output.split()))
        every = sorted(each.seq for each in await at.store.select(Scope(at.user)))
        assert len(every) == 1280
        assert len(await at.find("lantern", 2000)) == 1280
        assert await at.indexed() == await at.indexed(vectors.c.seq) == every


async def work(url: str, user: str, number: str) -> None:
    """What each of the processes does: add and search in turns, and say how much it finds."""
    async with backend(url, user, embedder=StaticEmbedder()) as at:
        for turn in range(20):
            await at.say(f"lantern of {number}", session=f"session {turn % 4}")
            print(len(await at.find("lantern", 2000)))  # noqa: T201  # how it reports


async def test_many_searches_at_once_agree_while_everything_is_still_to_be_indexed() -> None:
    async with backend() as at:
        await at.say(*(f"lantern {n}" for n in range(1500)))
        found = await asyncio.gather(*(at.find("lantern", 5) for _ in range(8)))
        assert all(each == found[0] for each in found)
        assert len(await at.indexed()) == 1500


async def test_deleting_and_indexing_at_once_end_in_agreement() -> None:
    async with backend() as one, backend(user=one.user) as other:
        for turn in range(6):
            await one.say(
                *(f"lantern {turn} {n}" for n in range(50)), session=f"session {turn % 2}"
            )
            some = Where(limit=30)
            both = (other.find("lantern"), one.store.delete(Scope(one.user), some))
            await asyncio.gather(*both, one.find("lantern"))
            if turn == 3:
                await asyncio.gather(other.find("lantern"), one.store.delete(Scope(one.user)))
        await other.find("lantern")
        assert await one.indexed() == sorted(
            each.seq for each in await one.store.select(Scope(one.user))
        )


async def test_eight_users_may_be_the_first_in_an_empty_database() -> None:
    async with empty_database() as url:
        engines = [create_async_engine(url) for _ in range(8)]
        users = [Backend(engine, f"user {n}") for n, engine in enumerate(engines)]

        async def begin(at: Backend) -> int:
            await at.say("a lantern")
            return len(await at.find("lantern"))

        assert await asyncio.gather(*map(begin, users)) == [1] * 8
        for engine in engines:
            await engine.dispose()


# Whose it is

HOSTILE = [
    "Ann",
    "ann",
    "Ann ",
    "Ann' OR '1'='1",
    'Ann"; DROP TABLE memoryspace_search; --',
    "%",
    "_nn",
    "用户",
    "a:b|c&d",
    "\\",
    "{}",
    "x" * 255,
]


async def test_nobody_finds_what_is_somebody_elses() -> None:
    tag = new_id()
    names = [(tag + name)[:255] for name in HOSTILE]
    async with backend(embedder=StaticEmbedder()) as at:
        for number, name in enumerate(names):
            record = remembered("a lantern", f"of {number}")
            await at.store.append(Scope(name, names[number - 1]), [record])
        for number, name in enumerate(names):
            [found] = await at.find("lantern", user=name)
            assert found.id == f"of {number}"
            assert await at.find("lantern", user=name, only=Only(session=name)) == []
        every = AnyOf(tuple(Only(session=name) for name in names))
        assert len(await at.find("lantern", user=names[0], only=every)) == 1


async def test_every_statement_on_rows_names_the_user() -> None:
    statements: list[str] = []
    async with backend(embedder=StaticEmbedder(), whole=1) as at:
        await at.say("a lantern", "a candle", role="user", name="Ann")
        await at.find("prepares everything")

        @event.listens_for(at.engine.sync_engine, "before_cursor_execute")
        def listen(_: Any, __: Any, statement: str, *___: Any) -> None:
            statements.append(statement)

        await at.say("a torch")
        await at.find("Ann's lantern yesterday", neighbours=True)
        await at.searcher.why_not(at.user, Query(text="lantern", top_k=1), 1)
        await at.searcher.traces(at.user)
        await at.searcher.forget(at.user)
    ours = [each for each in statements if "memoryspace_" in each]
    assert len(ours) > 20
    assert [each for each in ours if "user_id" not in each] == []


async def test_a_user_is_forgotten_without_harm_to_others() -> None:
    async with backend() as one, backend() as other:
        for at in (one, other):
            await at.say("a lantern")
            await at.find("lantern")
        await Backend(one.engine, one.user, embedder=StaticEmbedder()).find("lantern")
        assert await one.searcher.traces(one.user) == 4  # the vectors' too, which it does not use
        await one.searcher.forget(one.user)
        assert await one.searcher.traces(one.user) == 0
        assert await one.searcher.traces(other.user) == 2
        assert len(await one.find("lantern")) == 1  # the store holds it still


# Only some

CONDITIONS: list[Condition] = [
    Only(session="session 1"),
    Only(session=frozenset({"session 1", "session 2"}), role="user"),
    Only(kind="memory", speaker="Ann"),
    Only(kind="fact"),
    Only(marks=frozenset({"red", "blue"})),
    Only(without=frozenset({"red"})),
    Only(marks=frozenset({"\x1fred"})),
    Only(since=START + DAY, until=START + 3 * DAY),
    Only(until=10**400),
    Only(metadata={"number": 3}),
    Item("number", "gte", 5),
    Item("number", "exists", False),
    Not(Only(speaker="Ann")),
    Not(Only(since=START + DAY)),
    Not(Item("number", "lt", 5)),
    AnyOf((Only(session="session 0"), Item("number", "eq", 7))),
    AllOf((Only(without=frozenset({"red"})), Not(AnyOf((Only(role="user"), Only(role="tool")))))),
    AllOf(()),
    AnyOf(()),
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("embedder", [None, StaticEmbedder()], ids=["words", "vectors"])
async def test_only_what_fulfils_a_condition_is_found_and_all_of_it(
    condition: Condition, embedder: StaticEmbedder | None
) -> None:
    async with (
        backend(embedder=embedder) as at,
        backend(user=at.user, embedder=embedder, whole=1) as of,
    ):
        for number in range(12):
            await at.say(
                f"lantern {number}",
                session=f"session {number % 3}",
                name=("Ann", "Bob", None)[number % 3],
                role=("user", "assistant")[number % 2],
                marks=frozenset([("red", "blue", "reddish")[number % 3]]) if number % 4 else (),
                created_at=START + DAY * (number % 5),
                metadata={"number": number} if number % 3 else None,
            )
        every = [entry_of(each) for each in await at.store.select(Scope(at.user))]
        wanted = {int(e.id) for e in every if e is not None and refusal(condition, e) is None}
        for each in (at, of):
            found = await each.find("lantern", 50, only=condition)
            assert {one.seq for one in found} == wanted


async def test_what_is_read_along_but_was_not_looked_at_is_not_returned() -> None:
    async with backend() as at:
        await at.add(*(remembered("lantern lantern?", importance=0.0) for _ in range(300)))
        found = await at.find("lantern", 100)
        newest = sorted((each.seq for each in await at.store.select(Scope(at.user))), reverse=True)
        assert [each.seq for each in found] == newest[:100]


async def test_only_some_seqs_can_be_asked_for() -> None:
    async with backend() as at:
        await at.say("lantern one", "lantern two")
        first, second = sorted(each.seq for each in await at.find("lantern"))
        some = Only(ids=frozenset({str(first), "x", "٣", "9" * 30, f"0{second}"}))
        assert [each.seq for each in await at.find("lantern", only=some)] == [first]


@pytest.mark.parametrize("embedder", [None, StaticEmbedder()], ids=["words", "vectors"])
async def test_what_a_condition_leaves_far_down_is_still_found(
    embedder: StaticEmbedder | None,
) -> None:
    async with backend(embedder=embedder) as at:
        await at.add(*(remembered("lantern lantern") for _ in range(600)))
        await at.say("a lantern among many other words", metadata={"wanted": True})
        assert await at.texts("lantern", 3, only=Item("wanted", "eq", True)) == [
            "a lantern among many other words"
        ]


# Why not


@WAYS
async def test_why_not_says_where_a_memory_falls_out(whole: int) -> None:
    async with backend(whole=whole) as at, backend() as other:
        for number in range(300):
            await at.add(remembered("lantern lantern", f"good {number}"))
        await at.add(remembered("a lantern and many other words", "weak"))
        await at.add(remembered("something else", "other"))
        await other.say("a lantern")
        [theirs] = await other.find("lantern")
        seqs = {each.id: each.seq for each in await at.store.select(Scope(at.user))}

        async def reason(seq: int, **options: Any) -> str:
            query = Query(text="lantern", now=START, **{"top_k": 5, **options})
            return (await at.searcher.why_not(at.user, query, seq)).reason

        assert await reason(seqs["good 299"]) == "found"
        assert await reason(seqs["good 250"]) == "outranked"
        assert await reason(seqs["weak"]) == ("outranked" if whole > 1 else "not a candidate")
        assert await reason(seqs["other"]) == "not matched"
        assert await reason(seqs["weak"], only=Only(session="x")) == "filtered"
        assert await reason(theirs.seq) == "unknown"


# What may be missing


async def test_without_the_extension_words_alone_are_searched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        empty_database() as url,
        weak_role(url) as theirs,
        backend(theirs, embedder=StaticEmbedder()) as at,
    ):
        await at.say("a lantern")
        assert len(await at.find("lantern")) == 1
        assert await at.find("a light in the dark") == []
        assert await at.searcher.traces(at.user) == 2
        await at.searcher.forget(at.user)
        assert await at.searcher.traces(at.user) == 0
    assert caplog.text.count("CREATE EXTENSION vector") == 1


@asynccontextmanager
async def weak_role(url: str) -> AsyncIterator[str]:
    """A role that may create tables, but no extension."""
    name = f"weak_{new_id().lower()}"
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as on:
        await on.execute(text(f"CREATE ROLE {name} LOGIN"))
        await on.execute(text(f"GRANT CREATE ON SCHEMA public TO {name}"))
        yield engine.url.set(username=name).render_as_string(hide_password=False)
        await on.execute(text(f"DROP OWNED BY {name}"))
        await on.execute(text(f"DROP ROLE {name}"))
    await engine.dispose()


async def test_an_embedder_that_fails_is_asked_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, is_broken, calls = [START], [True], [0]

    def embed(texts: Sequence[str]) -> Any:
        calls[0] += 1
        if is_broken[0]:
            raise RuntimeError("the secret lantern")
        return np.ones((len(texts), 2), np.float32)

    embedder = CallableEmbedder(embed, name=f"weak-{new_id()}", dimensions=2)
    async with backend(embedder=embedder, clock=lambda: now[0]) as at:
        await at.say("a lantern")
        assert len(await at.find("lantern")) == 1
        assert len(await at.find("lantern")) == 1
        assert calls == [1]
        assert "lantern" not in caplog.text
        failing = EmbedderStatus(embedder.name, failures=1, last_error="RuntimeError")
        assert await at.searcher.embedder_status(at.user) == failing
        is_broken[0], now[0] = False, START + 60
        assert len(await at.find("torch")) == 1  # to it all is alike
        assert await at.searcher.embedder_status(at.user) == EmbedderStatus(embedder.name, 1)
        assert len(await at.indexed(vectors.c.seq)) == 1


async def test_only_postgresql_searches_by_itself() -> None:
    with pytest.raises(InvalidInput, match="sqlite"):
        PostgresSearcher(create_async_engine("sqlite+aiosqlite://"), entry_of)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(text="x", top_k=0), InvalidInput),
        (Query(text="x", top_k=True), InvalidInput),
        (Query(text=None, top_k=1), TypeError),  # type: ignore[arg-type]
        (Query(text="x", top_k=1, now=1e30), InvalidInput),
        (Query(text="x", top_k=1, now=float("nan")), InvalidInput),
    ],
)
async def test_a_query_that_cannot_be_asked_is_refused(
    query: Query, error: type[Exception]
) -> None:
    async with backend() as at:
        with pytest.raises(error):
            await at.searcher.search(at.user, query)


async def test_a_very_long_question_is_answered() -> None:
    async with backend() as at:
        await at.say("a lantern")
        question = " ".join(f"word{n}" for n in range(200)) + " lantern"
        assert len(await at.find(question)) == 1
        assert await at.find("x" * 100_000 + "\0 \ud800") == []
