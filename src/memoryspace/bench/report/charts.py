"""Charts of benchmarks: bars and curves, in the style of the other plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..harness.benchmark import Chart
from .colours import colours_of
from .drawing import STYLE, NoPlots, Picture, add_legend, entitle, part_labels, picture_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_charts(charts: Sequence[Chart]) -> list[Picture] | NoPlots:
    """Draw each chart."""
    try:
        import matplotlib
    except ImportError:
        return NoPlots("no plots: pip install 'memoryspace[bench]' brings matplotlib")
    pictures = []
    for chart in charts:
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": chart.name}):
            pictures.append(_picture(chart))
    return pictures


def _picture(chart: Chart) -> Picture:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = len(chart.panels)
    tall = 0.45 * len(chart.names) + 1 if chart.names else 3.4
    size = (3.4 * across + (3.2 if chart.names else 1.8), tall)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    entitle(figure, chart.title)
    axes = figure.subplots(1, across, squeeze=False, sharey=bool(chart.names))
    colours = colours_of(_family(name) for panel in chart.panels.values() for name in panel)
    for panel, (title, series) in zip(axes[0], chart.panels.items(), strict=True):
        panel.set_title(title, fontsize=9)
        (_bars if chart.names else _curves)(panel, chart, series, colours)
        panel.set_xlim(left=0)
    add_legend(figure, axes)
    part_labels(figure)
    return picture_of(chart.name, chart.title, figure)


def _bars(
    axes: Axes, chart: Chart, series: Mapping[str, Sequence[float]], colours: Mapping[str, str]
) -> None:
    wide = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = [number + (place + 0.5) * wide - 0.4 for number in range(len(values))]
        axes.barh(at, values, wide * 0.92, color=colours[name], label=name)
    axes.set_yticks(range(len(chart.names)), list(chart.names))
    axes.set_ylim(len(chart.names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _curves(
    axes: Axes, chart: Chart, series: Mapping[str, Sequence[float]], colours: Mapping[str, str]
) -> None:
    """Draw repeated runs as faint lines, and their mean."""
    families: dict[str, list[Sequence[float]]] = {}
    for name, values in series.items():
        families.setdefault(_family(name), []).append(values)
    for name, runs in families.items():
        faint: dict[str, Any] = {"color": colours[name], "linewidth": 0.8, "alpha": 0.25}
        for values in runs if len(runs) > 1 else ():
            axes.plot(chart.x, values, **faint)
        mean = [sum(values) / len(values) for values in zip(*runs, strict=True)]
        axes.plot(chart.x, mean, color=colours[name], label=name, linewidth=1.4)
    if chart.diagonal:
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    axes.set_ylim(bottom=0)


def _family(name: str) -> str:
    return name.partition(" #")[0]
