"""Checks of database servers: settings that let an acknowledged write be lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..store import Store
from .findings import Finding, ok

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

# name → what it must be, and what happens otherwise
_POSTGRES = {
    "fsync": ("on", "a crash can destroy the database"),
    "full_page_writes": ("on", "a crash can tear pages of the database"),
    "synchronous_commit": ("on", "a crash can lose the last acknowledged writes"),
}
_MYSQL = {
    "innodb_flush_log_at_trx_commit": ("1", "a crash can lose the last acknowledged writes"),
    "innodb_doublewrite": ("ON", "a crash can tear pages of the database"),
}


async def examine_server(store: Store) -> list[Finding]:
    """Return what there is to say about the server or the database file behind a store."""
    engine, client = getattr(store, "engine", None), getattr(store, "client", None)
    if engine is not None and hasattr(engine, "dialect"):
        return await _examine_database(engine)
    if client is not None and hasattr(client, "info"):
        return await _examine_redis(client)
    return []


async def _examine_database(engine: AsyncEngine) -> list[Finding]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        async with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                return await _examine_sqlite(connection)
            if engine.dialect.name == "postgresql":
                rows = await connection.exec_driver_sql("SELECT name, setting FROM pg_settings")
                found = {each["name"]: str(each["setting"]) for each in rows.mappings()}
                return _settings(found, _POSTGRES)
            rows = await connection.exec_driver_sql("SHOW VARIABLES")
            found = {each["Variable_name"]: str(each["Value"]) for each in rows.mappings()}
            return _settings(found, _MYSQL)
    except SQLAlchemyError as error:
        return [_untold(error)]


async def _examine_sqlite(connection: AsyncConnection) -> list[Finding]:
    rows = await connection.exec_driver_sql("PRAGMA integrity_check(5)")
    problems = [str(row[0]) for row in rows if row[0] != "ok"]
    if problems:
        return [Finding("problem", "database", "; ".join(problems), "restore a backup")]
    mode = (await connection.exec_driver_sql("PRAGMA journal_mode")).scalar_one()
    return [ok("database", f"SQLite, intact, journal mode {mode}")]


def _untold(error: Exception) -> Finding:
    return Finding("warning", "server", f"its settings cannot be read: {error}")


def _settings(found: Mapping[str, str], wanted: Mapping[str, tuple[str, str]]) -> list[Finding]:
    findings = [
        Finding("warning", "server", f"{name} is {found[name]}: {why}", f"set {name} to {right}")
        for name, (right, why) in wanted.items()
        if name in found and found[name].lower() != right.lower() and not _is_stronger(found[name])
    ]
    return findings if findings else [ok("server", "it syncs every commit")]


def _is_stronger(value: str) -> bool:
    return value in ("remote_apply", "remote_write", "local", "DETECT_AND_RECOVER")


async def _examine_redis(client: Redis) -> list[Finding]:
    from redis.exceptions import RedisError

    try:
        persistence = await client.info("persistence")
        memory = await client.info("memory")
    except RedisError as error:
        return [_untold(error)]
    findings = [
        Finding("problem", "server", f"{part} is not ok", "read its log; check the disk")
        for part in ("rdb_last_bgsave_status", "aof_last_write_status")
        if persistence.get(part, "ok") != "ok"
    ]
    if int(persistence.get("aof_enabled", 0)):
        findings.append(ok("server", "it keeps an append-only file"))
    else:
        what = "without an append-only file, a crash loses what was written since the last snapshot"
        advice = "CONFIG SET appendonly yes, and in redis.conf"
        findings.append(Finding("warning", "server", what, advice))
    policy = str(memory.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        what = f"maxmemory-policy is {policy}: a full server forgets records"
        advice = "CONFIG SET maxmemory-policy noeviction, and in redis.conf"
        findings.append(Finding("problem", "server", what, advice))
    return findings
