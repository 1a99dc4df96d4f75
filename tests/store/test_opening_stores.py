"""A store by its address: which it is, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from memoryspace import MemoryStore, Record, RedisStore, Scope, SpaceStore, SQLStore, open_store
from memoryspace.errors import InvalidInput, MissingExtra
from memoryspace.kernel import Durability

from backends import cluster_url, server_url, sql_url

ANN = Scope("ann", "today")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("memory:", MemoryStore),
        ("sqlite://", SQLStore),
        ("postgres://host/db", SQLStore),
        ("POSTGRESQL://host/db", SQLStore),
        ("mysql://host/db", SQLStore),
        ("redis://host:6379/0", RedisStore),
        ("rediss://host", RedisStore),
        ("redis://host?wait_replicas=1&db=2", RedisStore),
        ("redis+cluster://ann:secret@host:7000,[::1]:7001,host?max_connections=5", RedisStore),
        ("rediss+cluster://127.0.0.1:7000?wait_replicas=1&wait_timeout=0.5", RedisStore),
        ("a/folder", SpaceStore),
        (r"C:\folder", SpaceStore),
        (Path("redis://odd"), SpaceStore),
    ],
)
def test_an_address_says_which_store(address: Any, kind: type) -> None:
    assert type(open_store(address)) is kind


@pytest.mark.parametrize(
    "place", ["folder", "sqlite", "postgres", "mariadb", "redis", "redis-cluster"]
)
async def test_what_was_put_at_an_address_is_found_there(place: str, tmp_path: Path) -> None:
    if place == "folder":
        address = str(tmp_path / "space")
    elif place == "redis":
        address = server_url("redis")
    elif place == "redis-cluster":
        address = cluster_url(place)
    else:
        address = sql_url(place, tmp_path).replace("+aiosqlite", "").replace("+asyncpg", "")
    async with open_store(address) as store:
        await store.append(ANN, [Record("one", {}, "hello", kind="note")])
    async with open_store(address) as store:
        assert [each.text for each in await store.select(ANN)] == ["hello"]
        await store.delete(ANN)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "is empty"),
        ("mongodb://host", "unknown store 'mongodb'"),
        ("localhost:6379", "unknown store 'localhost'"),
        ("https://memory.example", "the address of a server"),
        ("memory:other", "unknown store 'memory'"),
        ("redis+cluster://host:7000/1", "unusable address of a Redis cluster"),
        ("redis+cluster://host:7000?colour=red", "unusable address of a Redis cluster"),
        ("redis://host?wait_replicas=some", "unusable option in a Redis address"),
        ("redis+cluster://host?wait_replicas=-1", "wait_replicas must be a number"),
        ("redis://host?wait_replicas=1&wait_timeout=0", "wait_timeout must be from"),
        (
            "redis+cluster://host?wait_replicas=1&wait_timeout=9",
            "below the client's socket_timeout",
        ),
    ],
)
def test_what_is_no_address_says_so(address: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        open_store(address)


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store("mongodb://ann:hunter2@host")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("memory:", "MemoryStore(last_seq=0)"),
        ("postgres://ann:hunter2@host/db", "SQLStore(postgresql)"),
        ("redis://:hunter2@host", "RedisStore(prefix='memoryspace:service:', ttl=None)"),
    ],
)
def test_a_store_prints_what_it_is_without_its_password(address: str, printed: str) -> None:
    assert repr(open_store(address)) == printed


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("")
    with pytest.raises(InvalidInput, match="for a SQLite database use sqlite:///"):
        open_store(tmp_path / "notes.db")


def test_an_open_store_is_no_address() -> None:
    with pytest.raises(TypeError, match="got MemoryStore"):
        open_store(MemoryStore())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "package", "extra"),
    [
        ("postgres://host/db", "asyncpg", "postgres"),
        ("postgres://host/db", "sqlalchemy", "postgres"),
        ("mysql://host/db", "asyncmy", "mysql"),
        ("sqlite://", "aiosqlite", "sql"),
        ("redis://host", "redis", "redis"),
    ],
)
def test_what_is_not_installed_names_its_extra(
    address: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*memoryspace\[{extra}\]"):
        open_store(address)


def test_a_store_tells_whether_it_is_durable(tmp_path: Path) -> None:
    told = {
        "memory:": False,
        "sqlite://": False,
        f"sqlite:///{tmp_path}/notes.db": True,
        "postgres://host/db": True,
        "redis://host": None,
        str(tmp_path / "space"): True,
    }
    assert {address: open_store(address).is_durable for address in told} == told
    assert SpaceStore(tmp_path, durability=Durability(sync="os")).is_durable is False
    assert SpaceStore(tmp_path, durability=Durability(sync="group:5")).is_durable is False
