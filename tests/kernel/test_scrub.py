"""Nothing deleted stays in a space's files; what lives stays, whatever happens on the way.

Run as a program this is the process that dies while it scrubs: it reads one ``Life`` a line.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoryspace import Record, Scope, SpaceStore, Where
from memoryspace.errors import CorruptData, InvalidInput, NotStarted, StoreError
from memoryspace.events import Event
from memoryspace.kernel import (
    Durability,
    MemoryManager,
    RamColdStorage,
    Runtime,
    SQLiteColdStorage,
    TieredMemoryManager,
    Tiering,
    WriteAheadLog,
    at,
    diff,
    fork,
    restore,
)
from memoryspace.kernel.durable.disk import Disk
from memoryspace.kernel.durable.folder import SpaceFolder
from memoryspace.kernel.tiers.cold import LMDBColdStorage, lmdb_engine
from memoryspace.kernel.tiers.cold.contract import ColdStorage
from memoryspace.retrieval.text.analysis import token_hash, tokens
from memoryspace.service import SpaceMemoryService
from memoryspace.testing import ManualClock

from crash_worker import DeadlyDisk, found
from faulty_disk import FaultyDisk
from length import at_length
from spaces import contents

SOME = 120  # objects
KILLS = at_length(10, 24)  # from outside, for each kind of space
ENGINES = ["lmdb", "sqlite"]
with_both_engines = pytest.mark.parametrize("engine", ENGINES)


def traces(folder: Path, *words: str | bytes) -> dict[str, list[str | bytes]]:
    """Which of these words stand in which files."""
    there: dict[str, list[str | bytes]] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            hits = [each for each in words if _bytes_of(each) in data]
            if hits:
                there[str(path.relative_to(folder))] = hits
    return there


def _bytes_of(word: str | bytes) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


def text(word: str, n: int) -> str:
    return f"{word}{n:04} " * (1 + n % 40) + "behind it"


def tiered(folder: Path, **options: Any) -> TieredMemoryManager:
    given: dict[str, Any] = {
        "folder": folder,
        "durability": Durability(sync="os", segment_bytes=4000, keep=3, keep_seconds=1e6),
        "retriever": None,
        "tiering": Tiering(flush_interval=None),
    }
    return TieredMemoryManager(8192, **{**given, **options})


def flat(folder: Path, **options: Any) -> MemoryManager:
    how = Durability(sync="os", segment_bytes=4000, keep=3, keep_seconds=1e6)
    given: dict[str, Any] = {"folder": folder, "durability": how, "retriever": None}
    return MemoryManager(1 << 20, **{**given, **options})


def opened(folder: Path, kind: str) -> MemoryManager:
    return flat(folder, collectors=()) if kind == "flat" else tiered(folder)


def fill(space: MemoryManager) -> None:
    """Half of it dies, or dies in part, in every place there is."""
    for n in range(SOME):
        space.store({"text": text("doomed", n)}, id=f"doomedid{n}", tenant="doomeduser", tags=["x"])
        space.store(
            {"text": text("old", n)}, id=f"kept{n}", tenant="keeper", tags=[f"oldtag{n:04}"]
        )
        if n % 40 == 0:
            space.checkpoint()
    for n in range(SOME):
        if n % 4:
            space.update(f"kept{n}", payload={"text": text("new", n)}, tags=["y"])
    space.checkpoint()
    if isinstance(space, TieredMemoryManager):
        space.flush_dirty()
    space.free_many([f"doomedid{n}" for n in range(SOME)])
    space.store({"text": "the last one"}, id="last", root=True)


DEAD = ("doomed", "oldtag0001", "old0001", "old0003", "old0119")


# -- what is gone, what is there -------------------------------------------------------------------


@with_both_engines
async def test_of_a_deleted_user_no_word_is_left_and_of_the_other_every_record_is(
    engine: str, tmp_path: Path
) -> None:
    found(tmp_path, engine)
    gone, kept = Scope("goneuser", "gonesession"), Scope("keptuser", "s")
    store = SpaceStore(tmp_path, hot_capacity=1 << 15, durability=Durability(sync="os"))
    for n in range(SOME):
        await store.append(gone, [record(f"goneid{n}", text("goneword", n))])
        await store.append(kept, [record(f"k{n}", text("oldversion", n))])
    for n in range(SOME):
        await store.replace(
            kept, Where(ids=frozenset({f"k{n}"})), [record(f"k{n}", text("now", n))]
        )
        await store.replace(
            gone, Where(ids=frozenset({f"goneid{n}"})), [record(f"goneid{n}", text("gonenew", n))]
        )
    await store.mark(gone, Where(), add={"gonemark"})
    await store.delete(Scope("goneuser"))
    expected = await store.select(kept)
    assert traces(tmp_path, "gone", "oldversion"), "there was nothing to scrub"
    assert len(expected) == SOME

    await store.scrub()
    assert traces(tmp_path, "gone", "oldversion") == {}
    assert await store.select(kept) == expected
    await store.close()
    assert traces(tmp_path, "gone", "oldversion") == {}
    assert await store.select(kept) == expected
    assert await store.count(Scope("goneuser")) == 0
    await store.close()


def record(record_id: str, body: str) -> Record:
    return Record(record_id, {"form": "text", "body": body}, body, kind="memory")


async def test_a_service_deletes_quickly_and_scrubs_when_asked(tmp_path: Path) -> None:
    service = SpaceMemoryService(tmp_path)
    with pytest.raises(NotStarted):
        await service.scrub()
    async with service:
        await service.add_memory("ann", [{"role": "user", "content": "anns secretword"}])
        await service.add_memory("bob", [{"role": "user", "content": "bobs plainword"}])
        await service.delete_memory("ann")
        assert traces(tmp_path, "secretword")
        await service.scrub()
        assert traces(tmp_path, "secretword", "ann") == {}
        assert (await service.verify_erasure("ann")).records == {}
        assert await service.search_memory("bob", [{"role": "user", "content": "plainword"}])
    assert traces(tmp_path, "secretword", "ann") == {}


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_names_tags_tenants_and_old_bodies_go_from_every_file(kind: str, tmp_path: Path) -> None:
    if kind != "flat":
        found(tmp_path, kind)
    with opened(tmp_path, kind) as space:
        fill(space)
        expected = contents(space)
        assert {word for hits in traces(tmp_path, *DEAD).values() for word in hits} == set(DEAD)
        space.scrub()
        assert traces(tmp_path, *DEAD) == {}
        assert contents(space) == expected
        assert traces(tmp_path, "old0004", "new0005", "keeper"), "what lives is gone"
        assert space.checkpoint_manager is not None
        assert len(space.checkpoint_manager.lsns()) == 1
    assert traces(tmp_path, *DEAD) == {}
    with opened(tmp_path, kind) as space:
        assert contents(space) == expected


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_scrubbing_again_and_going_on_keeps_everything(kind: str, tmp_path: Path) -> None:
    if kind != "flat":
        found(tmp_path, kind)
    with opened(tmp_path, kind) as space:
        fill(space)
        for n in range(3):
            space.store({"text": f"doomed as well {n}"}, id="again")
            space.free_object("again")
            space.scrub()
            assert traces(tmp_path, *DEAD) == {}
            space.store({"text": f"after {n} " * 50}, id=f"after{n}")
        space.scrub()
        space.scrub()
        expected = contents(space)
    with opened(tmp_path, kind) as space:
        assert contents(space) == expected


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_an_empty_space_can_be_scrubbed(kind: str, tmp_path: Path) -> None:
    if kind != "flat":
        found(tmp_path, kind)
    with opened(tmp_path, kind) as space:
        space.scrub()
        space.scrub()
        assert contents(space) == {}
        first = space.store({"text": "the first"}).id
        with at(space, lsn=1) as past:
            assert past.ids() == [first]
        space.free_object(first)
        space.scrub()
        assert traces(tmp_path, "the first") == {}
    with opened(tmp_path, kind) as space:
        assert contents(space) == {}


def test_a_space_without_files_has_nothing_to_scrub_and_keeps_all() -> None:
    with MemoryManager(1 << 16) as space:
        space.store({"text": "here"}, id="a")
        space.scrub()
        assert space.retrieve("here")[0].object.id == "a"


def test_a_journal_without_checkpoints_cannot_be_scrubbed(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as wal, MemoryManager(1 << 16, wal=wal) as space:
        space.store({"text": "here"}, id="a")
        with pytest.raises(InvalidInput, match="no checkpoint manager"):
            space.scrub()
        assert "a" in space


def test_what_has_expired_is_freed_and_scrubbed(tmp_path: Path) -> None:
    clock = ManualClock()
    with tiered(tmp_path, runtime=Runtime(clock=clock)) as space:
        for n in range(50):
            space.store({"text": text("mortal", n)}, ttl=10)
        space.store({"text": "lasting"}, id="a")
        clock.advance(11)
        space.scrub()
        assert traces(tmp_path, "mortal") == {}
        assert len(space) == 1


def test_objects_that_a_checkpoint_under_way_has_seen_are_gone_too(tmp_path: Path) -> None:
    with flat(tmp_path) as space:
        fill(space)
        for n in range(400):
            space.store({"text": text("seen", n)}, id=f"seen{n}")
        writer = space.engine.checkpointing.begin()
        assert not writer.capture(0, space.last_lsn, space.now, [])
        space.free_many([f"seen{n}" for n in range(400)])
        space.scrub()
        assert traces(tmp_path, "seen") == {}
        assert writer.finished, "whoever waited for it was not let down"


# -- the index -------------------------------------------------------------------------------------


def hash_of(word: str) -> bytes:
    """A word as the index knows it."""
    (token,) = tokens(word)
    return int(token_hash(token)).to_bytes(8, "little")


def test_the_kept_index_knows_no_word_of_the_dead(tmp_path: Path) -> None:
    with flat(tmp_path, retriever="sparse", collectors=()) as space:
        for n in range(300):
            space.store({"text": f"plain number{n}"}, id=f"a{n}")
        space.store({"text": "zanzibar"}, id="dead")
        space.store({"text": "madagascar"}, id="alive")
    assert traces(tmp_path / "index", hash_of("zanzibar"))
    with flat(tmp_path, retriever="sparse", collectors=()) as space:
        space.free_object("dead")
        space.scrub()
        assert traces(tmp_path, hash_of("zanzibar"), "zanzibar") == {}
        assert [hit.object.id for hit in space.retrieve("madagascar")] == ["alive"]
        assert len(space.retrieve("plain", 1000)) == 300
        space.store({"text": "mauritius"}, id="more")
        space.check()
    assert traces(tmp_path / "index", hash_of("madagascar"), hash_of("mauritius"))
    assert traces(tmp_path, hash_of("zanzibar"), "zanzibar") == {}
    with flat(tmp_path, retriever="sparse", collectors=()) as space:
        assert [hit.object.id for hit in space.retrieve("mauritius")] == ["more"]


# -- the past --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_the_past_before_is_gone_and_says_why_the_past_after_is_there(
    kind: str, tmp_path: Path
) -> None:
    folder = tmp_path / "space"
    found(folder, kind)
    with opened(folder, kind) as space:
        fill(space)
        before, time_before = space.last_lsn - 5, space.now
        oldest = space.scrub()
        after = contents(space)
        moment = space.last_lsn
        space.free_many([f"kept{n}" for n in range(0, SOME, 2)])
        space.update("kept1", payload={"text": "changed since"})
        space.checkpoint()
        assert oldest <= moment
        check_past(space, before, moment, after)
        assert diff(space, moment).changed == {"kept1"}
        with pytest.raises(InvalidInput, match=r"erased by scrub\(\)"):
            at(space, time=time_before - 1000)
    with opened(folder, kind) as space:
        check_past(space, before, moment, after)
        fork(space, tmp_path / "fork", lsn=moment)
        restore(space, lsn=moment)
        assert contents(space) == after
        space.scrub()
        assert contents(space) == after
    with opened(folder, kind) as space:
        assert contents(space) == after
    with opened(tmp_path / "fork", kind) as forked:
        assert contents(forked) == after


def check_past(space: MemoryManager, before: int, moment: int, expected: Any) -> None:
    with at(space, lsn=moment) as past:
        there = {each.id: each.payload for each in past.objects()}
    assert there == {name: seen.payload for name, seen in expected.items()}
    for lsn in (0, 1, before):
        with pytest.raises(InvalidInput, match=r"erased by scrub\(\)"):
            at(space, lsn=lsn)


def test_a_view_of_the_past_that_is_scrubbed_away_says_so(tmp_path: Path) -> None:
    with tiered(tmp_path) as space:
        space.store({"text": "seen"}, id="a")
        space.demote_objects(["a"])
        space.checkpoint()
        with at(space, lsn=space.last_lsn) as past:
            assert past.peek("a").payload == {"text": "seen"}
            space.free_object("a")
            space.scrub()
            with pytest.raises(InvalidInput, match="no longer kept"):
                past.peek("a")
            with pytest.raises(InvalidInput, match="the past cannot be changed"):
                past.scrub()


# -- the cold tier ---------------------------------------------------------------------------------


def storage_of(engine: str, path: Path) -> ColdStorage:
    return SQLiteColdStorage(path) if engine == "sqlite" else LMDBColdStorage(path)


@with_both_engines
def test_a_scrubbed_engine_holds_its_values_and_nothing_of_the_others(
    engine: str, tmp_path: Path
) -> None:
    rng, path = random.Random(engine), tmp_path / "cold"
    values = {
        n: rng.choice([b"dead", b"kept"]) * rng.choice([1, 9, 99, 999, 9999]) for n in range(600)
    }
    kept = {n: value for n, value in values.items() if value.startswith(b"kept")}
    with storage_of(engine, path) as storage:
        for n in rng.sample(sorted(values), len(values)):
            storage.save(n, values[n])
        storage.delete_many(values.keys() - kept.keys())
        storage.scrub()
        assert traces(tmp_path, "dead") == {}
        assert storage.load_many(kept) == kept
        assert len(storage) == len(kept)
        storage.save_many((n, b"later") for n in range(1000, 2000))
        storage.check()
    with storage_of(engine, path) as storage:
        storage.check()
        assert storage.load_many(kept) == kept
        assert storage.load(1999) == b"later"
    assert {each.name for each in tmp_path.iterdir()} <= {"cold", "cold-lock"}


@with_both_engines
def test_an_engine_can_be_read_and_written_while_it_is_scrubbed(
    engine: str, tmp_path: Path
) -> None:
    with storage_of(engine, tmp_path / "cold") as storage:
        storage.save_many((n, b"%d " % n * 50) for n in range(2000))
        done = threading.Event()

        def write(lane: int) -> int:
            number = 0
            while not done.is_set():
                key = 10_000 + number * 4 + lane
                storage.save(key, b"%d" % key)
                assert storage.load(key) == b"%d" % key
                assert storage.load(number % 2000) == b"%d " % (number % 2000) * 50
                number += 1
            return number

        with ThreadPoolExecutor(3) as pool:
            writers = [pool.submit(write, lane) for lane in range(3)]
            try:
                for _ in range(5):
                    storage.scrub()
            finally:
                done.set()
            written = [each.result() for each in writers]
        assert len(storage) == 2000 + sum(written)
        storage.check()


class Unscrubbable(RamColdStorage):
    _rewrite = ColdStorage._rewrite


def test_an_engine_that_cannot_be_scrubbed_says_so() -> None:
    with TieredMemoryManager(8192, cold_store=Unscrubbable(), retriever=None) as space:
        space.store({"text": "here"}, id="a")
        with pytest.raises(StoreError, match="cannot erase deleted values"):
            space.scrub()
        assert "a" in space


def test_cold_copies_that_a_crash_forgot_are_swept_away(tmp_path: Path) -> None:
    with tiered(tmp_path) as space:
        for n in range(60):
            space.store({"text": text("kept", n)})
        stamps = {space.engine.heap.table.stamp[slot] for slot in space.engine.heap.table.living()}
        stray = max(stamps) + 1
        space.cold.save(stray, b"strayword")
        expected = contents(space)
        space.scrub()
        assert stray not in space.cold
        assert traces(tmp_path, "strayword") == {}
        assert contents(space) == expected


class WalkedCold(RamColdStorage):
    """Lets something happen when its keys are walked."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def _keys_from(self, first: int, limit: int) -> list[int]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super()._keys_from(first, limit)


def test_what_comes_and_goes_cold_while_the_cold_tier_is_swept_stays() -> None:
    cold = WalkedCold()
    with TieredMemoryManager(
        8192, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
    ) as space:

        def come() -> None:
            space.store({"text": "came meanwhile"}, id="new")
            space.update("old", payload={"text": "changed meanwhile"})
            space.demote_objects(["old", "new"])

        space.store({"text": "was there"}, id="old")
        space.demote_objects(["old"])
        cold.meanwhile = come
        space.scrub()
        assert cold.meanwhile is None
        assert space.load("new").payload == {"text": "came meanwhile"}
        assert space.load("old").payload == {"text": "changed meanwhile"}
        space.check()


@with_both_engines
def test_what_dies_while_a_space_is_scrubbed_can_be_restored(engine: str, tmp_path: Path) -> None:
    found(tmp_path, engine)
    with tiered(tmp_path) as space:
        fill(space)
        space.demote_objects(["kept1", "kept2", "last"])

        def kill(event: Event) -> None:
            if event.name == "checkpoint" and "kept1" in space:
                space.free_many(["kept1", "kept2"])

        expected = contents(space)
        space.events.subscribe(kill)
        oldest = space.scrub()
        assert "kept1" not in space
        with at(space, lsn=oldest) as past:
            assert past.peek("kept1").payload == expected["kept1"].payload
        restore(space, lsn=oldest)
        assert contents(space) == expected


class SlowCold(RamColdStorage):
    """Holds a batch back until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def _put(self, frames: Any) -> None:
        self.has_begun.set()
        self.may_go_on.wait()
        super()._put(frames)


def test_a_body_on_its_way_to_the_cold_tier_is_waited_for() -> None:
    cold = SlowCold()
    with (
        TieredMemoryManager(
            8192, cold_store=cold, retriever=None, tiering=Tiering(flush_interval=None)
        ) as space,
        ThreadPoolExecutor(2) as pool,
    ):
        space.store({"text": "on its way"}, id="a")
        flushing = pool.submit(space.flush_some)
        cold.has_begun.wait()
        space.free_object("a")
        scrubbing = pool.submit(space.scrub)
        threading.Timer(0.1, cold.may_go_on.set).start()  # it is the scrub that has to wait
        scrubbing.result()
        flushing.result()
        assert list(cold.keys()) == []
        cold.may_go_on.set()


KINDS = ("open", "unlink", "fsync", "replace", "sync_folder", "close")


@pytest.mark.parametrize("kind", KINDS)
def test_an_lmdb_file_that_cannot_be_swapped_loses_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {n: b"%d" % n * 100 for n in range(300)}
    path, disk = tmp_path / "cold", FaultyDisk()
    monkeypatch.setattr(lmdb_engine, "Disk", lambda: disk)
    for nth in (1, 2, 3):
        with LMDBColdStorage(path) as storage:
            storage.save_many(values.items())
            storage.save(1000 + nth, b"deadword")
            storage.delete(1000 + nth)
            disk.fail(kind, nth)
            with suppress(StoreError, OSError):
                storage.scrub()
            disk.heal()
            if storage._closed:  # by itself: it must not take what it would lose
                with pytest.raises(StoreError, match="is closed; open it again"):
                    storage.save(5000 + nth, b"later")
            else:
                storage.save(5000 + nth, b"later")
                values[5000 + nth] = b"later"
        with LMDBColdStorage(path) as storage:
            storage.check()
            assert storage.load_many(values) == values
            storage.scrub()
            assert traces(tmp_path, "deadword") == {}
        assert not list(tmp_path.glob("*.copy"))


def test_a_storage_that_is_closed_while_it_is_scrubbed_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LMDBColdStorage(tmp_path / "cold")
    storage.save_many((n, b"x" * 1000) for n in range(300))

    class ClosingDisk(Disk):
        def fsync(self, fd: int) -> None:
            closing.start()
            while not storage._closed:
                pass  # from then on it waits for the scrub to let go of the file

    closing = threading.Thread(target=storage.close)
    monkeypatch.setattr(lmdb_engine, "Disk", ClosingDisk)
    with pytest.raises(StoreError, match="is closed"):
        storage.scrub()
    closing.join()
    with pytest.raises(StoreError, match="is closed"):
        storage.load(1)
    assert {each.name for each in tmp_path.iterdir()} == {"cold", "cold-lock"}
    monkeypatch.undo()
    with LMDBColdStorage(tmp_path / "cold") as again:
        again.check()
        assert len(again) == 300


# -- others at work --------------------------------------------------------------------------------


class Busy:
    """Stores, changes and frees until told to stop; knows what must be there, and what not."""

    def __init__(self, space: MemoryManager, lane: int) -> None:
        self._space, self._lane, self._rng = space, lane, random.Random(lane)
        self._count = 0
        self.living: dict[str, str] = {}
        self.dead: list[str] = []

    def work(self, done: threading.Event) -> None:
        while not done.is_set():
            self._step(f"lane{self._lane}w{self._count:06}e")
            self._count += 1

    def _step(self, word: str) -> None:
        chosen = self._rng.choice(list(self.living)) if len(self.living) > 40 else None
        if chosen is None:
            self._space.store({"text": word * 12}, id=word)
            self.living[word] = word
        elif self._rng.random() < 0.5:
            self._space.update(chosen, payload={"text": word * 12})
            self.living[chosen], old = word, self.living[chosen]
            self.dead.append(old)
        else:
            self._space.free_object(chosen)
            self.dead.append(self.living.pop(chosen))


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_others_write_while_a_space_is_scrubbed(kind: str, tmp_path: Path) -> None:
    found(tmp_path, kind)
    done = threading.Event()
    with opened(tmp_path, kind) as space, ThreadPoolExecutor(3) as pool:
        fill(space)
        expected = {each.id: each.payload["text"] for each in space.objects()}
        busy = [Busy(space, lane) for lane in range(2)]
        workers = [pool.submit(each.work, done) for each in busy]
        try:
            for _ in range(4):
                dead = {word.encode() for each in busy for word in each.dead[:]}
                space.scrub()
                assert traces(tmp_path, *DEAD) == {}
                assert bodies_left(tmp_path, dead) == set()
        finally:
            done.set()
        for each in workers:
            each.result()
        expected |= {name: word * 12 for each in busy for name, word in each.living.items()}
        assert {each.id: each.payload["text"] for each in space.objects()} == expected
        assert sum(len(each.dead) for each in busy) > 10
        space.check()
    with opened(tmp_path, kind) as space:
        space.check()
        assert {each.id: each.payload["text"] for each in space.objects()} == expected


def bodies_left(folder: Path, words: set[bytes]) -> set[bytes]:
    """A word may still be the name of a living object; twice in a row it is of a body."""
    data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return words & set(re.findall(rb"(lane\dw\d{6}e)\1", data))


def test_two_scrubs_take_turns_and_a_space_may_be_closed_meanwhile(tmp_path: Path) -> None:
    space = tiered(tmp_path)
    fill(space)
    expected = contents(space)
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(space.scrub) for _ in range(2)]:
            each.result()
        assert contents(space) == expected
        scrubbing = [pool.submit(space.scrub) for _ in range(2)]
        space.close()
        for each in scrubbing:
            with suppress(InvalidInput, StoreError):
                each.result()
    with pytest.raises(InvalidInput, match="closed"):
        space.scrub()
    with tiered(tmp_path) as space:
        assert contents(space) == expected


# -- disks that fail -------------------------------------------------------------------------------


DISK_CALLS = (
    "open", "pwrite", "fdatasync", "fsync", "sync_folder", "replace", "unlink", "listdir",
    "truncate",
)  # fmt: skip
HOW = Durability(sync="always", segment_bytes=1200, keep=2)


@pytest.mark.parametrize("times", [1, 10**9])
@pytest.mark.parametrize("kind", DISK_CALLS)
def test_a_scrub_on_a_disk_that_fails_loses_nothing_and_works_later(
    kind: str, times: int, ram: Path
) -> None:
    nth, was_hit = 0, True
    while was_hit:
        nth += 1
        was_hit = scrub_with_fault(ram, kind, nth, times)
    assert nth > 1 or kind == "truncate"


def scrub_with_fault(ram: Path, kind: str, nth: int, times: int) -> bool:
    folder, cut = ram / "space", ram / "cut"
    for old in (folder, cut):
        shutil.rmtree(old, ignore_errors=True)
    disk = FaultyDisk()
    files = SpaceFolder(folder, HOW, disk=disk)
    space = MemoryManager(
        1 << 16, wal=files.wal, checkpoint_manager=files.checkpoints, retriever=None
    )
    for n in range(12):
        space.store({"text": text("doomed", n)}, id=f"d{n}", root=True)
        space.store({"text": text("kept", n)}, id=f"k{n}", root=True)
    space.checkpoint()
    space.free_many([f"d{n}" for n in range(12)])
    expected = contents(space)
    disk.fail(kind, nth, times=times)
    with suppress(StoreError):
        space.scrub()
    was_hit = bool(disk.failed[kind])
    disk.heal()
    assert contents(space) == expected
    space.store({"text": "after"}, id="after", root=True)
    expected = contents(space)
    check_power_cut(disk, folder, cut, expected)
    space.scrub()
    assert traces(folder, "doomed") == {}
    shutil.rmtree(cut)
    check_power_cut(disk, folder, cut, expected)
    assert traces(cut, "doomed") == {}
    space.close()
    files.close()
    with flat(folder) as again:
        assert contents(again) == expected
    return was_hit


def check_power_cut(disk: FaultyDisk, folder: Path, cut: Path, expected: Any) -> None:
    cut.mkdir()
    for name in ("journal", "checkpoints"):
        disk.power_cut(folder / name, cut / name)
    with flat(cut) as space:
        assert contents(space) == expected, "after a power cut"


class LyingDisk(Disk):
    """Changes a byte of every checkpoint that gets its name, if told to."""

    is_lying = False

    def replace(self, old: Path, new: Path) -> None:
        super().replace(old, new)
        if self.is_lying and new.suffix == ".image":
            data = bytearray(new.read_bytes())
            data[len(data) // 2] ^= 1
            new.write_bytes(data)


def test_nothing_is_dropped_for_a_checkpoint_that_does_not_read_back(tmp_path: Path) -> None:
    disk = LyingDisk()
    files = SpaceFolder(tmp_path, HOW, disk=disk)
    with MemoryManager(
        1 << 20, wal=files.wal, checkpoint_manager=files.checkpoints, collectors=(), retriever=None
    ) as space:
        fill(space)
        expected, kept = contents(space), files.checkpoints.lsns()
        disk.is_lying = True
        with pytest.raises(CorruptData):
            space.scrub()
        assert kept[-1] in files.checkpoints.lsns()
    files.close()
    with opened(tmp_path, "flat") as space:
        assert contents(space) == expected


def test_what_a_failed_repair_left_in_the_journal_is_removed(tmp_path: Path) -> None:
    with flat(tmp_path) as space:
        space.store({"text": "here"}, id="a", root=True)
        left = tmp_path / "journal"
        (left / "0123456789abcdef.spare").write_bytes(b"\0" * 50 + b"leftover")
        (left / "fedcba9876543210.spare").write_bytes(b"\0" * 50)
        (left / "00000000000000000999.log").write_bytes(b"leftover")
        space.scrub()
        assert traces(tmp_path, "leftover") == {}
        assert (left / "fedcba9876543210.spare").exists(), "another thread was at it"
    with flat(tmp_path) as space:
        assert space.ids() == ["a"]


# -- killed ----------------------------------------------------------------------------------------


class Life(msgspec.Struct):
    """A scrub that is killed: by the disk call ``die_at``, or, if that is 0, from outside."""

    folder: str
    kind: str
    die_at: int


@pytest.fixture(scope="module")
def ram() -> Iterator[Path]:
    """A folder in RAM where there is one: a killed process needs no real disk."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


class Hospice:
    """The process whose children die."""

    def __init__(self, errors: Path, rng: random.Random) -> None:
        self._errors, self._rng = errors, rng
        self._patience = 300_000
        self.killed = 0
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors.open("wb"),
        )

    def scrub(self, life: Life) -> bool:
        """Let a child scrub until it dies; tell whether it did, or was done before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(life) + b"\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        if not life.die_at:
            for _ in range(self._rng.randrange(self._patience)):
                pass
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        status = int(self._process.stdout.readline())
        assert status in (0, -signal.SIGKILL), self._errors.read_text()
        self.killed += bool(status)
        if not life.die_at:  # as often as not it is done before
            self._patience = int(self._patience * (1.1 if status else 0.9))
        return bool(status)

    def close(self) -> None:
        self._process.communicate()


@pytest.mark.parametrize("kind", ["flat", *ENGINES])
def test_a_scrub_that_is_killed_anywhere_leaves_all_that_lives(
    kind: str, ram: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    born, folder = ram / f"{kind}-born", ram / f"{kind}-killed"
    found(born, kind)
    with opened(born, kind) as space:
        fill(space)
        expected = contents(space)
    with monkeypatch.context() as patched:
        calls = calls_of_a_scrub(shutil.copytree(born, folder), kind, patched.setattr)
    hospice = Hospice(tmp_path / "errors", random.Random(kind))
    try:
        for die_at in [*range(1, calls + 1), *[0] * KILLS]:
            was_killed = False
            while not was_killed:
                shutil.rmtree(folder)
                shutil.copytree(born, folder)
                was_killed = hospice.scrub(Life(str(folder), kind, die_at)) or bool(die_at)
                check_after_death(folder, kind, expected)
    finally:
        hospice.close()
    assert hospice.killed >= calls - 2 + KILLS  # what is done aside may be a call more or less


def check_after_death(folder: Path, kind: str, expected: Any) -> None:
    with opened(folder, kind) as space:
        assert contents(space) == expected
        assert not list(folder.rglob("*.copy"))
        space.scrub()
        assert traces(folder, *DEAD) == {}
        assert contents(space) == expected
    assert traces(folder, *DEAD) == {}


Patch = Callable[[Any, str, Any], None]


def calls_of_a_scrub(folder: Path, kind: str, patch: Patch) -> int:
    """How many calls of the disk there are."""
    disk = DeadlyDisk(sys.maxsize)
    with opened(folder, kind) as space:
        put_in_place(disk, patch)
        space.scrub()
        return sys.maxsize - disk._left


def put_in_place(disk: DeadlyDisk, patch: Patch) -> None:
    """Let every disk of this process be this one."""
    for name in ("open", "pwrite", "fdatasync", "fsync", "sync_folder", "replace", "unlink"):
        patch(Disk, name, _fatal(disk, getattr(Disk, name)))


def _fatal(disk: DeadlyDisk, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        disk._call()
        return original(*given, **options)

    return call


def scrub_and_die(life: Life) -> None:
    space = opened(Path(life.folder), life.kind)
    if life.die_at:
        put_in_place(DeadlyDisk(life.die_at), setattr)
    os.write(1, b"%d\n" % os.getpid())
    space.scrub()


def main() -> None:
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            try:
                scrub_and_die(msgspec.json.decode(line, type=Life))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
