"""The command ``memoryspace``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .embedding import Embedder

_BOARDS = ("locomo", "longmemeval", "hotpot", "beam", "zh")
_EMBEDDERS = ("best", "minilm", "static", "none")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with the given arguments, or with the process's own."""
    options = _parser().parse_args(arguments)
    if options.command == "tour":
        from .tour import run

        run(options.folder)
    elif options.command == "bench":
        embedder = _embedder(options.embedder, options.cache)
        _bench(options.board, Path(options.data_path), embedder, Path(options.out))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memoryspace", description="A memory manager for agents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tour = commands.add_parser("tour", help="see working memory at work, with no server and no key")
    tour.add_argument("--folder", help="keep what the tour writes here (default: a temporary one)")
    bench = commands.add_parser("bench", help="measure recall on a public data set")
    bench.add_argument("board", choices=_BOARDS, help="the data set")
    bench.add_argument("--data-path", required=True, help="the folder that holds the data sets")
    bench.add_argument(
        "--embedder", choices=_EMBEDDERS, default="best", help="who makes the vectors"
    )
    bench.add_argument("--cache", help="a folder that keeps vectors for the next time")
    bench.add_argument(
        "--out", default="results/recall", help="where figures and ranks are written"
    )
    return parser


def _bench(board: str, data_path: Path, embedder: Embedder | None, out: Path) -> None:
    from .evaluation.boards import BOARDS, run
    from .evaluation.report import save, table

    for each in BOARDS[board]:
        result = run(each, data_path, embedder, _show_progress)
        print(table(result))
        for path in save(result, out):
            print(f"  {path}")


def _embedder(name: str, cache: str | None) -> Embedder | None:
    from .embedding import (
        CachedEmbedder,
        MiniLMEmbedder,
        StaticEmbedder,
        VectorFiles,
        best_embedder,
    )

    chosen: Embedder | None = None
    if name == "best":
        chosen = best_embedder()
    elif name != "none":
        chosen = MiniLMEmbedder() if name == "minilm" else StaticEmbedder()
    if chosen is None or cache is None:
        return chosen
    return CachedEmbedder(chosen, VectorFiles(cache))


def _show_progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty() or done == of:
        end = "\n" if done == of else "\r"
        print(f"{what}: {done} of {of}", end=end, file=sys.stderr, flush=True)
