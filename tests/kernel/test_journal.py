"""The write-ahead log in good times: numbers, segments, policies, threads, readers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from random import Random

import pytest

from memoryspace.errors import InvalidInput, StoreUnavailable
from memoryspace.events import Event, EventStream
from memoryspace.kernel.durable.journal import (
    ALWAYS,
    MAX_PAYLOAD,
    OS,
    JournalTooNew,
    JournalUnavailable,
    WriteAheadLog,
    as_policy,
    group,
    read_log,
)
from memoryspace.kernel.durable.journal.frames import HEADER_BYTES, SegmentHeader

from faulty_disk import FaultyDisk

SMALL = 200  # bytes: a few records fill a segment
POLICIES = ["always", "os", "group:1"]


def fill(log: WriteAheadLog, number: int) -> list[tuple[int, bytes]]:
    """Append some records of all lengths; return what must replay."""
    records = []
    for _ in range(number):
        payload = b"%d" % log.last_lsn * (log.last_lsn % 13)
        records.append((log.append(payload), payload))
    return records


def content(
    log: WriteAheadLog, after: int = 0, until: int | None = None
) -> list[tuple[int, bytes]]:
    return [(frame.lsn, frame.payload) for frame in log.replay(after, until)]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_appended_replays_in_order_here_and_after_reopening(
    tmp_path: Path, policy: str
) -> None:
    with WriteAheadLog(tmp_path, sync=policy, segment_bytes=SMALL) as log:
        records = fill(log, 40)
        log.commit(40)
        assert [lsn for lsn, _ in records] == list(range(1, 41))
        assert content(log) == records
        log.check()
    assert len(segments(tmp_path)) > 3
    with WriteAheadLog(tmp_path, sync=policy, segment_bytes=SMALL) as log:
        assert (log.torn, log.damage, log.last_lsn, log.durable_lsn) == (None, (), 40, 40)
        records += fill(log, 10)
        assert content(log) == records
        log.check()


def test_a_new_log_is_empty_and_an_empty_record_is_a_record(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path / "deep" / "log") as log:
        assert (log.last_lsn, log.durable_lsn, log.first_lsn) == (0, 0, 1)
        assert (list(log.replay()), log.bytes_since(0), log.lsn_at(1e12)) == ([], 0, 0)
        log.append(b"")
        assert content(log) == [(1, b"")]
        log.check()


def test_replay_takes_any_part(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, sync=OS, segment_bytes=SMALL) as log:
        records = fill(log, 30)
        for after in range(32):
            for until in (None, 0, 1, 7, 29, 30, 99):
                wanted = records[after : 30 if until is None else until]
                assert content(log, after, until) == wanted
                assert [(f.lsn, f.payload) for f in read_log(tmp_path, after, until)] == wanted


def test_replay_reads_only_the_segments_it_needs(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with WriteAheadLog(tmp_path, sync=OS, segment_bytes=SMALL, disk=disk) as log:
        fill(log, 30)
        before = disk.calls["read"]
        assert [frame.lsn for frame in log.replay(29)] == [30]
        assert disk.calls["read"] == before + 1


def test_a_record_larger_than_a_segment_gets_one_of_its_own_size(tmp_path: Path) -> None:
    big = bytes(range(256)) * 20
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        records = [(log.append(data), data) for data in (big, b"a", big, big, b"b")]
        log.commit(5)
        assert content(log) == records
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        assert content(log) == records
        log.check()


def test_truncate_removes_whole_segments_and_never_the_newest(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        records = fill(log, 40)
        for before in (0, 1, 2, 11, 25, 26, 40, 1000):
            log.truncate(before)
            assert log.first_lsn <= max(1, before)
            assert content(log) == records[log.first_lsn - 1 :]
            log.check()
        assert len(segments(tmp_path)) == 1
        newest = log.first_lsn
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        assert (log.first_lsn, log.last_lsn) == (newest, 40)
        assert log.append(b"next") == 41


def test_truncate_keeps_a_segment_that_holds_the_lsn(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        fill(log, 40)
        second = int(segments(tmp_path)[1].stem)
        log.truncate(second - 1)
        assert log.first_lsn == 1
        log.truncate(second)
        assert log.first_lsn == second


def test_a_gap_made_by_skipping_is_no_damage(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as log:
        log.append(b"one")
        log.skip_to(10)
        assert (log.last_lsn, log.durable_lsn) == (10, 10)
    with WriteAheadLog(tmp_path) as log:
        assert (log.last_lsn, log.damage) == (10, ())
        log.skip_to(20)
        log.skip_to(20)
        assert log.append(b"two") == 21
        log.commit(21)
        with pytest.raises(InvalidInput, match="21 was written"):
            log.skip_to(20)
        log.check()
    with WriteAheadLog(tmp_path) as log:
        assert content(log) == [(1, b"one"), (21, b"two")]
        assert list(read_log(tmp_path)) == list(log.replay())


def test_lsn_at_finds_the_newest_record_of_a_time(tmp_path: Path) -> None:
    ticks = count(100, 10)
    with WriteAheadLog(tmp_path, segment_bytes=SMALL, clock=lambda: next(ticks)) as log:
        fill(log, 20)
        assert [frame.time for frame in log.replay()] == list(range(100, 300, 10))
        assert log.lsn_at(99) == 0
        assert log.lsn_at(100) == 1
        assert log.lsn_at(155) == 6
        assert log.lsn_at(1e9) == 20


def test_bytes_since_tells_what_a_checkpoint_would_free(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, sync=OS, segment_bytes=1000) as log:
        for _ in range(100):
            log.append(b"x" * 40)  # a frame of 64 bytes
        assert log.bytes_since(0) == 6400
        assert log.bytes_since(100) == log.bytes_since(1000) == 0
        assert log.bytes_since(55) == 45 * 64
        assert log.bytes_written == 6400 + HEADER_BYTES * len(segments(tmp_path))


def test_policies_have_names() -> None:
    assert as_policy("always") == ALWAYS
    assert as_policy("os") is OS
    assert as_policy("group:5") == group(5)
    assert as_policy(group(0.5)).interval == 0.0005


@pytest.mark.parametrize("name", ["", "never", "group", "group:", "group:x", "group:0", "group:-1",
                                  "group:nan", "group:inf", "always:1"])  # fmt: skip
def test_a_bad_policy_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"sync|group"):
        WriteAheadLog(tmp_path / "log", sync=name)
    assert not (tmp_path / "log").exists()


def test_wrong_types_and_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="policy"):
        as_policy(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="milliseconds"):
        group("5")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="segment_bytes"):
        WriteAheadLog(tmp_path, segment_bytes=10)
    with WriteAheadLog(tmp_path, sync=OS) as log:
        with pytest.raises(TypeError, match="bytes"):
            log.append("text")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="split it"):
            log.append(bytes(MAX_PAYLOAD + 1))
        assert log.last_lsn == 0


def test_always_syncs_before_it_returns_and_the_others_do_not(tmp_path: Path) -> None:
    for policy, durable in ((ALWAYS, 1), (OS, 0), (group(60_000), 0)):
        disk = FaultyDisk()
        with WriteAheadLog(tmp_path / policy.name, sync=policy, disk=disk) as log:
            log.commit(log.append(b"x"))
            assert log.durable_lsn == durable
            log.sync()
            assert log.durable_lsn == 1


def test_commit_of_a_record_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as log, pytest.raises(InvalidInput, match="never appended"):
        log.commit(1)


def test_group_syncs_by_itself(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with WriteAheadLog(tmp_path, sync="group:1", disk=disk) as log:
        for _ in range(3):
            disk.synced.clear()
            log.append(b"x")
            assert disk.synced.wait(timeout=30)


def test_commits_that_wait_for_one_sync_share_the_next(tmp_path: Path) -> None:
    disk = HeldDisk()
    with WriteAheadLog(tmp_path, disk=disk) as log:
        workers = [threading.Thread(target=lambda: log.commit(log.append(b"x")))]
        workers[0].start()
        assert disk.entered.acquire(timeout=30)  # the first one syncs in its own thread
        before = disk.calls["fdatasync"]
        waiting = [threading.Thread(target=lambda: log.commit(log.append(b"x"))) for _ in range(8)]
        for each in waiting:
            each.start()
        while len(log._flusher._waiting) < 8:
            os.sched_yield()
        disk.may_go.set()
        for each in workers + waiting:
            each.join()
        assert log.durable_lsn == 9
        assert disk.calls["fdatasync"] == before + 2


class HeldDisk(FaultyDisk):
    """Syncs wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.may_go = threading.Event()

    def fdatasync(self, fd: int) -> None:
        self.entered.release()
        assert self.may_go.wait(timeout=30)
        super().fdatasync(fd)


def test_a_lone_committer_needs_no_thread(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as log:
        for _ in range(10):
            log.commit(log.append(b"x"))
        assert log._flusher._thread is None


@pytest.mark.parametrize("policy", POLICIES)
def test_many_threads_append_and_every_record_is_there_once(tmp_path: Path, policy: str) -> None:
    written: dict[int, bytes] = {}

    def work(number: int) -> None:
        for each in range(25):
            payload = b"%d:%d" % (number, each)
            lsn = log.append(payload)
            log.commit(lsn)
            assert policy != "always" or log.durable_lsn >= lsn
            written[lsn] = payload

    with WriteAheadLog(tmp_path, sync=policy, segment_bytes=2000, disk=FaultyDisk()) as log:
        run_together([lambda number=number: work(number) for number in range(16)])
        assert content(log) == sorted(written.items())
        assert len(written) == 400
        log.check()
    with WriteAheadLog(tmp_path) as log:
        assert content(log) == sorted(written.items())


def run_together(works: list) -> None:
    errors: list[BaseException] = []

    def guarded(work) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_several_event_loops_and_threads_share_a_log(tmp_path: Path) -> None:
    async def task(name: bytes) -> None:
        for each in range(10):
            lsn = log.append(b"%s %d" % (name, each))
            await log.commit_async(lsn)
            assert log.durable_lsn >= lsn

    async def loop(number: int) -> None:
        await asyncio.gather(*(task(b"%d.%d" % (number, each)) for each in range(20)))

    def thread() -> None:
        for _ in range(20):
            log.commit(log.append(b"thread"))

    with WriteAheadLog(tmp_path, segment_bytes=3000, disk=FaultyDisk()) as log:
        run_together([lambda n=n: asyncio.run(loop(n)) for n in range(3)] + [thread, thread])
        assert log.last_lsn == log.durable_lsn == 640
        assert len({frame.payload for frame in log.replay()}) == 601
        log.check()


def test_tasks_of_a_loop_share_a_sync(tmp_path: Path) -> None:
    disk = FaultyDisk()

    async def main() -> None:
        await asyncio.gather(*(log.commit_async(log.append(b"x")) for _ in range(100)))

    with WriteAheadLog(tmp_path, disk=disk) as log:
        before = disk.calls["fdatasync"]
        asyncio.run(main())
        assert disk.calls["fdatasync"] == before + 1


def test_a_cancelled_committer_disturbs_nobody(tmp_path: Path) -> None:
    disk = HeldDisk()

    async def main() -> None:
        first = asyncio.create_task(log.commit_async(log.append(b"a")))
        second = asyncio.create_task(log.commit_async(log.append(b"b")))
        await asyncio.to_thread(disk.entered.acquire, timeout=30)
        first.cancel()
        disk.may_go.set()
        await second
        assert first.cancelled() or first.cancelling()

    with WriteAheadLog(tmp_path, disk=disk) as log:
        asyncio.run(main())
        assert log.durable_lsn == 2


def test_replay_while_others_append_sees_a_whole_prefix(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, sync=OS, segment_bytes=500) as log:

        def read() -> None:
            while log.last_lsn < 2000:
                known = log.last_lsn
                for found in (log.replay(), read_log(tmp_path)):
                    lsns = [frame.lsn for frame in found]
                    assert lsns == list(range(1, len(lsns) + 1))
                    assert len(lsns) >= known

        run_together([lambda: fill(log, 2000), read])


def test_a_reader_that_truncation_overtakes_is_told(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        fill(log, 40)
        reading = log.replay()
        assert next(reading).lsn == 1
        log.truncate(30)
        with pytest.raises(JournalUnavailable, match="truncated"):
            list(reading)


def test_a_reader_of_a_log_never_writes(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path, segment_bytes=SMALL) as log:
        records = fill(log, 20)
    (tmp_path / "left.spare").write_bytes(b"")
    with segments(tmp_path)[-1].open("r+b") as file:
        file.seek(HEADER_BYTES + 8 * 100)
        file.write(b"garbage")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert [(frame.lsn, frame.payload) for frame in read_log(tmp_path)] == records
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_spare_takes_over_and_leaves_nothing_behind(tmp_path: Path) -> None:
    size = 300_000
    with WriteAheadLog(tmp_path, segment_bytes=size) as log:
        log.append(bytes(100_000))  # large enough to be worth a spare
        while not log._writer.spares.is_ready:
            os.sched_yield()
        log.append(b"in the spare")
        log.commit(2)
        assert [path.stat().st_size for path in segments(tmp_path)][-1] == size
        assert len(segments(tmp_path)) == 2
        log.check()
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".log"] == []
    with WriteAheadLog(tmp_path, segment_bytes=size) as log:
        assert log.torn is None
        log.append(b"still there")
        assert len(segments(tmp_path)) == 2


def test_stale_spares_are_removed(tmp_path: Path) -> None:
    (tmp_path / "0123.spare").write_bytes(bytes(100))
    WriteAheadLog(tmp_path).close()
    assert not list(tmp_path.glob("*.spare"))


def test_closing_syncs_and_twice_is_fine(tmp_path: Path) -> None:
    for policy in POLICIES:
        log = WriteAheadLog(tmp_path / policy[:2], sync=policy)
        log.append(b"x")
        log.close()
        log.close()
        assert log.durable_lsn == 1
        with pytest.raises(JournalUnavailable, match="closed; open it again"):
            log.append(b"y")
        with pytest.raises(StoreUnavailable, match="closed"):
            log.skip_to(9)
        assert content(log) == [(1, b"x")]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_text("hello")
    with pytest.raises(InvalidInput, match=r"notes\.log is not a journal segment; move it"):
        WriteAheadLog(tmp_path)


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / f"{1:020}.log"
    with monkeypatch.context() as later:
        later.setattr("memoryspace.kernel.durable.journal.frames.FORMAT_VERSION", 7)
        path.write_bytes(SegmentHeader(5, 1, 0).encoded() + b"something new")
    before = path.read_bytes()
    for salvage in (False, True):
        with pytest.raises(JournalTooNew, match=r"version 7.*reads up to 1; update"):
            WriteAheadLog(tmp_path, salvage=salvage)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_end_is_told_to_listeners(tmp_path: Path) -> None:
    with WriteAheadLog(tmp_path) as log:
        log.append(b"whole")
    path = segments(tmp_path)[0]
    path.write_bytes(path.read_bytes() + b"half")
    events, heard = EventStream(), list[Event]()
    events.subscribe(heard.append)
    with WriteAheadLog(tmp_path, events=events) as log:
        assert log.torn is not None
        assert (log.torn.file, log.torn.bytes) == (path, 4)
    assert [event.name for event in heard] == ["journal_torn_tail"]
    assert heard[0].data == {"file": str(path), "offset": path.stat().st_size, "bytes": 4}


# Starting Python takes longer than the rest: one process starts, and forks for every round.
CHILD = """
import os, sys
from memoryspace.kernel.durable.journal import WriteAheadLog

def work(policy):
    log = WriteAheadLog(sys.argv[1], sync=policy, segment_bytes=4000)
    while True:
        lsn = log.append(b"record %d" % (log.last_lsn + 1) * (log.last_lsn % 7))
        log.commit(lsn)
        os.write(1, b"%d\\n" % lsn)

for policy in sys.stdin:
    pid = os.fork()
    if not pid:
        work(policy.strip())
    os.write(1, b"worker %d\\n" % pid)
    os.waitpid(pid, 0)
    os.write(1, b"killed\\n")
"""


def killed_at(child: subprocess.Popen[str], policy: str, random: Random) -> int:
    """Let a worker write until a random moment, kill it, return what it acknowledged last."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{policy}\n")
    child.stdin.flush()
    moment, worker, acknowledged = random.randrange(1, 60), 0, 0
    for seen, line in enumerate(child.stdout):
        if line.startswith("worker"):
            worker = int(line.split()[1])
        elif line.startswith("killed"):
            break
        else:
            acknowledged = int(line)
        if worker and seen >= moment:
            os.kill(worker, signal.SIGKILL)
            worker = 0
    return acknowledged


def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    random = Random(20)
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        for round_ in range(20):
            acknowledged = killed_at(child, POLICIES[round_ % 3], random)
            found = list(read_log(tmp_path))
            assert len(found) >= acknowledged > 0
            for lsn, frame in enumerate(found, 1):
                assert (frame.lsn, frame.payload) == (lsn, b"record %d" % lsn * ((lsn - 1) % 7))
