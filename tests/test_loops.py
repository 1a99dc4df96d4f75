"""What belongs to an event loop is the same each time that loop asks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from memoryspace.loops import PerLoop

PATIENCE = 0.2  # seconds that the first waits for the second, which now has to wait for the first


class Held:
    """Stands for a loop; whoever first looks whether it is closed is held up until let go."""

    def __init__(self) -> None:
        self.is_looked_at, self.go_on = threading.Event(), threading.Event()

    def is_closed(self) -> bool:
        if not self.is_looked_at.is_set():
            self.is_looked_at.set()
            self.go_on.wait(PATIENCE)
        return False


def test_a_loop_that_asks_while_another_does_keeps_its_own() -> None:
    things, held = PerLoop(object), Held()
    in_disguise: Any = held
    things._by_loop[in_disguise] = object()
    asked: list[bool] = []

    async def first() -> None:
        things.get()

    async def second() -> None:
        thing = things.get()
        held.go_on.set()
        one.join()
        asked.append(things.get() is thing)

    one = threading.Thread(target=asyncio.run, args=[first()])
    one.start()
    held.is_looked_at.wait()
    asyncio.run(second())
    assert asked == [True]
