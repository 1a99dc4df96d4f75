"""Generated sample data: small, reproducible, in the format of the real data sets.

Samples let every experiment run anywhere. Their words are invented, so figures on them show that an
experiment works and say nothing about language.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from .forms import packed

_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "po", "ri", "su", "ta", "ve", "wo", "xi",
              "ya", "zu", "kro", "ple", "sti", "tra", "mun", "del", "far", "gil")  # fmt: skip
_SHAPES = ("DISK", "LIGHT", "SPHERE", "TRIANGLE", "CIGAR", "OVAL", "FIREBALL", "OTHER")
_COLOURS = ("", "RED", "GREEN", "BLUE", "ORANGE")
_STATES = ("NY", "CA", "TX", "OR", "FL", "KS")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August")
_HANZI = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨"
_SENTENCES = 6000  # words of the text: about 400 kB


def write(names: Sequence[str], folder: Path) -> dict[str, Path]:
    """Write samples of these files; return the paths."""
    paths = {}
    for name in names:
        if name not in MAKERS:
            raise InvalidInput(f"there is no sample of {name}; pass --data-path")
        paths[name] = folder / name
        paths[name].write_bytes(MAKERS[name]())
    return paths


class Words:
    """Invented words: a few common and most rare, as in a language."""

    def __init__(self, seed: int, count: int = 8000) -> None:
        self.random = random.Random(seed)
        made: dict[str, None] = {}
        while len(made) < count:
            made["".join(self.random.choices(_SYLLABLES, k=self.random.randint(2, 4)))] = None
        self.words = list(made)
        self._weights = list(accumulate(1 / rank for rank in range(1, count + 1)))
        self._names = iter(self.words[::-1])  # rare ones

    def some(self, count: int) -> list[str]:
        """Return this many words with natural frequencies."""
        return self.random.choices(self.words, cum_weights=self._weights, k=count)

    def sentence(self) -> str:
        """Return a sentence of 6 to 16 words."""
        return " ".join(self.some(self.random.randint(6, 16))).capitalize() + "."

    def name(self) -> str:
        """Return a name that has not been used yet."""
        return next(self._names).capitalize()


def text(seed: int = 1) -> bytes:
    """Return a running text."""
    words = Words(seed)
    return "\n".join(words.sentence() for _ in range(_SENTENCES)).encode()


def sightings(seed: int = 2, rows: int = 4000) -> bytes:
    """Return reports of lights in the sky: city, colour, shape, state, time."""
    words = Words(seed)
    cities = [words.name() for _ in range(400)]
    draw = words.random
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["City", "Colors Reported", "Shape Reported", "State", "Time"])
    for row in range(rows):
        day = f"{draw.randint(1, 12)}/{draw.randint(1, 28)}/{1950 + row // 100}"
        time = f"{day} {draw.randint(0, 23)}:{draw.randint(0, 59):02}"
        writer.writerow(
            [draw.choice(cities), draw.choice(_COLOURS), draw.choice(_SHAPES),
             draw.choice(_STATES), time]
        )  # fmt: skip
    return gzip.compress(file.getvalue().encode(), mtime=0)


def hops(seed: int = 3, questions: int = 60) -> bytes:
    """Return questions that each need two of ten paragraphs."""
    words = Words(seed)

    def paragraph(title: str, fact: str) -> dict[str, Any]:
        return {"title": title, "sentences": [fact, " " + words.sentence(), " " + words.sentence()]}

    def question(number: int) -> dict[str, Any]:
        river, land, ruler = words.name(), words.name(), words.name()
        told = [
            paragraph(river, f"{river} is a river in the land of {land}."),
            paragraph(land, f"{land} is a land that was ruled by {ruler}."),
        ]
        others = [words.name() for _ in range(8)]
        told += [
            paragraph(name, f"{name} is a town known for {words.some(1)[0]}.") for name in others
        ]
        words.random.shuffle(told)
        return {
            "id": f"hop-{number}",
            "question": f"Who ruled the land in which the river {river} is?",
            "answer": ruler,
            "type": "bridge",
            "level": "easy",
            "granularity": "sentence",
            "supporting": [[river, 0], [land, 0]],
            "paragraphs": told,
        }

    return packed(map(question, range(questions)))


def talks(seed: int = 4, count: int = 2) -> bytes:
    """Return two-speaker conversations, with questions about them."""
    words = Words(seed)

    def talk(number: int) -> dict[str, Any]:
        speakers, asked, sessions = (words.name(), words.name()), [], []
        for session in range(1, 9):
            turns = []
            for turn in range(1, 13):
                speaker = speakers[turn % 2]
                said, id = words.sentence(), f"D{session}:{turn}"
                if turn % 4 == 0:
                    thing, place = words.name(), words.name()
                    said = f"I found my {thing} in {place} at last. {said}"
                    asked.append(
                        {"question": f"Where did {speaker} find the {thing}?", "answer": place,
                         "category": 4, "category_name": "single-hop", "evidence": [id]}
                    )  # fmt: skip
                turns.append({"dia_id": id, "speaker": speaker, "text": said})
            date = f"1:{session:02} pm on {session} {_MONTHS[session - 1]}, 2023"
            sessions.append({"session": str(session), "datetime": date, "turns": turns})
        return {"id": f"talk-{number}", "speakers": speakers, "sessions": sessions, "qa": asked}

    return packed(map(talk, range(count)))


def _haystacks(seed: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    words = Words(seed)
    sessions, questions = [], []
    for number in range(60):
        thing, place = words.name(), words.name()
        turns = [
            {"role": "user", "content": f"{words.sentence()} I keep my {thing} in {place}."},
            {"role": "assistant", "content": words.sentence()},
        ]
        sessions.append({"id": f"session-{number}", "turns": turns})
        if number % 5 == 0:
            questions.append(
                {"id": f"question-{number}", "type": "single-session-user", "abstention": False,
                 "question": f"Where do I keep my {thing}?", "answer": place,
                 "question_date": "2023/06/30 (Fri) 10:00",
                 "answer_session_ids": [f"session-{number}"],
                 "haystack": [[f"session-{each}", f"2023/05/{1 + each % 28:02} (Mon) 09:00"]
                              for each in range(60)]}
            )  # fmt: skip
    return questions, sessions


def chats(seed: int = 6, count: int = 2) -> bytes:
    """Return long chats with an assistant, and probing questions."""
    words = Words(seed)

    def chat(number: int) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        questions: list[dict[str, Any]] = []
        for id in range(120):
            said = words.sentence()
            if id % 12 == 0:
                plan, day = words.name(), words.some(1)[0]
                said = f"The plan {plan} begins on {day}. {said}"
                questions.append(
                    {"category": "information_extraction", "answer": day, "difficulty": "easy",
                     "question": f"When does the plan {plan} begin?", "source_message_ids": [id]}
                )  # fmt: skip
            role = "assistant" if id % 2 else "user"
            messages.append({"id": id, "batch": id // 20, "role": role, "content": said,
                             "time": f"March-{1 + id // 20}-2024"})  # fmt: skip
        return {"id": f"chat-{number}", "messages": messages, "questions": questions}

    return packed(map(chat, range(count)))


def pages(seed: int = 7, count: int = 80) -> bytes:
    """Return Chinese paragraphs with questions."""
    draw = random.Random(seed)

    def some(length: int) -> str:
        return "".join(draw.choices(_HANZI, k=length))

    def page(number: int) -> dict[str, Any]:
        title, told = some(4), some(6)
        context = f"{title}在{told}。" + "。".join(some(12) for _ in range(5)) + "。"
        asked = {"id": f"q{number}", "question": f"{title}在哪里？", "answers": [told]}
        return {"id": f"p{number}", "title": title, "context": context, "qas": [asked]}

    return packed(map(page, range(count)))


def runs(seed: int = 8, count: int = 4) -> bytes:
    """Return runs of an agent that looks up orders and ships them much later."""
    words = Words(seed)

    def call(id: str, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "content": None,
                "tool_calls": [{"id": id, "type": "function", "function": function}]}  # fmt: skip

    def run(number: int) -> dict[str, Any]:
        orders = [(f"order-{number}{at:03}", f"depot_{words.name()}{at}") for at in range(20)]
        said = [{"role": "system", "content": "Look each order up, and ship all of them."}]
        for order, depot in orders:
            told = f"{order} waits in {depot}. " + " ".join(words.sentence() for _ in range(4))
            said += [{"role": "user", "content": f"There is an order, {order}."},
                     call(f"look-{order}", "look_up", {"order": order}),
                     {"role": "tool", "tool_call_id": f"look-{order}", "name": "look_up",
                      "content": told}]  # fmt: skip
        for order, depot in words.random.sample(orders, len(orders)):
            said += [call(f"ship-{order}", "ship", {"order": order, "depot": depot}),
                     {"role": "tool", "tool_call_id": f"ship-{order}", "name": "ship",
                      "content": "It is on its way."}]  # fmt: skip
        return {"id": f"run-{number}", "messages": said}

    return packed(map(run, range(count)))


def families(seed: int = 9, count: int = 8) -> bytes:
    """Return task families with scored runs, tools with calls, and unseen tasks and tools."""
    words = Words(seed)

    def run(task: str, tool: str, way: str, answer: str, score: float) -> dict[str, Any]:
        function = {"name": tool, "arguments": json.dumps({"way": way})}
        call = {"id": "c", "type": "function", "function": function}
        return {"score": score, "messages": [
            {"role": "user", "content": task},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": answer},
            {"role": "assistant", "content": words.sentence()},
        ]}  # fmt: skip

    def family(number: int) -> dict[str, Any]:
        tool, thing, right, wrong, old = (words.name() for _ in range(5))
        task = f"{tool} shall deliver the {thing}"
        runs = [
            run(task, tool, old, "done", 1.0),
            run(task, tool, wrong, f"error: {wrong} is unknown", 0.0),
            run(task, tool, old, f"error: {old} was retired", 0.0),
            run(task, tool, right, "done", 1.0),
        ]
        asked = (
            ("same", "new way", task),
            ("transfer", "new way", f"Who brings me another {thing}?"),
            ("failure_only", "wrong way", f"Which way for the {thing} does not work?"),
        )
        questions = [
            {"id": f"{number}-{kind}", "category": kind, "insight": insight, "query": query}
            for kind, insight, query in asked
        ]
        insights = [
            {"id": "new way", "kind": "outdated", "gold": [right], "misleading": [old]},
            {"id": "wrong way", "kind": "failure", "gold": [f"{wrong} is unknown"]},
        ]
        return {"type": "family", "id": f"f{number}", "insights": insights,
                "trajectories": runs, "questions": questions}  # fmt: skip

    def tool(number: int) -> dict[str, Any]:
        name, wrong = words.name(), words.name()
        calls = [
            {"tool_name": name, "input": {"from": wrong if n % 3 == 0 else f"place {n}"},
             "output": f"nobody knows {wrong}" if n % 3 == 0 else "found", "success": n % 3 != 0,
             "time_cost": 0.5, "create_time": f"2024-05-{n + 1:02}T08:00:00"}
            for n in range(12)
        ]  # fmt: skip
        asked = (
            ("cause", [f"from={wrong}"]), ("usage", ["from=place"]), ("error", ["nobody knows"]),
            ("rate", 0.6667), ("p50", 0.5),
        )  # fmt: skip
        questions = [
            {"id": f"{name}-{kind}", "category": kind, "gold": gold, "query": f"How to use {name}?"}
            for kind, gold in asked
        ]
        return {"type": "tool", "name": name, "calls": calls, "questions": questions}

    rows = [*map(family, range(count)), *map(tool, range(count // 2))]
    rows += [{"type": "abstain", "id": f"a{n}", "query": words.name()} for n in range(count)]
    rows += [{"type": "abstain_tool", "id": f"t{n}", "query": words.name()} for n in range(count)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), text())
    return file.getvalue()


def _texts() -> Iterator[tuple[str, Callable[[], bytes]]]:
    yield "english_novels_48mb.txt.xz", lambda: lzma.compress(text())
    yield "enwik8_prefix_4mb.xml.xz", lambda: lzma.compress(text())
    yield "tinyshakespeare.txt.gz", lambda: gzip.compress(text(), mtime=0)
    yield "text8.zip", lambda: _zipped("text8")
    yield "enwik8.zip", lambda: _zipped("enwik8")


MAKERS: Mapping[str, Callable[[], bytes]] = {
    **dict(_texts()),
    "ufo.csv.gz": sightings,
    "hotpotqa.jsonl.gz": hops,
    "locomo.jsonl.gz": talks,
    "longmemeval_s_questions.jsonl.gz": lambda: packed(_haystacks()[0]),
    "longmemeval_s_sessions.jsonl.gz": lambda: packed(_haystacks()[1]),
    "beam_100k.jsonl.gz": chats,
    "cmrc2018_zh.jsonl.gz": pages,
    "agent_trajectories.jsonl.gz": runs,
    "task.jsonl": families,
}
