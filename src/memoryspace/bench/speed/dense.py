"""Dense retrieval compared with a plain numpy scan: speed, and recall against an exact scan.

Ours and ``matrix @ query`` run in turns in one process and one thread, in CPU time. Recall is
measured on vectors of real texts (every string in the JSON Lines of a data folder), by ids; without
a folder the last recall figures are kept.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...embedding import Embedder, MiniLMEmbedder, StaticEmbedder
from ...retrieval.dense.index import DenseIndex
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.options import Flags, option
from ..harness.timing import CPU, Call, in_turns, rounded, seconds
from ..report.tables import records

DIMENSIONS = 384
QUERIES = 200  # for recall
ROUNDS, REPEATS = 9, 5
FILTERED = 1000

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class DenseOptions(Flags):
    """The number of vectors."""

    sizes: tuple[int, ...] = option(
        (10_000, 100_000, 1_000_000), "vectors", quick=(10_000, 100_000)
    )


def measure(options: DenseOptions, run: Run) -> Raw:
    """Measure speed; with data, recall."""
    found: Raw = {"speed": [], "recall": run.before.get("recall", [])}
    for size in options.sizes:
        run.say(f"{size:,} vectors")
        found["speed"].append(speed(size))
    if run.data_path is not None:
        texts = real_texts(run.data_path)
        static, network = (20_000, 2_000) if run.quick else (100_000, 12_000)
        makers = ((StaticEmbedder, static), (MiniLMEmbedder, network))
        found["recall"] = [recall(make(), texts[:count]) for make, count in makers]
    return found


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return speed by size, and recall by embedder."""
    return [
        records("Speed beside a numpy scan", raw["speed"], names=1),
        records("Found of what an exact scan finds", raw["recall"], names=1),
    ]


# Speed


def speed(size: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    centres = random.standard_normal((1000, DIMENSIONS), dtype=np.float32)
    vectors = around(centres, size, random)
    queries = iter(around(centres, 4 * ROUNDS * REPEATS, random))
    index = DenseIndex(DIMENSIONS)
    build = seconds(lambda: index.add_many(range(size), vectors))
    few = np.sort(random.choice(size, FILTERED, replace=False))
    plain, ours, exact, filtered = _medians(
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
    """Return the seconds of an add, of the slowest add, and of a removal."""
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


def _medians(*calls: Call) -> list[float]:
    times = in_turns(dict(zip(map(str, range(len(calls))), calls, strict=True)), ROUNDS,
                     repeats=REPEATS)  # fmt: skip
    return [median(each) for each in times.values()]


# Recall


def recall(embedder: Embedder, texts: list[str]) -> dict[str, Any]:
    began = CPU()
    vectors = embedder.embed(texts)
    embedding = CPU() - began
    queries, vectors = vectors[:QUERIES], vectors[QUERIES:]
    index = DenseIndex(embedder.dimensions, exact_up_to=0)  # the bits are what is measured
    index.add_many(range(len(vectors)), vectors)
    kept = sum(
        len(ids(index.search(query, 10)) & ids(index.search(query, 10, exact=True)))
        for query in queries
    )
    plain, ours = _medians(lambda: vectors @ queries[0], lambda: index.search(queries[0], 10))
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
    """Return all distinct strings of some length, truncated, with the files interleaved."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.jsonl*")):
        for line in unpacked(path).splitlines():
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


BENCHMARK = Benchmark(
    "dense",
    "dense retrieval beside a plain numpy scan",
    DenseOptions,
    measure,
    tables,
    notes=f"Vectors of {DIMENSIONS} dimensions. CPU time, one thread.",
    packages=("memoryspace", "numpy"),
)
