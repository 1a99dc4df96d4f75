"""``MemoryProfiler``: counts, samples and logs the events of a memory.

It keeps counts, the latest samples of every number, and a histogram of pauses. With an output
folder it also writes every event as a line of JSON. An event costs one append; counting and
encoding are done in batches. A failing disk costs lines, which ``lost`` counts, never the memory.
"""

from __future__ import annotations

import csv
import io
import logging
import os
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import ceil, isfinite
from pathlib import Path
from sys import float_info
from typing import Any

from ..errors import InvalidInput
from ..events import Event, EventStream
from ..files import safe_name, write_atomic
from ..lifecycle import ClosingNow
from .event_log import EventLog

logger = logging.getLogger(__name__)

BATCH = 256  # events that are counted and written together; a fraction of a millisecond
SAMPLES = 4096  # latest values kept of each number
PAUSES = frozenset({"pause", "pause_duration"})  # seconds; kept in a histogram as well

_MICROSECOND = 1e-6
_BAR = 40  # characters of the longest bar of a chart
_LARGEST = float_info.max
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "＝",
    "＋",
    "－",
    "＠",
    "|",
    "%",
)  # a spreadsheet would compute these
_COLUMNS = ("event", "field", "count", "mean", "p50", "p95", "p99", "max")


class MemoryProfiler(ClosingNow):
    """A listener for an ``EventStream``. Safe to use from several threads.

    Args:
        run_id: A name for this run.
        output_dir: Append events to ``<run_id>.jsonl`` in this folder (default: write nothing).
        write_immediately: Write each event before the next one happens. Slow; for crash hunting.

    Raises:
        InvalidInput: ``run_id`` is empty.
        StoreUnavailable: The file cannot be opened.

    Example::

        with MemoryProfiler("run-1", "profiles") as profiler:
            profiler.attach(space.events)
    """

    def __init__(
        self,
        run_id: str = "run",
        output_dir: str | os.PathLike[str] | None = None,
        write_immediately: bool = False,
    ) -> None:
        if not isinstance(run_id, str):
            raise TypeError(f"run_id must be a str, got {type(run_id).__name__}")
        if not run_id:
            raise InvalidInput("run_id is empty; omit it or pass a name")
        self.run_id = run_id
        self.path = None if output_dir is None else Path(output_dir) / f"{safe_name(run_id)}.jsonl"
        self.lost = 0  # events that could not be written
        self._log = None if self.path is None else EventLog(self.path)
        self._queue: deque[Event] = deque()
        self._batch = 1 if write_immediately else BATCH
        # Guards everything below. Re-entrant: a value's __str__ or a log line may emit an event.
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._series: dict[str, dict[str, _Series]] = {}
        self._span: tuple[float, float] | None = None
        self._detach: list[Callable[[], None]] = []

    def __call__(self, event: Event) -> None:
        """Take an event."""
        queue = self._queue
        queue.append(event)
        if len(queue) >= self._batch:
            self.flush()

    def attach(self, events: EventStream) -> Callable[[], None]:
        """Listen to a stream. Call the result to stop, or ``close`` to stop all."""
        detach = events.subscribe(self)
        self._detach.append(detach)
        return detach

    def flush(self) -> None:
        """Count and write the events so far."""
        with self._lock:
            batch = self._take()
            if batch:
                self._count(batch)
                self._write(batch)

    def close(self) -> None:
        """Stop listening and close the file. The figures can still be read."""
        while self._detach:
            self._detach.pop()()
        self.flush()
        if self._log is not None:
            self._log.close()

    def count(self, event: str) -> int:
        """Return how often an event happened."""
        self.flush()
        return self._counts[event]

    def percentile(self, event: str, field: str, percent: float) -> float | None:
        """Return a percentile of the latest samples of a number, or ``None`` without samples."""
        if not 0 <= percent <= 100:
            raise InvalidInput(f"a percentile must be from 0 to 100, got {percent}")
        self.flush()
        with self._lock:
            series = self._series.get(event, {}).get(field)
            newest = [] if series is None else sorted(series.newest)
        return _percentile(newest, percent) if newest else None

    def pause_histogram(
        self, event: str = "gc_slice", field: str = "pause"
    ) -> list[tuple[float, int]]:
        """Return (longest pause in seconds, count) for each power of two microseconds.

        Ascending, over the whole run.
        """
        self.flush()
        with self._lock:
            series = self._series.get(event, {}).get(field)
            buckets = {} if series is None else dict(series.buckets)
        if not buckets:
            return []
        powers = range(min(buckets), max(buckets) + 1)
        return [(2**power * _MICROSECOND, buckets.get(power, 0)) for power in powers]

    def pause_chart(self, event: str = "gc_slice", field: str = "pause") -> str:
        """Return the histogram as text, one line per power of two."""
        histogram = self.pause_histogram(event, field)
        most = max((count for _, count in histogram), default=0)
        lines = [
            f"≤ {_duration(bound):>8} {'█' * ceil(_BAR * count / most):<{_BAR}} {count}"
            for bound, count in histogram
        ]
        return "\n".join([f"{event}.{field}", *lines] if lines else [f"{event}.{field}: none"])

    def summary(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        self.flush()
        with self._lock:
            first, last = (None, None) if self._span is None else self._span
            return {
                "run_id": self.run_id,
                "events": self._counts.total(),
                "lost": self.lost,
                "first_at": first,
                "last_at": last,
                "counts": dict(sorted(self._counts.items())),
                "numbers": {
                    event: {field: series.summary() for field, series in sorted(fields.items())}
                    for event, fields in sorted(self._series.items())
                },
            }

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the summary as CSV, one row for each number of each event, replacing the file.

        An event without numbers has one row with its count.
        """
        summary = self.summary()
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(_COLUMNS)
        for event, count in summary["counts"].items():
            table.writerows(_rows(event, count, summary["numbers"].get(event, {})))
        write_atomic(Path(path), text.getvalue().encode("utf-8", "backslashreplace"))

    def _take(self) -> list[Event]:
        """Take the events so far. Those that arrive meanwhile stay for the next call."""
        queue = self._queue
        return [queue.popleft() for _ in range(len(queue))]

    def _count(self, batch: list[Event]) -> None:
        self._counts.update([event.name for event in batch])
        first = batch[0].at if self._span is None else self._span[0]
        self._span = (first, batch[-1].at)
        for event, fields in _numbers_in(batch).items():
            known = self._series.setdefault(event, {})
            for field, values in fields.items():
                if field not in known:
                    known[field] = _Series(is_pause=field in PAUSES)
                known[field].extend(values)

    def _write(self, batch: list[Event]) -> None:
        if self._log is None:
            return
        lost = len(batch) - self._log.append(batch)
        if lost and not self.lost:
            logger.warning("events could not be written to %s; see profiler.lost", self.path)
        self.lost += lost


class _Series:
    """A number of an event: totals over the whole run, and the latest values."""

    def __init__(self, *, is_pause: bool) -> None:
        self.newest: deque[float] = deque(maxlen=SAMPLES)
        self.buckets: Counter[int] = Counter()
        self._is_pause = is_pause
        self._seen = 0
        self._total = 0.0
        self._highest = -_LARGEST

    def extend(self, values: list[float]) -> None:
        usable = _usable(values)
        if not usable:
            return
        self._seen += len(usable)
        self._total += sum(usable)
        self._highest = max(self._highest, *usable)
        self.newest.extend(usable)
        if self._is_pause:
            self.buckets.update(map(_power_of_two, usable))

    def summary(self) -> dict[str, float]:
        if not self._seen:
            return {"count": 0}
        ordered = sorted(self.newest)
        parts = {f"p{percent}": _percentile(ordered, percent) for percent in (50, 95, 99)}
        mean = self._total / self._seen
        return {"count": self._seen, "mean": mean, **parts, "max": self._highest}


def _numbers_in(batch: list[Event]) -> dict[str, dict[str, list[float]]]:
    """Return event → field → values. A hot loop over all fields of all events."""
    found: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for event in batch:
        fields = found[event.name]
        for field, value in event.data.items():
            kind = type(value)
            if kind is float or kind is int:
                fields[field].append(value)
    return {event: dict(fields) for event, fields in found.items() if fields}


def _usable(values: list[float]) -> list[float]:
    """Return the values without NaN, infinity and integers too large for a float."""
    with suppress(OverflowError):
        if isfinite(sum(values)):
            return values
    return [value for value in values if -_LARGEST <= value <= _LARGEST]


def _percentile(ordered: list[float], percent: float) -> float:
    """Return the smallest value that at least this share of values does not exceed."""
    rank = ceil(len(ordered) * percent / 100)
    return ordered[max(rank, 1) - 1]


def _power_of_two(seconds: float) -> int:
    """Return the smallest power of two, in microseconds, that a pause does not exceed."""
    microseconds = ceil(round(min(max(seconds, 0.0), 1e9) / _MICROSECOND, 3))
    return max(microseconds - 1, 0).bit_length()


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _rows(
    event: str, count: int, numbers: dict[str, dict[str, float]]
) -> Iterable[list[str | float]]:
    if not numbers:
        yield [_cell(event), "", count, *[""] * (len(_COLUMNS) - 3)]
    for field, facts in numbers.items():
        yield [_cell(event), _cell(field), *(facts.get(column, "") for column in _COLUMNS[2:])]


def _cell(text: str) -> str:
    """Return text that a spreadsheet shows instead of computing."""
    shown = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown
