"""``memoryspace serve``: a real process, started, stopped, and killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memoryspace import Memory
from memoryspace.errors import InvalidInput
from memoryspace.server import ServerConfig
from memoryspace.server.command import serve

from doors import WORDS

ENVIRONMENT = {**os.environ, "MEMORYSPACE_EMBEDDER": "none"}


class Served:
    def __init__(self, place: Path | str, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "memoryspace", "serve", "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, "--address", str(place), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdout is not None
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C" in line:
                break
        found = re.search(r"http://[\d.:]+", self.said)
        assert found, self.said
        self.address = found[0]

    @property
    def key(self) -> str:
        found = re.search(r"^  (ms_\S+)$", self.said, re.M)
        assert found
        return found[1]

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def served(place: Path | str, *options: str, port: int = 0) -> Iterator[Served]:
    running = Served(place, *options, port=port)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()
        assert running.process.stdout is not None
        running.process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_streams_and_itself_when_told_and_shows_its_key_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    with served(tmp_path / "s") as first:
        key = first.key
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{first.address}/v1/events"
        with httpx.stream("GET", url, headers=headers, timeout=60) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            assert first.end(number) == 0
            assert [line for line in lines if line] == []
    with served(tmp_path / "s") as again:
        assert not re.search(r"ms_[0-9a-f]{16}", again.said)
        with Memory(again.address, api_key=key, user="ann") as memory:
            assert memory.health()


def test_nothing_acknowledged_is_lost_when_it_is_killed(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    enough = threading.Event()
    with served(tmp_path / "s") as running:
        key = running.key

        def write(writer: int) -> None:
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=running.address, headers=headers, timeout=60) as client:
                for number in range(10_000):
                    text = f"writer {writer} says {number}"
                    body = {"messages": {"id": f"{writer}-{number}", "content": text}}
                    try:
                        answer = client.post("/v1/memories?user=ann", json=body)
                    except httpx.TransportError:
                        return
                    assert answer.status_code == 201
                    acknowledged.append(f"{writer}-{number}")
                    if len(acknowledged) > 60:
                        enough.set()

        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for writer in writers:
            writer.start()
        assert enough.wait(120)
        running.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
    with served(tmp_path / "s") as again, Memory(again.address, api_key=key, user="ann") as memory:
        stored = [each.id for each in memory.list(limit=1000)]
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored)) <= len(acknowledged) + 4


def test_a_folder_is_not_served_by_several_processes(tmp_path: Path) -> None:
    from msgspec.structs import replace as change

    config = change(WORDS, address=str(tmp_path))
    with pytest.raises(InvalidInput, match="by one process"):
        serve(config, ServerConfig(workers=2), say=lambda _: None)
    with pytest.raises(InvalidInput, match="is a server's"):
        serve(change(WORDS, address="http://x"), ServerConfig(), say=lambda _: None)


def test_several_processes_serve_one_database(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = f"sqlite:///{tmp_path}/memories.db"
    with served(place, "--workers", "2", port=port) as running:
        with Memory(running.address, api_key=running.key, user="ann") as memory:
            memory.add("I live in Rome.")
            found = {memory.search("Where do I live?").texts for _ in range(8)}
        assert found == {("I live in Rome.",)}
        assert running.end(signal.SIGTERM) == 0
