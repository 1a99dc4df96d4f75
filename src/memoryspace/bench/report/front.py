"""The front page of a results folder: every report, its question, and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ...files import write_atomic
from .. import catalogue
from .page import SAMPLE_NOTE, SIGNS, head
from .reading import read_document

INDEX = "index.html"


def write_front(results: Path) -> Path:
    """Write the front page that links all reports of a folder; return its path."""
    documents = [read_document(results, name) for name in _names(results)]
    path = results / INDEX
    write_atomic(path, front(documents).encode())
    return path


def front(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    sampled = any(
        each["data"]["label"] == "sample" and each["data"]["sha256"] for each in documents
    )
    parts = [
        *head("Experiments"),
        "<h1>Experiments</h1>",
        '<p class="about">Each name leads to a page with claims, tables and plots; beside it are '
        "its CSV, JSON and raw ranks.</p>",
        *([f'<p class="note">{SAMPLE_NOTE}</p>'] if sampled else []),
        '<div class="scroll"><table class="front"><thead><tr><th class="name">experiment</th>'
        '<th class="name">asks</th><th class="name">data</th><th>cells</th><th>claims that hold'
        '</th><th class="name">run</th></tr></thead><tbody>',
        *map(_row, documents),
        "</tbody></table></div>",
        *(part for each in documents for part in _claims_and_skips(each)),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _names(results: Path) -> list[str]:
    """Return the experiments that have results, in the order of the catalogue."""
    there = sorted(path.parent.name for path in results.glob("*/*.json")
                   if path.stem == path.parent.name)  # fmt: skip
    known = [name for name in catalogue.MODULES if name in there]
    return known + [name for name in there if name not in known]


def _row(document: Mapping[str, Any]) -> str:
    name, where = escape(document["experiment"]), document["environment"]
    label = document["data"]["label"]
    judged = [each["holds"] for each in document["claims"]]
    measured = [each for each in judged if each is not None]
    count = f"{sum(measured)} of {len(measured)}" if measured else "–"
    runs = sum(len(group["seeds"]) for group in document["groups"])
    commit = (where.get("commit") or "")[:8]
    cells = (
        f'<td class="name"><a href="{name}/{name}.html">{name}</a></td>',
        f'<td class="name wrap">{escape(document["about"])}</td>',
        f'<td class="name wrap">{"generated sample" if label == "sample" else escape(label)}</td>',
        f"<td>{runs}</td><td>{count}</td>",
        f'<td class="name">{escape(where["when"][:10])} {escape(commit)}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def _claims_and_skips(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the claims of an experiment, and what was left out."""
    reasons = dict.fromkeys(each["why"] for each in document["skipped"])
    if not document["claims"] and not reasons:
        return
    name = escape(document["experiment"])
    yield f'<h2><a href="{name}/{name}.html">{name}</a></h2><ul class="claims">'
    for claim in document["claims"]:
        kind, sign = SIGNS[claim["holds"]]
        yield f'<li><span class="{kind}">{sign}</span> {escape(claim["claim"])}</li>'
    for why in reasons:
        yield f'<li><span class="open">left out:</span> {escape(why)}</li>'
    yield "</ul>"
