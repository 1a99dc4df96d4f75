"""The speed of recall: words against tantivy and a plain scan, and whole searches at three sizes.

Texts are spans of 8 to 48 words, from the text that ``--data-path`` names or invented. Every engine
gets the same questions in one process, in turns, one thread, in CPU time. Vectors alone are
measured by ``memoryspace bench dense``.
"""

from __future__ import annotations

import gc
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ...embedding import CallableEmbedder
from ...retrieval import Entry, Only, Recall
from ...retrieval.sparse.index import SparseIndex
from ...retrieval.text.stopwords import STOP_WORDS
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.measuring import resident_bytes
from ..harness.options import Flags, option
from ..harness.timing import CPU, rounded, seconds

ROUNDS = 200  # questions of each kind
UPDATES = 100
SCANNED = 10  # questions put to the plain scan, which is slow
DIMENSIONS = 256
SESSION = 20  # entries
PROJECTS = 50
BATCH = 1000
START = 1.6e9

Random = np.random.Generator
Found = dict[str, Any]


PARTS = {"sparse": "texts", "fused": "entries", "personal": "messages"}  # and what is counted


@dataclass(frozen=True)
class RecallSpeedOptions(Flags):
    """Which parts, and how much."""

    only: tuple[str, ...] = option(
        tuple(PARTS), "parts to measure; the others keep their last figures", choices=tuple(PARTS)
    )
    largest: int = option(1_000_000, "texts", quick=100_000)


def measure(options: RecallSpeedOptions, run: Run) -> Raw:
    """Measure each part at growing sizes."""
    words = words_of(run.data_path)
    texts = "made up" if run.data_path is None else run.data_path.name
    found: Raw = {**{name: run.before.get(name, []) for name in PARTS}, "texts": texts}
    works = {"sparse": (sparse, (100_000, 1_000_000)), "personal": (personal, (10_000,)),
             "fused": (fused, (10_000, 100_000, 1_000_000))}  # fmt: skip
    for name in options.only:
        work, sizes = works[name]
        found[name] = []
        for size in (each for each in sizes if each <= options.largest):
            run.say(f"{name}, {size:,}")
            found[name].append(work(words, size))
    return found


# Texts and questions


def words_of(path: Path | None) -> list[str]:
    if path is None:
        return made_up(2_000_000)
    return unpacked(path).decode("utf-8").split()


def made_up(count: int) -> list[str]:
    """Return invented words with natural frequencies."""
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
    """Return four content words from anywhere in a span of text."""
    found: list[str] = []
    while len(found) < count:
        start = int(random.integers(0, len(words) - 60))
        plain = {re.sub(r"\W", "", word).lower() for word in words[start : start + 60]}
        useful = sorted(word for word in plain - set(STOP_WORDS) if len(word) > 3)
        if len(useful) >= 4:
            found.append(" ".join(random.choice(useful, 4, replace=False)))
    return found


def natural_questions(words: list[str], count: int, random: Random) -> list[str]:
    """Return eight consecutive words, including stop words."""
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
    """The Rust engine, in memory: like ours, it writes nothing to disk."""

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
    """Bags of words, compared one by one, as in a prototype."""

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
            began = CPU()
            engines[name] = kind(texts)
        except ImportError:
            continue  # tantivy is not installed: its rows are missing
        row[f"{name}_docs_per_s"] = rounded(size / (CPU() - began))
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
    """Put the same questions to all in turns, which spreads slow moments over all."""
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
            began = CPU()
            engine.search(text)
            times[name].append(CPU() - began)
    return times


def overlap(index: SparseIndex, questions: list[str]) -> float:
    """Return how many of the ten hits an exact search could have returned too."""
    kept = whole = 0
    for text in questions:
        best = index.search(text, 10, exact=True)
        if best:
            found = np.array([key for key, _ in index.search(text, 10)])
            kept += int((index.scores(text, found) >= best[-1][1] - 1e-9).sum())
            whole += len(best)
    return kept / max(1, whole)


def updates(engines: dict[str, Engine], size: int, extra: list[str], questions: list[str]) -> Found:
    """Add a text and search; the search must see it."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    for number, (text, asked) in enumerate(zip(extra, questions[: len(extra)], strict=True)):
        for name, engine in engines.items():
            began = CPU()
            engine.add(size + number, text)
            engine.search(asked)
            times[name].append(CPU() - began)
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
    """Random projections of hashed words: similar for shared words; enough to measure speed.

    Its time is recorded separately, and repeated questions are free.
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
        began = CPU()
        split = [text.split() for text in texts]
        numbers = np.array([crc32(word.encode()) % 4096 for words in split for word in words])
        starts = np.cumsum([0, *map(len, split[:-1])])
        vectors: NDArray[np.float32] = np.add.reduceat(self._table[numbers], starts, axis=0)
        self.seconds += CPU() - began
        return vectors


def fused(words: list[str], size: int) -> Found:
    random = np.random.default_rng(size)
    gc.collect()
    before = resident_bytes()
    projection = Projection()
    recall = Recall(embedder=CallableEmbedder(projection, "projection", DIMENSIONS))
    adding = 0.0
    for begin in range(0, size, BATCH):
        texts = texts_of(words, BATCH, random)
        entries = [entry(begin + number, text) for number, text in enumerate(texts)]
        adding += seconds(lambda: recall.add(entries))  # noqa: B023  # called at once
    held = resident_bytes() - before
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
    """Search the same messages in turns, with and without a personal memory's second pass.

    A question is put twice: the second pass caches what it reads, so reading shows separately.
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


def spread(times: list[float]) -> list[float]:
    """Return p50 and p99 in milliseconds."""
    return [rounded(1e3 * float(each)) for each in np.percentile(times, [50, 99])]


# The table

TARGETS = {
    ("sparse", 100_000): {"ours_q4_ms": "0.5 / 1.5", "ours_nl_ms": "1.2 / 3"},
    ("sparse", 1_000_000): {"ours_nl_ms": "3 / 6", "ours_add_and_search_ms": "2"},
    ("fused", 100_000): {"search_ms": "2.5"},
    ("fused", 1_000_000): {"search_ms": "14"},
    ("personal", 10_000): {"personal_over_plain": "1.5"},
}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return every figure, beside its target if there is one."""
    rows = tuple(
        (part, f"{row[size_of]:,}", name.replace("_", " "), plain(value), targets.get(name, ""))
        for part, size_of in PARTS.items()
        for row in raw.get(part, ())
        for targets in (TARGETS.get((part, row[size_of]), {}),)
        for name, value in row.items()
        if name != size_of
    )
    note = f"Two figures are p50 / p99. Texts: {raw['texts']}. Embedding the question is not in it."
    head = ("part", "size", "what", "measured", "target")
    return [Grid("Searches by words, and by words and vectors", 3, head, rows, note)]


def plain(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(f"{each:g}" for each in value)
    return f"{value:,g}" if value < 1000 else f"{value:,.0f}"


BENCHMARK = Benchmark(
    "recall-speed",
    "searches by words beside tantivy and a plain scan, and whole searches",
    RecallSpeedOptions,
    measure,
    tables,
    notes="CPU time, one thread.",
    packages=("memoryspace", "numpy", "PyStemmer", "tantivy"),
)
