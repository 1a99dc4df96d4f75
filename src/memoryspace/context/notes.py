"""Notes of a conversation: what a summary without a model is made of, and how it is read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ..message import Msg
from ..message.msg import peek_content
from ..token.base import texts_in
from .rendering import text_of_output
from .sentences import is_chinese, names_in, remarks_in, sentences_of, short

Section: TypeAlias = Literal["goal", "decided", "known", "done", "open", "names"]

TITLES: dict[Section, tuple[str, str]] = {  # in English and in Chinese
    "goal": ("Goal", "目标"),
    "decided": ("Decided", "决定"),
    "known": ("Known", "已知"),
    "done": ("Done", "已做"),
    "open": ("Open", "待办"),
    "names": ("Mentioned", "提及"),
}
_SECTION_OF = {title: section for section, both in TITLES.items() for title in both}
_WORTH_OF_EARLIER: dict[str, float] = {"decided": 3.2, "known": 2.6, "open": 1.4}
_WORTH_OF_VOICE = {"user": 1.6, "assistant": 0.8, "system": 0.0}
_WORTH_OF_AGE = 0.8  # what the newest has more than the oldest
_USES, _USES_IN_RESULT = 3, 1  # that a name counts for where it stands
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


class Notes:
    """What was said, in the order it was said. ``names`` are with how much they were used."""

    def __init__(self) -> None:
        self.goal = ""
        self.points: list[Point] = []
        self.done: list[str] = []
        self.names: dict[str, int] = {}

    def take(self, messages: Sequence[Msg]) -> None:
        """Note what messages say that is new."""
        for number, msg in enumerate(messages):
            self._take(msg, number / len(messages) * _WORTH_OF_AGE)
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
            self._mention(reversed(list(filter(None, item.split(", ")))), _USES)
        elif item:
            parts = [item] if line.startswith("- ") else sentences_of(item)
            self.points += [Point(section, part, _WORTH_OF_EARLIER[section]) for part in parts]

    def _take(self, msg: Msg, age: float) -> None:
        content = peek_content(msg)
        if isinstance(content, str):
            self._take_words(content, _WORTH_OF_VOICE[msg.role] + age)
            return
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                self._take_words(str(block.get("text", "")), _WORTH_OF_VOICE[msg.role] + age)
            elif kind == "tool_use":
                self._take_call(block)
            elif kind == "tool_result":
                self._take_result(text_of_output(block.get("output")), age)

    def _take_words(self, text: str, worth: float) -> None:
        self.points += _points(text, worth)
        self._mention(names_in(text), _USES)

    def _take_call(self, call: Any) -> None:
        self.done.append(_action(call))
        self._mention(names_in(" ".join(texts_in(call.get("input")))), _USES)

    def _take_result(self, text: str, worth: float) -> None:
        said = text[:_LONGEST_RESULT]
        best = sorted(_points(said, worth), key=lambda point: -point.worth)[:_LINES_OF_RESULT]
        self.points += [point for point in best if point.worth > 1 and _is_prose(point.text)]
        self._mention(filter(_is_of_a_thing, names_in(said)), _USES_IN_RESULT)

    def _mention(self, names: Iterable[str], uses: int) -> None:
        for name in names:  # what is mentioned again stands last again
            self.names[name] = self.names.pop(name, 0) + uses


def _points(text: str, worth: float) -> Iterator[Point]:
    for remark in remarks_in(text):
        section: Section = "decided" if remark.is_decision else "known"
        yield Point("open" if remark.is_open else section, remark.text, worth + remark.worth)


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
    return short(text[:_LONGEST_GOAL], _LONGEST_GOAL) if text is not None else ""


def _is_prose(sentence: str) -> bool:
    """Whether a line of a tool's result is a sentence, and not of a program or a table."""
    return sum(map(str.isalpha, sentence.split())) >= _WORDS_OF_PROSE or is_chinese(sentence)


def _is_of_a_thing(name: str) -> bool:
    """Whether a name in a tool's result is one of a thing, and not of a field."""
    return any(sign.isdigit() or sign in "/@" for sign in name)
