"""Figures over queries: the means of the metrics, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...evaluation.boards import METRICS
from ...evaluation.metrics import any_at
from ..harness.experiment import Asked, CellResult
from ..harness.findings import part_name
from ..harness.intervals import over_queries

Metric = Callable[[Sequence[str], frozenset[str]], float]

HITS: Mapping[str, Metric] = {
    "hit@1": lambda ranked, right: any_at(1, ranked, right),
    "hit@5": lambda ranked, right: any_at(5, ranked, right),
}


@dataclass(frozen=True)
class Measured:
    """One query: its category, if it has one, and its metrics."""

    category: str
    values: Mapping[str, float]


def judged(asked: Sequence[Asked], metrics: Mapping[str, Metric] = METRICS) -> CellResult:
    """Return ``n`` and the mean of each metric, over all queries and by category.

    A query for which nothing was right counts as missed.
    """
    values = [
        Measured(each.category, {name: _value(metric, each) for name, metric in metrics.items()})
        for each in asked
    ]
    result = measured(values)
    figures = result.figures if asked else {"n": 0, **dict.fromkeys(metrics, 0.0)}
    return replace(result, figures=figures, ranks=tuple(asked))


def measured(queries: Sequence[Measured]) -> CellResult:
    """Return ``n`` and the mean of each metric over the queries that have it, and by category."""
    figures = _means(queries)
    intervals = _intervals(queries, "")
    for category in dict.fromkeys(each.category for each in queries if each.category):
        chosen = [each for each in queries if each.category == category]
        for name, mean in _means(chosen).items():
            figures[part_name(name, category)] = mean
        intervals |= _intervals(chosen, category)
    return CellResult(figures, intervals=intervals)


def _intervals(queries: Sequence[Measured], category: str) -> dict[str, tuple[float, float]]:
    names = dict.fromkeys(name for each in queries for name in each.values)
    return {
        part_name(name, category) if category else name: over_queries(
            [each.values[name] for each in queries if name in each.values]
        )
        for name in names
    }


def _means(queries: Sequence[Measured]) -> dict[str, float]:
    figures: dict[str, float] = {"n": len(queries)}
    for name in dict.fromkeys(name for each in queries for name in each.values):
        values = [each.values[name] for each in queries if name in each.values]
        figures[name] = sum(values) / len(values)
    return figures


def _value(metric: Metric, asked: Asked) -> float:
    return metric(asked.ranked, frozenset(asked.right)) if asked.right else 0.0
