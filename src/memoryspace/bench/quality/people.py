"""People of a personal data set: their messages added to a service, and answers judged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ...embedding import Embedder
from ...retrieval import Recall
from ...service import PersonalMemoryService, ServiceSettings
from ..harness.data import unpacked

Person: TypeAlias = Mapping[str, Any]


def read_people(path: Path) -> Iterator[Person]:
    """Yield the people of a JSON Lines file, packed or plain."""
    yield from (json.loads(line) for line in unpacked(path).splitlines() if line.strip())


async def filled(person: Person, embedder: Embedder | None) -> Recall:
    """Add all messages of a person to a service; return the index it searches."""
    service = PersonalMemoryService(settings=ServiceSettings(embedder=embedder))
    async with service:
        for session in person["sessions"]:
            messages = [_message(session["time"], at, turn)
                        for at, turn in enumerate(session["turns"])]  # fmt: skip
            await service.add_memory(person["id"], messages, session_id=session["session"])
        await service.search(person["id"], "hello")
        found: Recall = service.searcher._slots[person["id"]].index.recall  # type: ignore[attr-defined]  # of a service that searches here
        return found


def _message(start: str, at: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    when = datetime.fromisoformat(start) + timedelta(seconds=40 * at)
    name = {"name": turn["name"]} if "name" in turn else {}
    said = {"id": turn["id"], "role": turn["role"], "content": turn["text"]}
    return {**said, "timestamp": when.isoformat(), **name}


def is_right(question: Mapping[str, Any], turn: str, text: str) -> bool:
    """Return whether a turn answers a question: it is right, not wrong, and still valid."""
    is_old = turn in question["stale_turns"] and turn not in question["gold_turns"]
    return has(text, question["answer"]) and not has(text, question["wrong"]) and not is_old


def has(text: str, strings: Sequence[str]) -> bool:
    """Return whether a text contains one of some strings, starting at a word boundary."""
    return any(_pattern(each).search(text.lower()) for each in strings)


@cache
def _pattern(string: str) -> re.Pattern[str]:
    before = r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", string) else ""
    return re.compile(before + re.escape(string) + (r"(?!\d)" if string[-1].isdigit() else ""))
