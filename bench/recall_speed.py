"""How quick recall is: words beside tantivy and a plain scan, and whole searches at three sizes.

    python bench/recall_speed.py --data-path novels.txt.xz           everything (some minutes)
    python bench/recall_speed.py --data-path novels.txt.xz --quick   smaller sizes
    python bench/recall_speed.py                                     made-up words
    python bench/recall_speed.py --only fused                        one part; the others are kept

Texts are spans of 8 to 48 words. Every engine gets the same questions in one process, in turns, one
thread, in CPU time. Raw figures go to results/recall_speed.json, a table to recall_speed.md beside
it. Vectors alone are measured by bench/dense.py.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import json
import lzma
import platform
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memoryspace.embedding import CallableEmbedder
from memoryspace.retrieval import Entry, Only, Recall
from memoryspace.retrieval.sparse.index import SparseIndex
from memoryspace.retrieval.text.stopwords import STOP_WORDS

RESULTS = Path(__file__).parent.parent / "results"
ROUNDS = 200  # questions of each kind
UPDATES = 100
SCANNED = 10  # questions put to the plain scan: it takes long
DIMENSIONS = 256
SESSION = 20  # entries
PROJECTS = 50
BATCH = 1000
START = 1.6e9

Random = np.random.Generator
Found = dict[str, Any]


PARTS = {"sparse": "texts", "fused": "entries", "personal": "messages"}  # and what is counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--data-path", type=Path, help="a text, *.txt or *.txt.xz, to cut")
    parser.add_argument("--output", type=Path, default=RESULTS / "recall_speed.json")
    parser.add_argument("--only", choices=PARTS, help="one part; the others are kept")
    options = parser.parse_args()
    words = words_of(options.data_path)
    largest = [] if options.quick else [1_000_000]
    output: Path = options.output
    report: Found = json.loads(output.read_text()) if output.exists() else {}
    report |= {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "numpy": np.__version__,
        "texts": "made up" if options.data_path is None else options.data_path.name,
    }
    if options.only in (None, "sparse"):
        report["sparse"] = [shown(sparse(words, size)) for size in [100_000, *largest]]
    if options.only in (None, "fused"):
        report["fused"] = [shown(fused(words, size)) for size in [10_000, 100_000, *largest]]
    if options.only in (None, "personal"):
        report["personal"] = [shown(personal(words, 10_000))]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n")
    output.with_suffix(".md").write_text(table(report))


def shown(row: Found) -> Found:
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return row


# Texts and questions


def words_of(path: Path | None) -> list[str]:
    if path is None:
        return made_up(2_000_000)
    raw = path.read_bytes()
    return (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("utf-8").split()


def made_up(count: int) -> list[str]:
    """Words as frequent as words are."""
    random = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    vocabulary = ["".join(random.choice(letters, size)) for size in random.integers(2, 11, 40_000)]
    weights = 1 / (np.arange(len(vocabulary)) + 3)
    numbers = random.choice(len(vocabulary), count, p=weights / weights.sum())
    return [vocabulary[number] for number in numbers.tolist()]


def texts_of(words: list[str], count: int, random: Random) -> list[str]:
    starts = random.integers(0, len(words) - 48, count).tolist()
    lengths = random.integers(8, 49, count).tolist()
    return [
        " ".join(words[start : start + length])
        for start, length in zip(starts, lengths, strict=True)
    ]


def content_questions(words: list[str], count: int, random: Random) -> list[str]:
    """Four words that say something, from anywhere in a stretch of text."""
    found: list[str] = []
    while len(found) < count:
        start = int(random.integers(0, len(words) - 60))
        plain = {re.sub(r"\W", "", word).lower() for word in words[start : start + 60]}
        useful = sorted(word for word in plain - set(STOP_WORDS) if len(word) > 3)
        if len(useful) >= 4:
            found.append(" ".join(random.choice(useful, 4, replace=False)))
    return found


def natural_questions(words: list[str], count: int, random: Random) -> list[str]:
    """Eight words in a row, stop words and all."""
    starts = random.integers(0, len(words) - 8, count).tolist()
    return [re.sub(r"[^\w ]", " ", " ".join(words[at : at + 8])) for at in starts]


# Words alone


class Engine(Protocol):
    def search(self, text: str) -> object:
        """Find the best ten."""

    def add(self, key: int, text: str) -> None:
        """Add a text that the next search sees."""


class Ours:
    def __init__(self, texts: Sequence[str]) -> None:
        self.index = SparseIndex()
        for key, text in enumerate(texts):
            self.index.add(key, text)
        self.index.search("settle")

    def search(self, text: str) -> object:
        return self.index.search(text, 10)

    def add(self, key: int, text: str) -> None:
        self.index.add(key, text)


class Tantivy:
    """The Rust engine, in memory: nothing is written to a disk, as with ours."""

    def __init__(self, texts: Sequence[str]) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("key", stored=True)
        schema.add_text_field("text", tokenizer_name="en_stem")
        self._document = tantivy.Document
        self.index = tantivy.Index(schema.build())
        self._writer = self.index.writer(heap_size=128_000_000, num_threads=1)
        for key, text in enumerate(texts):
            self._writer.add_document(self._document(key=key, text=text))
        self._commit()

    def search(self, text: str) -> object:
        return self.index.searcher().search(self.index.parse_query(text, ["text"]), 10).hits

    def add(self, key: int, text: str) -> None:
        self._writer.add_document(self._document(key=key, text=text))
        self._commit()

    def _commit(self) -> None:
        self._writer.commit()
        self.index.reload()


class Scan:
    """Bags of words, compared one by one: what a prototype does."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bags = [_bag(text) for text in texts]

    def search(self, text: str) -> object:
        asked, length = _bag(text)
        scores = [
            (sum(times * bag.get(word, 0) for word, times in asked.items()) / (norm * length), key)
            for key, (bag, norm) in enumerate(self._bags)
        ]
        return sorted(scores, reverse=True)[:10]

    def add(self, key: int, text: str) -> None:
        self._bags.append(_bag(text))


def _bag(text: str) -> tuple[Counter[str], float]:
    bag = Counter(text.lower().split())
    return bag, max(1.0, sum(times * times for times in bag.values()) ** 0.5)


def sparse(words: list[str], size: int) -> Found:
    random = np.random.default_rng(size)
    texts, extra = texts_of(words, size, random), texts_of(words, UPDATES, random)
    asked = {
        "q4": content_questions(words, ROUNDS, random),
        "nl": natural_questions(words, ROUNDS, random),
    }
    kinds: dict[str, Callable[[Sequence[str]], Engine]] = {"ours": Ours, "tantivy": Tantivy}
    engines: dict[str, Engine] = {}
    row: Found = {"texts": size}
    for name, kind in kinds.items():
        try:
            began = time.process_time()
            engines[name] = kind(texts)
        except ImportError:
            print("tantivy is not installed: left out", flush=True)
            continue
        row[f"{name}_docs_per_s"] = rounded(size / (time.process_time() - began))
    for kind_of, questions in asked.items():
        row |= in_turns(engines, questions, kind_of)
    if size <= 100_000:
        row |= in_turns(
            {"ours": engines["ours"], "scan": Scan(texts)}, asked["nl"][:SCANNED], "scanned"
        )
    ours = engines["ours"]
    assert isinstance(ours, Ours)
    row["overlap_at_10"] = round(overlap(ours.index, [*asked["q4"], *asked["nl"]]), 4)
    row |= updates(engines, size, extra, asked["q4"])
    return row | opening(ours.index)


def in_turns(engines: dict[str, Engine], questions: list[str], kind: str) -> Found:
    """Put the same questions to all; a slow moment hits all of them."""
    for engine in engines.values():
        engine.search(questions[0])
    times = _alternating(engines, questions)
    found: Found = {f"{name}_{kind}_ms": spread(each) for name, each in times.items()}
    for name, each in times.items():
        if name != "ours":
            ratios = [one / max(own, 1e-6) for one, own in zip(each, times["ours"], strict=True)]
            found[f"{name}_over_ours_{kind}"] = rounded(median(ratios))
    return found


def _alternating(engines: dict[str, Engine], questions: list[str]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in engines}
    for text in questions:
        for name, engine in engines.items():
            began = time.process_time()
            engine.search(text)
            times[name].append(time.process_time() - began)
    return times


def overlap(index: SparseIndex, questions: list[str]) -> float:
    """How many of the ten found an exact search could have returned, too."""
    kept = whole = 0
    for text in questions:
        best = index.search(text, 10, exact=True)
        if best:
            found = np.array([key for key, _ in index.search(text, 10)])
            kept += int((index.scores(text, found) >= best[-1][1] - 1e-9).sum())
            whole += len(best)
    return kept / max(1, whole)


def updates(engines: dict[str, Engine], size: int, extra: list[str], questions: list[str]) -> Found:
    """Add a text and search: the search must see it."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    for number, (text, asked) in enumerate(zip(extra, questions[: len(extra)], strict=True)):
        for name, engine in engines.items():
            began = time.process_time()
            engine.add(size + number, text)
            engine.search(asked)
            times[name].append(time.process_time() - began)
    return {f"{name}_add_and_search_ms": spread(each) for name, each in times.items()}


def opening(index: SparseIndex) -> Found:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "save_s": rounded(seconds(lambda: index.save(folder))),
            "open_ms": rounded(1e3 * seconds(lambda: SparseIndex.load(folder))),
            "open_unverified_ms": rounded(
                1e3 * seconds(lambda: SparseIndex.load(folder, verify=False))
            ),
        }


# Words and vectors together


class Projection:
    """Random projections of hashed words: alike where words are shared; enough to measure speed.

    The time it takes is kept apart, and questions it was shown before cost nothing.
    """

    def __init__(self) -> None:
        random = np.random.default_rng(7)
        self._table = random.standard_normal((4096, DIMENSIONS), dtype=np.float32)
        self._ready: dict[str, NDArray[np.float32]] = {}
        self.seconds = 0.0

    def prepare(self, questions: list[str]) -> None:
        self._ready = {text: self([text])[0] for text in questions}

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        if len(texts) == 1 and texts[0] in self._ready:
            return self._ready[texts[0]][np.newaxis]
        began = time.process_time()
        split = [text.split() for text in texts]
        numbers = np.array([crc32(word.encode()) % 4096 for words in split for word in words])
        starts = np.cumsum([0, *map(len, split[:-1])])
        vectors: NDArray[np.float32] = np.add.reduceat(self._table[numbers], starts, axis=0)
        self.seconds += time.process_time() - began
        return vectors


def fused(words: list[str], size: int) -> Found:
    random = np.random.default_rng(size)
    gc.collect()
    before = resident()
    projection = Projection()
    recall = Recall(embedder=CallableEmbedder(projection, "projection", DIMENSIONS))
    adding = 0.0
    for begin in range(0, size, BATCH):
        texts = texts_of(words, BATCH, random)
        entries = [entry(begin + number, text) for number, text in enumerate(texts)]
        adding += seconds(lambda: recall.add(entries))  # noqa: B023  # called at once
    held = resident() - before
    questions = natural_questions(words, ROUNDS, random)
    projection.prepare(questions)
    now = START + 60.0 * size
    ways: dict[str, Callable[[str], object]] = {
        "search": lambda text: recall.search(text, 10, now=now),
        "explained": lambda text: recall.search(text, 10, now=now, explain=True),
        "one_session": lambda text: recall.search(text, 10, now=now, only=Only(session="3")),
        "one_project": lambda text: recall.search(
            text, 10, now=now, only=Only(metadata={"project": 7})
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for text in questions:
        for name, way in ways.items():
            times[name].append(seconds(lambda: way(text)))  # noqa: B023  # called at once
    one = [
        seconds(lambda: recall.add([entry(size + number, text)]))  # noqa: B023  # called at once
        for number, text in enumerate(texts_of(words, UPDATES, random))
    ]
    return {
        "entries": size,
        **{f"{name}_ms": spread(each) for name, each in times.items()},
        "add_us": rounded(1e6 * (adding - projection.seconds) / size),
        "add_one_us": rounded(1e6 * median(one)),
        "embed_us": rounded(1e6 * projection.seconds / size),
        "megabytes": round(held / 1e6),
    }


def personal(words: list[str], size: int) -> Found:
    """Search the same messages in turns, plainly and with the second look of a personal memory.

    A question is put twice: whom the second look reads is kept, so reading is told apart.
    """
    random = np.random.default_rng(size)
    projection = Projection()
    embedder = CallableEmbedder(projection, "projection", DIMENSIONS)
    memories = {
        "plain": Recall(embedder=embedder),
        "personal": Recall(embedder=embedder, personal=True),
    }
    entries = [entry(number, text) for number, text in enumerate(texts_of(words, size, random))]
    for recall in memories.values():
        recall.add(entries)
    questions = [
        f"What did I say about {each}?" for each in content_questions(words, ROUNDS, random)
    ]
    projection.prepare(questions)
    now = START + 60.0 * size
    times: dict[str, list[float]] = {"plain": [], "personal_unread": [], "personal": []}
    for text in questions:
        for name, recall in (
            *zip(("plain", "personal_unread"), memories.values(), strict=True),
            ("personal", memories["personal"]),
        ):
            times[name].append(seconds(lambda: recall.search(text, 10, now=now)))  # noqa: B023  # called at once
    over = {
        f"{name}_over_plain": rounded(median(each) / median(times["plain"]))
        for name, each in times.items()
        if name != "plain"
    }
    return {
        "messages": size,
        **{f"{name}_ms": spread(each) for name, each in times.items()},
        **over,
    }


def entry(number: int, text: str) -> Entry:
    speaker, role = (("ann", "user"), ("bob", "assistant"))[number % 2]
    return Entry(
        str(number),
        text,
        session=str(number // SESSION),
        speaker=speaker,
        role=role,
        time=START + 60.0 * number,
        metadata={"project": number // SESSION % PROJECTS},
    )


# Measuring


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def spread(times: list[float]) -> list[float]:
    """Return p50 and p99 in milliseconds."""
    return [rounded(1e3 * float(each)) for each in np.percentile(times, [50, 99])]


def resident() -> int:
    """Return the bytes this process has in memory; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


# The table

TARGETS = {
    ("sparse", 100_000): {"ours_q4_ms": "0.5 / 1.5", "ours_nl_ms": "1.2 / 3"},
    ("sparse", 1_000_000): {"ours_nl_ms": "3 / 6", "ours_add_and_search_ms": "2"},
    ("fused", 100_000): {"search_ms": "2.5"},
    ("fused", 1_000_000): {"search_ms": "14"},
    ("personal", 10_000): {"personal_over_plain": "1.5"},
}
VECTOR_TARGETS = {100_000: "1.5", 1_000_000: "11"}


def table(report: Found) -> str:
    lines = [
        "# How quick recall is",
        "",
        "By `bench/recall_speed.py`; raw figures in `recall_speed.json`. CPU time, one thread; two",
        f"figures are p50 / p99. {report['machine']}, texts: {report['texts']}.",
        "Searches of words and vectors do not include embedding the question.",
        "",
        "| part | size | what | measured | target |",
        "|---|---|---|---|---|",
    ]
    for part, size_of in PARTS.items():
        for row in report.get(part, []):
            targets = TARGETS.get((part, row[size_of]), {})
            lines += [
                f"| {part} | {row[size_of]:,} | {name.replace('_', ' ')} | {plain(value)} "
                f"| {targets.get(name, '')} |"
                for name, value in row.items()
                if name != size_of
            ]
    return "\n".join([*lines, *quoted()]) + "\n"


def quoted() -> list[str]:
    """What bench/dense.py said of the vectors alone."""
    path = RESULTS / "dense.json"
    rows = json.loads(path.read_text())["speed"] if path.exists() else []
    return [
        f"| vectors, by bench/dense.py | {row['vectors']:,} | search ms | {row['search_ms']:g} "
        f"| {VECTOR_TARGETS.get(row['vectors'], '')} |"
        for row in rows
    ]


def plain(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(f"{each:g}" for each in value)
    return f"{value:,g}" if value < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
