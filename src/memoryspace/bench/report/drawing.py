"""Plots of findings as SVG and PNG. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from ..harness.experiment import Parameter, Plot
from ..harness.findings import Findings, Group
from ..harness.intervals import is_share
from .colours import colours_of
from .tables import number, text_of, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vPX*<>p"  # another count than the colours, so that pairs rarely repeat
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small and searchable
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
}
_BETTER = (  # which direction is better, by name of the figure
    ("higher", re.compile(r"hit|@|MRR|EM$|F1$|success|per_s$|per second|found|rate$|recall")),
    ("lower", re.compile(r"_(us|ms|s|bytes|mb)$|pause|fault|write|lost|regret|error|amplif")),
)
_INCHES = (4.2, 3.2)  # size of one panel
_PANELS = 3  # panels side by side
_ASIDE = 1.012  # offset of lines on a logarithmic axis, so that whiskers stay visible
_TICKS = 8  # at most, one at each value
_LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")  # of points: more digits are invisible
_PADDING = re.compile(r"\n\s+|\s*<!--(?!\w).*?-->")  # and comments that repeat labels
_NAMED = "named"  # an x axis with names
_SLOPE = 1.7  # height of a rotated line of text
_WIDE = 1e3  # span of a logarithmic axis above which only powers of ten are labelled
_UNITS = {"capacity": "bytes", "budget": "bytes", "hot_share": "share"}  # of parameters
_SIGNS_PER_INCH = 13  # of a title
_POINTS = 150  # of a curve that are drawn


@dataclass(frozen=True)
class Picture:
    """A plot in both formats."""

    name: str
    title: str
    svg: str
    png: bytes
    caption: str = ""


@dataclass(frozen=True)
class NoPlots:
    """Why there are no plots."""

    reason: str


def draw(found: Findings) -> list[Picture] | NoPlots:
    """Draw every plot of the experiment that has data."""
    try:
        import matplotlib
    except ImportError:
        return NoPlots("no plots: pip install 'memoryspace[bench]' brings matplotlib")
    pictures = []
    for plot in found.experiment.plots:
        groups = [each for each in found.in_parts(plot.parts, plot.where) if _has(each, plot)]
        if groups:
            with matplotlib.rc_context({**STYLE, "svg.hashsalt": plot.name}):
                pictures.append(_picture(plot, groups))
    return pictures


def _picture(plot: Plot, groups: Sequence[Group]) -> Picture:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = _panels(plot, groups)
    across = min(_PANELS, len(panels))
    down = -(-len(panels) // across)
    legend_room = 1.5 if plot.group and plot.kind != "heat" else 0.0
    figure = Figure(
        figsize=(_INCHES[0] * across + legend_room, _INCHES[1] * down + 0.3), layout="constrained"
    )
    FigureCanvasAgg(figure)
    entitle(figure, plot.title)
    axes = figure.subplots(down, across, squeeze=False, sharey=plot.kind != "heat")
    colours = colours_of(text_of(value) for value in _split(groups, plot.group))
    for position, (title, shown, chosen) in enumerate(panels):
        panel = axes[position // across][position % across]
        panel.set_title(_safe(title), fontsize=9)
        _DRAWERS[shown.kind](panel, shown, chosen, colours)
        _label_axes(panel, shown, chosen)
        if position % across and plot.kind != "heat":
            panel.set_ylabel("")  # only the first of a row has it
    for position in range(len(panels), down * across):
        axes[position // across][position % across].set_visible(False)
    if legend_room:
        add_legend(figure, axes)
    part_labels(figure)
    return picture_of(plot.name, plot.title, figure, caption_of(plot, groups))


def picture_of(name: str, title: str, figure: Any, caption: str = "") -> Picture:
    """Return a figure in both formats."""
    return Picture(name, title, _svg(figure), _png(figure), caption)


def _panels(plot: Plot, groups: Sequence[Group]) -> list[tuple[str, Plot, list[Group]]]:
    """Return the title, content and groups of each panel."""
    if plot.kind == "lines" and len({each.cell.get(plot.x) for each in groups}) == 1:
        plot = replace(plot, kind="bars", log_x=False)  # no line to draw
    if plot.beside:
        shown = {name: replace(plot, y=name) for name in plot.beside}
        return [
            (plot.beside[name], each, [group for group in groups if _has(group, each)])
            for name, each in shown.items()
        ]
    return [
        (f"{_with_unit(plot.facet)}: {text_of(value)}" if plot.facet else "", plot, chosen)
        for value, chosen in _split(groups, plot.facet).items()
    ]


def entitle(figure: Any, title: str) -> None:
    """Put a title above a figure, wrapped as needed."""
    width = int((figure.get_figwidth() - 0.4) * _SIGNS_PER_INCH)
    figure.suptitle(_safe("\n".join(textwrap.wrap(title, width))), x=0.02, ha="left")


def part_labels(figure: Any) -> None:
    """Prevent overlapping axis labels: rotate them, then drop every other one."""
    for turn in (True, False):
        figure.canvas.draw()
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if axes.get_visible() and _overlap(axis):
                    _spread(axis, turn and axis is axes.xaxis)


def _overlap(axis: Any) -> bool:
    labels = [
        label
        for label in axis.get_ticklabels(which="major")
        if label.get_visible() and label.get_text()
    ]
    boxes = [label.get_window_extent() for label in labels]
    if labels and labels[0].get_rotation():  # side by side, each as wide as a line is high
        ends = sorted(box.x1 for box in boxes)
        line = labels[0].get_fontsize() * axis.get_figure().dpi / 72
        return any(after - before < line * _SLOPE for before, after in pairwise(ends))
    return any(one.overlaps(other) for one, other in combinations(boxes, 2))


def _spread(axis: Any, turn: bool) -> None:
    labels = axis.get_ticklabels(which="major")
    if turn:
        for label in labels:
            label.set(rotation=40, ha="right", rotation_mode="anchor")
    elif axis.axes.get_label() == _NAMED and axis.axis_name == "x":
        axis.set_tick_params(labelsize=6)  # names are never dropped
    else:
        names = [label.get_text() for label in labels]
        kept = [name if place % 2 == 0 else "" for place, name in enumerate(names)]
        axis.set_ticks(list(axis.get_majorticklocs()), kept)


def caption_of(plot: Plot, groups: Sequence[Group]) -> str:
    """Return the caption: which direction is better, what whiskers and diamonds mean."""
    said = [plot.caption] if plot.caption else []
    better = str(plot.better) or next((way for way, names in _BETTER if names.search(plot.y)), "")
    if better and plot.kind != "cdf":
        said.append(f"{better.capitalize()} is better.")
    elif better:
        said.append(f"Further to the {'left' if better == 'lower' else 'right'} is better.")
    if plot.kind in ("bars", "lines"):
        found = [value for each in groups if (value := each.value(plot.y)) is not None]
        if any(value.low is not None and value.low != value.high for value in found):
            said.append("Whiskers: 95 % interval.")
        split = _split(groups, plot.group).values()
        if plot.kind == "lines" and any(len(_joined(each)) > 1 for each in split):
            said.append("Points measured on different n are not joined.")
        if any(plot.y in each.published for each in groups):
            said.append("Hollow diamonds: published.")
    if plot.kind == "series" and any(len(each.runs) > 1 for each in groups):
        apart = any(len(_curves(each, plot)) > 1 for each in groups)
        said.append("A line for each seed, the first one strong." if apart else "Means over seeds.")
    return " ".join(said)


def _bars(axes: Axes, plot: Plot, groups: Sequence[Group], colours: Mapping[str, str]) -> None:
    places = {value: place for place, value in enumerate(_split(groups, plot.x))}
    series = _split(groups, plot.group)
    width = 0.8 / max(1, len(series))
    for position, (value, members) in enumerate(series.items()):
        at = [places[each.cell.get(plot.x)] + (position + 0.5) * width - 0.4 for each in members]
        heights, errors = _means(members, plot.y)
        axes.bar(
            at, heights, width * 0.92, yerr=errors, label=_safe(text_of(value)),
            color=colours[text_of(value)], error_kw={"elinewidth": 0.8, "capsize": 1.5},
        )  # fmt: skip
        _published(axes, at, members, plot.y)
    axes.set_xticks(range(len(places)), [_safe(text_of(value)) for value in places])
    axes.set_label(_NAMED)
    axes.grid(axis="x", visible=False)


def _lines(axes: Axes, plot: Plot, groups: Sequence[Group], colours: Mapping[str, str]) -> None:
    split = _split(groups, plot.group)
    for position, (value, members) in enumerate(split.items()):
        members = sorted(members, key=lambda each: _x(each, plot.x))
        aside = _ASIDE ** (position - (len(split) - 1) / 2) if plot.log_x else 1.0
        for part, joined in enumerate(_joined(members)):
            at = [_x(each, plot.x) * aside for each in joined]
            heights, errors = _means(joined, plot.y)
            axes.errorbar(
                at, heights, yerr=errors, label="_" if part else _safe(text_of(value)),
                color=colours[text_of(value)], marker=_MARKERS[position % len(_MARKERS)],
                markersize=4, linewidth=1.3, capsize=2,
            )  # fmt: skip
            _published(axes, at, joined, plot.y)
    ticks = sorted({_x(each, plot.x) for each in groups})
    if len(ticks) <= _TICKS:
        if plot.log_x:
            axes.set_xscale("log")  # before the ticks, which it would reset
        axes.set_xticks(ticks, [number(value) for value in ticks])
        axes.minorticks_off()


def _joined(members: Sequence[Group]) -> list[list[Group]]:
    """Return the segments of a line; points measured with another n are not joined."""
    parts: list[list[Group]] = []
    for each in members:
        if parts and _n(parts[-1][-1]) == _n(each):
            parts[-1].append(each)
        else:
            parts.append([each])
    return parts


def _n(group: Group) -> float | None:
    counted = group.figures.get("n")
    return None if counted is None else counted.mean


def _series(axes: Axes, plot: Plot, groups: Sequence[Group], colours: Mapping[str, str]) -> None:
    for group in groups:
        label = text_of(group.cell.get(plot.group)) if plot.group else ""
        for run, (at, values) in enumerate(_curves(group, plot)):
            step = max(1, len(values) // _POINTS)
            axes.plot(
                at[::step], values[::step], color=colours[label], linewidth=1.1,
                alpha=0.9 if run == 0 else 0.35, label=_safe(label) if run == 0 else "_",
            )  # fmt: skip


def _curves(group: Group, plot: Plot) -> list[tuple[Sequence[float], Sequence[float]]]:
    """Return the series of each seed over its steps; if all share the steps, the mean."""
    runs = group.series(plot.y)
    other = group.series(plot.x) if plot.x else [range(len(values)) for values in runs]
    if len(runs) > 1 and all(list(each) == list(other[0]) for each in other):
        means = [sum(values) / len(runs) for values in zip(*runs, strict=True)]
        return [(other[0], means)]
    return list(zip(other, runs, strict=True))


def _cdf(axes: Axes, plot: Plot, groups: Sequence[Group], colours: Mapping[str, str]) -> None:
    for label, members in _split(groups, plot.group).items():
        values = sorted(v for each in members for run in each.series(plot.y) for v in run)
        step = max(1, len(values) // _POINTS)
        shares = [(place + 1) / len(values) for place in range(len(values))]
        picked = [*range(0, len(values), step), len(values) - 1]
        axes.plot(
            [values[place] for place in picked], [shares[place] for place in picked],
            color=colours[text_of(label)], label=_safe(text_of(label)), linewidth=1.3,
            drawstyle="steps-post",
        )  # fmt: skip
    axes.set_ylim(0, 1.02)


def _heat(axes: Axes, plot: Plot, groups: Sequence[Group], colours: Mapping[str, str]) -> None:
    across, down = list(_split(groups, plot.x)), list(_split(groups, plot.group))
    values = [[float("nan")] * len(across) for _ in down]
    for each in groups:
        found = each.value(plot.y)
        assert found is not None
        values[down.index(each.cell.get(plot.group))][across.index(each.cell.get(plot.x))] = (
            found.mean
        )
    axes.imshow(values, cmap="viridis", aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(
        range(len(across)), [_safe(text_of(v)) for v in across], rotation=30, ha="right"
    )
    axes.set_yticks(range(len(down)), [_safe(text_of(v)) for v in down])
    known = [value for line in values for value in line if value == value]
    middle = min(known) + 0.6 * (max(known) - min(known))
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value == value:
                axes.text(
                    column, row, number(value), ha="center", va="center", fontsize=7.5,
                    color="black" if value > middle else "white",
                )  # fmt: skip


_DRAWERS: Mapping[str, Callable[[Any, Plot, Sequence[Group], Mapping[str, str]], None]] = {
    "bars": _bars,
    "lines": _lines,
    "series": _series,
    "cdf": _cdf,
    "heat": _heat,
}


def _published(axes: Axes, at: Sequence[float], members: Sequence[Group], y: str) -> None:
    """Draw published figures as hollow diamonds beside ours."""
    pairs = [
        (x, each.published[y]) for x, each in zip(at, members, strict=True) if y in each.published
    ]
    if pairs:
        axes.plot(
            [x for x, _ in pairs], [value for _, value in pairs], linestyle="none", marker="D",
            markerfacecolor="white", markeredgecolor="black", markersize=5, label="published",
        )  # fmt: skip


def _means(members: Sequence[Group], y: str) -> tuple[list[float], list[list[float]]]:
    """Return the heights, and how far down and up their intervals reach."""
    found = [value for each in members if (value := each.value(y)) is not None]
    down = [0.0 if each.low is None else max(0.0, each.mean - each.low) for each in found]
    up = [0.0 if each.high is None else max(0.0, each.high - each.mean) for each in found]
    return [each.mean for each in found], [down, up]


def _label_axes(axes: Axes, plot: Plot, groups: Sequence[Group]) -> None:
    """Name both axes with units; start them at zero, or say that they do not."""
    x = plot.x_label or (words(plot.y) if plot.kind == "cdf" else _with_unit(plot.x))
    other = {"cdf": "share of the values", "heat": words(plot.group)}.get(plot.kind)
    y = plot.y_label or other or _with_unit(plot.y)
    if plot.kind != "heat":
        is_named = plot.kind == "bars"  # the other axis has names
        x += "" if is_named else _from_zero(axes.xaxis, axes.set_xlim, plot.log_x)
        y += _from_zero(axes.yaxis, axes.set_ylim, plot.log_y)
        if is_share(plot.y) and plot.kind in ("bars", "lines") and not plot.log_y:
            _to_one(axes, plot, groups)
    axes.set_xlabel(_safe(x))
    axes.set_ylabel(_safe(y))


def _with_unit(name: str) -> str:
    shown = words(name)
    if is_share(name) and "share" not in name:
        return f"{shown} (share)"
    return f"{shown} ({_UNITS[name]})" if name in _UNITS else shown


def _from_zero(axis: Any, limit: Callable[..., Any], log: bool) -> str:
    """Start an axis at 0; return a note if it does not."""
    if log:
        _log_ticks(axis)
        return ", log scale"
    low, high = axis.get_data_interval()
    if low < 0:
        return ", not from 0"
    limit(0, high * 1.05 if high > 0 else 1)
    return ""


def _log_ticks(axis: Any) -> None:
    """Label 1, 2 and 5 of each power of ten, nothing in between."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    if axis.get_scale() != "log":
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if not isinstance(axis.get_major_locator(), FixedLocator):
        low, high = axis.get_view_interval()
        wide = high / max(low, 1e-300) > _WIDE
        axis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _to_one(axes: Axes, plot: Plot, groups: Sequence[Group]) -> None:
    """Draw a share from 0 to 1."""
    found = [value.mean for each in groups if (value := each.value(plot.y)) is not None]
    if all(0 <= mean <= 1 for mean in found):
        axes.set_ylim(0, 1.05)


def add_legend(figure: Any, axes: Any) -> None:
    """Put one legend for all panels beside them."""
    entries: dict[str, Any] = {}
    for panel in axes.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside right center", fontsize=8)


def _split(groups: Sequence[Group], parameter: str) -> dict[Parameter, list[Group]]:
    split: dict[Parameter, list[Group]] = {}
    for each in groups:
        split.setdefault(each.cell.get(parameter) if parameter else "", []).append(each)
    return split


def _has(group: Group, plot: Plot) -> bool:
    if plot.kind in ("series", "cdf"):
        return any(len(values) for values in group.series(plot.y))
    return group.value(plot.y) is not None


def _x(group: Group, name: str) -> float:
    value = group.cell.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _safe(text: str) -> str:
    """Escape a dollar, which starts a formula, and a leading underscore, which hides a label."""
    return text.replace("$", r"\$").lstrip("_") if text != "_" else text


def _svg(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _PADDING.sub("\n", _LONG_NUMBER.sub(r"\1", file.getvalue()))


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return file.getvalue()
