"""Progress of a run with the time left: a bar on a terminal, else one line per cell."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

_BAR = 30  # characters


class Progress:
    """Reports finished cells to a stream. Cells from earlier runs take no time."""

    def __init__(
        self, stream: TextIO, label: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._label = label
        self._clock = clock
        self._bar = stream.isatty()
        self._total = self._done = self._old = 0
        self._started = 0.0
        self._shown = -1.0

    def start(self, total: int, already: int) -> None:
        """Start with this many cells in all, some of them done in an earlier run."""
        self._total, self._done, self._old = total, already, already
        self._started = self._clock()
        if already:
            self._line(f"{self._label}: {already} of {total} cells were done before")

    def tick(self, done: int, of: int) -> None:
        """Show how far the current cell is."""
        if self._bar and self._clock() - self._shown > 0.2:
            self._draw(min(1.0, done / of) if of else 0.0)

    def finish_cell(self, what: str, seconds: float) -> None:
        """Count a cell as done or skipped."""
        self._done += 1
        if self._bar:
            self._draw(0.0)
        else:
            self._line(
                f"{self._label}: {self._done} of {self._total} cells, "
                f"{_duration(self.left(0.0))} left ({what}: {seconds:.1f} s)"
            )

    def left(self, part: float) -> float:
        """Return the estimated seconds left."""
        worked = self._done - self._old + part
        if not worked:
            return 0.0
        return (self._clock() - self._started) / worked * (self._total - self._done - part)

    def end(self) -> None:
        """Finish the output and keep the bar visible."""
        if self._bar and self._total:
            self._stream.write("\n")
            self._stream.flush()

    def _draw(self, part: float) -> None:
        self._shown = self._clock()
        share = (self._done + part) / self._total if self._total else 1.0
        full = round(share * _BAR)
        bar = "█" * full + "·" * (_BAR - full)
        left = _duration(self.left(part))
        text = f"{self._label} {bar} {self._done}/{self._total}, {left} left"
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
