"""The HTML page of a run, in one file: it loads nothing, and all text in it is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..harness.benchmark import Grid
from ..harness.findings import Findings
from .drawing import Picture
from .tables import claims, grids

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff;
  max-width: 78rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.about { color: #555; margin-top: .2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .5rem; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }
th { border-bottom: 2px solid #999; text-align: right; vertical-align: bottom;
  white-space: normal; }
td { text-align: right; } th.name, td.name { text-align: left; }
tbody tr:nth-child(even) { background: #fafafa; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
figure { margin: 1rem 0; max-width: 100%; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .88rem; max-width: 50rem; }
td.wrap { white-space: normal; min-width: 12rem; } a { color: #0059a0; }
p.note { color: #555; font-size: .88rem; max-width: 50rem; }
ul.claims { list-style: none; padding: 0; } .yes { color: #00703c; } .no { color: #b00020; }
.open { color: #777; } pre { font-size: .8rem; overflow-x: auto; }
"""
SAMPLE_NOTE = (
    "A generated sample shows that an experiment works. Whether a claim holds on it says nothing "
    "about real data: pass --data-path."
)
_LONG = 40  # rows
SIGNS = {True: ("yes", "✔"), False: ("no", "✘"), None: ("open", "not measured:")}


def page(
    found: Findings, document: Mapping[str, Any], pictures: Sequence[Picture], reason: str
) -> str:
    """Return the page; ``reason`` says why there are no pictures."""
    parts = [
        *head(found.experiment.name),
        f"<h1>{escape(found.experiment.name)}</h1>",
        f'<p class="about">{escape(found.experiment.about)}</p>',
        *_notes(found, document),
        *claims_list(found),
        *(part for grid in grids(found) for part in table_of(grid)),
        *(['<h2>Plots</h2><div class="plots">'] if pictures else []),
        *(part for picture in pictures for part in figure_of(picture)),
        *(["</div>"] if pictures else []),
        *([f'<p class="note">{escape(reason)}</p>'] if reason else []),
        *_skipped(found),
        *_details(document),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def head(title: str) -> list[str]:
    """Return the start of a page."""
    return [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
    ]


def _notes(found: Findings, document: Mapping[str, Any]) -> Iterator[str]:
    label = document["data"]["label"]
    source = "a generated sample" if label == "sample" else label
    ran = ", ".join(document.get("embedders", ())) or "none"
    text = f"Data: {source}. Embedder: {ran}. Intervals are {document['interval']}."
    for each in (found.experiment.notes, text, SAMPLE_NOTE if label == "sample" else ""):
        if each:
            yield f'<p class="note">{escape(each)}</p>'


def claims_list(found: Findings) -> Iterator[str]:
    """Yield the claims, each with whether it holds."""
    judged = claims(found)
    if judged:
        yield '<h2>Claims</h2><ul class="claims">'
        for text, holds in judged:
            kind, sign = SIGNS[holds]
            yield f'<li><span class="{kind}">{sign}</span> {escape(text)}</li>'
        yield "</ul>"


def table_of(grid: Grid) -> Iterator[str]:
    """Yield a table. A long table is collapsed."""
    long = len(grid.rows) > _LONG
    yield f"<h2>{escape(grid.title)}</h2>"
    if long:
        yield f"<details><summary>{len(grid.rows)} rows</summary>"
    yield '<div class="scroll"><table><thead>'
    yield _row(grid, grid.head, "th")
    yield "</thead><tbody>"
    for row in grid.rows:
        yield _row(grid, row, "td")
    yield "</tbody></table></div>" + ("</details>" if long else "")
    if grid.note:
        yield f'<p class="note">{escape(grid.note)}</p>'


def _row(grid: Grid, row: tuple[str, ...], tag: str) -> str:
    cells = [
        f"<{tag}{' class=name' if place < grid.names else ''}>{_cell(cell)}</{tag}>"
        for place, cell in enumerate(row)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str) -> str:
    """Return a cell with its interval below the mean, to save width."""
    return escape(text).replace(" [", "<br>[")


def figure_of(picture: Picture) -> Iterator[str]:
    """Yield a plot and its caption; the title is also its alternative text."""
    drawing = picture.svg[picture.svg.index("<svg") :]
    yield f'<figure><div role="img" aria-label="{escape(picture.title)}">{drawing}</div>'
    yield f"<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _skipped(found: Findings) -> Iterator[str]:
    if found.skipped:
        yield "<h2>Left out</h2><ul>"
        reasons: dict[str, int] = {}
        for _, why in found.skipped:
            reasons[why] = reasons.get(why, 0) + 1
        for why, count in reasons.items():
            yield f"<li>{escape(why)} ({count} {'cell' if count == 1 else 'cells'})</li>"
        yield "</ul>"


def _details(document: Mapping[str, Any]) -> Iterator[str]:
    chosen = {name: document[name] for name in ("options", "data", "environment")}
    shown = json.dumps(chosen, indent=1, ensure_ascii=False)
    yield "<details><summary>Options, data, environment</summary>"
    yield f"<pre>{escape(shown)}</pre></details>"
    sources = dict.fromkeys(each["source"] for each in document["published"])
    if sources:
        yield f'<p class="note">Published figures: {escape("; ".join(sources))}.</p>'
