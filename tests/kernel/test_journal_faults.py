"""The write-ahead log in bad times: torn and damaged bytes, disks that refuse, power cuts."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from memoryspace.events import Event, EventStream
from memoryspace.kernel.durable.journal import (
    OS,
    JournalDamaged,
    JournalUnavailable,
    WriteAheadLog,
    group,
    read_log,
)
from memoryspace.kernel.durable.journal.frames import HEADER_BYTES

from faulty_disk import FaultyDisk

SMALL = 170
Records = dict[int, bytes]


def records_in(log: WriteAheadLog) -> Records:
    found = [(frame.lsn, frame.payload) for frame in log.replay()]
    assert [lsn for lsn, _ in found] == sorted({lsn for lsn, _ in found}), "order, or twice"
    return dict(found)


def opened(folder: Path, *, salvage: bool = False) -> WriteAheadLog:
    return WriteAheadLog(folder, sync=OS, segment_bytes=SMALL, disk=FaultyDisk(), salvage=salvage)


# -- every byte of a small log ---------------------------------------------------------------------


class Layout:
    """A log of three segments on disk, and which bytes hold which record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: Records = {}
        self.spans: dict[Path, dict[int, tuple[int, int]]] = {}
        with WriteAheadLog(folder, sync=OS, segment_bytes=SMALL, disk=FaultyDisk()) as log:
            for length in (5, 0, 16, 30, 1, 9, 8, 21, 3):
                payload = bytes(range(65, 65 + length))
                lsn = log.append(payload)
                self.records[lsn] = payload
        self.files = sorted(folder.glob("*.log"))
        self.bytes = {path: path.read_bytes() for path in self.files}
        assert len(self.files) == 3
        firsts = [int(path.stem) for path in self.files] + [len(self.records) + 1]
        for path, first, bound in zip(self.files, firsts[:-1], firsts[1:], strict=True):
            offset, spans = HEADER_BYTES, {}
            for lsn in range(first, bound):
                stop = offset + 24 + len(self.records[lsn])
                spans[lsn] = (offset, stop)
                offset = (stop + 7) // 8 * 8
            self.spans[path] = spans
            assert path.stat().st_size == offset

    def lost_by(self, path: Path, data: bytes) -> tuple[set[int], bool]:
        """Which records change with these bytes, and whether that looks like a torn end."""
        old = self.bytes[path]
        spans = self.spans[path]
        gone = {lsn for lsn, (a, b) in spans.items() if data[a:b] != old[a:b]}
        is_last = path == self.files[-1]
        if data[:HEADER_BYTES] != old[:HEADER_BYTES]:
            empty = not data[HEADER_BYTES:].strip(b"\0")
            return set(spans), is_last and empty
        newest = len(self.records)
        return gone, is_last and gone == set(range(newest + 1 - len(gone), newest + 1))

    def laid_out(self, folder: Path, path: Path, data: bytes) -> Path:
        """Lay out the log anew, with these bytes in one of its files."""
        for old in folder.iterdir():
            old.unlink()
        for each, original in self.bytes.items():
            (folder / each.name).write_bytes(data if each == path else original)
        return folder


@pytest.fixture(scope="module")
def ram() -> Iterator[Path]:
    """A folder in RAM where there is one: a simulated crash needs no real disk."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def layout(ram: Path) -> Layout:
    return Layout(ram / "original")


@pytest.fixture
def folder(ram: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=ram))


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


def zero_from(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(len(data) - at)


def zero_some(data: bytes, at: int) -> bytes:
    return (data[:at] + bytes(40) + data[at + 40 :])[: len(data)]


def scribble(data: bytes, at: int) -> bytes:
    return (data[:at] + b"\xa5" * 9 + data[at + 9 :])[: len(data)]


@pytest.mark.parametrize("harm", [cut, flip, zero_from, zero_some, scribble])
@pytest.mark.parametrize("segment", [0, 1, 2])
def test_harm_at_any_byte_costs_only_what_it_touched(
    layout: Layout, folder: Path, harm: Callable[[bytes, int], bytes], segment: int
) -> None:
    path = layout.files[segment]
    step = 3 if harm in (zero_some, scribble) else 1  # wide enough to touch every byte
    for at in range(0, len(layout.bytes[path]), step):
        data = harm(layout.bytes[path], at)
        lost, is_torn = layout.lost_by(path, data)
        layout.laid_out(folder, path, data)
        expect_loss(folder, layout.records, lost, torn=is_torn)


def expect_loss(folder: Path, records: Records, lost: set[int], *, torn: bool) -> None:
    rest = {lsn: payload for lsn, payload in records.items() if lsn not in lost}
    salvage = bool(lost) and not torn
    if salvage:
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(JournalDamaged, match="salvage=True") as refused:
            opened(folder)
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        named = {n for d in refused.value.damage for n in range(d.first_lsn, d.last_lsn + 1)}
        headless_end = max(lost) == max(records) and min(named) == min(lost)
        assert named == lost or (headless_end and named < lost)  # how far it went is a guess
    with opened(folder, salvage=salvage) as log:
        assert bool(log.damage) == salvage
        assert records_in(log) == rest
        log.check()
        new = log.append(b"after the harm")
        assert new == (min(lost) if torn and lost else log.last_lsn)
        assert new not in rest
        log.commit(new)
    with opened(folder, salvage=salvage) as log:
        assert records_in(log) == rest | {new: b"after the harm"}
        assert log.torn is None or salvage
    seen = {frame.lsn: frame.payload for frame in read_log(folder, salvage=True)}
    assert seen == rest | {new: b"after the harm"}


def repeat(data: bytes, a: int, b: int) -> bytes:
    return data[:b] + data[a:b] + data[b:]


def remove(data: bytes, a: int, b: int) -> bytes:
    return data[:a] + data[b:]


def insert(data: bytes, a: int, b: int) -> bytes:
    return data[:a] + bytes(range(1, b - a + 1)) + data[a:]


def overwrite_with_copy(data: bytes, a: int, b: int) -> bytes:
    return (data[:b] + data[a:b] + data[2 * b - a :])[: len(data)]


@pytest.mark.parametrize("harm", [repeat, remove, insert, overwrite_with_copy])
@pytest.mark.parametrize("segment", [0, 2])
def test_bytes_that_moved_never_yield_a_wrong_record_or_one_twice(
    layout: Layout, folder: Path, harm: Callable[[bytes, int, int], bytes], segment: int
) -> None:
    path = layout.files[segment]
    data = layout.bytes[path]
    for a in range(0, len(data), 4):
        for b in range(a + 8, len(data), 44):
            layout.laid_out(folder, path, harm(data, a, b))
            expect_honesty(folder, layout.records, is_last=segment == 2)


def expect_honesty(folder: Path, records: Records, *, is_last: bool) -> None:
    with opened(folder, salvage=True) as log:
        found = records_in(log)
        assert found.items() <= records.items()
        named = {n for d in log.damage for n in range(d.first_lsn, d.last_lsn + 1)}
        silent = set(records) - set(found) - named
        assert is_last or not silent
        # Only the very end may go without a word of damage: it looks like a write cut short.
        assert silent == set(range(len(records) + 1 - len(silent), len(records) + 1))
        assert log.append(b"new") not in found


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_whole_frames_that_stand_twice_cost_nothing(
    layout: Layout, folder: Path, segment: int
) -> None:
    path = layout.files[segment]
    data = layout.bytes[path]
    starts = [start for start, _ in layout.spans[path].values()] + [len(data)]
    for index, a in enumerate(starts):
        for b in starts[index + 1 :]:
            layout.laid_out(folder, path, repeat(data, a, b))
            expect_loss(folder, layout.records, set(), torn=False)


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_whole_frames_that_vanished_are_named(layout: Layout, folder: Path, segment: int) -> None:
    path = layout.files[segment]
    data, spans = layout.bytes[path], layout.spans[path]
    starts = [start for start, _ in spans.values()] + [len(data)]
    for index, a in enumerate(starts):
        for b in starts[index + 1 :]:
            layout.laid_out(folder, path, remove(data, a, b))
            lost = {lsn for lsn, (start, _) in spans.items() if a <= start < b}
            expect_loss(folder, layout.records, lost, torn=segment == 2 and b == len(data))


def test_a_missing_segment_is_named(layout: Layout, folder: Path) -> None:
    path = layout.files[1]
    (layout.laid_out(folder, path, b"") / path.name).unlink()
    expect_loss(folder, layout.records, set(layout.spans[path]), torn=False)


def test_two_damaged_places_are_both_named(layout: Layout, folder: Path) -> None:
    layout.laid_out(folder, layout.files[0], layout.bytes[layout.files[0]])
    lost = set()
    for path in layout.files[:2]:
        lsn, (start, _) = list(layout.spans[path].items())[1]
        (folder / path.name).write_bytes(flip(layout.bytes[path], start))
        lost.add(lsn)
    events, heard = EventStream(), list[Event]()
    events.subscribe(heard.append)
    with WriteAheadLog(folder, salvage=True, events=events) as log:
        assert {d.first_lsn for d in log.damage} == {d.last_lsn for d in log.damage} == lost
        assert {d.file.name for d in log.damage} == {path.name for path in layout.files[:2]}
    assert [event.name for event in heard] == ["journal_damaged"]
    with pytest.raises(JournalDamaged):
        list(read_log(folder))
    whole = [frame.lsn for frame in read_log(folder, until=min(lost) - 1)]
    assert whole == list(range(1, min(lost)))


def test_a_payload_that_looks_like_a_frame_is_not_taken_for_one(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path / "other", sync=OS) as other:
        for _ in range(6):
            other.append(b"foreign")
        foreign = (tmp_path / "other").glob("*.log").__next__().read_bytes()[HEADER_BYTES:]
    with WriteAheadLog(tmp_path / "log", sync=OS) as log:
        log.append(foreign)
        path = log._writer.segments[0].path
        own = path.read_bytes()[HEADER_BYTES:]
        log.append(own + foreign)
        log.append(b"the end")
    path.write_bytes(flip(path.read_bytes(), HEADER_BYTES + len(own) + 8))
    with WriteAheadLog(tmp_path / "log", salvage=True) as log:
        assert records_in(log) == {1: foreign, 3: b"the end"}


# -- disks that refuse -----------------------------------------------------------------------------


def test_a_failed_append_changes_nothing_and_its_number_is_used_again(tmp_path: Path) -> None:
    for policy in ("always", "os", "group:60000"):
        disk = FaultyDisk()
        with WriteAheadLog(tmp_path / policy[:2], sync=policy, disk=disk) as log:
            log.append(b"first")
            disk.fail("pwrite", error=errno.ENOSPC)
            with pytest.raises(JournalUnavailable, match=r"write to .*No space left.*try again"):
                log.append(b"a long one that does not fit" * 10)
            assert log.last_lsn == 1
            log.check()
            assert log.append(b"second") == 2
            log.sync()
            log.check()
        with WriteAheadLog(tmp_path / policy[:2]) as log:
            assert records_in(log) == {1: b"first", 2: b"second"}
            assert log.torn is None


def test_a_failed_write_that_cannot_be_taken_back_is_overwritten(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with WriteAheadLog(tmp_path, disk=disk) as log:
        log.append(b"first")
        disk.fail("pwrite")
        disk.fail("truncate")
        with pytest.raises(JournalUnavailable):
            log.append(b"a long one that does not fit" * 10)
        log.append(b"second")
    with WriteAheadLog(tmp_path) as log:
        assert records_in(log) == {1: b"first", 2: b"second"}


@pytest.mark.parametrize("policy", ["always", "os", "group:60000"])
def test_after_a_failed_sync_everything_is_written_again(tmp_path: Path, policy: str) -> None:
    disk = FaultyDisk()
    log = WriteAheadLog(tmp_path / "log", sync=policy, disk=disk)
    log.append(b"one")
    log.sync()
    log.append(b"two")
    disk.fail("fdatasync")
    with pytest.raises(JournalUnavailable, match=r"sync .*try again"):
        log.sync()
    assert log.durable_lsn == 1
    assert log.append(b"three") == 3  # repairs first
    assert log.durable_lsn == 2
    log.check()
    log.sync()
    log.check()
    disk.power_cut(tmp_path / "log", tmp_path / "after")
    log.close()
    for folder in ("after", "log"):
        with WriteAheadLog(tmp_path / folder) as log:
            assert records_in(log) == {1: b"one", 2: b"two", 3: b"three"}
            assert log.damage == ()


def test_while_repair_fails_nothing_is_appended(tmp_path: Path) -> None:
    disk = FaultyDisk()
    events, heard = EventStream(), list[Event]()
    events.subscribe(heard.append)
    log = WriteAheadLog(tmp_path, disk=disk, events=events)
    log.append(b"one")
    for kind in ("fdatasync", "fsync", "open", "pwrite", "replace", "sync_folder"):
        disk.heal()
        disk.fail(kind)
        with pytest.raises(JournalUnavailable):
            log.commit(1) if kind == "fdatasync" else log.append(b"two")
        assert (log.last_lsn, log.durable_lsn) == (1, 0)
        log.check()
    assert log.append(b"two") == 2
    assert log.durable_lsn == 1
    log.close()
    assert [event.name for event in heard] == ["journal_sync_failed", "journal_repaired"]
    assert [path.name for path in tmp_path.iterdir()] == [f"{1:020}.log"]


def test_a_repair_covers_segments_that_were_left_unsynced(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = WriteAheadLog(tmp_path / "log", segment_bytes=SMALL, disk=disk)
    log.commit(log.append(b"durable"))
    wanted = {1: b"durable"} | {log.append(b"x" * n): b"x" * n for n in range(20)}
    disk.fail("fdatasync", 2)
    disk.fail("unlink", times=100)  # a crash before the old segments are removed
    with pytest.raises(JournalUnavailable):
        log.commit(21)
    log.commit(21)
    log.check()
    disk.power_cut(tmp_path / "log", tmp_path / "after")
    disk.heal()
    log.append(b"last")
    log.close()
    for folder, records in (("after", wanted), ("log", wanted | {22: b"last"})):
        assert {f.lsn: f.payload for f in read_log(tmp_path / folder)} == records
        with WriteAheadLog(tmp_path / folder, segment_bytes=SMALL) as log:
            assert records_in(log) == records
            assert (log.torn, log.damage) == (None, ())
            log.check()


def test_what_was_written_again_counts_and_not_the_broken_first_try(tmp_path: Path) -> None:
    disk = FaultyDisk()
    wanted = {1: b"durable", 2: b"two", 3: b"three", 4: b"four"}
    log = WriteAheadLog(tmp_path, disk=disk)
    log.commit(log.append(wanted[1]))
    first_try = log._writer.segments[0]
    second = first_try.end
    for lsn in (2, 3):
        log.append(wanted[lsn])
    disk.fail("fdatasync")
    with pytest.raises(JournalUnavailable):
        log.commit(3)
    log.commit(log.append(wanted[4]))
    log.close()
    first_try.path.write_bytes(flip(first_try.path.read_bytes(), second))
    assert [frame.lsn for frame in read_log(tmp_path)] == [1, 2, 3, 4]
    with WriteAheadLog(tmp_path) as log:
        assert records_in(log) == wanted
        assert (log.torn, log.damage) == (None, ())


def test_what_comes_during_a_sync_is_still_kept_for_a_repair(tmp_path: Path) -> None:
    disk = AppendingDisk()
    log = WriteAheadLog(tmp_path / "log", disk=disk)
    disk.log = log
    log.commit(log.append(b"one"))
    assert (log.last_lsn, log.durable_lsn) == (3, 1)
    log.check()
    disk.fail("fdatasync")
    with pytest.raises(JournalUnavailable):
        log.commit(3)
    log.commit(3)
    disk.power_cut(tmp_path / "log", tmp_path / "after")
    log.close()
    with WriteAheadLog(tmp_path / "after") as log:
        assert records_in(log) == {1: b"one", 2: b"meanwhile", 3: b"meanwhile"}


class AppendingDisk(FaultyDisk):
    """Something is appended in the middle of the first sync."""

    log: WriteAheadLog | None = None

    def fdatasync(self, fd: int) -> None:
        super().fdatasync(fd)
        log, self.log = self.log, None
        if log is not None:
            log.append(b"meanwhile")
            log.append(b"meanwhile")


def test_old_segments_left_behind_by_a_repair_are_removed_even_without_a_header(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    log = WriteAheadLog(tmp_path, segment_bytes=SMALL, disk=disk)
    wanted = {log.append(b"x" * n): b"x" * n for n in range(20)}
    old = [segment.path for segment in log._writer.segments[1:]]
    disk.fail("fdatasync")
    disk.fail("unlink", times=100)
    with pytest.raises(JournalUnavailable):
        log.commit(20)
    log.commit(20)
    disk.heal()
    log.close()
    assert len(old) > 2
    for path in (old[0], old[-1]):
        path.write_bytes(bytes(HEADER_BYTES) + path.read_bytes()[HEADER_BYTES:])
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        assert records_in(log) == wanted
        assert (log.torn, log.damage) == (None, ())
        assert not any(path.exists() for path in old[1:])


def test_what_opening_found_is_durable_from_then_on(tmp_path: Path) -> None:
    disk = FaultyDisk()
    killed = WriteAheadLog(tmp_path / "log", sync=OS, segment_bytes=SMALL, disk=disk)
    for number in range(20):
        killed.append(b"x" * number)
    with WriteAheadLog(tmp_path / "log", sync=OS, disk=disk) as log:
        assert log.durable_lsn == 20
        disk.power_cut(tmp_path / "log", tmp_path / "after")
    killed.close()
    assert [len(frame.payload) for frame in read_log(tmp_path / "after")] == list(range(20))


def test_a_repair_right_after_a_skip_still_admits_to_the_gap(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = WriteAheadLog(tmp_path, disk=disk)
    log.append(b"one")
    log.skip_to(10)
    log.append(b"eleven")
    disk.fail("fdatasync")
    with pytest.raises(JournalUnavailable):
        log.commit(11)
    log.commit(11)
    log.close()
    with WriteAheadLog(tmp_path) as log:
        assert records_in(log) == {1: b"one", 11: b"eleven"}


def test_all_who_wait_hear_of_a_failed_sync_and_can_try_again(tmp_path: Path) -> None:
    disk = FaultyDisk()

    async def main() -> None:
        lsns = [log.append(b"x") for _ in range(10)]
        disk.fail("fdatasync")
        outcomes = await asyncio.gather(*map(log.commit_async, lsns), return_exceptions=True)
        assert [type(each) for each in outcomes] == [JournalUnavailable] * 10
        assert log.durable_lsn == 0
        await asyncio.gather(*map(log.commit_async, lsns))
        assert log.durable_lsn == 10

    with WriteAheadLog(tmp_path, disk=disk) as log:
        asyncio.run(main())
        log.check()


def test_group_tries_again_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryspace.kernel.durable.journal.flusher._RETRY_SECONDS", 0.001)
    disk = FaultyDisk()
    disk.fail("fdatasync")
    repaired = EventStream()
    done = threading.Event()
    repaired.subscribe(lambda event: done.set() if event.name == "journal_repaired" else None)
    with WriteAheadLog(tmp_path, sync=group(1), disk=disk, events=repaired) as log:
        log.append(b"x")
        assert done.wait(timeout=30)
        assert log.durable_lsn == 1


def test_closing_repairs_if_it_can_and_says_so_if_not(tmp_path: Path) -> None:
    for times in (1, 5):
        disk = FaultyDisk()
        log = WriteAheadLog(tmp_path / str(times), disk=disk)
        log.append(b"x")
        disk.fail("fdatasync")
        disk.fail("fsync", times=times - 1)
        if times > 1:
            with pytest.raises(JournalUnavailable):
                log.close()
        log.close()
        assert (log.durable_lsn == 1) == (times == 1)
        with pytest.raises(JournalUnavailable, match="closed"):
            log.append(b"y")
        with WriteAheadLog(tmp_path / str(times)) as log:  # the process was not killed
            assert records_in(log) == {1: b"x"}


KINDS = ["open", "pwrite", "read", "fdatasync", "fsync", "sync_folder", "replace", "mkdir",
         "unlink", "listdir", "truncate", "close"]  # fmt: skip


def retried(step: Callable[[], object]) -> Iterator[JournalUnavailable]:
    """Do something until the disk lets it happen; yield the refusals."""
    for _ in range(10):
        try:
            step()
            return
        except JournalUnavailable as error:
            yield error
    raise AssertionError("it never worked again")


class Script:
    """A fixed course of events that goes through everything a log does."""

    def __init__(self, folder: Path, disk: FaultyDisk, policy: str) -> None:
        self.folder, self.disk, self.policy = folder, disk, policy
        self.errors: list[JournalUnavailable] = []
        self.wanted: Records = {}
        self.log: WriteAheadLog

    def run(self) -> None:
        self.do(self.open)
        for number in range(12):
            self.do(lambda number=number: self.append(b"x" * number * 3))
            if number % 3:
                self.do(self.commit)
        self.do(lambda: self.log.truncate(4))
        self.do(lambda: self.log.skip_to(20) if self.log.last_lsn < 20 else None)
        self.do(lambda: self.append(b"skipped"))
        self.do(self.commit)
        self.errors += list(retried(lambda: list(self.log.replay())))
        try:
            self.log.close()
        except JournalUnavailable as error:
            self.errors.append(error)
        self.do(self.open)
        self.do(lambda: self.append(b"reopened"))
        self.do(self.commit)
        self.do(lambda: self.log.check())

    def do(self, step: Callable[[], object]) -> None:
        self.errors += list(retried(step))

    def open(self) -> None:
        self.log = WriteAheadLog(self.folder, sync=self.policy, segment_bytes=SMALL, disk=self.disk)

    def append(self, payload: bytes) -> None:
        self.wanted[self.log.append(payload)] = payload

    def commit(self) -> None:
        self.log.commit(self.log.last_lsn)


@pytest.mark.parametrize("policy", ["always", "os"])
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_loses_nothing(
    folder: Path, kind: str, times: int, policy: str
) -> None:
    probe = FaultyDisk()
    Script(folder / "probe", probe, policy).run()
    for nth in range(1, probe.calls[kind] + 1):
        disk = FaultyDisk()
        disk.fail(kind, nth, times=times, error=errno.ENOSPC if nth % 2 else errno.EIO)
        script = Script(folder / str(nth), disk, policy)
        script.run()
        expect_everything(script, folder / f"after-{nth}")


def expect_everything(script: Script, after_cut: Path) -> None:
    script.disk.heal()
    first = script.log.first_lsn
    wanted = {lsn: payload for lsn, payload in script.wanted.items() if lsn >= first}
    assert records_in(script.log) == wanted
    if script.policy == "always":
        script.disk.power_cut(script.folder, after_cut)
        with WriteAheadLog(after_cut, disk=FaultyDisk()) as log:
            assert {n: data for n, data in records_in(log).items() if n >= first} == wanted
    script.log.close()
    with WriteAheadLog(script.folder, disk=FaultyDisk()) as log:
        assert records_in(log) == wanted
        assert not list(script.folder.glob("*.spare"))


# -- anything in any order -------------------------------------------------------------------------


class JournalMachine(RuleBasedStateMachine):
    """A log against a dict, with faults, kills and power cuts at any moment."""

    def __init__(self) -> None:
        super().__init__()
        shared = "/dev/shm"
        self.root = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
        self.number = 0
        self.records: Records = {}
        self.safe = 0  # acknowledged as durable
        self.first = 1

    @initialize(policy=st.sampled_from(["always", "os", "group:60000"]))
    def start(self, policy: str) -> None:
        self.policy = policy
        self.open(self.root / "0")

    def open(self, folder: Path) -> None:
        self.folder, self.disk = folder, FaultyDisk()
        self.log = WriteAheadLog(folder, sync=self.policy, segment_bytes=SMALL, disk=self.disk)

    @rule(payload=st.binary(max_size=60) | st.integers(60, 400).map(bytes))
    def append(self, payload: bytes) -> None:
        before = self.log.last_lsn
        try:
            lsn = self.log.append(payload)
        except JournalUnavailable:
            assert self.log.last_lsn == before
        else:
            assert lsn == before + 1
            self.records[lsn] = payload

    @rule()
    def commit(self) -> None:
        lsn = self.log.last_lsn
        try:
            self.log.commit(lsn)
        except JournalUnavailable:
            return
        if self.policy == "always":
            assert self.log.durable_lsn == lsn
            self.safe = lsn

    @rule()
    def sync(self) -> None:
        lsn = self.log.last_lsn
        try:
            self.log.sync()
        except JournalUnavailable:
            return
        self.safe = lsn

    @rule(part=st.floats(0, 1.1))
    def truncate(self, part: float) -> None:
        before = int(self.log.last_lsn * part)
        with suppress(JournalUnavailable):
            self.log.truncate(before)
        assert self.log.first_lsn <= max(self.first, before)

    @rule(step=st.integers(0, 5))
    def skip(self, step: int) -> None:
        target = self.log.last_lsn + step
        try:
            self.log.skip_to(target)
        except JournalUnavailable:
            assert self.log.last_lsn in (target, target - step)
        else:
            self.safe = target

    @rule(kind=st.sampled_from(KINDS), nth=st.integers(1, 4), times=st.integers(1, 3))
    def fault(self, kind: str, nth: int, times: int) -> None:
        self.disk.fail(kind, nth, times=times)

    @rule()
    def heal(self) -> None:
        self.disk.heal()

    @rule()
    def reopen(self) -> None:
        self.disk.heal()
        self.log.close()
        last = self.log.last_lsn
        self.open(self.folder)
        assert self.log.last_lsn == last
        self.safe = last

    @rule()
    def kill(self) -> None:
        """Only the process dies: all that was handed to the system is there."""
        last = self.log.last_lsn
        self.go_on_from(lambda target: shutil.copytree(self.folder, target))
        assert self.log.last_lsn == last

    @precondition(lambda self: self.safe)
    @rule()
    def cut_power(self) -> None:
        folder, disk = self.folder, self.disk
        self.go_on_from(lambda target: disk.power_cut(folder, target))
        assert self.log.last_lsn >= self.safe
        self.records = {n: data for n, data in self.records.items() if n <= self.log.last_lsn}

    def go_on_from(self, leave: Callable[[Path], object]) -> None:
        self.number += 1
        target = self.root / str(self.number)
        self.disk.heal()
        leave(target)
        self.log.close()
        self.open(target)

    @invariant()
    def everything_is_there(self) -> None:
        self.disk.heal() if self.disk.failed["read"] else None
        if not hasattr(self, "log"):
            return
        try:
            found = records_in(self.log)
            self.log.check()
        except JournalUnavailable:
            return  # a fault that was meant for a read
        self.first = self.log.first_lsn
        assert found == {n: data for n, data in self.records.items() if n >= self.first}
        assert self.safe <= self.log.durable_lsn <= self.log.last_lsn

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.disk.heal()
            self.log.close()
        shutil.rmtree(self.root)


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
