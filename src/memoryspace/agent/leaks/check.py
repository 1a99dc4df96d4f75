"""``LeakCheck`` finds what a block of code leaves behind; ``leaks_of`` does so for a function.

report = await leaks_of(a_conversation, times=100)
report.check()
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from .census import STATEFUL, Census, Kinds, count, full_name, living
from .keepers import keepers_of
from .report import Growth, Kept, LeakReport

_TURNS = 20  # iterations of the event loop, for tasks that are about to end
_EXPLAINED = 2  # objects per class: each search visits every object in the process
_PLACES = 5
_ROUNDS = 5


class LeakCheck:
    """Counts objects before and after a block and reports the difference.

    It counts objects of ``kinds``, the hooks, subscribers and queues of surviving agents, tasks,
    threads and, where the system provides them, open files. Objects that the block's own variables
    still hold count as kept: do the work in a function.

    Args:
        kinds: The classes to count; by default everything with a state, such as agents and
            memories.
        trace_memory: Whether to measure the memory in use at each ``round()``. Tracing slows
            everything down.
        tolerance: How many bytes the memory may grow from one round to the next.

    Examples:
        >>> async def check(work: Callable[[], Awaitable[None]]) -> None:
        ...     async with LeakCheck() as leaks:
        ...         await work()
        ...     leaks.report().check()
    """

    def __init__(
        self,
        *,
        kinds: Kinds = STATEFUL,
        trace_memory: bool = False,
        tolerance: int = 0,
    ) -> None:
        self._kinds = kinds
        self._trace = _Trace() if trace_memory else None
        self._tolerance = tolerance
        self._before: Census | None = None
        self._report: LeakReport | None = None

    async def __aenter__(self) -> Self:
        gc.collect()
        self._before = count(self._kinds)
        if self._trace is not None:
            self._trace.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._before is not None  # entered
        growth = Growth() if self._trace is None else self._trace.stop()
        await _settle(self._before)
        self._report = _compared(self._before, self._kinds, growth, self._tolerance)

    def round(self) -> None:
        """Record the memory in use at the end of one of several equal rounds.

        Garbage that awaits collection does not count, unless the collector is switched off.
        """
        if self._trace is not None:
            if gc.isenabled():
                gc.collect()
            self._trace.note()

    def report(self) -> LeakReport:
        """Return what the block left behind. Call it after the block."""
        if self._report is None:
            raise RuntimeError("a LeakCheck has a report only after its block")
        return self._report


async def leaks_of(
    make_and_use: Callable[[], Awaitable[Any]],
    *,
    times: int = 100,
    kinds: Kinds = STATEFUL,
    tolerance: int = 128,
) -> LeakReport:
    """Call a coroutine function many times and report what it leaves behind.

    Args:
        make_and_use: The function. It is called once before the check, so that objects that are
            created only once do not count.
        times: How often to call it.
        kinds: The classes to count.
        tolerance: How many bytes the memory may grow per call.

    Returns:
        The report; ``report.check()`` raises ``LeakFound`` if anything was left behind.
    """
    calls = max(1, times // _ROUNDS)
    await make_and_use()
    check = LeakCheck(kinds=kinds, trace_memory=True, tolerance=tolerance * calls)
    async with check:
        for number in range(1, times + 1):
            await make_and_use()
            if number % calls == 0:
                check.round()
    return check.report()


class _Trace:
    """The memory in use after each round."""

    def __init__(self) -> None:
        self._was_on = False
        self._sizes = array("q")  # an array: Python ints would be counted as well
        self._first: tracemalloc.Snapshot | None = None

    def start(self) -> None:
        self._was_on = tracemalloc.is_tracing()
        if not self._was_on:
            tracemalloc.start()

    def note(self) -> None:
        if self._first is None:
            self._first = tracemalloc.take_snapshot()
        self._sizes.append(tracemalloc.get_traced_memory()[0] - sys.getsizeof(self._sizes))

    def stop(self) -> Growth:
        places = [] if self._first is None else _growing(self._first, tracemalloc.take_snapshot())
        if not self._was_on:
            tracemalloc.stop()
        return Growth(tuple(self._sizes), tuple(places))


def _growing(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot) -> list[str]:
    ours = [tracemalloc.Filter(False, each) for each in (__file__, tracemalloc.__file__)]
    found = after.filter_traces(ours).compare_to(before.filter_traces(ours), "lineno")
    largest = sorted(found, key=lambda each: -each.size_diff)[:_PLACES]
    return [
        f"{each.traceback[0].filename}:{each.traceback[0].lineno}: {each.size_diff:+,} bytes"
        for each in largest
        if each.size_diff > 0
    ]


async def _settle(before: Census) -> None:
    """Let cancelled tasks and closing generators end."""
    for _ in range(_TURNS):
        if not _new_tasks(before):
            break
        await asyncio.sleep(0)


def _new_tasks(before: Census) -> list[asyncio.Task[Any]]:
    here = asyncio.current_task()
    return [task for task in asyncio.all_tasks() - before.tasks if task is not here]


def _compared(before: Census, kinds: Kinds, growth: Growth, tolerance: int) -> LeakReport:
    uncollected = Counter(full_name(type(each)) for each in _new_things(before, kinds))
    gc.collect()
    kept = _new_things(before, kinds)
    left = Counter(full_name(type(each)) for each in kept)
    cycles = uncollected - left
    now = count(kinds)
    return LeakReport(
        tuple(Kept(kind, number, _explained(kept, kind)) for kind, number in left.items()),
        tuple(Kept(kind, number) for kind, number in cycles.items()),
        tuple(sorted((now.ties - before.ties).elements())),
        tuple(sorted(_task_name(task) for task in _new_tasks(before))),
        tuple(sorted(thread.name for thread in now.threads - before.threads)),
        tuple(sorted((now.files - before.files).elements())),
        growth,
        tolerance,
    )


def _new_things(before: Census, kinds: Kinds) -> list[Any]:
    """Return the objects that were not counted before."""
    return [each for each in living(kinds) if not before.knew(each)]


def _explained(kept: list[Any], kind: str) -> tuple[str, ...]:
    some = [each for each in kept if full_name(type(each)) == kind][:_EXPLAINED]
    keepers: dict[str, None] = {}
    for each in some:
        keepers.update(dict.fromkeys(keepers_of(each, [kept, some])))
    return tuple(keepers)


def _task_name(task: asyncio.Task[Any]) -> str:
    work = task.get_coro()
    return f"{task.get_name()} running {getattr(work, '__qualname__', type(work).__name__)}"
