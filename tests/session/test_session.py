import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from redis.asyncio import ConnectionPool, Redis
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from memoryspace.errors import CorruptData, InvalidInput, NotSerializable, SessionNotFound
from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg, new_id
from memoryspace.module import StateModule
from memoryspace.session import JSONSession, RedisSession, SessionBase, SQLSession

from backends import REDIS_BACKENDS, redis_client, server_url, sql_url

SQL_BACKENDS = ["sqlite", "postgres", "mariadb"]
BACKENDS = ["json", "redis", "redis-cluster", *SQL_BACKENDS]

every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_database = pytest.mark.parametrize("backend", SQL_BACKENDS)
LONG = "x" * 255

# User and session that a careless key would mix up, or that could leave a folder.
ALONE = ("../../x", "/tmp/x", "a/b", "a_b", "a@b", "会话", "con.json", "*?[a-z]", "';DROP", LONG)
PAIRS = "../../x,../../x ..,.. a,b A,B a_b,c a,b_c a@b,c a,b@c a:session:b,c a,b:session:c 漢,字"
HOSTILE_PAIRS = [
    *(("", id_) for id_ in (*ALONE, "\u00e9", "e\u0301")),
    *(tuple(pair.split(",")) for pair in PAIRS.split()),
    *(("a ", "b"), ("a", "b "), ("a%3Asession%3Ab", "c"), (LONG, LONG), ("漢" * 255, "字" * 255)),
]


class Notes(StateModule):
    def __init__(self, text: Any = "") -> None:
        super().__init__()
        self.text = text
        self.register_state("text", custom_to_json=lambda text: text)


class Titled(Notes):
    def __init__(self, text: Any = "") -> None:
        super().__init__(text)
        self.title = "title"
        self.register_state("title")


@asynccontextmanager
async def opened(backend: str) -> AsyncIterator[SessionBase]:
    with TemporaryDirectory() as folder:
        if backend == "json":
            yield JSONSession(Path(folder) / "states")
        elif backend in REDIS_BACKENDS:
            async with redis_client(backend) as client:
                yield RedisSession(client=client)
        else:
            engine = create_async_engine(sql_url(backend, folder))
            yield SQLSession(engine)
            await engine.dispose()


async def text_in(session: SessionBase, session_id: str, user_id: str = "") -> Any:
    notes = Notes()
    await session.load_session_state(session_id, user_id, allow_not_exist=False, notes=notes)
    return notes.text


@every_backend
async def test_several_modules_are_saved_and_restored_together(backend: str) -> None:
    id_, memory, notes = new_id(), InMemoryMemory(), Notes("你好 \ud800 \0 'quoted'")
    blocks: Any = [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": [1.5, None]}}]
    await memory.add(Msg("alice", "hello", "user", {"k": 1}), marks=["hint", "pinned"])
    await memory.add(Msg("bot", blocks, "assistant", invocation_id="call"))
    await memory.update_compressed_summary("what was said before")
    other_memory, other_notes = InMemoryMemory(), Notes()
    async with opened(backend) as session:
        await session.save_session_state(id_, "alice", memory=memory, notes=notes)
        await session.load_session_state(id_, "alice", memory=other_memory, notes=other_notes)
    assert other_memory.state_dict() == memory.state_dict()
    hinted = await other_memory.get_memory("hint")
    assert [msg.content for msg in hinted] == ["what was said before", "hello"]
    assert other_notes.text == notes.text


@every_backend
async def test_what_was_not_saved_is_left_alone(backend: str) -> None:
    id_, saved, unsaved = new_id(), Notes("old"), Notes("mine")
    async with opened(backend) as session:
        await session.save_session_state(id_, saved=saved, more=Notes("more"))
        saved.text = "changed"
        await session.load_session_state(id_, saved=saved, unsaved=unsaved)
    assert (saved.text, unsaved.text) == ("old", "mine")


@every_backend
async def test_saving_again_replaces_the_whole_state(backend: str) -> None:
    id_, first, second = new_id(), Notes("untouched"), Notes()
    async with opened(backend) as session:
        await session.save_session_state(id_, first=Notes("1"), second=Notes("x" * 100_000))
        await session.save_session_state(id_, second=Notes("2"))
        await session.load_session_state(id_, first=first, second=second)
    assert (first.text, second.text) == ("untouched", "2")


@every_backend
async def test_a_missing_session_is_noted_or_an_error(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    id_, notes = new_id(), Notes("mine")
    async with opened(backend) as session:
        with caplog.at_level(logging.INFO, "memoryspace.session"):
            await session.load_session_state(id_, "alice", notes=notes)
        with pytest.raises(SessionNotFound, match=id_):
            await session.load_session_state(id_, "alice", allow_not_exist=False, notes=notes)
    assert id_ in caplog.text
    assert notes.text == "mine"
    assert issubclass(SessionNotFound, ValueError)


@every_backend
async def test_a_failed_save_keeps_the_old_state(backend: str) -> None:
    id_, notes = new_id(), Notes("old")
    async with opened(backend) as session:
        await session.save_session_state(id_, notes=notes)
        for value in (object(), {1, 2}, b"bytes", {(1, 2): 3}):
            with pytest.raises(NotSerializable, match=id_):
                await session.save_session_state(id_, fine=Notes("new"), notes=Notes(value))
        assert await text_in(session, id_) == "old"


@every_backend
async def test_a_state_that_does_not_fit_restores_nothing(backend: str) -> None:
    id_, first, second, third = new_id(), Notes("before"), Titled("before"), Notes("before")
    async with opened(backend) as session:
        saved = {"first": Notes("saved"), "second": Notes("saved"), "third": Notes("saved")}
        await session.save_session_state(id_, **saved)
        with pytest.raises(KeyError, match="title"):
            await session.load_session_state(id_, first=first, second=second, third=third)
    assert first.text == second.text == third.text == "before"


@every_backend
async def test_hostile_ids_never_meet(backend: str) -> None:
    async with opened(backend) as session:
        for user, id_ in HOSTILE_PAIRS:
            await session.save_session_state(id_, user, notes=Notes([user, id_]))
        for user, id_ in HOSTILE_PAIRS:
            assert await text_in(session, id_, user) == [user, id_]


@every_backend
async def test_a_session_without_a_user_is_not_a_users_session(backend: str) -> None:
    id_ = new_id()
    async with opened(backend) as session:
        await session.save_session_state(id_, notes=Notes("nobody's"))
        await session.save_session_state(id_, "alice", notes=Notes("alice's"))
        assert await text_in(session, id_) == "nobody's"
        assert await text_in(session, id_, "alice") == "alice's"
        with pytest.raises(SessionNotFound):
            await text_in(session, id_, "bob")


@every_backend
@pytest.mark.parametrize(("user", "id_"), [("", ""), ("", LONG + "x"), ("a\0", "b"), ("a", "b\n")])
async def test_ids_that_cannot_be_held_are_refused(backend: str, user: str, id_: str) -> None:
    async with opened(backend) as session:
        with pytest.raises(InvalidInput, match="id"):
            await session.save_session_state(id_, user, notes=Notes("x"))
        with pytest.raises(InvalidInput, match="id"):
            await session.load_session_state(id_, user, notes=Notes("x"))


@every_backend
@pytest.mark.parametrize("text", ["", "{half", "[1]", "null", '"text"'])
async def test_a_corrupt_state_is_named_and_changes_nothing(backend: str, text: str) -> None:
    id_, notes = new_id(), Notes("mine")
    async with opened(backend) as session:
        await session._write(id_, "alice", text)
        with pytest.raises(CorruptData, match=f"{id_}.*alice"):
            await session.load_session_state(id_, "alice", notes=notes)
    assert notes.text == "mine"


@every_backend
async def test_concurrent_saves_leave_one_whole_state(backend: str) -> None:
    id_, first, second = new_id(), Notes(), Notes()
    async with opened(backend) as session:

        async def save(number: int) -> None:
            text = f"{number} " * 5_000
            await session.save_session_state(id_, first=Notes(text), second=Notes(text))

        await asyncio.gather(*(save(number) for number in range(50)))
        await session.load_session_state(id_, first=first, second=second)
    assert first.text == second.text
    assert first.text in [f"{number} " * 5_000 for number in range(50)]


async def test_hostile_ids_stay_inside_the_folder(tmp_path: Path) -> None:
    session = JSONSession(tmp_path / "states")
    for user, id_ in HOSTILE_PAIRS:
        await session.save_session_state(id_, user, notes=Notes(id_))
    assert os.listdir(tmp_path) == ["states"]
    files = os.listdir(tmp_path / "states")
    assert all(name.endswith(".json") for name in files)
    assert len({name.casefold() for name in files}) == len(HOSTILE_PAIRS)


async def test_plain_ids_can_be_read_from_the_file_name(tmp_path: Path) -> None:
    session = JSONSession(tmp_path)
    assert session.path_of("monday") == tmp_path / "monday.json"
    assert session.path_of("monday", "alice") == tmp_path / "alice@monday.json"
    await session.save_session_state("monday", notes=Notes("漢字"))
    assert session.path_of("monday").read_text("utf-8") == '{"notes":{"text":"漢字"}}'


def redis_key(user: str, id_: str) -> str:
    return f"user:{{{user}}}:session:{id_}:state"


async def test_the_time_to_live_is_set_on_save_and_slid_on_load() -> None:
    id_ = new_id()
    async with Redis.from_url(server_url("redis")) as client:
        session, key = RedisSession(client=client, key_ttl=1000), redis_key("alice", id_)
        await session.save_session_state(id_, "alice", notes=Notes("x"))
        assert 100 < await client.ttl(key) <= 1000
        await client.expire(key, 100)
        assert await text_in(session, id_, "alice") == "x"
        assert 100 < await client.ttl(key) <= 1000


async def test_without_a_time_to_live_a_state_stays() -> None:
    id_ = new_id()
    async with Redis.from_url(server_url("redis")) as client:
        session, key = RedisSession(client=client), redis_key("default_user", id_)
        await session.save_session_state(id_, notes=Notes("x"))
        assert await text_in(session, id_) == "x"
        assert await client.ttl(key) == -1


@pytest.mark.parametrize("decoded", [True, False], ids=["text", "bytes"])
@pytest.mark.parametrize("given", ["client", "connection_pool"])
async def test_connections_that_were_passed_in_stay_open(given: str, decoded: bool) -> None:
    id_, client = new_id(), Redis.from_url(server_url("redis"), decode_responses=decoded)
    connection = await client.client_id()
    passed: Any = {"client": client, "connection_pool": client.connection_pool}[given]
    async with RedisSession(**{given: passed}) as session:
        assert passed in (session.get_client(), session.get_client().connection_pool)
        await session.save_session_state(id_, notes=Notes("漢字"))
        assert await text_in(session, id_) == "漢字"
    assert await client.client_id() == connection
    await client.aclose()


async def test_a_client_made_from_an_address_is_closed() -> None:
    address = ConnectionPool.from_url(server_url("redis")).connection_kwargs
    id_, session = new_id(), RedisSession(host=address["host"], port=address["port"])
    await session.save_session_state(id_, notes=Notes("x"))
    connection = await session.get_client().client_id()
    await session.close()
    assert await session.get_client().client_id() != connection
    await session.close()


@every_database
async def test_it_joins_the_callers_transaction_and_does_not_commit(
    backend: str, tmp_path: Path
) -> None:
    id_, engine = new_id(), create_async_engine(sql_url(backend, tmp_path))
    others = SQLSession(engine)
    await others.save_session_state(id_, notes=Notes("old"))
    async with AsyncSession(engine) as mine:
        await mine.begin()
        joined = SQLSession(mine)
        await joined.save_session_state(id_, notes=Notes("new"))
        assert await text_in(joined, id_) == "new"
        assert await text_in(others, id_) == "old"
        await mine.rollback()
        assert await text_in(others, id_) == "old"
        await mine.begin()
        await joined.save_session_state(id_, notes=Notes("newer"))
        assert mine.in_transaction()
        await mine.commit()
    assert await text_in(others, id_) == "newer"
    await engine.dispose()


@every_database
async def test_without_a_transaction_of_the_callers_a_save_is_committed(
    backend: str, tmp_path: Path
) -> None:
    id_, engine = new_id(), create_async_engine(sql_url(backend, tmp_path))
    async with AsyncSession(engine) as mine:
        await SQLSession(mine).save_session_state(id_, notes=Notes("x"))
        assert not mine.in_transaction()
        assert await text_in(SQLSession(engine), id_) == "x"
    await engine.dispose()


async def test_a_state_that_is_not_even_text_is_named(tmp_path: Path) -> None:
    session = JSONSession(tmp_path)
    session.path_of("s", "alice").write_bytes(b"\xff\xfe{")
    with pytest.raises(CorruptData, match=r"'s'.*'alice'"):
        await session.load_session_state("s", "alice", notes=Notes())
    for decoded in (True, False):
        client = Redis.from_url(server_url("redis"), decode_responses=decoded)
        user = new_id()
        await client.set(f"user:{{{user}}}:session:s:state", b"\xff\xfe{")
        with pytest.raises(CorruptData, match=rf"'s'.*'{user}'"):
            await RedisSession(client=client).load_session_state("s", user, notes=Notes())
        await client.aclose()


async def test_a_cancelled_save_does_not_overwrite_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, begun, go_on = JSONSession(tmp_path), threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        begun.set()
        go_on.wait()

    monkeypatch.setattr("memoryspace.files.os.fsync", slow)
    old = asyncio.create_task(session.save_session_state("s", notes=Notes("old")))
    await asyncio.to_thread(begun.wait)
    old.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await old
    await session.save_session_state("s", notes=Notes("new"))
    loaded = Notes()
    await session.load_session_state("s", notes=loaded)
    assert loaded.text == "new"
