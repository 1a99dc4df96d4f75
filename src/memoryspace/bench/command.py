"""The command ``memoryspace bench``, and the prototype's command lines."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, MemorySpaceError
from . import catalogue
from .harness.benchmark import Benchmark, Run
from .harness.experiment import Experiment
from .harness.fetching import SOURCES, fetch
from .harness.options import add_flags, chosen
from .harness.progress import Progress
from .report import tables
from .report.benchmarks import (
    document_of,
    last_run,
    save_benchmark,
    save_benchmark_pages,
)
from .report.front import write_front
from .report.notebook import NOTEBOOK, write_notebook
from .report.quoting import quote
from .report.reading import remake
from .running import Outcome, run_experiment

OUT = "results/bench"
MEASURED = "results/benchmarks"
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_SHARED = {  # experiment options that ``all`` accepts too
    "--embedder": "the embedder, where vectors are used",
    "--model-url": "an OpenAI-compatible server that answers questions",
    "--model": "the chat model there; its key is in MEMORYSPACE_MODEL_KEY",
}


def main(arguments: Sequence[str]) -> None:
    """Run ``memoryspace bench`` with these arguments."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    try:
        if name == "list":
            _list()
        elif name == "fetch":
            _fetch(rest)
        elif name == "all":
            _all(rest)
        elif name == "quote":
            _quote(rest)
        elif name == "pages":
            _pages(rest)
        elif name == "notebook":
            print(write_notebook(Path(rest[0]) if rest else NOTEBOOK))
        elif name in ("-h", "--help"):
            _top_parser().print_help()
        else:
            _named(name, rest)
    except MemorySpaceError as error:
        raise SystemExit(f"memoryspace bench: {error}") from error


def main_of(experiment: Experiment) -> None:
    """Run an experiment as the program of its module."""
    try:
        _one(experiment, f"memoryspace bench {experiment.name}", sys.argv[1:])
    except MemorySpaceError as error:
        raise SystemExit(f"{experiment.name}: {error}") from error


def _named(name: str, arguments: Sequence[str]) -> None:
    if name in catalogue.BENCHMARKS:
        for variable in _ONE_THREAD:
            os.environ.setdefault(variable, "1")  # must happen before numpy is imported
        _benchmark(catalogue.benchmark(name), arguments)
    else:
        _one(catalogue.experiment(name), f"memoryspace bench {name}", arguments)


def _benchmark(benchmark: Benchmark, arguments: Sequence[str]) -> None:
    """Run a benchmark. A quick run is saved only if ``--out`` is given."""
    parser = argparse.ArgumentParser(
        prog=f"memoryspace bench {benchmark.name}", description=benchmark.about
    )
    parser.add_argument("--data-path", type=Path, help="file or folder of data")
    parser.add_argument(
        "--quick", action="store_true", help="a smaller run, to check that it works"
    )
    parser.add_argument("--out", type=Path, help=f"output folder (default: {MEASURED})")
    add_flags(parser, benchmark.options)
    given = parser.parse_args(arguments)
    options = chosen(benchmark.options, given, quick=given.quick)
    out = given.out if given.out is not None else Path(MEASURED)
    before = last_run(out, benchmark.name).get("raw", {})
    run = Run(given.data_path, given.quick, before, lambda line: print(line, file=sys.stderr))
    raw = benchmark.measure(options, run)
    for grid in benchmark.tables(raw):
        if grid.rows:
            print(tables.plain(grid), end="\n\n")
    if given.out is None and (given.quick or getattr(given, "only", None)):
        print("nothing was saved: this was a quick or partial run; pass --out FOLDER to save it")
        return
    for path in save_benchmark(benchmark, document_of(benchmark, options, raw), out):
        print(f"  {path}")


def _pages(arguments: Sequence[str]) -> None:
    """Rebuild documents, plots and pages from saved figures; nothing is run."""
    parser = argparse.ArgumentParser(prog="memoryspace bench pages", description=_pages.__doc__)
    parser.add_argument("names", nargs="*", help="experiments and benchmarks (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path(OUT), help=f"experiment results (default: {OUT})"
    )
    parser.add_argument("--measured", type=Path, default=Path(MEASURED), help="benchmark results")
    given = parser.parse_args(arguments)
    for name in catalogue.MODULES:
        is_there = (given.out / name / f"{name}.json").is_file()
        if is_there and (not given.names or name in given.names):
            for path in remake(given.out, name):
                print(f"  {path}")
    for name in catalogue.BENCHMARKS:
        document = last_run(given.measured, name)
        if document and (not given.names or name in given.names):
            for path in _benchmark_pages(name, document, given.measured):
                print(f"  {path}")
    if given.out.is_dir():
        print(f"  {write_front(given.out)}")


def _benchmark_pages(name: str, document: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    try:
        benchmark = catalogue.benchmark(name)
    except InvalidInput as error:
        print(f"{name}: left as it is ({error})", file=sys.stderr)
        return
    yield from save_benchmark_pages(benchmark, document, folder)


def _one(experiment: Experiment, program: str, arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog=program, description=experiment.about)
    _add_common(parser)
    parser.add_argument("--output", type=Path, help="also write the CSV here")
    add_flags(parser, experiment.options)
    given = parser.parse_args(arguments)
    warning = _stand_in(experiment, given)
    if warning:
        print(warning, file=sys.stderr)
    outcome = _run(experiment, given)
    front = write_front(given.out)
    if given.output is not None:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(given.out / experiment.name / f"{experiment.name}.csv", given.output)
    _show(outcome)
    print(f"  {front}")
    if warning:
        print(f"\n{warning}")


def _stand_in(experiment: Experiment, given: argparse.Namespace) -> str:
    """Return a warning if a sample replaces the data; louder if a data set was requested."""
    files = experiment.files(chosen(experiment.options, given, quick=given.quick))
    if given.data_path is not None or not files:
        return ""
    asked = [str(getattr(given, name)) for name in ("dataset", "dataset_split") if name in given]
    wanted = f"{' '.join(asked)} was asked for, but there is" if asked else "there is"
    return (
        f"WARNING: {wanted} no --data-path. A GENERATED SAMPLE stands in for {', '.join(files)}: "
        "figures and claims say nothing about real data."
    )


def _run(experiment: Experiment, given: argparse.Namespace, *, full: bool = False) -> Outcome:
    return run_experiment(
        experiment,
        chosen(experiment.options, given, quick=given.quick, full=full),
        out=given.out,
        data_path=given.data_path,
        fresh=given.fresh,
        progress=Progress(sys.stderr, experiment.name),
    )


def _all(arguments: Sequence[str]) -> None:
    """Run every experiment; if one fails, the others still run."""
    parser = argparse.ArgumentParser(
        prog="memoryspace bench all", description="Run every experiment."
    )
    _add_common(parser)
    parser.add_argument("--seeds", nargs="+", type=int, default=argparse.SUPPRESS)
    for flag, help in _SHARED.items():
        parser.add_argument(flag, default=argparse.SUPPRESS, help=help)
    parser.add_argument(
        "--cache", type=Path, default=argparse.SUPPRESS, help="folder that caches vectors"
    )
    given = parser.parse_args(arguments)
    failed: list[str] = []
    for name in catalogue.MODULES:
        try:
            _show(_run(catalogue.experiment(name), given, full=True))
        except MemorySpaceError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    if given.out.is_dir():
        print(f"all reports: {write_front(given.out)}")
    if failed:
        raise SystemExit(f"memoryspace bench all: {', '.join(failed)} could not be run")


def _list() -> None:
    width = max(map(len, [*catalogue.MODULES, *catalogue.BENCHMARKS]))
    for name in catalogue.MODULES:
        print(f"{name.ljust(width)}  {catalogue.experiment(name).about}")
    for name in catalogue.BENCHMARKS:
        print(f"{name.ljust(width)}  {_about(name)}")


def _about(name: str) -> str:
    try:
        return catalogue.benchmark(name).about
    except InvalidInput as error:
        return str(error)


def _fetch(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="memoryspace bench fetch", description="Download public data; checksums are verified."
    )
    parser.add_argument("name", choices=sorted(SOURCES), help="the data set")
    parser.add_argument("--to", type=Path, default=Path("data"), help="target folder")
    given = parser.parse_args(arguments)
    for path in fetch(SOURCES[given.name], given.to, lambda line: print(line, file=sys.stderr)):
        print(path)


def _quote(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="memoryspace bench quote", description="Update the results quoted in documents."
    )
    parser.add_argument(
        "documents", nargs="+", type=Path, help="files with <!-- bench NAME: TITLE -->"
    )
    parser.add_argument("--out", type=Path, default=Path(OUT), help=f"results (default: {OUT})")
    given = parser.parse_args(arguments)
    for document in given.documents:
        for line in quote(document, given.out):
            print(line, file=sys.stderr)


def _show(outcome: Outcome) -> None:
    found = outcome.findings
    for grid in tables.grids(found):
        print(tables.plain(grid), end="\n\n")
    for text, holds in tables.claims(found):
        print({True: "holds", False: "FAILS", None: "not measured"}[holds] + f": {text}")
    for why in dict.fromkeys(why for _, why in found.skipped):
        print(f"left out: {why}")
    for path in outcome.files:
        print(f"  {path}")
    if outcome.no_plots:
        print(f"  {outcome.no_plots}")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-path", type=Path, help="file or folder of data (default: a small sample)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smaller run, to check that it works"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(OUT), help=f"output folder (default: {OUT})"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="discard finished cells and start over"
    )


def _top_parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name}" for name in [*catalogue.MODULES, *catalogue.BENCHMARKS])
    return argparse.ArgumentParser(
        prog="memoryspace bench",
        usage="memoryspace bench NAME [--help] [options] | list | all | pages | notebook "
        "| fetch NAME | quote FILE",
        description=f"Run an experiment or a benchmark:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
