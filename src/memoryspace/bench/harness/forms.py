"""Converters from published data sets to the format that experiments read: gzipped JSON Lines."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ...errors import CorruptData

Written: TypeAlias = Iterator[tuple[str, bytes]]  # file names and contents

_LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_SESSION = re.compile(r"session_(\d+)")


def packed(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Return gzipped JSON Lines; the bytes are reproducible."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return gzip.compress(text.encode(), mtime=0)


def _as_it_is(name: str, content: bytes) -> Written:
    yield name, content


def _gzipped(name: str, content: bytes) -> Written:
    yield name, gzip.compress(content, mtime=0)


def _hotpot(name: str, content: bytes) -> Written:
    yield name, packed(map(_hop, _rows(name, content)))


def _hop(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["_id"],
        "question": row["question"],
        "answer": row.get("answer", ""),
        "type": row["type"],
        "level": row.get("level", ""),
        "granularity": "sentence",
        "supporting": row["supporting_facts"],
        "paragraphs": [
            {"title": title, "sentences": sentences} for title, sentences in row["context"]
        ],
    }


def _locomo(name: str, content: bytes) -> Written:
    yield name, packed(map(_talk, _rows(name, content)))


def _talk(row: Mapping[str, Any]) -> dict[str, Any]:
    talk = row["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
    sessions = [
        {
            "session": str(number),
            "datetime": talk[f"session_{number}_date_time"],
            "turns": [_turn(turn) for turn in talk[f"session_{number}"]],
        }
        for number in numbers
    ]
    asked = [
        {
            "question": each["question"],
            "answer": each.get("answer"),
            "category": each["category"],
            "category_name": _LOCOMO_CATEGORIES[each["category"]],
            "evidence": each.get("evidence", []),
        }
        for each in row["qa"]
    ]
    return {"id": row["sample_id"], "sessions": sessions, "qa": asked}


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"dia_id": turn["dia_id"], "speaker": turn["speaker"], "text": turn["text"]}
    caption = turn.get("blip_caption")
    return kept if caption is None else {**kept, "image_caption": caption}


def _longmemeval(name: str, content: bytes) -> Written:
    rows = _rows(name, content)
    sessions: dict[str, list[Any]] = {}
    for row in rows:
        pairs = zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True)
        for id, turns in pairs:
            sessions.setdefault(id, turns)
    yield name, packed(map(_haystack, rows))
    yield (
        name.replace("questions", "sessions"),
        packed({"id": id, "turns": turns} for id, turns in sessions.items()),
    )


def _haystack(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["question_id"],
        "type": row["question_type"],
        "abstention": row["question_id"].endswith("_abs"),
        "question": row["question"],
        "answer": str(row["answer"]),
        "question_date": row["question_date"],
        "answer_session_ids": row["answer_session_ids"],
        "haystack": list(zip(row["haystack_session_ids"], row["haystack_dates"], strict=True)),
    }


def _rows(name: str, content: bytes) -> list[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = json.loads(content)
    except ValueError as error:
        raise CorruptData(f"the source of {name} is not valid JSON: {error}") from error
    return rows


FORMS: Mapping[str, Callable[[str, bytes], Written]] = {
    "as it is": _as_it_is,
    "gzip": _gzipped,
    "hotpot": _hotpot,
    "locomo": _locomo,
    "longmemeval": _longmemeval,
}
