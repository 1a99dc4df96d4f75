"""Notes of a conversation: what a summary without a model is made of, and how it is read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ...message import Msg
from ...message.msg import peek_content
from ...token.base import texts_in
from ..rendering import text_of_output
from .reasons import OPEN, Kind, is_question
from .sentences import (
    Remark,
    is_chinese,
    names_in,
    parted,
    remark_of,
    remarks_in,
    sentences_of,
    short,
    without_greeting,
)

Section: TypeAlias = Literal["goal", "binding", "decided", "known", "done", "open", "names"]

TITLES: dict[Section, tuple[str, str]] = {  # in English and in Chinese
    "goal": ("Goal", "目标"),
    "binding": ("Keep in mind", "须记"),
    "decided": ("Decided", "决定"),
    "known": ("Known", "已知"),
    "done": ("Done", "已做"),
    "open": ("Open", "待办"),
    "names": ("Mentioned", "提及"),
}
_SECTION_OF = {title: section for section, both in TITLES.items() for title in both}
_SECTION_FOR: dict[Kind, Section] = {  # others are known
    "harm": "binding",
    "rule": "binding",
    "open": "open",
    "decision": "decided",
}
_WORTH_OF_VOICE = {"user": 2.5, "assistant": 0.8, "system": 0.0}  # the assistant can say it again
_WORTH_OF_AGE = 0.8  # what the newest has more than the oldest
_WORTH_OF_EARLIER = 3.3  # as the newest of the user: what was kept once was worth it
USES_SAID, _USES_IN_DATA = 3, 1  # that a name counts for where it stands
_LONGEST_GOAL = 8000  # characters
_LONGEST_ARGUMENT = 60
_LONGEST_RESULT = 2000  # characters of one result that are read
_LINES_OF_RESULT = 3
_WORDS_OF_PROSE = 4


class Point(NamedTuple):
    """Something worth saying, where, and how much it is worth."""

    section: Section
    text: str
    worth: float


class _Voice(NamedTuple):
    """Who says something: what that is worth, whether it can bind, whether it has an answer."""

    worth: float
    is_users: bool = False
    is_unanswered: bool = False


class Notes:
    """What was said, in the order it was said. ``names`` are with how much they were used."""

    def __init__(self) -> None:
        self.goal = ""
        self.points: list[Point] = []
        self.done: list[str] = []
        self.names: dict[str, int] = {}

    def take(self, messages: Sequence[Msg]) -> None:
        """Note what messages say that is new."""
        replied = _last_turn(messages)
        if replied:  # what was asked before has its answer
            self.points = [point for point in self.points if not is_question(point.text)]
        for number, msg in enumerate(messages):
            self._take(msg, number / len(messages) * _WORTH_OF_AGE, number >= replied)
        if not self.goal:
            self.goal = next(filter(None, map(_request, messages)), "")

    def read(self, text: str) -> None:
        """Note what an earlier summary said; a text of anybody else is known, and worth as much."""
        section: Section = "known"
        for line in text.split("\n"):
            title, colon, rest = line.partition(": " if ": " in line else ":")
            if colon and title in _SECTION_OF:
                section, line = _SECTION_OF[title], rest
            self._read(section, line)

    def _read(self, section: Section, line: str) -> None:
        item = line.removeprefix("- ").strip()
        if section == "goal":
            self.goal = f"{self.goal} {item}".strip()
        elif section == "done":
            self.done += reversed(list(filter(None, item.split("; "))))  # the newest stood first
        elif section == "names":
            self._mention(reversed(list(filter(None, item.split(", ")))), USES_SAID)
        elif item:
            self.points += _earlier(section, line)

    def _take(self, msg: Msg, age: float, is_unanswered: bool) -> None:
        content = peek_content(msg)
        voice = _Voice(_WORTH_OF_VOICE[msg.role] + age, msg.role == "user", is_unanswered)
        if isinstance(content, str):
            self._take_words(content, voice)
            return
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                self._take_words(str(block.get("text", "")), voice)
            elif kind == "tool_use":
                self._take_call(block)
            elif kind == "tool_result":
                self._take_result(text_of_output(block.get("output")), age)

    def _take_words(self, text: str, voice: _Voice) -> None:
        self.points += _points(text, voice)
        said, pasted = parted(text)
        self._mention(names_in(said), USES_SAID)
        if pasted:
            self._mention(filter(_is_of_a_thing, names_in(pasted)), _USES_IN_DATA)

    def _take_call(self, call: Any) -> None:
        self.done.append(_action(call))
        self._mention(names_in(" ".join(texts_in(call.get("input")))), USES_SAID)

    def _take_result(self, text: str, worth: float) -> None:
        said = text[:_LONGEST_RESULT]
        points = sorted(_points(said, _Voice(worth)), key=lambda point: -point.worth)
        best = [point for point in points[:_LINES_OF_RESULT] if point.worth > 1]
        self.points += [
            point._replace(section="known")  # whatever it says, a tool decides nothing
            for point in best
            if _is_prose(point.text)
        ]
        self._mention(filter(_is_of_a_thing, names_in(said)), _USES_IN_DATA)

    def _mention(self, names: Iterable[str], uses: int) -> None:
        for name in names:  # what is mentioned again stands last again
            self.names[name] = self.names.pop(name, 0) + uses


def _points(text: str, voice: _Voice) -> Iterator[Point]:
    for remark in remarks_in(text):
        if remark.is_question and voice.is_unanswered:
            yield Point("open", remark.text, voice.worth + OPEN.worth)
        elif (section := _section(remark)) == "binding" and not voice.is_users:
            yield Point("decided", remark.text, voice.worth + min(remark.worth, OPEN.worth))
        else:
            yield Point(section, remark.text, voice.worth + remark.worth)


def _section(remark: Remark) -> Section:
    return _SECTION_FOR.get(remark.reason.kind, "known") if remark.reason is not None else "known"


def _earlier(section: Section, line: str) -> Iterator[Point]:
    """Yield the points of a line of an earlier summary: where they stood, or by what they say."""
    is_point = line.startswith("- ")
    for part in [line[2:].strip()] if is_point else sentences_of(line):
        remark = remark_of(part)
        where = section if is_point or section != "known" else _section(remark)
        worth = remark.worth if where == "binding" else min(remark.worth, OPEN.worth)
        worth = OPEN.worth if where == "open" else worth  # also if it is a question
        yield Point(where, remark.text, worth + _WORTH_OF_EARLIER)


def _action(call: dict[str, Any]) -> str:
    """A call in a few words: the tool, and the argument that names what it was about."""
    given = call.get("input")
    values = given.values() if isinstance(given, dict) else ()
    texts = [str(value) for value in values if isinstance(value, str | int | float)]
    brief = [text for text in texts if len(text) <= _LONGEST_ARGUMENT]
    named = [*filter(_is_of_a_thing, brief), *filter(names_in, brief)]
    shown = next(iter([*named, *brief, *texts]), "")
    return f"{call.get('name')} {short(shown, _LONGEST_ARGUMENT)}".replace("; ", ", ").strip()


def _request(msg: Msg) -> str:
    text = msg.get_text_content() if msg.role == "user" else None
    said, pasted = parted(without_greeting(text or ""))
    return short(said if said.strip() else pasted, _LONGEST_GOAL)


def _last_turn(messages: Sequence[Msg]) -> int:
    """Return where the last speaker's turn begins: what is asked from there on has no answer."""
    speakers = [(msg.role, msg.name) if msg.get_text_content() else None for msg in messages]
    last = next(filter(None, reversed(speakers)), None)
    others = [at for at, speaker in enumerate(speakers) if speaker not in (None, last)]
    return others[-1] + 1 if others else 0


def _is_prose(sentence: str) -> bool:
    """Whether a line of a tool's result is a sentence, and not of a program or a table."""
    return sum(map(str.isalpha, sentence.split())) >= _WORDS_OF_PROSE or is_chinese(sentence)


def _is_of_a_thing(name: str) -> bool:
    """Whether a name in a tool's result is one of a thing, and not of a field."""
    return any(sign.isdigit() or sign in "/@" for sign in name)
