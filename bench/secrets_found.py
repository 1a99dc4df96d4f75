"""How many messages with secrets are marked, and how many without:

    python bench/secrets_found.py --data-path FOLDER

In files with personal questions (``personal*.jsonl``) the ``wrong`` strings of the category
``sensitive`` are the secrets; in all other conversations of the folder there should be none. Every
message that was missed or marked for nothing is shown, with what was taken for a secret.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryspace.service.secrets import masked, secrets_in

OTHERS = ("memorybank", "locomo", "beam", "longmemeval_s_sessions", "sgd")


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def texts_in(row: dict[str, Any]) -> Iterator[str]:
    """Yield what was said in one conversation, in whichever of the schemas it is."""
    sessions = row.get("sessions", [row])
    turns = [turn for session in sessions for turn in session.get("turns", ())]
    turns += [turn for day in row.get("days", ()) for turn in day["turns"]]
    for turn in [*turns, *row.get("messages", ())]:
        parts = [turn.get(key) for key in ("text", "content", "user", "assistant")]
        yield from (part for part in parts if isinstance(part, str))


def secrets_of(row: dict[str, Any]) -> list[str]:
    asked = [each for each in row.get("questions", ()) if isinstance(each, dict)]
    sensitive = [each for each in asked if each.get("category") == "sensitive"]
    return [wrong.lower() for each in sensitive for wrong in each["wrong"]]


def measure(path: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in rows_of(path):
        secrets = secrets_of(row)
        for text in texts_in(row):
            found = secrets_in(text)
            is_one = any(secret in text.lower() for secret in secrets)
            is_legible = any(secret in masked(text).lower() for secret in secrets)
            counted.update(
                messages=1, secret=is_one, marked=is_one and bool(found), legible=is_legible,
                false=bool(found) and not is_one,
            )  # fmt: skip
            if is_legible:
                print(f"  missed: {text[:200]!r}")
            elif found and not is_one:
                print(f"  for nothing: {[text[each.start - 30 : each.end] for each in found][:3]}")
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-path", type=Path, required=True)
    folder = parser.parse_args().data_path
    for path in sorted(folder.glob("*.jsonl*")):
        if path.name.startswith(("personal", *OTHERS)):
            print(path.name)
            print(f"  {dict(measure(path))}")


if __name__ == "__main__":
    main()
