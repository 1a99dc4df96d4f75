"""Retries with exponential backoff, for every call that may fail now and succeed later.

A ``Backoff`` says how long to pause and how often to try. ``Attempts`` counts the attempts and
pauses between them; the loop body decides what is worth another one::

    tries = Attempts(Backoff(first=0.05, longest=2.0, attempts=8))
    async for attempt in tries:
        try:
            return await send()
        except Busy:
            if tries.is_last:
                raise

Synchronous callers take the pauses from ``Backoff.pause`` and wait themselves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from .errors import InvalidInput

_MOST_DOUBLINGS = 64  # more would overflow a float, and any limit is reached long before


@dataclass(frozen=True)
class Backoff:
    """A schedule of pauses that double from ``first`` up to ``longest`` seconds.

    Args:
        first: The pause after the first failed attempt, in seconds.
        longest: The upper limit of every pause, in seconds.
        attempts: How many attempts to make, the first included; ``None`` for no limit.
        jitter: Whether to draw each pause between 0 and its full length, so that callers that
            failed together do not return together.

    Raises:
        InvalidInput: If a number is out of range.
    """

    first: float
    longest: float
    attempts: int | None = None
    jitter: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.longest:
            raise InvalidInput(
                f"first must be from 0 to longest, got {self.first} and {self.longest}"
            )
        if self.attempts is not None and self.attempts < 1:
            raise InvalidInput(f"attempts must be 1 or more, got {self.attempts}")

    def pause(
        self,
        attempt: int,
        *,
        asked: float | None = None,
        draw: Callable[[], float] = random.random,
    ) -> float:
        """Return the seconds to wait after a failed attempt.

        Args:
            attempt: The number of the attempt that failed, from 1.
            asked: What the server asked for, which replaces the schedule but not the limit.
            draw: Source of randomness, from 0 to 1.
        """
        if asked is not None:
            return min(asked, self.longest)
        full = min(self.first * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), self.longest)
        return full * draw() if self.jitter else full


class Attempts:
    """Numbers the attempts from 1 and pauses before each one but the first.

    Iterate over it once with ``async for``. The loop ends when the attempts are used up.

    Args:
        backoff: How long to pause and when to stop.
        draw: Source of randomness, from 0 to 1.
        sleep: What waits.
    """

    def __init__(
        self,
        backoff: Backoff,
        *,
        draw: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._backoff = backoff
        self._draw, self._sleep = draw, sleep
        self._made = 0

    @property
    def is_last(self) -> bool:
        """Whether the attempt under way is the last: a failure now is final."""
        limit = self._backoff.attempts
        return limit is not None and self._made >= limit

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        if self._made:
            await self._pause()
        self._made += 1
        return self._made

    async def _pause(self) -> None:
        if self.is_last:
            raise StopAsyncIteration
        await self._sleep(self._backoff.pause(self._made, draw=self._draw))
