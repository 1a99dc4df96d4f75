"""The ``memoryspace`` command in a test: in this process, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO
from unittest.mock import patch

from memoryspace.cli import main


class Done(NamedTuple):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON documents on standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def rows(self) -> list[list[str]]:
        """The rows on standard output."""
        return [line.split("\t") for line in self.out.splitlines()]


def run(*arguments: str, stdin: str | bytes = b"") -> Done:
    """Run the command in this process, without a terminal."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [_stream(data), _stream(), _stream()]
    with patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]):
        code = _code_of(arguments)
    out, err = (_written(stream) for stream in streams[1:])
    return Done(code, out, err)


def on_terminal(*arguments: str, typed: str = "", columns: int = 100) -> Done:
    """Run the command in this process, on a terminal; what it shows is in ``out``."""
    with _terminal() as (typing, streams, shown):
        os.write(typing, typed.encode())
        size = {"COLUMNS": str(columns), "TERM": "xterm"}
        with patch.dict(os.environ, size), patch.multiple(sys, **streams):
            code = _code_of(arguments)
    return Done(code, b"".join(shown).decode().replace("\r\n", "\n"), "")


def program(*arguments: str, **options: Any) -> subprocess.Popen[Any]:
    """Start the command in a process of its own, connected by pipes of text."""
    piped = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "memoryspace", *arguments]
    return subprocess.Popen(command, **{"text": True, **piped, **options})


@contextmanager
def _terminal() -> Iterator[tuple[int, dict[str, TextIO], list[bytes]]]:
    """Yield our side of a terminal, its three streams, and what is shown on it."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reading = threading.Thread(target=_read_all, args=(ours, shown))
    reading.start()
    with (
        open(os.dup(theirs), encoding="utf-8") as stdin,
        open(os.dup(theirs), "w", encoding="utf-8") as stdout,
        open(theirs, "w", encoding="utf-8") as stderr,
    ):
        yield ours, {"stdin": stdin, "stdout": stdout, "stderr": stderr}, shown
    reading.join()
    os.close(ours)


def _read_all(ours: int, shown: list[bytes]) -> None:
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            return
        if not data:
            return
        shown.append(data)


def _code_of(arguments: tuple[str, ...]) -> int:
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    assert isinstance(code, int), code
    return int(code)


def _stream(data: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    held = stream.buffer
    assert isinstance(held, io.BytesIO)
    return held.getvalue().decode()
