"""What was erased after a backup stays erased in a copy restored from it, and only that."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryspace import AsyncMemory
from memoryspace.care import back_up, replay_erasures, restore_backup
from memoryspace.errors import CorruptData
from memoryspace.record import Record, Scope
from memoryspace.service import ServiceSettings
from memoryspace.service.stored import StoredMemoryService
from memoryspace.store import ErasureLedger, MemoryStore, SpaceStore, SQLStore, Store

WORDS = ServiceSettings(embedder=None)
PEAR, PLUM = "pearmarmalade", "plumchutney"


class Ticking:
    """A clock on which every look is a millisecond after the one before."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1_000_000)

    def __call__(self) -> float:
        return next(self._ticks) / 1000


@asynccontextmanager
async def service_in(folder: Path) -> AsyncIterator[StoredMemoryService]:
    async with (
        SpaceStore(folder, clock=Ticking()) as store,
        StoredMemoryService(store, settings=WORDS) as service,
    ):
        yield service


async def texts(store: Store, user: str) -> set[str]:
    return {each.text for each in await store.select(Scope(user))}


async def restored(backup: Path, target: Path, user: str, **how: object) -> set[str]:
    restore_backup(backup, target, **how)  # type: ignore[arg-type]
    async with SpaceStore(target) as store:
        return await texts(store, user)


async def test_a_user_erased_after_a_backup_does_not_come_back_even_if_the_live_data_is_lost(
    tmp_path: Path,
) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        await service.add_memory("bob", [PLUM])
        await back_up(service.store, tmp_path / "b")
        await service.delete_memory("ann")
    shutil.rmtree(tmp_path / "live")
    report = restore_backup(tmp_path / "b", tmp_path / "r")
    assert (report.users_erased, report.records) == (1, 1)
    files = [path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()]
    assert any(PLUM.encode() in data for data in files)
    assert not any(PEAR.encode() in data for data in files), "no byte of it is in the copy"


async def test_a_user_who_came_back_keeps_what_is_new(tmp_path: Path) -> None:
    backup = tmp_path / "b"
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        early = await back_up(service.store, backup)
        await service.delete_memory("ann")
        await service.add_memory("ann", [PLUM])
        await back_up(service.store, backup)
    assert await restored(backup, tmp_path / "new", "ann") == {PLUM}
    assert await restored(backup, tmp_path / "old", "ann", at=early.until) == set()
    undone = await restored(backup, tmp_path / "undo", "ann", at=early.until, keep_erased=True)
    assert undone == {PEAR}


async def test_what_was_erased_before_the_first_backup_is_not_found_in_its_past(
    tmp_path: Path,
) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        moment = service.store.clock()
        await service.delete_memory("ann")
        await back_up(service.store, tmp_path / "b")
    assert await restored(tmp_path / "b", tmp_path / "r", "ann", at=moment) == set()


async def test_single_memories_and_sessions_stay_erased_and_others_stay(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        for session in ("s1", "s2", "s3"):
            await service.add_memory("ann", [f"{session} one", f"{session} two"], session)
        page = await service.page("ann")
        await back_up(service.store, tmp_path / "b")
        first = next(each for each in page.memories if each.text == "s1 one")
        await service.delete("ann", first.id, session_id="s1")
        await service.delete_memory("ann", "s2")
    report = restore_backup(tmp_path / "b", tmp_path / "r")
    assert (report.users_erased, report.memories_erased) == (0, 3)
    async with SpaceStore(tmp_path / "r") as store:
        assert await texts(store, "ann") == {"s1 two", "s3 one", "s3 two"}


def test_what_the_door_erases_stays_erased_with_its_conversations(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncMemory(tmp_path / "live", settings=WORDS) as memory:
            for user in ("ann", "bob"):
                for session in ("talk", "walk"):
                    await memory.add(f"{user} {session}", user=user, session=session)
                    await memory.session(session, user=user).add(f"{user} says {session}")
            await back_up(memory.store, tmp_path / "b")
            await memory.delete_user("ann")
            await memory.delete_session("talk", user="bob")

    asyncio.run(work())
    restore_backup(tmp_path / "b", tmp_path / "r")
    assert asyncio.run(left_in(tmp_path / "r", "ann")) == set()
    assert asyncio.run(left_in(tmp_path / "r", "bob")) == {"walk"}


async def left_in(folder: Path, user: str) -> set[str]:
    async with SpaceStore(folder) as store:
        return set(await store.sessions(user))


async def test_users_can_be_named_when_restoring(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        await service.store.append(Scope("ann", "talk"), [Record("m", PLUM, kind="other")])
        await back_up(service.store, tmp_path / "b")
    report = restore_backup(tmp_path / "b", tmp_path / "r", erased=["ann"])
    assert (report.users_erased, report.records) == (1, 0)


async def test_a_further_ledger_is_applied_too(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        await back_up(service.store, tmp_path / "b")
        shutil.copytree(tmp_path / "b", tmp_path / "carried away")
        await service.delete_memory("ann")
    away, ledger = tmp_path / "carried away", tmp_path / "live/erasures.log"
    assert await restored(away, tmp_path / "without", "ann") == {PEAR}
    assert await restored(away, tmp_path / "with", "ann", ledgers=[ledger]) == set()


async def test_a_disk_that_was_away_hears_of_erasures_with_the_next_backup(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        early = await back_up(service.store, tmp_path / "b")
        (tmp_path / "b").rename(tmp_path / "away")
        await service.delete_memory("ann")
        assert service.store.erasures is not None
        (tmp_path / "away").rename(tmp_path / "b")
        assert service.store.erasures.behind(tmp_path / "b") == 2
        await back_up(service.store, tmp_path / "b")
        assert service.store.erasures.behind(tmp_path / "b") == 0
    assert await restored(tmp_path / "b", tmp_path / "r", "ann", at=early.until) == set()


async def test_erasing_in_a_restored_copy_is_not_noted_beside_the_original(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        await service.add_memory("bob", [PLUM])
        await back_up(service.store, tmp_path / "b")
        await service.delete_memory("ann")
    restore_backup(tmp_path / "b", tmp_path / "trial")
    async with service_in(tmp_path / "trial") as service:
        await service.delete_memory("bob")
    assert await restored(tmp_path / "b", tmp_path / "r", "bob") == {PLUM}


async def test_a_sqlite_file_notes_erasures_from_its_first_backup_on(tmp_path: Path) -> None:
    async with (
        SQLStore(f"sqlite:///{tmp_path / 'live.db'}") as store,
        StoredMemoryService(store, settings=WORDS) as service,
    ):
        await service.add_memory("eve", [PLUM])
        await service.delete_memory("eve")
        assert store.erasures is not None
        assert not store.erasures.is_begun
        await service.add_memory("ann", [PEAR])
        await back_up(store, tmp_path / "b")
        await service.delete_memory("ann")
    assert restore_backup(tmp_path / "b", tmp_path / "r.db").users_erased == 1
    assert PEAR.encode() not in (tmp_path / "r.db").read_bytes()


async def test_a_dump_of_a_database_is_erased_by_hand(tmp_path: Path) -> None:
    store, dump = MemoryStore(), MemoryStore()
    store.erasures = ErasureLedger(tmp_path / "ledger")
    for each in (store, dump):
        async with StoredMemoryService(each, settings=WORDS) as service:
            await service.add_memory("ann", [PEAR])
            await service.add_memory("bob", [PLUM])
    moment = store.clock()
    async with StoredMemoryService(store, settings=WORDS) as service:
        await service.delete_memory("ann")
    replayed = await replay_erasures(dump, [store.erasures], since=moment)
    assert (replayed.users, await texts(dump, "ann")) == (1, set())
    assert await texts(dump, "bob") == {PLUM}


# -- the ledger itself -----------------------------------------------------------------------------


def test_a_ledger_holds_no_names(tmp_path: Path) -> None:
    ledger = ErasureLedger(tmp_path / "ledger")
    for number in range(3):
        name = ledger.begin("memories", "ann@example.com", 1.0, session="diary", memories=["m1"])
        ledger.end(name, 2.0 + number)
    text = ledger.path.read_text()
    assert not any(name in text for name in ("ann", "example", "diary", "m1"))
    assert [each.done for each in ledger.erasures()] == [2.0, 3.0, 4.0]
    assert len({each.user for each in ledger.erasures()}) == 1


def test_a_note_that_a_crash_cut_short_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ErasureLedger(path).begin("user", "ann", 1.0)
    whole = path.read_bytes()
    ErasureLedger(path).begin("user", "bob", 2.0)
    for cut in range(len(whole), len(path.read_bytes()) - 1, 7):
        torn = tmp_path / f"torn-{cut}"
        torn.write_bytes(path.read_bytes()[:cut])
        assert [each.at for each in ErasureLedger(torn).erasures()] == [1.0]
        ErasureLedger(torn).begin("user", "eve", 3.0)
        assert [each.at for each in ErasureLedger(torn).erasures()] == [1.0, 3.0]


async def test_a_damaged_ledger_is_refused_and_nothing_is_restored(tmp_path: Path) -> None:
    async with service_in(tmp_path / "live") as service:
        await service.add_memory("ann", [PEAR])
        await back_up(service.store, tmp_path / "b")
        await service.delete_memory("ann")
    refused_with(tmp_path / "b", b'"what":"service"', b'"what":"session"')
    refused_with(tmp_path / "b", b'"note":"ledger"', b'"note":"letter"')
    assert not (tmp_path / "r").exists()  # a test's own folder


def refused_with(backup: Path, old: bytes, new: bytes) -> None:
    (ledger,) = (backup / "erasures").iterdir()
    whole = ledger.read_bytes()
    assert old in whole
    ledger.write_bytes(whole.replace(old, new))
    with pytest.raises(CorruptData, match="is damaged"):
        restore_backup(backup, backup.parent / "r")
    ledger.write_bytes(whole)


def test_a_ledger_of_a_later_version_says_to_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    text = b'{"note":"ledger","format":2,"id":"a","key":"00"}'
    path.write_bytes(b"%08x %b\n" % (zlib.crc32(text), text))
    with pytest.raises(CorruptData, match="upgrade memoryspace"):
        ErasureLedger(path).begin("user", "ann", 1.0)
