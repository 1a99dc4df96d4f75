"""Dense retrieval beside a plain numpy scan, and how much it finds of what an exact scan finds.

    python bench/dense.py --data-path texts/           everything (some minutes)
    python bench/dense.py --data-path texts/ --quick   smaller sizes
    python bench/dense.py                              speed only; the last recall is kept

Ours and ``matrix @ query`` run in turns in one process, one thread, in CPU time. Recall is measured
on vectors of real texts (every string in the JSON lines of the folder), by ids. Raw figures go to
results/dense.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryspace.embedding import Embedder, MiniLMEmbedder, StaticEmbedder
from memoryspace.retrieval.dense.index import DenseIndex

RESULTS = Path(__file__).parent.parent / "results"
DIMENSIONS = 384
QUERIES = 200  # for recall
ROUNDS, REPEATS = 9, 5
FILTERED = 1000

Vectors = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--data-path", type=Path, help="a folder of *.jsonl.gz with real texts")
    parser.add_argument("--output", type=Path, default=RESULTS / "dense.json")
    options = parser.parse_args()
    sizes = [10_000, 100_000] if options.quick else [10_000, 100_000, 1_000_000]
    output: Path = options.output
    report: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    report |= {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "numpy": np.__version__,
        "speed": [shown(speed(size)) for size in sizes],
    }
    if options.data_path is not None:
        texts = real_texts(options.data_path)
        static, network = (20_000, 2_000) if options.quick else (100_000, 12_000)
        report["recall"] = [
            shown(recall(StaticEmbedder(), texts[:static])),
            shown(recall(MiniLMEmbedder(), texts[:network])),
        ]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n")


def shown(row: dict[str, Any]) -> dict[str, Any]:
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return row


# Speed


def speed(size: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    centres = random.standard_normal((1000, DIMENSIONS), dtype=np.float32)
    vectors = around(centres, size, random)
    queries = iter(around(centres, 4 * ROUNDS * REPEATS, random))
    index = DenseIndex(DIMENSIONS)
    build = seconds(lambda: index.add_many(range(size), vectors))
    few = np.sort(random.choice(size, FILTERED, replace=False))
    plain, ours, exact, filtered = in_turns(
        lambda: vectors @ next(queries),
        lambda: index.search(next(queries), 10),
        lambda: index.search(next(queries), 10, exact=True),
        lambda: index.search(next(queries), 10, among=few),
    )
    added, slowest, removed = changes(index, around(centres, 5000, random))
    return {
        "vectors": size,
        "numpy_ms": rounded(1e3 * plain),
        "search_ms": rounded(1e3 * ours),
        "times_quicker": rounded(plain / ours),
        "exact_ms": rounded(1e3 * exact),
        "among_1000_ms": rounded(1e3 * filtered),
        "add_us": rounded(1e6 * added),
        "add_slowest_ms": rounded(1e3 * slowest),
        "remove_us": rounded(1e6 * removed),
        "build_s": rounded(build),
        "bytes_per_vector": index.nbytes // size,
        **saving(index),
    }


def around(centres: Vectors, count: int, random: np.random.Generator) -> Vectors:
    which = random.integers(0, len(centres), count)
    found = random.standard_normal((count, DIMENSIONS), dtype=np.float32)
    found += centres[which]
    return found


def changes(index: DenseIndex, vectors: Vectors) -> tuple[float, float, float]:
    """Return the seconds of an add, of the slowest one, and of a removal."""
    size = len(index)
    adding = [
        seconds(lambda key=key, row=row: index.add(size + key, row))  # type: ignore[misc]
        for key, row in enumerate(vectors)
    ]
    removing = [
        seconds(lambda key=key: index.remove(size + key))  # type: ignore[misc]
        for key in range(len(vectors))
    ]
    return median(adding), max(adding), median(removing)


def saving(index: DenseIndex) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return {
            "save_s": rounded(seconds(lambda: index.save(folder))),
            "load_s": rounded(seconds(lambda: DenseIndex.load(folder))),
            "load_unverified_s": rounded(seconds(lambda: DenseIndex.load(folder, verify=False))),
        }


def in_turns(*calls: Callable[[], object]) -> list[float]:
    """Return the median seconds of each call; they alternate, so a slow moment hits all.

    Each is made a few times in a row: the first ones find their memory in no cache.
    """
    rounds = [
        [median(seconds(call) for _ in range(REPEATS)) for call in calls] for _ in range(ROUNDS)
    ]
    return [median(times) for times in zip(*rounds, strict=True)]


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


# Recall


def recall(embedder: Embedder, texts: list[str]) -> dict[str, Any]:
    began = time.process_time()
    vectors = embedder.embed(texts)
    embedding = time.process_time() - began
    queries, vectors = vectors[:QUERIES], vectors[QUERIES:]
    index = DenseIndex(embedder.dimensions, exact_up_to=0)  # the bits are what is measured
    index.add_many(range(len(vectors)), vectors)
    kept = sum(
        len(ids(index.search(query, 10)) & ids(index.search(query, 10, exact=True)))
        for query in queries
    )
    plain, ours = in_turns(lambda: vectors @ queries[0], lambda: index.search(queries[0], 10))
    return {
        "embedder": embedder.name,
        "vectors": len(vectors),
        "recall_at_10": round(kept / (10 * len(queries)), 4),
        "search_ms": rounded(1e3 * ours),
        "times_quicker": rounded(plain / ours),
        "texts_embedded_per_s": rounded(len(texts) / embedding),
    }


def ids(hits: list[tuple[int, float]]) -> set[int]:
    return {key for key, _ in hits}


def real_texts(folder: Path) -> list[str]:
    """Return every different string of some length, cut, in an order that mixes the files."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                found.update((text[:160], None) for text in strings(json.loads(line)))
    texts = [text for text in found if text.isascii()]
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[number] for number in order.tolist()]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > 30 and " " in value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


if __name__ == "__main__":
    main()
