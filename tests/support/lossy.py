"""A proxy before Redis that delivers a command, and loses the reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

CHANGES = (b"EVALSHA", b"EVAL", b"SET")  # a script the server does not know is sent as a whole


async def _nothing() -> None:
    pass


class Lossy:
    """Delivers all commands; loses the replies to those it is told to.

    ``delivered`` are the names of scripts and changes that reached the server. ``meanwhile`` is
    awaited between a command and its loss: what others do in that moment.
    """

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or "127.0.0.1", address.port or 6379)
        self.port = 0
        self._unlucky: set[int] = set()
        self.delivered: list[bytes] = []
        self.meanwhile: Callable[[], Awaitable[None]] = _nothing

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def lose(self, count: int = 1, *, after: int = 0) -> None:
        """Lose so many replies from now on, after so many that arrive."""
        first = len(self.delivered) + after
        self._unlucky = set(range(first, first + count))

    @property
    def is_losing(self) -> bool:
        return bool(self._unlucky)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._upstream)
        asked: list[bytes] = []  # since the last reply
        ends = (
            self._pass_commands(reader, server_writer, asked),
            self._pass_replies(server_reader, writer, asked),
        )
        tasks = [asyncio.create_task(each) for each in ends]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            writer.close()
            server_writer.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_commands(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[bytes]
    ) -> None:
        while data := await reader.read(1 << 16):
            asked.append(data)
            writer.write(data)
            await writer.drain()

    async def _pass_replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[bytes]
    ) -> None:
        while data := await reader.read(1 << 16):
            name = _command_in(b"".join(asked))
            asked.clear()
            if name in CHANGES and not data.startswith(b"-NOSCRIPT"):
                number = len(self.delivered)
                self.delivered.append(name)
                if number in self._unlucky:
                    self._unlucky.remove(number)
                    await self.meanwhile()
                    return
            writer.write(data)
            await writer.drain()


def _command_in(sent: bytes) -> bytes:
    """Return the name of a command as the protocol writes it: ``*3\\r\\n$3\\r\\nSET\\r\\n…``."""
    parts = sent.split(b"\r\n", 3)
    return parts[2] if len(parts) > 2 else b""


@asynccontextmanager
async def lossy(upstream: str) -> AsyncIterator[Lossy]:
    proxy = Lossy(upstream)
    serving: list[asyncio.Task[None]] = []

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(proxy.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    yield proxy
    server.close()
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
