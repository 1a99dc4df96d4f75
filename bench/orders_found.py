"""How much of ordinary talk is taken for orders to a model, and held back for nothing:

    python bench/orders_found.py --data-path FOLDER

Reads every conversation, article and question of the folder, each text as what its role says it is
(the instructions of a system prompt and the output of a tool are not talk, and are left out), and
shows every text that is held back, with the rule that did it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryspace.service.trust import suspicion

NOT_TALK = ("system", "tool")


def texts_in(data: Any, role: str | None = None) -> Iterator[tuple[str | None, str]]:
    """Yield every text in a row of any schema, with the role that says it where there is one."""
    if isinstance(data, str):
        yield role, data
    elif isinstance(data, list):
        for each in data:
            yield from texts_in(each, role)
    elif isinstance(data, dict) and data.get("role") not in NOT_TALK:
        for each in data.values():
            yield from texts_in(each, data.get("role", role))


def rows_of(path: Path) -> Iterator[Any]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def measure(path: Path) -> tuple[int, int, float]:
    """Return how many texts there are, how many are held back, and the seconds it took."""
    texts = held = 0
    start = time.process_time()
    for row in rows_of(path):
        for role, text in texts_in(row):
            texts += 1
            found = suspicion(text, role=role)
            if found is not None:
                held += 1
                around = text[max(0, found.start - 40) : found.start + 120]
                print(f"  {found.pattern}: {around!r}")
    return texts, held, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-path", type=Path, required=True)
    folder: Path = parser.parse_args().data_path
    for path in sorted(folder.glob("*.jsonl*")):
        texts, held, seconds = measure(path)
        print(f"{path.name}: {held} of {texts:,} held back ({seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
