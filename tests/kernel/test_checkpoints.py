"""Checkpoints: one moment though the program goes on, kept as long as asked for, never trusted."""

from __future__ import annotations

import logging
import os
import random
import shutil
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.errors import CorruptData, InvalidInput, OutOfSpace, StoreError
from memoryspace.events import EventStream
from memoryspace.kernel import (
    CheckpointManager,
    Durability,
    MemoryManager,
    Runtime,
    TieredMemoryManager,
    Tiering,
    WriteAheadLog,
    at,
    fork,
    restore,
)
from memoryspace.kernel.durable.image import MAGIC
from memoryspace.kernel.engine import NewObject
from memoryspace.testing import ManualClock, capture

from length import at_length
from spaces import Seen, contents

TINY = 1e-9  # a pause so short that a slice takes in as little as it can
Opener = Callable[..., MemoryManager]


@pytest.fixture(scope="module")
def ram() -> Iterator[Path]:
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


def durability(**options: Any) -> Durability:
    return Durability(**{"sync": "os", "segment_bytes": 600, **options})


def runtime(clock: ManualClock | None, options: dict[str, Any]) -> Runtime:
    return Runtime(
        clock=ManualClock() if clock is None else clock,
        events=options.pop("events", None),
        pause=options.pop("pause", 0.001),
    )


def flat(folder: Path, clock: ManualClock | None = None, **options: Any) -> MemoryManager:
    options = {"capacity": 1 << 18, **options}
    capacity = options.pop("capacity")
    return MemoryManager(
        capacity,
        folder=folder,
        durability=options.pop("how", durability()),
        runtime=runtime(clock, options),
        retriever=None,
        **options,
    )


def tiered(folder: Path, clock: ManualClock | None = None, **options: Any) -> TieredMemoryManager:
    options = {"capacity": 4000, **options}
    capacity = options.pop("capacity")
    return TieredMemoryManager(
        capacity,
        folder=folder,
        durability=options.pop("how", durability()),
        runtime=runtime(clock, options),
        retriever=None,
        tiering=Tiering(flush_interval=None),
        **options,
    )


both = pytest.mark.parametrize("opener", [flat, tiered])


def lsns(space: MemoryManager) -> list[int]:
    assert space.checkpoint_manager is not None
    return space.checkpoint_manager.lsns()


def first_lsn(space: MemoryManager) -> int:
    assert space.wal is not None
    return space.wal.first_lsn


def copied(folder: Path, target: Path, *, without: str = "") -> Path:
    """Copy a space; leave out its journal, or its checkpoints."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(without) if without else None)
    return target


def images(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoints").glob("*.image"))


# -- one moment ------------------------------------------------------------------------------------

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["store", "free", "rewrite", "tune", "link", "unlink", "pin", "demote"]),
        st.integers(0, 399),
        st.integers(0, 399),
    ),
    max_size=12,
)


def change(space: MemoryManager, ids: list[str], kind: str, a: int, b: int) -> None:
    """Change an object, wherever the writer of the checkpoint has got to."""
    one, other = ids[a % len(ids)], ids[b % len(ids)]
    if kind == "store":
        ids.append(space.store({"n": a, "text": "s" * b}, tags=[f"t{a % 3}"], tenant="new").id)
    elif one not in space or other not in space:
        return
    elif kind == "free":
        space.free_object(one)
    elif kind == "rewrite":
        space.update(one, payload={"text": "r" * b})
    elif kind == "tune":
        space.update(one, importance=b / 400, tags=[f"u{b % 4}"])
    elif kind == "link":
        space.add_reference(one, other)
    elif kind == "unlink":
        for target in space.references(one):
            space.remove_reference(one, target)
    elif kind == "pin":
        (space.unpin if space.is_pinned(one) else space.pin)(one)
    elif isinstance(space, TieredMemoryManager):
        space.demote_objects([one])
        space.load(other)


@both
@given(
    before=CHANGES,
    between=st.lists(CHANGES, min_size=1, max_size=6),
    afterwards=CHANGES,
    seed=st.integers(0, 5),
)
@settings(max_examples=at_length(15, 40))
def test_an_image_is_the_heap_at_one_moment_though_the_program_goes_on(
    opener: Opener,
    before: list[tuple[str, int, int]],
    between: list[list[tuple[str, int, int]]],
    afterwards: list[tuple[str, int, int]],
    seed: int,
) -> None:
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        home = Path(name) / "home"
        with opener(home, pause=TINY, how=durability(segment_bytes=1 << 20)) as space:
            rng = random.Random(seed)
            new = [NewObject({"n": n}, root=rng.random() < 0.1) for n in range(400)]
            ids = [each.id for each in space.store_many(new)]
            for step in before:
                change(space, ids, *step)
            states = {space.last_lsn: contents(space)}
            writer = space.engine.checkpointing.begin()
            for steps in between:
                if not writer.captured:
                    space.engine.checkpointing.capture(writer)
                for step in steps:
                    change(space, ids, *step)
                    states[space.last_lsn] = contents(space)
            while not writer.captured:
                space.engine.checkpointing.capture(writer)
            for step in afterwards:
                change(space, ids, *step)
            space.engine.checkpointing.finish(writer)
            space.engine.checkpointing.conclude(writer)
            last = contents(space)
        with opener(copied(home, Path(name) / "image", without="journal")) as found:
            assert found.last_lsn == writer.lsn
            assert contents(found) == states[writer.lsn]
            found.store({"text": "goes on"})
            found.check()
        with opener(home) as found:
            assert contents(found) == last


def test_images_and_journal_tell_the_same_while_threads_change_everything(ram: Path) -> None:
    home = ram / "threads"
    how = durability(segment_bytes=1 << 20, keep=100)
    failures: list[BaseException] = []
    enough = threading.Event()

    def work(space: MemoryManager, seed: int) -> None:
        rng, mine, n = random.Random(seed), list[str](), 0
        try:
            while n < 250 or not enough.is_set():
                n += 1
                if len(mine) < 100 or (len(mine) < 150 and rng.random() < 0.3):
                    payload = {"n": n, "text": "x" * rng.randrange(60)}
                    mine.append(space.store(payload, tags=["a"], root=True).id)
                elif rng.random() < 0.3:
                    space.free_object(mine.pop(rng.randrange(len(mine))))
                elif rng.random() < 0.5:
                    space.update(rng.choice(mine), payload={"text": "y" * rng.randrange(60)})
                else:
                    space.add_reference(rng.choice(mine), rng.choice(mine))
        except BaseException as error:
            failures.append(error)

    with flat(home, pause=TINY, how=how) as space:
        threads = [threading.Thread(target=work, args=(space, seed)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        taken = []
        while len(taken) < 3 and not failures:
            taken.append(space.checkpoint())
        enough.set()
        for thread in threads:
            thread.join()
        taken.append(space.checkpoint())
        assert not failures
        assert first_lsn(space) == 1, "the journal tells everything"
    assert len(taken) == 4, "three while the threads were at work, one after"
    only_journal = copied(home, ram / "only journal", without="checkpoints")
    with flat(only_journal, how=how) as journal:
        for lsn in sorted(set(taken))[-8:]:
            image = copied(home, ram / "only image", without="journal")
            for path in images(image):
                if int(path.stem) != lsn:
                    path.unlink()
            with flat(image) as found, at(journal, lsn=lsn) as expected:
                assert contents(found) == contents(expected), f"the image of change {lsn}"


def test_a_body_that_changed_after_its_turn_leaves_a_hole_that_can_be_used(ram: Path) -> None:
    home = ram / "holes"
    with flat(home, pause=TINY) as space:
        ids = [each.id for each in space.store_many([NewObject({"n": n}) for n in range(400)])]
        writer = space.engine.checkpointing.begin()
        space.engine.checkpointing.capture(writer)
        for number, object_id in enumerate(ids[:100]):
            if number % 2:
                space.free_object(object_id)
            else:
                space.update(object_id, payload={"text": "longer than it was " * 3})
        while not writer.captured:
            space.engine.checkpointing.capture(writer)
        space.engine.checkpointing.finish(writer)
        space.engine.checkpointing.conclude(writer)
        expected, lsn = contents(space), space.last_lsn
        used = space.stats()["heap_used"]
    alone = copied(home, ram / "holes alone", without="journal")
    with flat(alone) as found:
        assert (contents(found), found.last_lsn) == (expected, lsn)
        assert found.stats()["heap_used"] == used, "holes are free"
        for n in range(60):
            found.store({"n": n})
            found.check()
    alone = copied(home, ram / "holes alone", without="journal")
    with flat(alone, capacity=used) as tight:  # the image with its holes would not fit
        assert contents(tight) == expected
        assert tight.stats()["heap_free"] == 0


@both
def test_however_short_the_pause_a_checkpoint_ends(opener: Opener, tmp_path: Path) -> None:
    with opener(tmp_path, pause=TINY) as space:
        space.store_many([NewObject({"n": n}, root=True) for n in range(300)])
        assert space.checkpoint() == space.last_lsn


@both
def test_a_checkpoint_nobody_waits_for_is_written_in_passing(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    events = EventStream(clock=clock)
    how = durability(checkpoint_bytes=3000, keep=1)
    with opener(tmp_path, clock, how=how, events=events) as space, capture(events) as heard:
        for n in range(2000):
            clock.advance(1)
            space.store({"n": n}, id=f"{n}", root=True)
            if n >= 50:
                space.free_object(f"{n - 50}")
        done = [event.data["lsn"] for event in heard if event.name == "checkpoint"]
        assert len(done) >= 2
        assert lsns(space)[0] >= done[-1]
        assert first_lsn(space) > 1
        expected = contents(space)
    assert not list((tmp_path / "checkpoints").glob("*.tmp"))
    with opener(tmp_path, clock) as space:
        assert contents(space) == expected


def test_closing_in_the_middle_of_a_checkpoint_leaves_no_trace(tmp_path: Path) -> None:
    with flat(tmp_path, pause=TINY) as space:
        space.store_many([NewObject({"n": n}, root=True) for n in range(400)])
        writer = space.engine.checkpointing.begin()
        space.engine.checkpointing.capture(writer)
        assert not writer.captured
        assert list((tmp_path / "checkpoints").iterdir())
    assert not list((tmp_path / "checkpoints").iterdir())
    with pytest.raises(StoreError, match="abandoned"):
        writer.finish()
    with flat(tmp_path) as space:
        assert len(space) == 400


def test_what_a_crash_left_of_a_checkpoint_is_swept_away(tmp_path: Path) -> None:
    with flat(tmp_path) as space:
        space.store({"n": 1}, root=True)
    (tmp_path / "checkpoints" / "checkpoint.tmp").write_bytes(MAGIC)
    with flat(tmp_path) as space:
        assert len(space) == 1
        assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_space_without_a_folder_has_no_checkpoints() -> None:
    with MemoryManager(1000) as space, pytest.raises(InvalidInput, match="open it in a folder"):
        space.checkpoint()


def test_a_checkpoint_holds_what_was_stored_after_another_had_been_captured(
    tmp_path: Path,
) -> None:
    with flat(tmp_path) as space:
        space.store({"n": 1}, root=True)
        writer = space.engine.checkpointing.begin()
        while not writer.captured:
            space.engine.checkpointing.capture(writer)
        space.store({"n": 2}, root=True)
        assert space.checkpoint() == space.last_lsn
        assert lsns(space)[-1] == space.last_lsn


def test_another_checkpoint_of_the_same_moment_is_the_same(tmp_path: Path) -> None:
    with flat(tmp_path) as space:
        space.store({"n": 1}, root=True)
        assert space.checkpoint() == space.checkpoint() == 1
        assert lsns(space) == [1]


# -- how many are kept -----------------------------------------------------------------------------


def grow(space: MemoryManager, clock: ManualClock, count: int = 20) -> None:
    for _ in range(count):
        clock.advance(1)
        space.store({"at": clock.now}, root=True)


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_so_many_checkpoints_are_kept_and_the_journal_from_the_oldest_on(
    keep: int, tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock, how=durability(keep=keep)) as space:
        taken = []
        for _ in range(7):
            grow(space, clock)
            taken.append(space.checkpoint())
            assert lsns(space) == taken[-keep:]
            if len(taken) < keep:
                assert first_lsn(space) == 1, "the beginning counts as one of them"
            else:
                oldest = taken[-keep]
                assert oldest - 10 < first_lsn(space) <= oldest + 1
        expected = contents(space)
    with flat(tmp_path, clock) as space:
        assert contents(space) == expected


def test_checkpoints_are_kept_for_so_long(tmp_path: Path, clock: ManualClock) -> None:
    how = durability(keep=1, keep_seconds=50)
    with flat(tmp_path, clock, how=how) as space:
        taken = {}
        for _ in range(8):
            grow(space, clock)  # 20 seconds
            taken[space.checkpoint()] = clock.now
            needed = lsns(space)[0] if first_lsn(space) > 1 else 0
            # the past 50 seconds can be seen, and nothing is kept for longer than that takes
            assert needed == max([0, *(n for n, when in taken.items() if when <= clock.now - 50)])
            if clock.now - 50 >= 1000:
                with at(space, time=clock.now - 50) as past:
                    assert len(past) == clock.now - 50 - 1000
        assert len(lsns(space)) == 4
    with flat(tmp_path, clock, how=how) as space:  # the times are in the files
        clock.advance(25)
        space.checkpoint()
        assert len(lsns(space)) == 3


@pytest.mark.parametrize("options", [{"keep": 0}, {"keep": -1}, {"keep_seconds": -1.0}])
def test_no_less_than_one_checkpoint_can_be_kept(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="keep must be"):
        CheckpointManager(tmp_path, **options)


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def checkpointed(tmp_path: Path, clock: ManualClock) -> tuple[Path, dict[str, Seen]]:
    """A space with two checkpoints and changes before, between and after them."""
    home = tmp_path / "home"
    with flat(home, clock) as space:
        for _ in range(3):
            grow(space, clock)
            space.free_object(space.ids()[3])
            space.checkpoint()
        grow(space, clock)
        expected = contents(space)
        assert first_lsn(space) > 1
    return home, expected


def test_a_damaged_image_is_passed_over_wherever_it_is_damaged(
    checkpointed: tuple[Path, dict[str, Seen]], ram: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, expected = checkpointed
    whole = images(home)[-1].read_bytes()
    for place in [*range(16, 32), *range(32, len(whole), 41)]:
        flipped = whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :]
        for harmed in (whole[:place], flipped):
            folder = copied(home, ram / "harmed")
            images(folder)[-1].write_bytes(harmed)
            caplog.clear()
            with caplog.at_level(logging.WARNING), flat(folder) as space:
                assert contents(space) == expected, f"at {place}"
            assert "was skipped" in caplog.text, f"at {place}"


def test_after_a_damaged_image_checkpoints_go_on(
    checkpointed: tuple[Path, dict[str, Seen]], clock: ManualClock
) -> None:
    home, expected = checkpointed
    older, newest = images(home)
    newest.write_bytes(newest.read_bytes()[:-1])
    how = durability(keep_seconds=1)
    for _ in range(2):
        with flat(home, clock, how=how) as space:
            assert contents(space) == expected
            with at(space, time=clock.now) as past:
                assert contents(past) == expected
            space.store({"at": clock.now}, root=True)
            space.checkpoint()
            grow(space, clock)
            assert older.exists() or newest not in images(home), "two that are whole are kept"
            expected = contents(space)
            lsn = space.checkpoint()
    assert not newest.exists()
    assert [int(path.stem) for path in images(home)][-1] == lsn


def test_the_first_image_may_be_damaged_too(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock) as space:
        grow(space, clock, 60)
        space.checkpoint()
        grow(space, clock)
        expected = contents(space)
    images(tmp_path)[0].write_bytes(b"")
    with flat(tmp_path, clock) as space:
        assert contents(space) == expected


def test_if_every_image_is_damaged_that_is_said_and_nothing_is_changed(
    checkpointed: tuple[Path, dict[str, Seen]], clock: ManualClock
) -> None:
    home, expected = checkpointed
    whole = {path: path.read_bytes() for path in images(home)}
    for path in whole:
        path.write_bytes(b"\0" * 100)
    before = {path: path.read_bytes() for path in home.rglob("*.*") if path.is_file()}
    for opener in (flat, tiered):
        with pytest.raises(CorruptData, match=r"changes 1 to \d+ are missing.*restore a backup"):
            opener(home, clock)
    assert {path: path.read_bytes() for path in before} == before
    for path, data in whole.items():
        path.write_bytes(data)
    with flat(home, clock) as space:
        assert contents(space) == expected


def test_a_damaged_restore_is_not_taken_for_one_that_never_was(
    tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock) as space:
        grow(space, clock)
        restore(space, lsn=5)
        images(tmp_path)[-1].write_bytes(b"")
    with pytest.raises(CorruptData, match="21 to 21 are in a checkpoint that cannot be read"):
        flat(tmp_path, clock)


def test_a_damaged_restore_with_changes_after_it_is_told_too(
    tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock) as space:
        grow(space, clock)
        restore(space, lsn=5)
        grow(space, clock, 2)
        images(tmp_path)[-1].write_bytes(b"")
    with pytest.raises(CorruptData, match="21 to 21 are in a checkpoint that cannot be read"):
        flat(tmp_path, clock)


def test_a_damaged_fork_is_not_an_empty_space(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path / "home", clock) as space:
        grow(space, clock)
        for name, opened_before in (("new", False), ("used", True)):
            branch = fork(space, tmp_path / name)
            if opened_before:
                flat(branch, clock).close()
            images(branch)[0].write_bytes(b"")
            with pytest.raises(CorruptData, match="1 to 20 are in a checkpoint that cannot be"):
                flat(branch, clock)


@pytest.mark.parametrize("name", ["home", "information", "format 2"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path, clock: ManualClock) -> None:
    home = tmp_path / name
    with flat(home, clock) as space:
        grow(space, clock)
        space.checkpoint()
        grow(space, clock)
        space.checkpoint()
        expected = contents(space)
    images(home)[-1].write_bytes(b"not an image at all")
    with flat(home, clock) as space:
        assert contents(space) == expected


def test_an_image_of_a_later_version_is_not_touched(
    checkpointed: tuple[Path, dict[str, Seen]], clock: ManualClock
) -> None:
    home, _ = checkpointed
    newest = images(home)[-1]
    data = newest.read_bytes()
    newest.write_bytes(data[:8] + struct.pack("<I", 99) + data[12:])
    with pytest.raises(CorruptData, match="has format 99, this version reads up to 1"):
        flat(home, clock)
    assert newest.read_bytes()[12:] == data[12:]


def test_files_of_others_beside_the_images_are_left_alone(
    checkpointed: tuple[Path, dict[str, Seen]], clock: ManualClock
) -> None:
    home, expected = checkpointed
    note = home / "checkpoints" / "README.txt"
    note.write_text("mine")
    with flat(home, clock) as space:
        assert contents(space) == expected
        space.checkpoint()
    assert note.read_text() == "mine"


def test_a_journal_whose_beginning_is_missing_is_told(
    checkpointed: tuple[Path, dict[str, Seen]], clock: ManualClock
) -> None:
    home, _ = checkpointed
    for path in images(home):
        path.unlink()
    with pytest.raises(CorruptData, match=r"the journal in .* begins after"):
        flat(home, clock)


def test_a_file_that_is_no_image_says_so(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.path_of(7).write_bytes(b"#!/bin/sh\necho nothing of ours\n")
    with pytest.raises(CorruptData, match="is not a checkpoint of a memory space"):
        manager.time_of(7)
    manager.path_of(8).write_bytes(MAGIC)
    with pytest.raises(CorruptData, match="too short"):
        manager.time_of(8)
    assert manager.lsns() == [7, 8]


# -- another capacity ------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_capacity_too_small_is_told_and_the_folder_is_as_it_was(
    checkpoint: bool, tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock) as space:
        for n in range(50):
            space.store({"n": n, "text": "x" * 100}, root=True)
        if checkpoint:
            space.checkpoint()
        expected, last = contents(space), space.last_lsn
    with pytest.raises(OutOfSpace, match=r"4000 bytes of capacity.*open the space with a bigger"):
        flat(tmp_path, clock, capacity=4000)
    with flat(tmp_path, clock) as space:
        assert (contents(space), space.last_lsn) == (expected, last)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("opener", [flat, tiered])
def test_a_tiered_space_spills_what_its_heap_cannot_hold(
    opener: Opener, checkpoint: bool, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock, capacity=1 << 16) as space:
        for n in range(50):
            space.store({"n": n, "text": "x" * 100}, id=f"name {n}", root=True)
        if checkpoint:
            space.checkpoint()
        space.store({"n": 50}, id="last")
        expected = contents(space)
    for _ in range(2):
        with tiered(tmp_path, clock, capacity=1000) as space:
            assert contents(space) == expected
            assert space.stats()["cold_items"] > 40
            for n in range(0, 50, 7):
                assert space.load(f"name {n}").payload["n"] == n
            space.update("last", payload={"n": 51})
            expected = contents(space)


def test_a_heap_may_be_opened_bigger(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock, capacity=8000) as space:
        grow(space, clock, 100)
        space.checkpoint()
        expected = contents(space)
    with flat(tmp_path, clock, capacity=1 << 20) as space:
        assert contents(space) == expected
        space.store({"text": "x" * 100_000}, root=True)
        space.check()


def test_parts_that_were_handed_in_stay_open(tmp_path: Path, clock: ManualClock) -> None:
    checkpoints = CheckpointManager(tmp_path / "checkpoints")
    with WriteAheadLog(tmp_path / "journal", sync="os", clock=clock) as wal:
        for n in range(3):
            with MemoryManager(
                10_000,
                wal=wal,
                checkpoint_manager=checkpoints,
                retriever=None,
                runtime=Runtime(clock=clock),
            ) as space:
                assert len(space) == n
                space.store({"n": n}, root=True)
                space.checkpoint()
        assert wal.last_lsn == 3
