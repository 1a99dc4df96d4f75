"""``memoryspace demo``: two people's memories, a few questions, and how to go on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..door import Memory
from .screen import Grid, Screen

if TYPE_CHECKING:
    from ..door import Config

_SAID = {
    "alice": (
        ("demo-a1", "I'm Alice. I live in Rome and work as a nurse.", "2026-03-02T09:00"),
        ("demo-a2", "My sister Clara is allergic to peanuts.", "2026-04-11T18:30"),
        ("demo-a3", "I moved to Oslo last week.", "2026-09-14T20:15"),
        ("demo-a4", "Please answer in short sentences from now on.", "2026-09-20T08:05"),
    ),
    "wang": (
        ("demo-w1", "我叫王芳，住在上海。", "2026-05-06T10:00"),
        ("demo-w2", "我喜欢喝龙井茶，不喜欢咖啡。", "2026-06-18T15:20"),
        ("demo-w3", "下个月我要去杭州出差。", "2026-08-21T11:45"),
    ),
}
_ASKED = (
    ("alice", "Where do I live?"),
    ("alice", "What must I not cook for Clara?"),
    ("wang", "王芳喜欢喝什么？"),
)


def run(screen: Screen, folder: Path, config: Config) -> None:
    """Fill a memory in a folder, ask it a few questions and show the answers."""
    with Memory(folder, config=config) as memory:
        for user, said in _SAID.items():
            memory.add([_message(*each) for each in said], user=user)
            memory.settle(user=user)
        answers = [_answer(memory, user, question) for user, question in _ASKED]
    heads = ("user", "question", "answer", "score")
    rows = [tuple(str(each[head]) for head in heads) for each in answers]
    data = {"folder": str(folder), "answers": answers}
    screen.show(data, Grid(heads, rows, wide=("question", "answer")))
    screen.note(_how_to_go_on(folder))


def _message(message_id: str, text: str, when: str) -> dict[str, str]:
    return {"id": message_id, "role": "user", "content": text, "timestamp": f"{when}+00:00"}


def _answer(memory: Memory, user: str, question: str) -> dict[str, Any]:
    hits = memory.search(question, user=user, limit=1)
    found = (hits[0].memory.text, round(hits[0].score, 2)) if hits else ("", 0.0)
    return {"user": user, "question": question, "answer": found[0], "score": found[1]}


def _how_to_go_on(folder: Path) -> str:
    start = f"  memoryspace -a {shlex.quote(str(folder))} -u alice"
    return (
        f"\nThe memory is in {folder}. Go on with it:\n"
        f'{start} search --explain "Where does she live?"\n'
        f"{start} facts\n"
        f'{start} context "What shall I cook for Clara?"\n'
        f'{start} add "I have a dog called Bo."\n'
        "Without -a and -u, commands are about your own memory."
    )
