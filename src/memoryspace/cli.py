"""The command ``memoryspace``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with the given arguments, or with the process's own."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["bench"]:
        from .bench.command import main as bench

        bench(given[1:])  # each experiment has flags of its own
        return
    options = _parser().parse_args(given)
    if options.command == "tour":
        from .tour import run

        run(options.folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memoryspace", description="A memory manager for agents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tour = commands.add_parser("tour", help="see working memory at work, with no server and no key")
    tour.add_argument("--folder", help="keep what the tour writes here (default: a temporary one)")
    commands.add_parser(
        "bench", help="run an experiment or a benchmark; `memoryspace bench list` names them"
    )
    return parser
