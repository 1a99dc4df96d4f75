"""``LeakCheck``: a block of code, and what it leaves behind. ``leaks_of``: the same of a function.

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

_TURNS = 20  # of the event loop, for what is ending by itself
_EXPLAINED = 2  # objects of each class: every look goes through all objects there are
_PLACES = 5
_ROUNDS = 5


class LeakCheck:
    """Counts before and after a block, and tells the difference.

    Counted are objects of ``kinds`` (by default agents, memories and all else with a state), hooks,
    subscribers and queues of agents that live on, tasks, threads and, where the system tells, open
    files. What the block's own variables still hold is counted as kept: let a function do the work.
    With ``trace_memory`` the memory in use is noted at each ``round()``, and may grow from one to
    the next by ``tolerance`` bytes; tracing makes all slower.
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
        await _quiet(self._before)
        self._report = _compared(self._before, self._kinds, growth, self._tolerance)

    def round(self) -> None:
        """Note how much memory is in use, at the end of one of several equal rounds.

        What only waits for the collector does not count, unless that is switched off.
        """
        if self._trace is not None:
            if gc.isenabled():
                gc.collect()
            self._trace.note()

    def report(self) -> LeakReport:
        """Return what the block left behind, once it has ended."""
        if self._report is None:
            raise RuntimeError("a LeakCheck has a report after its block")
        return self._report


async def leaks_of(
    make_and_use: Callable[[], Awaitable[Any]],
    *,
    times: int = 100,
    kinds: Kinds = STATEFUL,
    tolerance: int = 128,
) -> LeakReport:
    """Call a coroutine function many times and report what it leaves behind.

    It is called once before, so that what is made only once does not count. Memory may grow by
    ``tolerance`` bytes with each call.
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
    """The memory in use, round by round."""

    def __init__(self) -> None:
        self._was_on = False
        self._sizes = array("q")  # numbers of its own would be counted with the rest
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


async def _quiet(before: Census) -> None:
    """Let what is ending by itself end: cancelled tasks, generators that are closed."""
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
    """Return the things that were not there before."""
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
