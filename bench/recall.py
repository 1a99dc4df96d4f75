"""Recall on every board, with words alone and with each embedder: figures, raw ranks, one table.

    python bench/recall.py --data-path FOLDER [--embedders none static minilm e5] [--cache FOLDER]

The data are development halves, and the weights were chosen on them (``bench/tune_recall.py``).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from memoryspace.embedding import (
    CachedEmbedder,
    E5Embedder,
    Embedder,
    MiniLMEmbedder,
    StaticEmbedder,
    VectorFiles,
)
from memoryspace.evaluation.boards import BOARDS, run
from memoryspace.evaluation.report import overview, save, table

CHINESE = {"zh"}  # of the embedders here only e5 reads Chinese


def main() -> None:
    options = _options()
    for name in options.boards:
        for embedder in options.embedders:
            if name in CHINESE and embedder not in ("none", "e5"):
                continue
            for board in BOARDS[name]:
                started = time.process_time()
                result = run(board, options.data_path, _embedder(embedder, options.cache))
                print(table(result), flush=True)
                print(f"{time.process_time() - started:.0f} s of CPU", file=sys.stderr, flush=True)
                save(result, options.out)
    about = "Fused, shipped defaults; development halves, on which the weights were chosen.\n\n"
    options.out.with_suffix(".md").write_text(f"# Recall\n\n{about}{overview(options.out)}")


def _embedder(name: str, cache: Path | None) -> Embedder | None:
    if name == "none":
        return None
    if name == "static":
        return StaticEmbedder()
    made = {"minilm": MiniLMEmbedder, "e5": E5Embedder}[name]()
    return made if cache is None else CachedEmbedder(made, VectorFiles(cache))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--embedders", nargs="+", default=["none", "static", "minilm", "e5"])
    parser.add_argument("--boards", nargs="+", choices=BOARDS, default=list(BOARDS))
    parser.add_argument("--cache", type=Path, help="keeps vectors for the next time")
    parser.add_argument("--out", type=Path, default=Path("results/recall"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
