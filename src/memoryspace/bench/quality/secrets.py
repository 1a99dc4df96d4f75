"""Secret detection: how many messages with secrets are marked, and how many without.

In files with personal questions (``personal*.jsonl``) the ``wrong`` strings of the category
``sensitive`` are the secrets; all other conversations of the folder should have none. Every missed
or wrongly marked message is reported, with the text that was taken for a secret.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...service.secrets import masked, secrets_in
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.experiment import CannotRun
from ..harness.options import Flags

OTHERS = ("memorybank", "locomo", "beam", "longmemeval_s_sessions", "sgd")
COUNTED = ("messages", "secret", "marked", "legible", "false")


def texts_in(row: dict[str, Any]) -> Iterator[str]:
    """Yield the messages of one conversation, in any of the schemas."""
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


def counted(path: Path, say: Callable[[str], None]) -> Counter[str]:
    """Return how many messages there are, and how many fall under each name of ``COUNTED``."""
    counts: Counter[str] = Counter()
    for line in unpacked(path).splitlines():
        row = json.loads(line)
        secrets = secrets_of(row)
        for text in texts_in(row):
            found = secrets_in(text)
            is_one = any(secret in text.lower() for secret in secrets)
            is_legible = any(secret in masked(text).lower() for secret in secrets)
            counts.update(
                messages=1, secret=is_one, marked=is_one and bool(found), legible=is_legible,
                false=bool(found) and not is_one,
            )  # fmt: skip
            if is_legible:
                say(f"  missed: {text[:200]!r}")
            elif found and not is_one:
                say(f"  for nothing: {[text[each.start - 30 : each.end] for each in found][:3]}")
    return counts


@dataclass(frozen=True)
class SecretsOptions(Flags):
    """No options."""


def measure(options: SecretsOptions, run: Run) -> Raw:
    """Count marked messages, file by file."""
    if run.data_path is None:
        raise CannotRun("secrets are counted in conversations: pass --data-path FOLDER")
    paths = sorted(run.data_path.glob("*.jsonl*"))
    chosen = [path for path in paths if path.name.startswith(("personal", *OTHERS))]
    return {"rows": [{"file": path.name, **counted(path, run.say)} for path in chosen]}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the counts, file by file."""
    head = ("file", "messages", "with a secret", "marked", "secret still legible", "marked falsely")
    rows = tuple(
        (row["file"], *(f"{row.get(name, 0):,}" for name in COUNTED)) for row in raw["rows"]
    )
    return [Grid("Messages with secrets", 1, head, rows)]


BENCHMARK = Benchmark(
    "secrets",
    "how many messages with secrets are marked, and how many without",
    SecretsOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
