"""``HitRate``: hits and misses over time, in windows that are coarser the older they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....errors import InvalidInput

MAX_WINDOWS = 64


class Window(NamedTuple):
    """The accesses from ``start`` up to, but excluding, ``end``."""

    start: float
    end: float
    hits: int
    misses: int

    @property
    def rate(self) -> float:
        """The share of hits; 0.0 without an access."""
        return self.hits / max(1, self.hits + self.misses)


class HitRate:
    """Hits and misses in windows over time.

    Beyond ``max_windows`` the older half is merged in pairs, so old windows are coarser but no
    access is lost. A window begins with an access; idle time makes none.

    Args:
        window: The length of a window in seconds of ``clock``, or in accesses without a clock.
        clock: Returns the time in seconds.
        max_windows: The most windows to keep, at least 4.
    """

    def __init__(
        self,
        window: float = 1000,
        *,
        clock: Callable[[], float] | None = None,
        max_windows: int = MAX_WINDOWS,
    ) -> None:
        if not window > 0:
            raise InvalidInput(f"window must be more than 0, got {window}")
        if max_windows < 4:
            raise InvalidInput(f"max_windows must be 4 or more, got {max_windows}")
        self.hits = 0
        self.misses = 0
        self._length = window
        self._clock = clock
        self._max_windows = max_windows
        self._windows: list[Window] = []  # oldest first; the last one is open
        self._end = float("-inf")  # of the open window
        self._counted = (0, 0)  # hits and misses before the open window

    @property
    def rate(self) -> float:
        """The share of hits among all accesses; 0.0 before the first."""
        return self.hits / max(1, self.hits + self.misses)

    def record(self, hit: bool) -> None:
        """Count one access."""
        now = self.hits + self.misses if self._clock is None else self._clock()
        if now >= self._end:
            self._open(now)
        if hit:
            self.hits += 1
        else:
            self.misses += 1

    def series(self) -> list[Window]:
        """Return all windows, oldest first. Together they count every access once."""
        return [*self._windows[:-1], *self._open_window()]

    def check(self) -> None:
        """Verify every invariant; raise ``AssertionError`` if one is broken."""
        series = self.series()
        assert len(series) <= self._max_windows, "too many windows"
        assert sum(window.hits for window in series) == self.hits, "hits do not add up"
        assert sum(window.misses for window in series) == self.misses, "misses do not add up"
        borders = [border for window in series for border in (window.start, window.end)]
        assert borders == sorted(borders), "windows overlap"

    def _open(self, now: float) -> None:
        self._windows[-1:] = self._open_window()
        if len(self._windows) >= self._max_windows:
            self._merge_older_half()
        self._end = now + self._length
        self._windows.append(Window(now, self._end, 0, 0))
        self._counted = (self.hits, self.misses)

    def _open_window(self) -> list[Window]:
        """Return the open window, if any, with its counts so far."""
        hits, misses = self._counted
        return [
            window._replace(hits=self.hits - hits, misses=self.misses - misses)
            for window in self._windows[-1:]
        ]

    def _merge_older_half(self) -> None:
        half = len(self._windows) // 4 * 2
        older = self._windows[:half]
        pairs = zip(older[::2], older[1::2], strict=True)
        self._windows[:half] = [_merged(first, second) for first, second in pairs]


def _merged(first: Window, second: Window) -> Window:
    hits, misses = first.hits + second.hits, first.misses + second.misses
    return Window(first.start, second.end, hits, misses)
