"""Reading the terminal without stopping the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress

from ..loops import PerLoop


class Terminal:
    """Reads lines in a thread of its own, one after another in the order they were asked for.

    A thread that waits for a line cannot be stopped. If nobody wants its line any more, because the
    asker was cancelled, it goes on and its line answers the next question; the program may end all
    the same.
    """

    def __init__(self) -> None:
        self._turns = PerLoop(asyncio.Lock)
        self._reading: Future[str] | None = None

    async def read(self, prompt: str) -> str:
        """Show the prompt and return the line. ``EOFError`` when there are no more."""
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
    """Begin to read in a thread that does not keep the program from ending."""
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
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            loop.call_soon_threadsafe(woken.set)

    reading.add_done_callback(wake)
    await woken.wait()
