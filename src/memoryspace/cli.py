"""The ``memoryspace`` command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with ``arguments``, or with ``sys.argv``."""
    try:
        _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(1)


def _run(given: list[str]) -> None:
    if given[:1] == ["bench"]:
        from .bench.command import main as bench

        bench(given[1:])  # each experiment parses its own flags
        return
    options = _parser().parse_args(given)
    if options.command == "tour":
        from .tour import run

        run(options.folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memoryspace", description="A memory manager for agents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tour = commands.add_parser(
        "tour", help="see working memory in action; needs no server and no key"
    )
    tour.add_argument(
        "--folder", help="where to keep the tour's files (default: a temporary folder)"
    )
    commands.add_parser(
        "bench", help="run an experiment or a benchmark; `memoryspace bench list` shows them"
    )
    return parser
