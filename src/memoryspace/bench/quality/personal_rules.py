"""The yield and the value of each rule of personal memory.

A rule is a row that reads an exact value, or a life event. Its yield is how often it fires on user
messages of the personal set, MemoryBank and LoCoMo. Its value is found by leaving it out: how many
valid facts of the personal set are lost (``found``), and how many invalid ones are gained
(``wrong``). A rule without yield or value should go. A quick run skips the second part. The numbers
come from the development half; a rule may be worth more to other people.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...service import PersonalMemoryService, ServiceSettings
from ...service.deriving.personal.chinese import clauses as chinese_clauses
from ...service.deriving.personal.chinese import rules as chinese
from ...service.deriving.personal.english import clauses as english_clauses
from ...service.deriving.personal.english import rules as english
from ...service.deriving.personal.extraction import facts_in
from ...service.values.memory import MemoryItem
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.experiment import CannotRun
from ..harness.options import Flags

LANGUAGES: dict[str, Any] = {"en": english, "zh": chinese}
CLAUSES = {"en": english_clauses, "zh": chinese_clauses}


class Counting:
    """A pattern that counts its matches."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.hits, self.groupindex = pattern, 0, pattern.groupindex

    def match(self, *where: Any) -> re.Match[str] | None:
        found = self.pattern.match(*where)
        self.hits += found is not None
        return found


def said(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield user messages, with the name of their set."""
    for person in _lines(folder / "personal_dev.jsonl"):
        for session in person["sessions"]:
            yield from (("personal", t["text"]) for t in session["turns"] if t["role"] == "user")
    for user in _lines(folder / "memorybank_zh_en.jsonl.gz"):
        for day in user["days"]:
            yield from (("memorybank", turn["user"]) for turn in day["turns"])
    for talk in _lines(folder / "locomo_dev.jsonl.gz"):
        for session in talk["sessions"]:
            yield from (("locomo", turn["text"]) for turn in session["turns"])


def _lines(path: Path) -> Iterator[Any]:
    yield from map(json.loads, unpacked(path).splitlines())


def yields(folder: Path) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """Return how often each row fires and each attribute is stated, by set."""
    kept = {name: module.ROWS for name, module in LANGUAGES.items()}
    fired: dict[str, Counter[str]] = {}
    stated: dict[str, Counter[str]] = {}
    counting = {
        name: [row._replace(pattern=Counting(row.pattern)) for row in rows]
        for name, rows in kept.items()
    }
    for name, module in LANGUAGES.items():
        module.ROWS = tuple(counting[name])
    before: Counter[str] = Counter()
    for source, text in said(folder):
        for fact in facts_in(_memory(text)):
            stated.setdefault(fact.attribute, Counter())[source] += 1
        now = Counter({_name(n, i): row.pattern.hits for n, i, row in _rows(counting)})
        for rule, times in (now - before).items():
            fired.setdefault(rule, Counter())[source] += times
        before = now
    for name, module in LANGUAGES.items():
        module.ROWS = kept[name]
    return fired, stated


def _rows(tables: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    for name, rows in tables.items():
        yield from ((name, number, row) for number, row in enumerate(rows))


def _name(language: str, number: int) -> str:
    return f"{language} row {number:2} {LANGUAGES[language].ROWS[number].attribute}"


def _memory(text: str) -> MemoryItem:
    return MemoryItem(
        id="m", user_id="u", session_id="s", value=text, text=text, role="user",
        created_at=1.7e9, updated_at=1.7e9,
    )  # fmt: skip


async def believed(person: dict[str, Any]) -> list[str]:
    """Return the texts of the facts that hold at the end."""
    async with PersonalMemoryService(settings=ServiceSettings(embedder=None)) as service:
        for session in person["sessions"]:
            start = datetime.fromisoformat(session["time"])
            await service.add_memory(person["id"], [
                {"role": turn["role"], "content": turn["text"],
                 "timestamp": (start + timedelta(seconds=40 * at)).isoformat()}
                for at, turn in enumerate(session["turns"])
            ])  # fmt: skip
        page = await service.page(person["id"], limit=1000, filters={"kind": "fact"})
        return [memory.text for memory in page.memories]


def score(people: Sequence[dict[str, Any]]) -> tuple[int, int, int]:
    """Return how many facts are expected, found, and wrong."""
    wanted = found = wrong = 0
    for person in people:
        facts = asyncio.run(believed(person))
        for item in person["current"]:
            wanted += bool(item["must"])
            found += bool(item["must"]) and any(
                all(_has(fact, words) for words in item["must"]) for fact in facts
            )
            wrong += sum(
                any(_has(fact, [text]) and not _has(fact, item.get("unless", ())) for fact in facts)
                for text in item["must_not"]
            )
    return wanted, found, wrong


def _has(text: str, words: Sequence[str]) -> bool:
    """Return whether a text contains one of these, starting at a word boundary."""
    return any(
        re.search(("(?<![a-z0-9])" if word[0].isascii() else "") + re.escape(word), text.lower())
        for word in words
    )


def worth(people: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    """Yield what changes when each rule is left out."""
    for language in LANGUAGES:
        mine = [person for person in people if person["lang"] in (language, "mixed")]
        own = score(mine)
        for table, module in (("ROWS", LANGUAGES[language]), ("MATTERS", CLAUSES[language])):
            rules = getattr(module, table)
            for number, rule in enumerate(rules):
                setattr(module, table, rules[:number] + rules[number + 1 :])
                _, found, wrong = score(mine)
                name = rule.attribute if table == "ROWS" else rule.name
                label = f"{language} {table.lower()[:-1]} {number:2} {name}"
                yield label, found - own[1], wrong - own[2]
            setattr(module, table, rules)


SETS = ("personal", "memorybank", "locomo")


@dataclass(frozen=True)
class RulesOptions(Flags):
    """No options."""


def measure(options: RulesOptions, run: Run) -> Raw:
    """Count what each rule yields, then leave out each in turn."""
    if run.data_path is None:
        raise CannotRun("rules are counted in conversations: pass --data-path FOLDER")
    run.say("yields")
    fired, stated = yields(run.data_path)
    silent = {_name(n, i) for n, i, _ in _rows({n: m.ROWS for n, m in LANGUAGES.items()})}
    rows = {**fired, **{rule: Counter[str]() for rule in silent - fired.keys()}}
    found: Raw = {"yields": [*sorted(rows.items()), *sorted(stated.items())], "worth": []}
    if not run.quick:
        people = list(_lines(run.data_path / "personal_dev.jsonl"))
        found["base"] = score(people)
        run.say("leaving out each rule")
        found["worth"] = list(worth(people))
    return found


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return what each rule yields, and what it is worth."""
    fired = tuple(
        (rule, *(str(counts.get(name, 0)) for name in SETS)) for rule, counts in raw["yields"]
    )
    worths = tuple((rule, f"{found:+d}", f"{wrong:+d}") for rule, found, wrong in raw["worth"])
    made = [Grid("How often each rule fires", 1, ("rule", *SETS), fired)]
    if worths:
        wanted, found, wrong = raw["base"]
        note = f"With all rules: wanted {wanted}, found {found}, wrong {wrong}."
        made.append(Grid("Without a rule", 1, ("rule", "found", "wrong"), worths, note))
    return made


BENCHMARK = Benchmark(
    "personal-rules",
    "what each rule of personal memory yields, and what it is worth",
    RulesOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
