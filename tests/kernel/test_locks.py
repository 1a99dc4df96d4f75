"""Threads are driven step by step; that one waits is seen on the lock itself, never guessed."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from memoryspace.kernel.locks import ReadSide, ReadWriteLock, WriteSide, YieldingLock

PATIENCE = 60.0  # seconds until a test that hangs fails
EXCLUSIVE = [("write", "write"), ("write", "read"), ("read", "write")]


class Actor:
    """A thread that takes one side of a lock, says so, and holds it until told to let go."""

    def __init__(self, side: ReadSide | WriteSide, name: str, log: list[str]) -> None:
        self.entered = threading.Event()
        self._leave = threading.Event()
        self._side, self._name, self._log = side, name, log
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._side:
            self._log.append(self._name)
            self.entered.set()
            assert self._leave.wait(PATIENCE)

    def must_be_in(self) -> None:
        assert self.entered.wait(PATIENCE)

    def leave_soon(self) -> None:
        self._leave.set()

    def finish(self) -> None:
        self.must_be_in()
        self.leave_soon()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def in_thread(work: Callable[[], object]) -> object:
    """Run something in another thread and return its result, or the error it raised."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return results[0]


@contextmanager
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_readers_share() -> None:
    lock, log = ReadWriteLock(), []
    actors = [Actor(lock.read, f"reader {n}", log) for n in range(3)]
    for actor in actors:
        actor.must_be_in()
    assert len(log) == 3
    lock.check()
    for actor in actors:
        actor.finish()


@pytest.mark.parametrize(("first", "second"), EXCLUSIVE)
def test_a_writer_is_alone(first: str, second: str) -> None:
    lock, log = ReadWriteLock(), []
    holder = Actor(getattr(lock, first), "first", log)
    holder.must_be_in()
    other = Actor(getattr(lock, second), "second", log)
    until(lambda: sum(lock.waiting) == 1)
    assert log == ["first"]
    lock.check()
    holder.finish()
    other.finish()
    assert log == ["first", "second"]


def test_a_waiting_writer_stops_new_readers() -> None:
    lock, log = ReadWriteLock(), []
    reader = Actor(lock.read, "reader", log)
    reader.must_be_in()
    writer = Actor(lock.write, "writer", log)
    until(lambda: lock.waiting == (0, 1))
    late = Actor(lock.read, "late reader", log)
    until(lambda: lock.waiting == (1, 1))
    reader.finish()
    writer.must_be_in()
    assert not late.entered.is_set()
    writer.finish()
    late.finish()
    assert log == ["reader", "writer", "late reader"]


def test_waiting_readers_go_before_the_next_writer() -> None:
    lock, log = ReadWriteLock(), []
    first = Actor(lock.write, "first writer", log)
    first.must_be_in()
    second = Actor(lock.write, "second writer", log)
    until(lambda: lock.waiting == (0, 1))
    readers = [Actor(lock.read, "reader", log) for _ in range(3)]
    until(lambda: lock.waiting == (3, 1))
    first.finish()
    for reader in readers:
        reader.must_be_in()
    assert not second.entered.is_set()
    lock.check()
    for reader in readers:
        reader.finish()
    second.finish()
    assert log == ["first writer", "reader", "reader", "reader", "second writer"]


def test_writers_are_served_in_the_order_they_came() -> None:
    lock, log = ReadWriteLock(), []
    reader = Actor(lock.read, "reader", log)
    reader.must_be_in()
    writers = []
    for n in range(3):
        writers.append(Actor(lock.write, f"writer {n}", log))
        until(lambda n=n: lock.waiting == (0, n + 1))
    reader.finish()
    for writer in writers:
        writer.finish()
    assert log == ["reader", "writer 0", "writer 1", "writer 2"]


def test_a_writer_may_write_and_read_again() -> None:
    lock, log = ReadWriteLock(), []
    with lock.write, lock.write(), lock.read, lock.read():
        lock.check()
        other = Actor(lock.read, "other", log)
        until(lambda: lock.waiting == (1, 0))
        with lock.write:
            assert log == []
    other.finish()
    assert log == ["other"]
    lock.check()


def test_a_reader_may_read_again_while_a_writer_waits() -> None:
    lock, log = ReadWriteLock(), []
    with lock.read:
        writer = Actor(lock.write, "writer", log)
        until(lambda: lock.waiting == (0, 1))
        with lock.read:
            assert lock.read.acquire()
            lock.read.release()
        assert log == []
        lock.check()
    writer.finish()
    assert log == ["writer"]


def test_a_writer_that_keeps_its_read_lock_becomes_a_reader() -> None:
    lock, log = ReadWriteLock(), []
    lock.write.acquire()
    lock.read.acquire()
    writer = Actor(lock.write, "writer", log)
    until(lambda: lock.waiting == (0, 1))
    lock.write.release()
    lock.check()
    assert not writer.entered.is_set()
    lock.read.release()
    writer.finish()


def test_a_read_lock_cannot_become_a_write_lock() -> None:
    lock = ReadWriteLock()
    with lock.read:
        with pytest.raises(RuntimeError, match="release it first"):
            lock.write.acquire()
        assert in_thread(lambda: lock.read.acquire(timeout=0)) is True
        lock.check()


@pytest.mark.parametrize("side", ["read", "write"])
def test_releasing_what_is_not_held_is_an_error(side: str) -> None:
    lock = ReadWriteLock()
    with pytest.raises(RuntimeError, match=f"no {side} lock"):
        getattr(lock, side).release()
    with getattr(lock, side):
        error = in_thread(getattr(lock, side).release)
        assert isinstance(error, RuntimeError)
        lock.check()
    with pytest.raises(RuntimeError, match=f"no {side} lock"):
        getattr(lock, side).release()
    with lock.write:
        lock.check()


@pytest.mark.parametrize("side", ["read", "write"])
def test_an_error_inside_frees_the_lock(side: str) -> None:
    lock = ReadWriteLock()
    with pytest.raises(LookupError), getattr(lock, side)(), getattr(lock, side):
        raise LookupError
    lock.check()

    def write() -> bool:
        with lock.write:
            return True

    assert in_thread(write) is True


@pytest.mark.parametrize(("held", "wanted"), EXCLUSIVE)
def test_a_late_waiter_leaves_no_trace(held: str, wanted: str) -> None:
    lock = ReadWriteLock()
    with getattr(lock, held):
        assert in_thread(lambda: getattr(lock, wanted).acquire(timeout=0)) is False
        assert in_thread(lambda: getattr(lock, wanted).acquire(timeout=-3)) is False
        assert lock.waiting == (0, 0)
        lock.check()
    assert getattr(lock, wanted).acquire(timeout=0) is True
    getattr(lock, wanted).release()
    lock.check()


def test_readers_held_up_by_a_writer_that_gives_up_go_on() -> None:
    lock, log = ReadWriteLock(), []
    with lock.read:
        gave_up: list[bool] = []
        writer = threading.Thread(
            target=lambda: gave_up.append(lock.write.acquire(timeout=0.2)), daemon=True
        )
        writer.start()
        until(lambda: lock.waiting == (0, 1))
        reader = Actor(lock.read, "reader", log)
        reader.finish()
        writer.join(PATIENCE)
        assert gave_up == [False]
        lock.check()


@pytest.mark.skipif(os.name != "posix", reason="signals to oneself")
@pytest.mark.parametrize("admitted_meanwhile", [False, True])
@pytest.mark.parametrize("side", ["read", "write"])
def test_an_interrupted_waiter_leaves_no_trace(side: str, admitted_meanwhile: bool) -> None:
    lock, log = ReadWriteLock(), []
    holder = Actor(lock.write, "holder", log)
    holder.must_be_in()

    def interrupt(number: int, frame: object) -> None:  # runs in the waiting thread
        if admitted_meanwhile:
            holder.finish()
        raise KeyboardInterrupt

    def send_signal_once_somebody_waits() -> None:
        until(lambda: sum(lock.waiting) == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send_signal_once_somebody_waits, daemon=True)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            getattr(lock, side).acquire()
    finally:
        sender.join(PATIENCE)
        signal.signal(signal.SIGUSR1, before)
    assert lock.waiting == (0, 0)
    lock.check()
    holder.finish()
    with lock.write:
        lock.check()


def test_a_reader_that_leaves_while_a_writer_lines_up_lets_it_in() -> None:
    lock, log = ReadWriteLock(), []
    reader = Actor(lock.read, "reader", log)
    reader.must_be_in()

    class SlowQueue(deque[Any]):
        """The reader leaves, as far as it can, just before the writer stands in the queue."""

        def append(self, waiter: Any) -> None:
            reader.leave_soon()
            until(lambda: not lock._readers)
            reader.thread.join(0.1)  # only a wrong order lets it get further than that
            super().append(waiter)

    lock._waiting_writers = lock.write._queue = SlowQueue()
    writer = Actor(lock.write, "writer", log)
    writer.finish()
    reader.finish()
    assert log == ["reader", "writer"]


def test_many_threads_at_random_keep_readers_and_writers_apart() -> None:
    lock = ReadWriteLock()
    inside = {"readers": 0, "writers": 0}
    counting = threading.Lock()
    wrong: list[dict[str, int]] = []

    def visit(side: ReadSide | WriteSide, who: str, again: bool) -> None:
        with side:
            with counting:
                inside[who] += 1
                if inside["writers"] > (inside["readers"] == 0):
                    wrong.append(dict(inside))
            if again:
                with lock.read:
                    pass
            with counting:
                inside[who] -= 1

    def work(seed: int) -> int:
        dice = random.Random(seed)
        for _ in range(400):
            again = dice.random() < 0.3
            if dice.random() < 0.3:
                visit(lock.write, "writers", again)
            elif dice.random() < 0.1:
                if lock.write.acquire(timeout=0):
                    lock.write.release()
            else:
                visit(lock.read, "readers", again)
        return 400

    done: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: done.append(work(n)), daemon=True) for n in range(6)
    ]
    with quick_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert done == [400] * 6
    assert wrong == []
    assert lock.waiting == (0, 0)
    lock.check()


def test_a_lock_shows_who_holds_it() -> None:
    lock = ReadWriteLock()
    with lock.write:
        assert f"writer={threading.get_ident()}" in repr(lock)
    with lock.read:
        assert repr(lock) == "<ReadWriteLock readers=1 waiting=(0, 0)>"


def test_a_yielding_lock_lets_one_in_at_a_time_and_its_holder_in_again() -> None:
    lock, inside, most, rounds = YieldingLock(), [0], [0], [0]

    def work() -> None:
        for _ in range(300):
            with lock, lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                rounds[0] += 1
                inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()
    assert (most[0], rounds[0]) == (1, 2400)


class ImpatientLock(YieldingLock):
    TRIES = 0  # sleeps at once, as one does that has let the others run in vain


def test_whoever_sleeps_at_a_yielding_lock_is_woken() -> None:
    lock, started, entered = ImpatientLock(), threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        with lock:
            entered.set()

    waiter = threading.Thread(target=wait)
    with lock:
        waiter.start()
        started.wait()
        assert not entered.is_set()
    waiter.join()
    assert entered.is_set()


def test_an_error_inside_leaves_a_yielding_lock_free() -> None:
    lock = YieldingLock()
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: lock.__enter__()).result(timeout=10) is None
