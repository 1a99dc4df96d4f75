"""What a leak check found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ...errors import MemorySpaceError


class LeakFound(MemorySpaceError, AssertionError):
    """Something was left behind."""


@dataclass(frozen=True)
class Kept:
    """Objects of one class that are still there, and what refers to some of them."""

    kind: str
    count: int
    kept_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f", kept by {'; '.join(self.kept_by)}" if self.kept_by else ""
        return f"{self.count} × {self.kind}{by}"


@dataclass(frozen=True)
class Growth:
    """Bytes that Python had in use after each round, and the lines that took the most."""

    sizes: tuple[int, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def per_round(self) -> int:
        """How many bytes were left behind in each round, at the very least.

        A leak grows in every round; what is filled once, such as a cache, does not. The first round
        is there to fill such things and does not count. Nor does what was in use for a moment, as
        another thread may take it: a size counts only as far as it never falls below that again.
        """
        lasting = [*accumulate(reversed(self.sizes), min)][::-1]
        steps = [after - before for before, after in pairwise(lasting)]
        return max(0, min(steps)) if steps else 0


@dataclass(frozen=True)
class LeakReport:
    """What was there at the end and not at the beginning.

    ``kept`` are objects that the collector could not free; ``cycles`` those that only it could,
    because they refer to each other. ``ties`` are hooks, subscribers and queues on agents and
    classes. Cycles are no leak: they cost time and go late.
    """

    kept: tuple[Kept, ...] = ()
    cycles: tuple[Kept, ...] = ()
    ties: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    growth: Growth = Growth()
    tolerance: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left behind, and memory grew no more than was allowed."""
        left = (self.kept, self.ties, self.tasks, self.threads, self.files)
        return not any(left) and self.growth.per_round <= self.tolerance

    def check(self) -> None:
        """Raise ``LeakFound`` unless nothing was left behind."""
        if not self.is_clean:
            raise LeakFound(str(self))

    def __str__(self) -> str:
        lines = ["nothing was left behind" if self.is_clean else "left behind:"]
        lines += _section("objects", self.kept) + _section("tied to what lives on", self.ties)
        lines += _section("tasks", self.tasks) + _section("threads", self.threads)
        lines += _section("open files", self.files)
        lines += _section("freed by the collector alone", self.cycles)
        if self.growth.per_round > self.tolerance:
            lines.append(f"  memory grows by {self.growth.per_round:,} bytes a round:")
            lines += [f"    {place}" for place in self.growth.places]
        return "\n".join(lines)


def _section(title: str, items: Sequence[object]) -> list[str]:
    return [f"  {title}:", *(f"    {each}" for each in items)] if items else []
