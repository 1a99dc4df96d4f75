"""Findings: the results of cells, grouped over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import MemorySpaceError
from .cells import Finished
from .experiment import SEED, Cell, Experiment, Parameter, Where, chosen_by
from .intervals import interval


class NotMeasured(MemorySpaceError):
    """No group, or more than one, has the requested parameters."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95 % interval, if there is one."""

    mean: float
    low: float | None
    high: float | None
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """Return the number of seeds."""
        return len(self.values)


@dataclass(frozen=True)
class Group:
    """Cells that differ only in their seed."""

    cell: Mapping[str, Parameter]  # without the seed
    runs: tuple[Finished, ...]
    figures: Mapping[str, Estimate]
    timings: Mapping[str, Estimate]
    published: Mapping[str, float]

    def value(self, name: str) -> Estimate | None:
        """Return a figure or a timing."""
        found = self.figures.get(name)
        return found if found is not None else self.timings.get(name)

    def series(self, name: str) -> list[Sequence[float]]:
        """Return a series, once for each seed that has it."""
        found = [{**run.result.series, **run.result.timed_series}.get(name) for run in self.runs]
        return [each for each in found if each is not None]


@dataclass(frozen=True)
class Findings:
    """All groups of an experiment, in cell order, and the cells that could not run."""

    experiment: Experiment
    groups: tuple[Group, ...]
    skipped: tuple[tuple[Cell, str], ...] = ()

    def where(self, where: Where) -> list[Group]:
        """Return the groups that have these parameters."""
        return [group for group in self.groups if chosen_by(where, group.cell)]

    def in_parts(self, parameter: str, where: Where) -> list[Group]:
        """Return the groups split into parts: ``hit@1 [old]`` is ``hit@1`` of the part ``old``.

        The part becomes a parameter of this name. Without a name, nothing is split, and the figures
        of parts are left out.
        """
        divided = [part for group in self.groups for part in _parts(group, parameter)]
        return [group for group in divided if chosen_by(where, group.cell)]

    def one(self, name: str, where: Where) -> Estimate:
        """Return the figure of the only group that has these parameters."""
        found = [group.value(name) for group in self.where(where)]
        if len(found) != 1 or found[0] is None:
            raise NotMeasured(f"{len(found)} groups have {name} where {dict(where)}")
        return found[0]

    def mean(self, name: str, where: Where) -> float:
        """Return the mean of that figure."""
        return self.one(name, where).mean


def findings(
    experiment: Experiment, finished: Iterable[Finished], skipped: Sequence[tuple[Cell, str]] = ()
) -> Findings:
    """Group cells that differ only in their seed."""
    groups: dict[tuple[tuple[str, Parameter], ...], list[Finished]] = {}
    for each in finished:
        rest = tuple((name, value) for name, value in each.cell.items() if name != SEED)
        groups.setdefault(rest, []).append(each)
    made = tuple(_group(experiment, dict(cell), runs) for cell, runs in groups.items())
    return Findings(experiment, made, tuple(skipped))


def part_name(figure: str, part: str) -> str:
    """Return the name of a part's figure."""
    return f"{figure} [{part}]"


def _parts(group: Group, parameter: str) -> list[Group]:
    parts: dict[str, dict[str, Estimate]] = {}
    for name, value in group.figures.items():
        figure, bracket, part = name.removesuffix("]").partition(" [")
        if bool(bracket) is bool(parameter):
            parts.setdefault(part, {})[figure] = value
    timings = {} if parameter else group.timings
    published = {} if parameter else group.published
    return [
        replace(
            group,
            cell={**group.cell, **({parameter: part} if parameter else {})},
            figures=figures,
            timings=timings,
            published=published,
        )
        for part, figures in (parts or ({} if parameter else {"": {}})).items()
    ]


def _group(experiment: Experiment, cell: dict[str, Parameter], runs: list[Finished]) -> Group:
    results = [run.result for run in runs]
    published: dict[str, float] = {}
    for each in experiment.published:
        if chosen_by(each.where, cell):
            published.update(each.figures)
    return Group(
        cell,
        tuple(runs),
        _estimates([each.figures for each in results], [each.intervals for each in results]),
        _estimates([each.timings for each in results], []),
        published,
    )


def _estimates(
    runs: Sequence[Mapping[str, float]], intervals: Sequence[Mapping[str, tuple[float, float]]]
) -> dict[str, Estimate]:
    names = dict.fromkeys(name for run in runs for name in run)
    return {
        name: estimate_of(
            name,
            tuple(float(run[name]) for run in runs if name in run),
            intervals[0].get(name) if len(intervals) == 1 else None,
        )
        for name in names
    }


def estimate_of(name: str, values: tuple[float, ...], own: tuple[float, float] | None) -> Estimate:
    """Return the estimate of a figure; ``own`` is the interval that a single run supplied."""
    low, high = interval(name, values) or (own if len(values) == 1 else None) or (None, None)
    return Estimate(statistics.fmean(values), low, high, values)
