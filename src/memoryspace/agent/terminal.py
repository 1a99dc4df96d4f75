"""Terminal input that does not block the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress

from ..loops import PerLoop


class Terminal:
    """Reads lines in a separate thread, in the order of the requests.

    A thread that waits for input cannot be stopped. If its caller is cancelled, the thread keeps
    waiting and its line goes to the next request. It does not keep the program from exiting.
    """

    def __init__(self) -> None:
        self._turns = PerLoop(asyncio.Lock)
        self._reading: Future[str] | None = None

    async def read(self, prompt: str) -> str:
        """Show the prompt and return the next line; raise ``EOFError`` at the end of the input."""
        async with self._turns.get():
            if self._reading is None:
                self._reading = _started(prompt)
            else:
                sys.stdout.write(prompt)
                sys.stdout.flush()
            reading = self._reading
            await _done(reading)
            self._reading = None
            return reading.result()


TERMINAL = Terminal()


def _started(prompt: str) -> Future[str]:
    """Start to read in a daemon thread."""
    reading: Future[str] = Future()

    def read() -> None:
        try:
            reading.set_result(input(prompt))
        except BaseException as error:
            reading.set_exception(error)

    threading.Thread(target=read, name="memoryspace-terminal", daemon=True).start()
    return reading


async def _done(reading: Future[str]) -> None:
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake(_: Future[str]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nothing waits for it
            loop.call_soon_threadsafe(woken.set)

    reading.add_done_callback(wake)
    await woken.wait()
