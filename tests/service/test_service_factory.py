"""A service by the name of its backend, with options from keywords and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoryspace.errors import InvalidInput, StoreUnavailable
from memoryspace.service import (
    InMemoryMemoryService,
    MemoryServiceFactory,
    PersonalMemoryService,
    RedisMemoryService,
    SpaceMemoryService,
    SQLMemoryService,
)

from backends import server_url


async def test_a_service_is_made_by_name_and_started(tmp_path: Path) -> None:
    service = await MemoryServiceFactory.create("IN_MEMORY", embedder=None)
    assert isinstance(service, InMemoryMemoryService)
    assert await service.health()
    assert service.settings.embedder is None
    await service.stop()
    space = await MemoryServiceFactory.create("space", folder=tmp_path / "space", embedder=None)
    assert isinstance(space, SpaceMemoryService)
    await space.add_memory("ann", ["hello"])
    await space.stop()
    sql = await MemoryServiceFactory.create(
        "sql", bind=f"sqlite+aiosqlite:///{tmp_path}/m.db", embedder=None
    )
    assert isinstance(sql, SQLMemoryService)
    assert await sql.health()
    await sql.stop()
    assert isinstance(await MemoryServiceFactory.create("reme_personal"), PersonalMemoryService)


async def test_the_environment_names_backend_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "MEMORY_BACKEND": "redis",
        "MEMORY_REDIS_REDIS_URL": server_url("redis"),
        "MEMORY_REDIS_MAX_MESSAGES_PER_SESSION": "3",
        "MEMORY_REDIS_TTL_SECONDS": "none",
        "MEMORY_REDIS_SOCKET_KEEPALIVE": "off",
        "MEMORY_REDIS_EMBEDDER": "none",
        "MEMORY_REDIS_QUARANTINE": "false",
        "MEMORY_MEM0_API_KEY": "not ours",
    }.items():
        monkeypatch.setenv(name, value)
    service = await MemoryServiceFactory.create()
    assert isinstance(service, RedisMemoryService)
    settings = service.settings
    assert (settings.max_messages_per_session, settings.ttl_seconds) == (3, None)
    assert settings.embedder is None
    assert settings.quarantine is False
    await service.stop()
    service = await MemoryServiceFactory.create(max_messages_per_session=5)
    assert isinstance(service, RedisMemoryService)
    assert service.settings.max_messages_per_session == 5
    await service.stop()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMORY_IN_MEMORY_MAX_ATTEMPTS", "many"),
        ("MEMORY_IN_MEMORY_QUARANTINE", "perhaps"),
        ("MEMORY_IN_MEMORY_TTL_SECONDS", "-1"),
        ("MEMORY_IN_MEMORY_NO_SUCH_OPTION", "1"),
    ],
)
async def test_an_environment_that_makes_no_sense_is_an_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidInput):
        await MemoryServiceFactory.create("in_memory")


@pytest.mark.parametrize("options", [{"ttl": 3}, {"redis_url": "redis://x"}, {"settings_": 1}])
async def test_an_option_nobody_knows_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        await MemoryServiceFactory.create("in_memory", **options)


async def test_an_unknown_backend_is_an_error_that_names_the_others() -> None:
    with pytest.raises(InvalidInput, match="tablestore"):
        await MemoryServiceFactory.create("punch_cards")


async def test_a_server_that_is_not_there_is_found_out_at_the_start() -> None:
    with pytest.raises(StoreUnavailable):
        await MemoryServiceFactory.create("redis", redis_url="redis://127.0.0.1:1/0")


async def test_a_backend_of_ones_own_joins() -> None:
    class Mine(InMemoryMemoryService):
        def __init__(self, *, size: int = 1) -> None:
            super().__init__()
            self.size = size

    MemoryServiceFactory.register_backend("mine", Mine)
    try:
        service = await MemoryServiceFactory.create("mine", size=7)
        assert isinstance(service, Mine)
        assert service.size == 7
        with pytest.raises(InvalidInput, match="sizes"):
            await MemoryServiceFactory.create("mine", sizes=7)
    finally:
        MemoryServiceFactory._own.clear()
    with pytest.raises(InvalidInput, match="identifier"):
        MemoryServiceFactory.register_backend("my backend", Mine)
