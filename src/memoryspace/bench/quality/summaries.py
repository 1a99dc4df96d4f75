"""Facts kept by model-free summaries, compared with an earlier revision's.

Each conversation of the personal set is summarised whole, to a share of its own tokens. A fact is
kept if the summary contains a string that answers a question about it, or a string that the
currently valid fact must have; questions without an answer have no fact. This is repeated with a
table, a log and a program pasted in and the same token limit; the loss is what they cost. The
earlier revision is taken from git and run in its own process on the same conversations and limits.
"newest" is as much of the end of the conversation as fits. Intervals of the difference are
bootstrapped over people; nothing else is random.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...context.summaries.extractive import ExtractiveSummary
from ...message import Msg
from ...token import estimate_tokens
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option

SOURCE = Path(__file__).parents[4]  # of a checkout: only it has earlier revisions
FILE = "personal_dev.jsonl"
BEFORE = "9d0551c"  # the last revision whose summary went by rarity
SHARES = (10, 20, 35)  # per cent of a conversation's tokens
KINDS = ("answers", "current")
UNANSWERED = ("abstain", "sensitive")
CONVERSATIONS = ("as they were", "with data pasted")
COMPARED = ("memoryspace", "before")
ROUNDS = 1000  # rounds of the bootstrap
SEED = 11

# The program of a process that runs an earlier revision.
_CHILD = """\
import asyncio, json, sys
from memoryspace.context.extractive import ExtractiveSummary
from memoryspace.message import Msg

async def summaries(jobs):
    summary = ExtractiveSummary()
    return [
        await summary("", [Msg(role, text, role) for role, text in job["turns"]], job["room"])
        for job in jobs
    ]

json.dump(asyncio.run(summaries(json.load(sys.stdin))), sys.stdout)
"""

Turn = tuple[str, str]  # role, text


@dataclass(frozen=True)
class Job:
    """A conversation to summarise: unchanged, or with data pasted in."""

    person: str
    lang: str
    is_pasted: bool
    share: int
    room: int
    turns: tuple[Turn, ...]


# -- what is summarised ---------------------------------------------------------------------------


def people_in(path: Path) -> list[dict[str, Any]]:
    """Return the people of a file, or of the personal set in a folder."""
    file = path / FILE if path.is_dir() else path
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def turns_of(person: dict[str, Any]) -> list[Turn]:
    turns = [turn for session in person["sessions"] for turn in session["turns"]]
    return [(turn["role"], turn["text"]) for turn in turns]


def jobs_of(people: Sequence[dict[str, Any]], shares: Sequence[int]) -> Iterator[Job]:
    for person in people:
        turns = turns_of(person)
        tokens = sum(estimate_tokens(text) for _, text in turns)
        for is_pasted in (False, True):
            said = tuple(with_data(turns) if is_pasted else turns)
            for share in shares:
                room = tokens * share // 100
                yield Job(person["id"], person["lang"], is_pasted, share, room, said)


def with_data(turns: Sequence[Turn]) -> list[Turn]:
    """Return a conversation with a table, a log and a program in it, each asked about."""
    found = list(turns)
    for number, data in enumerate((table(), log(), program()), start=1):
        found.insert(number * len(found) // 4, ("user", f"can you check this\n{data}"))
    return found


def table() -> str:
    rng = random.Random(SEED)
    rows = [
        f"| R-{rng.randrange(1000, 9999)} | 2024-0{rng.randrange(1, 9)}-1{rng.randrange(9)} "
        f"| {rng.randrange(10**6) / 100:,.2f} | {rng.randrange(100)}% |"
        for _ in range(12)
    ]
    return "\n".join(["| id | date | amount | share |", "|---|---|---|---|", *rows])


def log() -> str:
    rng = random.Random(SEED)
    return "\n".join(
        f"2024-05-06 12:{rng.randrange(10, 59)}:{rng.randrange(10, 59)},{rng.randrange(999):03} "
        f"{rng.choice(['INFO', 'ERROR', 'WARN'])} worker-{rng.randrange(9)} request "
        f"{rng.randrange(10**8):08x} failed after {rng.randrange(9999)} ms, must retry"
        for _ in range(12)
    )


def program() -> str:
    return "\n".join(
        f"    total_{number} = retry_only(max_tries={number}, host='db-{number}.internal')  # todo"
        for number in range(12)
    )


# -- the ways -------------------------------------------------------------------------------------


async def summaries(jobs: Sequence[Job]) -> list[str]:
    """Return the summaries as this revision writes them."""
    summary = ExtractiveSummary()
    return [
        await summary("", [Msg(role, text, role) for role, text in job.turns], job.room)  # type: ignore[arg-type]
        for job in jobs
    ]


def summaries_before(jobs: Sequence[Job], revision: str) -> list[str]:
    """Return the summaries of another revision, from a process of its own."""
    with TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", str(SOURCE), "archive", revision, "src"], check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        found = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps([asdict(job) for job in jobs]).encode(),
            env={**os.environ, "PYTHONPATH": str(Path(folder) / "src")},
            check=True,
            capture_output=True,
        )
    texts: list[str] = json.loads(found.stdout)
    return texts


def newest(job: Job) -> str:
    """Return as many of the last turns as fit, and the end of the one before."""
    text = "\n".join(text for _, text in job.turns)
    while text and estimate_tokens(text) > job.room:
        text = text[
            max(1, len(text) * (estimate_tokens(text) - job.room) // estimate_tokens(text)) :
        ]
    return text


# -- what they are worth --------------------------------------------------------------------------


def facts_of(person: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return the topic of each fact, and the alternative strings that show it."""
    asked = [q for q in person["questions"] if q["category"] not in UNANSWERED and q["answer"]]
    facts: list[tuple[str, list[list[str]]]] = []
    for question in asked:
        if question["category"] == "count":
            facts += [("answers", [[item]]) for item in question["answer"]]
        else:
            facts.append(("answers", [question["answer"]]))
    return facts + [("current", item["must"]) for item in person["current"] if item["must"]]


@cache
def _pattern(string: str) -> re.Pattern[str]:
    """Return a pattern that starts at a word boundary and matches whole numbers only."""
    before = r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", string) else ""
    return re.compile(before + re.escape(string) + (r"(?!\d)" if string[-1].isdigit() else ""))


def is_kept(fact: Sequence[Sequence[str]], text: str) -> bool:
    low = text.lower()
    return all(any(_pattern(string.lower()).search(low) for string in any_of) for any_of in fact)


@dataclass(frozen=True)
class Score:
    """One conversation's score: facts kept by kind, of how many, in how many tokens."""

    job: Job
    kept: dict[str, int]
    facts: dict[str, int]
    tokens: int


def score(job: Job, text: str, facts: Sequence[tuple[str, list[list[str]]]]) -> Score:
    kept = dict.fromkeys(KINDS, 0)
    count = dict(kept)
    for kind, fact in facts:
        kept[kind] += is_kept(fact, text)
        count[kind] += 1
    return Score(job, kept, count, estimate_tokens(text))


def share_of(scores: Sequence[Score], *kinds: str) -> float:
    kept = sum(each.kept[kind] for each in scores for kind in kinds)
    return kept / max(1, sum(each.facts[kind] for each in scores for kind in kinds))


def difference(ours: Sequence[Score], theirs: Sequence[Score]) -> tuple[float, float]:
    """Return the 95 % interval of the gain in facts kept, bootstrapped over people."""
    rng = random.Random(SEED)
    pairs: dict[str, list[tuple[Score, Score]]] = {}
    for pair in zip(ours, theirs, strict=True):
        pairs.setdefault(pair[0].job.person, []).append(pair)
    found = []
    for _ in range(ROUNDS):
        drawn = [pair for each in rng.choices([*pairs], k=len(pairs)) for pair in pairs[each]]
        both = [share_of(side, *KINDS) for side in zip(*drawn, strict=True)]
        found.append(both[0] - both[1])
    found.sort()
    return found[int(ROUNDS * 0.025)], found[int(ROUNDS * 0.975)]


# -- the report -----------------------------------------------------------------------------------

HEAD = (
    "conversations",
    "room",
    "way",
    "answers kept",
    "current facts kept",
    "kept per 100 tokens",
    "tokens",
)


def rows_of(ways: Mapping[str, Sequence[Score]]) -> list[list[str]]:
    """Return a row for each kind of conversation, limit and method."""
    first = next(iter(ways.values()))
    groups = sorted(dict.fromkeys((each.job.is_pasted, each.job.share) for each in first))
    return [
        _row(name, _picked(scores, is_pasted, share), is_pasted, share)
        for is_pasted, share in groups
        for name, scores in ways.items()
    ]


def by_language(ways: Mapping[str, Sequence[Score]]) -> dict[str, dict[str, float]]:
    """Return the share of all facts that each method keeps, by language; mean over limits."""
    langs = dict.fromkeys(each.job.lang for each in next(iter(ways.values())))
    return {
        name: {
            lang: share_of([each for each in scores if each.job.lang == lang], *KINDS)
            for lang in langs
        }
        for name, scores in ways.items()
    }


def differences(ways: Mapping[str, Sequence[Score]]) -> dict[str, tuple[float, float]]:
    """Return how much more is kept than before, for each kind of conversation."""
    if "before" not in ways:
        return {}
    return {
        CONVERSATIONS[is_pasted]: difference(
            *([s for s in ways[name] if s.job.is_pasted == is_pasted] for name in COMPARED)
        )
        for is_pasted in (False, True)
    }


def _picked(scores: Sequence[Score], is_pasted: bool, share: int) -> list[Score]:
    return [s for s in scores if (s.job.is_pasted, s.job.share) == (is_pasted, share)]


def _row(name: str, scores: Sequence[Score], is_pasted: bool, share: int) -> list[str]:
    kept = sum(sum(each.kept.values()) for each in scores)
    tokens = sum(each.tokens for each in scores)
    return [
        CONVERSATIONS[is_pasted],
        f"{share} %",
        name,
        f"{share_of(scores, 'answers'):.3f}",
        f"{share_of(scores, 'current'):.3f}",
        f"{100 * kept / max(1, tokens):.2f}",
        f"{tokens / max(1, len(scores)):.0f}",
    ]


@dataclass(frozen=True)
class SummariesOptions(Flags):
    """The token limits, and the revision to compare with."""

    before: str = option(BEFORE, "an earlier revision of a checkout, or '' for none", quick="")
    shares: tuple[int, ...] = option(SHARES, "per cent of a conversation's tokens", quick=(20,))


def measure(options: SummariesOptions, run: Run) -> Raw:
    """Summarise every conversation with every method."""
    if run.data_path is None:
        raise CannotRun(f"summaries are of conversations: pass --data-path, a folder with {FILE}")
    people = people_in(run.data_path)
    jobs = list(jobs_of(people, options.shares))
    facts = {person["id"]: facts_of(person) for person in people}
    made: dict[str, Callable[[], list[str]]] = {
        "newest": lambda: [newest(job) for job in jobs],
        "before": lambda: summaries_before(jobs, options.before),
        "memoryspace": lambda: asyncio.run(summaries(jobs)),
    }
    if not options.before:
        del made["before"]
    ways = {}
    for name, make in made.items():
        run.say(name)
        pairs = zip(jobs, make(), strict=True)
        ways[name] = [score(job, text, facts[job.person]) for job, text in pairs]
    return {"rows": rows_of(ways), "languages": by_language(ways), "more": differences(ways)}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return what each method keeps, by limit and by language, and the differences."""
    languages = raw["languages"]
    names = list(next(iter(languages.values()), {}))
    by_lang = tuple(
        (way, *(f"{shares[name]:.3f}" for name in names)) for way, shares in languages.items()
    )
    more = tuple(
        (which, f"{low:+.3f} to {high:+.3f}") for which, (low, high) in raw["more"].items()
    )
    return [
        Grid("What is kept, by room", 3, HEAD, tuple(map(tuple, raw["rows"]))),
        Grid("All facts kept, by language (mean over rooms)", 1, ("way", *names), by_lang),
        Grid("Kept more than before, 95 % over people", 1, ("conversations", "more"), more),
    ]


BENCHMARK = Benchmark(
    "summaries",
    "what a summary without a model keeps of what people said",
    SummariesOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
