"""The report of a leak check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ...errors import MemorySpaceError


class LeakFound(MemorySpaceError, AssertionError):
    """A leak check found objects that should be gone."""


@dataclass(frozen=True)
class Kept:
    """Surviving objects of one class, and what refers to some of them."""

    kind: str
    count: int
    kept_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f", kept by {'; '.join(self.kept_by)}" if self.kept_by else ""
        return f"{self.count} × {self.kind}{by}"


@dataclass(frozen=True)
class Growth:
    """Bytes in use after each round, and the source lines that allocated the most."""

    sizes: tuple[int, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def per_round(self) -> int:
        """The bytes left behind in each round, at the least.

        A leak grows in every round; a cache that is filled once does not. The first round fills
        such caches and does not count. Neither does memory in temporary use, for example by another
        thread: a size counts only as far as later sizes never fall below it.
        """
        lasting = [*accumulate(reversed(self.sizes), min)][::-1]
        steps = [after - before for before, after in pairwise(lasting)]
        return max(0, min(steps)) if steps else 0


@dataclass(frozen=True)
class LeakReport:
    """What exists at the end and did not at the beginning.

    ``kept`` are objects that the garbage collector could not free; ``cycles`` are objects that only
    the collector could free, because they refer to each other. ``ties`` are hooks, subscribers and
    queues of agents and classes. Cycles are not leaks: they cost time and are freed late.
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
        """Whether nothing was left behind and memory grew within the tolerance."""
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
