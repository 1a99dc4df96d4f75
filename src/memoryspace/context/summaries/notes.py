"""Notes on a conversation: the material of an extractive summary, also read from an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ...message import Msg
from ...message.msg import peek_content
from ...token.base import texts_in
from ..rendering import text_of_output
from .reasons import OPEN, Kind, is_question
from .sentences import (
    RatedSentence,
    is_chinese,
    names_in,
    rated,
    rated_sentences,
    sentences_of,
    shortened,
    split_data,
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
_SECTION_FOR: dict[Kind, Section] = {  # all others: "known"
    "harm": "binding",
    "rule": "binding",
    "open": "open",
    "decision": "decided",
}
_WORTH_OF_ROLE = {"user": 2.5, "assistant": 0.8, "system": 0.0}  # the assistant can say it again
_WORTH_OF_AGE = 0.8  # the newest message over the oldest
_WORTH_OF_EARLIER = 3.3  # as the user's newest: an earlier summary found it worth keeping
USES_SAID, _USES_IN_DATA = 3, 1  # weight of a name in prose, and in data
_LONGEST_GOAL = 8000  # characters
_LONGEST_ARGUMENT = 60
_LONGEST_RESULT = 2000  # characters of one result that are read
_LINES_OF_RESULT = 3
_WORDS_OF_PROSE = 4


class Point(NamedTuple):
    """A statement, its section, and its worth."""

    section: Section
    text: str
    worth: float


class _Speaker(NamedTuple):
    """The speaker of a text: its worth, whether it is the user, whether nobody has replied."""

    worth: float
    is_users: bool = False
    is_unanswered: bool = False


class ConversationNotes:
    """Notes in the order of the conversation. ``names`` maps each name to its weight."""

    def __init__(self) -> None:
        self.goal = ""
        self.points: list[Point] = []
        self.done: list[str] = []
        self.names: dict[str, int] = {}

    def add(self, messages: Sequence[Msg]) -> None:
        """Add what messages say."""
        replied = _last_turn(messages)
        if replied:  # earlier questions have been answered
            self.points = [point for point in self.points if not is_question(point.text)]
        for number, msg in enumerate(messages):
            self._add(msg, number / len(messages) * _WORTH_OF_AGE, number >= replied)
        if not self.goal:
            self.goal = next(filter(None, map(_request, messages)), "")

    def read(self, text: str) -> None:
        """Add an earlier summary. Any other text is added under "known", with the same worth."""
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
            self.done += reversed(list(filter(None, item.split("; "))))  # written newest first
        elif section == "names":
            self._mention(reversed(list(filter(None, item.split(", ")))), USES_SAID)
        elif item:
            self.points += _earlier(section, line)

    def _add(self, msg: Msg, age: float, is_unanswered: bool) -> None:
        content = peek_content(msg)
        speaker = _Speaker(_WORTH_OF_ROLE[msg.role] + age, msg.role == "user", is_unanswered)
        if isinstance(content, str):
            self._add_text(content, speaker)
            return
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                self._add_text(str(block.get("text", "")), speaker)
            elif kind == "tool_use":
                self._add_call(block)
            elif kind == "tool_result":
                self._add_result(text_of_output(block.get("output")), age)

    def _add_text(self, text: str, speaker: _Speaker) -> None:
        self.points += _points(text, speaker)
        said, pasted = split_data(text)
        self._mention(names_in(said), USES_SAID)
        if pasted:
            self._mention(filter(_is_of_a_thing, names_in(pasted)), _USES_IN_DATA)

    def _add_call(self, call: Any) -> None:
        self.done.append(_action(call))
        self._mention(names_in(" ".join(texts_in(call.get("input")))), USES_SAID)

    def _add_result(self, text: str, worth: float) -> None:
        said = text[:_LONGEST_RESULT]
        points = sorted(_points(said, _Speaker(worth)), key=lambda point: -point.worth)
        best = [point for point in points[:_LINES_OF_RESULT] if point.worth > 1]
        self.points += [
            point._replace(section="known")  # a tool cannot decide or bind
            for point in best
            if _is_prose(point.text)
        ]
        self._mention(filter(_is_of_a_thing, names_in(said)), _USES_IN_DATA)

    def _mention(self, names: Iterable[str], uses: int) -> None:
        for name in names:  # a name mentioned again moves to the end
            self.names[name] = self.names.pop(name, 0) + uses


def _points(text: str, speaker: _Speaker) -> Iterator[Point]:
    for sentence in rated_sentences(text):
        if sentence.is_question and speaker.is_unanswered:
            yield Point("open", sentence.text, speaker.worth + OPEN.worth)
        elif (section := _section(sentence)) == "binding" and not speaker.is_users:
            yield Point("decided", sentence.text, speaker.worth + min(sentence.worth, OPEN.worth))
        else:
            yield Point(section, sentence.text, speaker.worth + sentence.worth)


def _section(sentence: RatedSentence) -> Section:
    return (
        _SECTION_FOR.get(sentence.reason.kind, "known") if sentence.reason is not None else "known"
    )


def _earlier(section: Section, line: str) -> Iterator[Point]:
    """Yield the points of a line of an earlier summary, in their section or by content."""
    is_point = line.startswith("- ")
    for part in [line[2:].strip()] if is_point else sentences_of(line):
        sentence = rated(part)
        where = section if is_point or section != "known" else _section(sentence)
        worth = sentence.worth if where == "binding" else min(sentence.worth, OPEN.worth)
        worth = OPEN.worth if where == "open" else worth  # questions too
        yield Point(where, sentence.text, worth + _WORTH_OF_EARLIER)


def _action(call: dict[str, Any]) -> str:
    """Return a tool call in a few words: the tool and its most telling argument."""
    given = call.get("input")
    values = given.values() if isinstance(given, dict) else ()
    texts = [str(value) for value in values if isinstance(value, str | int | float)]
    brief = [text for text in texts if len(text) <= _LONGEST_ARGUMENT]
    named = [*filter(_is_of_a_thing, brief), *filter(names_in, brief)]
    shown = next(iter([*named, *brief, *texts]), "")
    return f"{call.get('name')} {shortened(shown, _LONGEST_ARGUMENT)}".replace("; ", ", ").strip()


def _request(msg: Msg) -> str:
    text = msg.get_text_content() if msg.role == "user" else None
    said, pasted = split_data(without_greeting(text or ""))
    return shortened(said if said.strip() else pasted, _LONGEST_GOAL)


def _last_turn(messages: Sequence[Msg]) -> int:
    """Return where the last speaker's turn begins: questions from there on are unanswered."""
    speakers = [(msg.role, msg.name) if msg.get_text_content() else None for msg in messages]
    last = next(filter(None, reversed(speakers)), None)
    others = [at for at, speaker in enumerate(speakers) if speaker not in (None, last)]
    return others[-1] + 1 if others else 0


def _is_prose(sentence: str) -> bool:
    """Return whether a line of a tool result is a sentence, not code or a table row."""
    return sum(map(str.isalpha, sentence.split())) >= _WORDS_OF_PROSE or is_chinese(sentence)


def _is_of_a_thing(name: str) -> bool:
    """Return whether a name in a tool result names a thing, not a field."""
    return any(sign.isdigit() or sign in "/@" for sign in name)
