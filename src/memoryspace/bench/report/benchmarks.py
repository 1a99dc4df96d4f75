"""Files of a benchmark: raw figures as JSON, a document, charts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import CorruptData
from ...files import write_atomic
from ..harness.benchmark import Benchmark
from ..harness.environment import environment
from ..harness.options import Flags, public
from . import tables
from .charts import draw_charts
from .drawing import NoPlots


def last_run(folder: Path, name: str) -> dict[str, Any]:
    """Return the saved figures of a benchmark's last run, if there was one."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptData(f"{path} is malformed ({error}): run it again") from error
    return found


def document_of(benchmark: Benchmark, options: Flags, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw figures with the environment they were measured in."""
    return {
        "benchmark": benchmark.name,
        "options": {name: _plain(value) for name, value in public(options).items()},
        "environment": environment(benchmark.packages),
        "raw": dict(raw),
    }


def save_benchmark(
    benchmark: Benchmark, document: Mapping[str, Any], folder: Path
) -> Iterator[Path]:
    """Write the figures and everything derived from them; yield the paths."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    yield _write(folder / f"{benchmark.name}.json", text.encode())
    yield from save_benchmark_pages(benchmark, document, folder)


def save_benchmark_pages(
    benchmark: Benchmark, document: Mapping[str, Any], folder: Path
) -> Iterator[Path]:
    """Write the document and the charts; without matplotlib, only the document."""
    page = markdown_of(benchmark, document)
    yield _write(folder / f"{benchmark.name}.md", page.encode())
    drawn = draw_charts(benchmark.charts(document["raw"]))
    for picture in () if isinstance(drawn, NoPlots) else drawn:
        yield _write(folder / f"{picture.name}.svg", picture.svg.encode())


def markdown_of(benchmark: Benchmark, document: Mapping[str, Any]) -> str:
    """Return the tables as a document that says when and on what they were measured."""
    where = document["environment"]
    packages = ", ".join(f"{name} {found}" for name, found in where.get("packages", {}).items())
    facts = [where.get(name) for name in ("python", "cpu", "system")]
    cores = f"{where['cores']} cores" if where.get("cores") else None
    machine = ", ".join(str(each) for each in (*facts, cores) if each)
    parts = [
        f"# {benchmark.name}: {benchmark.about}",
        f"By `memoryspace bench {benchmark.name}`, {(where.get('when') or 'undated')[:10]}. "
        f"{machine}. {packages}".strip().rstrip(".")
        + ".",
        *([benchmark.notes] if benchmark.notes else []),
    ]
    for grid in benchmark.tables(document["raw"]):
        if grid.rows:
            note = f"\n\n{grid.note}" if grid.note else ""
            parts.append(f"## {grid.title}\n\n{tables.markdown(grid).rstrip()}{note}")
    return "\n\n".join(parts) + "\n"


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, Path) else value


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data)
    return path
