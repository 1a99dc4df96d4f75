"""What is exported and imported, or migrated, is the same on every backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import pytest

from memoryspace import MemoryStore, Store, open_store
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.moving import Moved, export_memories, import_memories, migrate
from memoryspace.record import EVERYTHING, Record, Scope, Where
from memoryspace.store.users import UserPage

import moves
from backends import server_url
from length import at_length

EMBEDDED = ["memory", "folder", "sqlite"]
BACKENDS = ["memory", "folder", "sqlite", "postgres", "mariadb", "redis"]


@asynccontextmanager
async def fresh(backend: str, folder: Path) -> AsyncIterator[Store]:
    """Yield an empty store; on a server, one whose users nobody else has."""
    if backend == "memory":
        yield MemoryStore()
        return
    address = {
        "folder": str(folder / new_id()),
        "sqlite": f"sqlite:///{folder}/{new_id()}.db",
    }.get(backend)
    async with open_store(server_url(backend) if address is None else address) as store:
        await _forget(store)
        yield store
        await _forget(store)


async def _forget(store: Store) -> None:
    for user in moves.USERS:
        await store.delete(Scope(user))


def others_of(source: str) -> list[str]:
    """Return the backends to migrate to; a server has one database for both."""
    return [each for each in BACKENDS if each != source or each in EMBEDDED]


@pytest.mark.parametrize("source", BACKENDS)
async def test_everything_migrates_from_any_backend_to_any_other(
    source: str, tmp_path: Path
) -> None:
    async with fresh(source, tmp_path) as store:
        await moves.fill(store)
        before, asked = await moves.contents(store), await moves.answers(store)
        for target in others_of(source):
            async with fresh(target, tmp_path) as other:
                moved = await migrate(store, other, users=moves.USERS)
                assert await moves.contents(other) == before, target
                assert await moves.answers(other) == asked
                assert await moves.vectors_in(other, "u∞ser") == {"plain": bytes(range(8))}
                assert moved.records == moved.added


@pytest.mark.parametrize("source", at_length(["memory"], BACKENDS))
async def test_everything_that_was_exported_is_imported_into_any_backend(
    source: str, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl.gz"
    async with fresh(source, tmp_path) as store:
        await moves.fill(store)
        before, asked = await moves.contents(store), await moves.answers(store)
        exported = await export_memories(store, file, users=moves.USERS, vectors=True)
    for target in BACKENDS:
        async with fresh(target, tmp_path) as store:
            imported = await import_memories(store, file)
            assert await moves.contents(store) == before, target
            assert await moves.answers(store) == asked
            assert await moves.vectors_in(store, "u∞ser") == {"plain": bytes(range(8))}
            assert imported.records == imported.added == exported.records
            assert imported.pending == ("bob",)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_backend_exports_what_it_imported(backend: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    source = MemoryStore(clock=lambda: 1.75e9)
    await moves.fill(source)
    await export_memories(source, first, users=moves.USERS)
    async with fresh(backend, tmp_path) as store:
        await import_memories(store, first)
        await export_memories(store, second, users=moves.USERS)
        assert records_in(second) == records_in(first)
        again = await import_memories(store, first)
        await export_memories(store, second, users=moves.USERS)
    assert again.known == again.records
    assert again.added == 0
    assert records_in(second) == records_in(first)


async def test_a_pending_job_runs_where_it_was_imported(tmp_path: Path) -> None:
    source, target = MemoryStore(), MemoryStore()
    await moves.fill(source)
    assert await moves.notes(source, "bob")
    await migrate(source, target)
    assert await moves.notes(target, "bob") == await moves.notes(source, "bob")
    async with moves.service_on(target) as service:
        status = await service.settled("bob")
        facts = [each.text for each in await service.facts("bob")]
    assert status.pending == 0
    assert any("Bergen" in each for each in facts)


async def test_users_can_get_new_names(tmp_path: Path) -> None:
    source, target, file = MemoryStore(), MemoryStore(), tmp_path / "all.jsonl"
    await moves.fill(source)
    await export_memories(source, file)
    await import_memories(target, file, users={"ann": "anne"})
    was, now = await moves.contents(source), await moves.contents(target, ["ann", "anne", "bob"])
    assert now["ann"] == []
    assert now["anne"] == was["ann"]
    assert now["bob"] == was["bob"]
    with pytest.raises(InvalidInput, match="same new name"):
        await import_memories(target, file, users={"ann": "x", "bob": "x"})
    with pytest.raises(InvalidInput, match="reserved"):
        await import_memories(target, file, users={"ann": "memoryspace:outbox"})


async def test_what_is_there_already_stays_as_it_is(tmp_path: Path) -> None:
    source, target, file = MemoryStore(), MemoryStore(), tmp_path / "all.jsonl"
    scope = Scope("ann", "one")
    await source.append(scope, [Record("a", "old", kind="note", marks=frozenset({"held"}))])
    await source.append(scope, [Record("b", "new", kind="note")])
    await export_memories(source, file)
    await target.append(scope, [Record("a", "mine", kind="note")])
    report = await import_memories(target, file)
    found = await target.select(scope)
    assert [(each.id, each.value, each.marks) for each in found] == [
        ("a", "mine", frozenset()),
        ("b", "new", frozenset()),
    ]
    assert (report.added, report.known) == (1, 1)


async def test_expired_records_are_left_out(tmp_path: Path) -> None:
    now = [100.0]
    source, target = MemoryStore(clock=lambda: 0.0), MemoryStore(clock=lambda: now[0])
    file = tmp_path / "all.jsonl"
    await source.append(
        Scope("ann", "one"),
        [Record("a", "x", kind="note", expires_at=50.0), Record("b", "y", kind="note")],
    )
    await export_memories(source, file)
    report = await import_memories(target, file)
    assert (report.expired, report.added) == (1, 1)


async def test_a_record_that_changed_during_the_export_is_imported_as_it_is_now() -> None:
    source, target = MemoryStore(), MemoryStore()
    async with moves.service_on(source, deriver=None) as service:
        ids = [(await service.add_memory("ann", [f"number {n}"]))[0] for n in range(150)]
        file = BytesIO()

        async def change_one() -> None:
            await service.update("ann", ids[0], "changed")

        await export_memories(_Interrupted(source, change_one), file)
        await import_memories(target, file)
    assert await moves.contents(target, ["ann"]) == await moves.contents(source, ["ann"])


async def test_progress_reaches_its_total(tmp_path: Path) -> None:
    source, file = MemoryStore(), tmp_path / "all.jsonl"
    await moves.fill(source)
    seen: list[Moved] = []
    report = await export_memories(source, file, progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (report.records, report.records)
    seen.clear()
    await import_memories(MemoryStore(), file, progress=seen.append)
    assert {each.step for each in seen} == {"checking", "importing"}
    assert seen[-1].done == seen[-1].total == file.stat().st_size
    seen.clear()
    await migrate(source, MemoryStore(), progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (report.records, report.records)


async def test_reserved_users_are_not_exported(tmp_path: Path) -> None:
    source, file = MemoryStore(), tmp_path / "all.jsonl"
    await moves.fill(source)
    await export_memories(source, file)
    assert b'"user":"memoryspace:' not in file.read_bytes()
    with pytest.raises(InvalidInput, match="reserved"):
        await export_memories(source, file, users=["memoryspace:outbox"])


async def test_what_cannot_be_exported_leaves_the_old_file(tmp_path: Path) -> None:
    source, file = MemoryStore(), tmp_path / "all.jsonl"
    file.write_text("old")
    await source.append(Scope("ann", "one"), [Record("a", {"x": object()}, kind="note")])
    with pytest.raises(InvalidInput, match="record 'a' of user 'ann' cannot be exported"):
        await export_memories(source, file)
    assert names_in(tmp_path) == ["all.jsonl"]
    assert file.read_text() == "old"


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def records_in(file: Path) -> list[str]:
    return [line for line in file.read_text("utf-8").splitlines() if line.startswith('{"record')]


class _Interrupted(Store):
    """A store in which something happens after the first page was read."""

    def __init__(self, store: Store, then: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._store = store
        self._then: Callable[[], Awaitable[None]] | None = then

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        found = await self._store.select(scope, where)
        if where.after is not None and self._then is not None:
            then, self._then = self._then, None
            await then()
        return found

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        return await self._store.users(cursor=cursor, limit=limit)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        return await self._store.count(scope, where)

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        raise NotImplementedError

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        raise NotImplementedError

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        raise NotImplementedError

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        raise NotImplementedError
