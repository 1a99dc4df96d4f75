"""Retries: how long the pauses are, when they end, and what a loop learns on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from memoryspace.errors import InvalidInput
from memoryspace.retrying import Attempts, Backoff

STEADY = Backoff(first=0.5, longest=3.0, attempts=5, jitter=False)


class Time:
    """Notes the pauses instead of waiting."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def attempts(self, backoff: Backoff, draws: Iterator[float] | None = None) -> Attempts:
        draw = (lambda: 1.0) if draws is None else draws.__next__
        return Attempts(backoff, draw=draw, sleep=self.sleep)


def test_pauses_double_up_to_the_longest() -> None:
    assert [STEADY.pause(attempt) for attempt in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_pause_never_overflows() -> None:
    assert STEADY.pause(10_000) == 3.0


@pytest.mark.parametrize(("drawn", "pause"), [(0.0, 0.0), (0.25, 0.5), (1.0, 2.0)])
def test_jitter_draws_between_nothing_and_the_full_pause(drawn: float, pause: float) -> None:
    assert Backoff(first=1.0, longest=9.0).pause(2, draw=lambda: drawn) == pause


def test_what_a_server_asks_for_replaces_the_schedule_up_to_the_limit() -> None:
    assert STEADY.pause(1, asked=2.5) == 2.5
    assert STEADY.pause(1, asked=1e9) == 3.0
    assert Backoff(first=1.0, longest=9.0).pause(1, asked=2.0, draw=lambda: 0.0) == 2.0


@pytest.mark.parametrize(
    "options",
    [
        {"first": -1.0, "longest": 1.0},
        {"first": 2.0, "longest": 1.0},
        {"first": float("nan"), "longest": 1.0},
        {"first": 1.0, "longest": 1.0, "attempts": 0},
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        Backoff(**options)  # type: ignore[arg-type]  # what is wrong is the point


async def test_attempts_are_numbered_and_end_at_the_limit() -> None:
    time = Time()
    assert [number async for number in time.attempts(STEADY)] == [1, 2, 3, 4, 5]
    assert time.pauses == [0.5, 1.0, 2.0, 3.0]


async def test_a_loop_that_ends_early_pauses_no_more() -> None:
    time = Time()
    async for number in time.attempts(STEADY):
        if number == 2:
            break
    assert time.pauses == [0.5]


async def test_a_single_attempt_needs_no_pause() -> None:
    time = Time()
    tries = time.attempts(Backoff(first=1.0, longest=1.0, attempts=1))
    assert [tries.is_last async for _ in tries] == [True]
    assert time.pauses == []


async def test_the_last_attempt_is_known_to_be_the_last() -> None:
    tries = Time().attempts(STEADY)
    assert [tries.is_last async for _ in tries] == [False, False, False, False, True]


async def test_without_a_limit_a_loop_goes_on_until_it_breaks() -> None:
    time = Time()
    async for number in time.attempts(Backoff(first=0.0, longest=0.0)):
        if number == 500:
            break
    assert len(time.pauses) == 499


async def test_each_pause_is_drawn_anew() -> None:
    time = Time()
    tries = time.attempts(Backoff(first=1.0, longest=8.0, attempts=4), draws=iter([0.5, 0.25, 1.0]))
    assert [number async for number in tries] == [1, 2, 3, 4]
    assert time.pauses == [0.5, 0.5, 4.0]


async def test_a_cancelled_pause_ends_the_loop() -> None:
    tries = Attempts(Backoff(first=1e6, longest=1e6, jitter=False))
    assert await anext(tries) == 1
    task = asyncio.ensure_future(anext(tries))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_by_default_it_really_waits_on_the_running_loop() -> None:
    tries = Attempts(Backoff(first=0.0, longest=0.0, attempts=3))
    assert [number async for number in tries] == [1, 2, 3]
