"""A bar on standard error for long work, with the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .screen import Screen, console

Tell = Callable[[str, int, int | None], None]  # what is being done, how much of it, of how much


@contextmanager
def progress(screen: Screen) -> Iterator[Tell]:
    """Show how far a work is, if standard error is a terminal; may be told from any thread."""
    if screen.quiet or not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    share = TextColumn("{task.percentage:>3.0f} %", markup=False)
    bars: dict[str, TaskID] = {}
    with Progress(
        text, BarColumn(), share, TimeRemainingColumn(), console=console(sys.stderr)
    ) as shown:

        def tell(step: str, done: int, total: int | None) -> None:
            if step not in bars:
                bars[step] = shown.add_task(step, total=None)
            shown.update(bars[step], completed=done, total=total or None)

        yield tell
