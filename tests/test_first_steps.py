"""What goes wrong at the first step says what is wrong and what to do, in words one can follow."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

import memoryspace
from memoryspace.context import Compactor, Limits
from memoryspace.errors import InvalidInput, MissingExtra
from memoryspace.memory import ContextWindow, InMemoryMemory
from memoryspace.message import Msg
from memoryspace.record import Scope
from memoryspace.service import (
    InMemoryMemoryService,
    Mem0LongTermMemory,
    Mem0MemoryService,
    SQLMemoryService,
)
from memoryspace.service.mem0.opening import KEY_VARIABLE
from memoryspace.store import SQLStore
from memoryspace.store.sql.opening import open_engine


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


# -- addresses of databases ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "driver", "extra"),
    [
        ("postgres://u:p@host/db", "asyncpg", "postgres"),
        ("postgresql://u:p@host/db", "asyncpg", "postgres"),
        ("postgresql+asyncpg://u:p@host/db", "asyncpg", "postgres"),
        ("mysql://u:p@host/db", "asyncmy", "mysql"),
        ("mariadb://u:p@host/db", "asyncmy", "mysql"),
        ("mysql+asyncmy://u:p@host/db", "asyncmy", "mysql"),
        ("sqlite:///file.db", "aiosqlite", "sql"),
        ("sqlite+aiosqlite:///file.db", "aiosqlite", "sql"),
    ],
)
@pytest.mark.parametrize("kind", [SQLStore, SQLMemoryService])
def test_an_address_without_its_extra_names_that_extra(
    monkeypatch: pytest.MonkeyPatch, kind: Any, address: str, driver: str, extra: str
) -> None:
    without(monkeypatch, driver)
    with pytest.raises(MissingExtra, match=rf"'{driver}' .*'memoryspace\[{extra}\]'$"):
        kind(address)


@pytest.mark.parametrize("package", ["store", "service", "memory", "session"])
def test_without_sqlalchemy_each_extra_that_brings_it_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    without(monkeypatch, "sqlalchemy")
    names = {
        "store": "SQLStore",
        "service": "SQLMemoryService",
        "memory": "AsyncSQLAlchemyMemory",
        "session": "SQLSession",
    }
    with pytest.raises(MissingExtra) as raised:
        getattr(getattr(memoryspace, package), names[package])
    for extra in ("sql", "postgres", "mysql"):
        assert f"pip install 'memoryspace[{extra}]'" in str(raised.value)


def url_of(engine: AsyncEngine) -> str:
    return engine.url.render_as_string(hide_password=False)


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("postgres://u:p@host:5433/db", "postgresql+asyncpg://u:p@host:5433/db"),
        ("postgres+asyncpg://u:p@host/db", "postgresql+asyncpg://u:p@host/db"),
        ("postgresql://u:p@host/db", "postgresql+asyncpg://u:p@host/db"),
        ("postgres://host/db?sslmode=require", "postgresql+asyncpg://host/db?ssl=require"),
        ("mysql://u:p@host/db", "mysql+asyncmy://u:p@host/db"),
        ("mariadb://u:p@host/db", "mariadb+asyncmy://u:p@host/db"),
        ("sqlite:///a.db", "sqlite+aiosqlite:///a.db"),
        ("sqlite://", "sqlite+aiosqlite://"),
        ("sqlite+aiosqlite:///a.db", "sqlite+aiosqlite:///a.db"),
    ],
)
def test_an_address_is_understood_however_it_is_written(address: str, meant: str) -> None:
    assert url_of(open_engine(address)) == meant


async def test_a_store_opened_by_a_plain_address_works() -> None:
    store = SQLStore("sqlite://")
    assert await store.count(Scope("ann", "talk")) == 0
    await store.close()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "not a database address"),
        ("no address at all, secret", "not a database address"),
        ("postgresql://u:secret@host:port/db", "not a database address"),
        ("oracle://u:secret@host/db", r"begins with one of sqlite://.* got oracle://$"),
        ("redis://:secret@host", r"begins with one of sqlite://.* got redis://$"),
        ("postgresql+psycopg2://u:secret@host/db", r"'psycopg2'.*postgresql://"),
        ("sqlite+pysqlite:///secret.db", r"'pysqlite' .* asyncio; use sqlite://"),
        ("mysql+nonsense://u:secret@host/db", r"'nonsense'.*mysql://"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_being_shown(
    address: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as raised:
        SQLStore(address)
    assert "secret" not in str(raised.value)


# -- mem0 ------------------------------------------------------------------------------------------


def test_without_mem0_its_extra_is_named_before_a_key_or_a_model_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "mem0")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(MissingExtra, match=r"memoryspace\[mem0\]"):
        Mem0MemoryService()
    with pytest.raises(MissingExtra, match=r"memoryspace\[mem0\]"):
        Mem0LongTermMemory(user_name="ann")


# -- ids, kinds, budgets ---------------------------------------------------------------------------


async def test_an_empty_user_id_is_refused_with_advice_that_can_be_followed() -> None:
    async with InMemoryMemoryService() as service:
        message = r"^user id is empty; it needs at least one character$"
        with pytest.raises(InvalidInput, match=message):
            await service.add_memory("", "hello")
        assert await service.add_memory("a", "hello")


async def test_a_kind_by_the_name_others_have_for_it_is_corrected() -> None:
    async with InMemoryMemoryService() as service:
        with pytest.raises(InvalidInput, match=r"'raw' is not a kind .* did you mean 'memory'"):
            await service.search_memory("ann", "hello", {"kind": "raw"})


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "1000", None])
def test_a_budget_of_nothing_is_no_budget(budget: Any) -> None:
    with pytest.raises(InvalidInput, match="budget must be a positive whole number of tokens"):
        Limits(budget=budget)


async def test_a_window_of_so_many_tokens_is_made_by_the_number() -> None:
    memory = InMemoryMemory()
    for number in range(200):
        await memory.add(Msg("ann", f"Note {number}: roses need sun and water.", "user"))
    window = ContextWindow(memory, 1000)
    assert window.compactor.limits.budget == 1000
    shown = await window.messages()
    assert len(shown) < 100
    assert window.report is not None
    assert window.report.tokens_after <= 1000 < window.report.tokens_before


def test_a_window_takes_limits_and_a_compactor_as_they_are() -> None:
    memory, limits = InMemoryMemory(), Limits(budget=500, keep_recent=3)
    assert ContextWindow(memory, limits).compactor.limits is limits
    compactor = Compactor(limits)
    assert ContextWindow(memory, compactor).compactor is compactor


@pytest.mark.parametrize("given", [0, -5, 1.5, True, None, "1000"])
def test_a_window_of_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="budget"):
        ContextWindow(InMemoryMemory(), given)
