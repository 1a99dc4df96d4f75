"""Owners are real processes: a second one, a killed one, a forked one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryspace.errors import StoreError, StoreUnavailable
from memoryspace.kernel.durable.ownership import FolderInUse, FolderLock, Owner
from memoryspace.testing import ManualClock

HOLDER = """
import sys
from memoryspace.kernel.durable.ownership import FolderLock
lock = FolderLock(sys.argv[1], clock=lambda: 1_700_000_000.0)
print("owned", flush=True)
sys.stdin.read()
"""

OPENER = """
import sys
from memoryspace.kernel.durable.ownership import FolderInUse, FolderLock
try:
    FolderLock(sys.argv[1])
    print("owned")
except FolderInUse as error:
    print(error)
"""

# A parent that dies while its forked child lives on, holding nothing.
LONELY_CHILD = """
import os, sys
from memoryspace.kernel.durable.ownership import FolderLock
lock = FolderLock(sys.argv[1])
if os.fork() == 0:
    os.write(1, b"child owned=%d\\n" % lock.owned)
    lock.close()
    sys.stdin.read()
    os._exit(0)
sys.stdout.close()
os.kill(os.getpid(), 9)
"""

posix_only = pytest.mark.skipif(os.name != "posix", reason="forks and kills")


@contextmanager
def running(code: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process that says one line and then waits to be told to go."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.communicate()


def open_elsewhere(folder: Path) -> str:
    command = [sys.executable, "-c", OPENER, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_owner_is_written_down(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "new" / "folder", clock=ManualClock(12.5)) as lock:
        assert lock.owned
        lock.check()
        note = json.loads(lock.path.read_text())
        assert note["pid"] == os.getpid()
        assert note["host"] == socket.gethostname()
        assert note["started"] == 12.5
        assert note["program"]
        assert lock.path == tmp_path / "new" / "folder" / "LOCK"


def test_another_process_is_refused_and_told_who_owns_it(tmp_path: Path) -> None:
    with running(HOLDER, tmp_path) as (holder, said):
        assert said == "owned"
        with pytest.raises(FolderInUse, match="close it there") as caught:
            FolderLock(tmp_path)
        error = caught.value
        assert isinstance(error, StoreError)
        assert error.owner == Owner(holder.pid, socket.gethostname(), 1_700_000_000.0, "-c")
        for part in (str(tmp_path), str(holder.pid), socket.gethostname(), "2023-11-14 22:13:20"):
            assert part in str(error)
    FolderLock(tmp_path).close()


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock:
        with pytest.raises(FolderInUse, match=f"process {os.getpid()}"):
            FolderLock(tmp_path)
        assert lock.owned
        assert f"process {os.getpid()}" in open_elsewhere(tmp_path)


def test_two_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "a") as a, FolderLock(tmp_path / "b") as b:
        assert a.owned
        assert b.owned


def test_closing_lets_the_next_one_in(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.close()
    lock.close()
    assert not lock.owned
    assert open_elsewhere(tmp_path) == "owned"
    with pytest.raises(StoreError, match="open it again"):
        lock.check()
    with FolderLock(tmp_path) as again:
        assert json.loads(again.path.read_text())["pid"] == os.getpid()


@posix_only
def test_a_killed_owner_owns_nothing(tmp_path: Path) -> None:
    with running(HOLDER, tmp_path) as (holder, said):
        assert said == "owned"
        holder.kill()
        holder.wait()
        with FolderLock(tmp_path) as lock:
            assert json.loads(lock.path.read_text())["pid"] == os.getpid()


@posix_only
def test_a_forked_child_does_not_own_and_does_not_release(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock:
        child = os.fork()
        if child == 0:
            owned = lock.owned
            lock.close()
            os._exit(1 if owned else 0)
        assert os.waitpid(child, 0)[1] == 0
        assert lock.owned
        lock.check()
        assert "in use" in open_elsewhere(tmp_path)


@posix_only
def test_a_child_that_outlives_its_parent_does_not_keep_the_folder(tmp_path: Path) -> None:
    with running(LONELY_CHILD, tmp_path) as (parent, said):
        assert said == "child owned=0"
        parent.wait()
        assert open_elsewhere(tmp_path) == "owned"


def test_a_started_program_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        lock.close()
        assert open_elsewhere(tmp_path) == "owned"
        program.communicate(b"\n")


@pytest.mark.parametrize("old", ["", "not json", '{"pid": 1}', "[]", "\0" * 9000, "x" * 9000])
def test_what_an_old_file_says_is_harmless(old: str, tmp_path: Path) -> None:
    (tmp_path / "LOCK").write_text(old)
    with FolderLock(tmp_path) as lock:
        assert json.loads(lock.path.read_text())["pid"] == os.getpid()


@posix_only
@pytest.mark.parametrize(
    "note",
    [b"", b"\xff\xfe", b"{", b'{"pid": 1, "host": "h", "started": 1e300, "program": "p"}'],
)
def test_an_owner_that_cannot_be_read_is_just_another_process(note: bytes, tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock:
        lock.path.write_bytes(note)
        with pytest.raises(FolderInUse, match="in use by another process") as caught:
            FolderLock(tmp_path)
        assert caught.value.owner is None


@posix_only
def test_a_removed_lock_file_is_noticed(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock:
        lock.path.unlink()
        with pytest.raises(StoreError, match="removed or replaced"):
            lock.check()
        lock.path.touch()
        with pytest.raises(StoreError, match="removed or replaced"):
            lock.check()


@posix_only
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    (tmp_path / "LOCK").symlink_to(precious)
    with pytest.raises(StoreUnavailable, match="cannot be locked"):
        FolderLock(tmp_path)
    assert precious.read_text() == "data"


def test_a_place_that_cannot_be_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="choose a folder"):
        FolderLock(tmp_path / "file")


def test_the_lock_shows_its_state(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock:
        assert repr(lock) == f"<FolderLock {tmp_path} (owned)>"
    assert repr(lock) == f"<FolderLock {tmp_path} (not owned)>"
